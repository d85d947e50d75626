"""Slots that a publisher declares, resizes and declares no more."""

from __future__ import annotations

import pytest
from ads_world import PAGE, SITE, serving_world

from node.actors.actor import Failed
from node.ads import messages as m
from node.ads.entities.site_state import SiteState, update
from node.core import limits
from node.core.errors import BadInput

LOW = m.SlotSpec("low", 300, 250)


def test_a_slot_that_is_declared_later_is_auctioned_once_a_page_shows_it() -> None:
    world = serving_world()
    info = world.ask("site", SITE, m.UpdateSite(slots=(LOW,)))
    assert [slot.slot for slot in info.slots] == ["top", "side", "low"]
    world.select(PAGE, "low")
    world.advance(6_000)
    assert world.index.creatives("low") == {"camp-1"}
    assert world.winner(PAGE, "low") is not None


def test_another_size_is_auctioned_at_once() -> None:
    world = serving_world()
    world.ask("site", SITE, m.UpdateSite(slots=(m.SlotSpec("top", 728, 90),)))
    world.advance(6_000)
    assert (world.index.creatives("top"), world.index.creatives("side")) == (set(), {"camp-1"})


def test_a_slot_that_is_declared_no_more_is_expected_no_more_and_its_floor_goes() -> None:
    world = serving_world()
    world.ask("site", SITE, m.UpdateSite(slot_floors=(("side", 500_000),)))
    info = world.ask("site", SITE, m.UpdateSite(drop_slots=("side",)))
    assert ([slot.slot for slot in info.slots], info.slot_floors) == (["top"], {})
    explained = world.ask("site", SITE, m.ExplainCoverage())
    assert [slot.slot for slot in explained.slots] == ["top"]
    for drops in (("side",), ("top",)):
        refused = world.ask("site", SITE, m.UpdateSite(drop_slots=drops))
        assert isinstance(refused, Failed), drops


def test_a_slot_that_tags_had_reported_is_declared_once() -> None:
    state = SiteState(SITE, SITE, "acme", (m.SlotSpec("top", 1, 1),), 0, b"", observed=(LOW,))
    declared = update(state, m.UpdateSite(slots=(LOW,)))
    assert ([slot.slot for slot in declared.slots], declared.observed) == (["top", "low"], ())
    assert update(declared, m.UpdateSite(slots=(LOW,))) is declared


@pytest.mark.parametrize(
    "order",
    [
        m.UpdateSite(drop_slots=("nowhere",)),
        m.UpdateSite(drop_slots=("top",)),
        m.UpdateSite(slots=tuple(m.SlotSpec(f"s{n}", 1, 1) for n in range(limits.site_slots_max))),
    ],
)
def test_a_site_has_slots_and_not_too_many(order: m.UpdateSite) -> None:
    with pytest.raises(BadInput) as caught:
        update(SiteState(SITE, SITE, "acme", (m.SlotSpec("top", 1, 1),), 0, b""), order)
    assert caught.value.field in ("slot", "slots")
