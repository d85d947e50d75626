"""How long a request waits for others, by what whoever sent it waits."""

from __future__ import annotations

from contextvars import copy_context

import pytest

from node.admin.asking import ends_ns, patience_ms
from node.core.clock import MS, ManualClock


@pytest.mark.parametrize(
    ("asker_ms", "waited_ms"),
    [(None, 2_000), (10_000, 2_000), (2_700, 2_000), (2_400, 1_900), (700, 200), (300, 100), (0, 100)],
)
def test_what_others_are_given_leaves_time_for_the_answer(asker_ms: int | None, waited_ms: int) -> None:
    clock = ManualClock()

    def asked() -> int:
        ends_ns.set(None if asker_ms is None else clock.mono_ns() + asker_ms * MS)
        return patience_ms(clock, 2_000)

    assert copy_context().run(asked) == waited_ms
