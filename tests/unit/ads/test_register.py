"""The register of a category's campaigns: told in parts, not told again, and the same whoever keeps it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads import messages as m
from node.ads.register import UNREAD, Reading, Register
from node.core.limits import frame_data_bytes_max, register_names_max
from node.wire.codec import CODEC

CATEGORY = "483"
NAMES = st.sets(st.text("abc", min_size=1, max_size=3))


def register(*names: str) -> Register:
    made = Register(CATEGORY)
    for name in names:
        made.add(name)
    return made


def read(of: Register, between: Callable[[int], None] = lambda _part: None) -> Reading:
    """As a bidder reads it; `between` is called after each part."""
    reading = Reading()
    for part in range(1_000):
        told = of.told(reading.after, UNREAD, settled=True)
        reading.hear(told)
        between(part)
        if not told.more:
            break
    return reading


@pytest.fixture
def _parts_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.ads.register.register_names_max", 2)


@pytest.mark.usefixtures("_parts_of_two")
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7])
def test_a_register_is_read_whole_and_in_order(count: int) -> None:
    names = [f"c{number}" for number in range(count)]
    found = register(*reversed(names))
    assert read(found).names == names
    assert len(found) == count


def test_who_knows_it_is_not_told_again() -> None:
    found = register("a", "b")
    known = read(found).digest
    assert found.told("", known, settled=False) == m.CampaignsFor(CATEGORY, (), False, unchanged=True)
    found.add("c")
    assert found.told("", known, settled=True).campaigns == ("a", "b", "c")
    found.remove("c")
    assert found.told("", known, settled=True).unchanged


def test_an_empty_register_that_was_never_read_is_told() -> None:
    assert not Register(CATEGORY).told("", UNREAD, settled=True).unchanged
    assert Register(CATEGORY).told("", read(Register(CATEGORY)).digest, settled=True).unchanged


@given(NAMES, NAMES)
def test_two_directories_agree_when_the_same_have_registered(stay: set[str], go: set[str]) -> None:
    one, other = register(*sorted(stay | go)), register(*sorted(stay, reverse=True))
    for name in sorted(go - stay):
        one.remove(name)
        one.remove(name)
    assert one.told("", read(other).digest, settled=True).unchanged
    assert one.told("", read(register(*stay, "another")).digest, settled=True).campaigns == tuple(sorted(stay))


@pytest.mark.usefixtures("_parts_of_two")
def test_one_that_changes_while_it_is_read_is_told_again() -> None:
    found = register("b", "c", "d", "e")
    reading = read(found, lambda part: found.add("a") if part == 0 else None)
    assert reading.names == ["b", "c", "d", "e"], "it has missed one"
    assert not found.told("", reading.digest, settled=True).unchanged, "and asks once more"


def test_one_part_before_it_was_settled_makes_the_whole_unsettled() -> None:
    reading = Reading()
    reading.hear(m.CampaignsFor(CATEGORY, ("a",), False, more=True))
    reading.hear(m.CampaignsFor(CATEGORY, ("b",), True))
    assert (reading.names, reading.settled) == (["a", "b"], False)


def test_the_longest_part_fits_a_frame() -> None:
    names = [f"{number:064d}" for number in range(register_names_max + 1)]
    told = register(*names).told("", UNREAD, settled=True)
    assert (len(told.campaigns), told.more) == (register_names_max, True)
    assert len(CODEC.encode_record(told)) < frame_data_bytes_max // 2
