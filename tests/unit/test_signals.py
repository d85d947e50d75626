"""What a signal means that comes after another one."""

from __future__ import annotations

import pytest

from node.wiring.signals import Stops

ALONE, WITH_ALL = False, True


@pytest.mark.parametrize(
    ("heard", "impatient"),
    [
        ((ALONE, ALONE), (False, True)),
        ((WITH_ALL, WITH_ALL), (False, True)),
        ((ALONE, WITH_ALL, WITH_ALL), (False, False, True)),
        ((ALONE, WITH_ALL, ALONE), (False, False, True)),
        ((ALONE, ALONE, WITH_ALL), (False, True, False)),
    ],
)
def test_p63_the_stop_of_all_joins_a_drain_and_what_is_said_again_is_impatience(
    heard: tuple[bool, ...], impatient: tuple[bool, ...]
) -> None:
    stops = Stops()
    assert tuple(stops.impatient(frozen=frozen) for frozen in heard) == impatient
