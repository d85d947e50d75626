"""Readers' pins, and one page view's slots together, through all entities."""

from __future__ import annotations

from typing import Any

from ads_world import AUTO, CARS, PAGE, SITE, World, serving_world

from node.ads import explain
from node.ads import messages as m
from node.ads import pins as p


def world_with(*names: str, **changed: Any) -> World:
    world = serving_world(**changed)
    for name in names:
        world.campaign(name)
    world.advance(3_000)
    world.approve(*(f"{name}-1" for name in names))
    world.advance(3_000)
    return world


def view(world: World, *slots: m.SlotRequest, elsewhere: tuple[m.Pin, ...] = ()) -> m.BatchSelected:
    selected = world.ask("adserver", SITE, m.BatchSelect(PAGE, SITE, slots, elsewhere))
    assert isinstance(selected, m.BatchSelected), selected
    return selected


def top(pin: str = "") -> m.SlotRequest:
    return m.SlotRequest("top", 300, 250, pin)


def side(pin: str = "") -> m.SlotRequest:
    return m.SlotRequest("side", 300, 250, pin)


def test_a_pin_is_shown_again_for_nothing_and_teaches_nothing() -> None:
    """TR31, OP44."""
    world = world_with("other")
    before = world.ask("campaign", "camp", m.GetCampaign())
    for _ in range(10):
        (outcome,) = view(world, top("camp-1")).outcomes
        assert outcome.winner is not None
        assert (outcome.winner.creative, outcome.winner.price_micros, outcome.pin) == ("camp-1", 0, p.HONOURED)
        assert world.beacon(outcome.winner.impression_query).verdict == "counted"
    after = world.ask("campaign", "camp", m.GetCampaign())
    assert (after.spent_micros, after.reserved_micros) == (before.spent_micros, before.reserved_micros)
    seen = world.actor("adserver", SITE)._stats.of("camp-1", world.clock.wall_ms())
    assert (seen.impressions, seen.clicks) == (0, 0)
    decision = world.explain(slot="top")
    assert {c.creative_id: c.reason for c in decision.candidates}["camp-1"] == explain.PINNED


def test_a_pin_needs_neither_money_nor_floor_but_an_approval_always() -> None:
    world = world_with("other")
    world.ask("site", SITE, m.UpdateSite(slot_floors=(("top", 9_000_000),)))
    world.advance(3_000)
    assert world.winner() is None, "all bids are below the slot's floor"
    (outcome,) = view(world, top("camp-1")).outcomes
    assert outcome.winner is not None
    assert outcome.winner.creative == "camp-1"
    world.ask("site", SITE, m.RevokeCreative("camp-1"))
    selected = view(world, top("camp-1"))
    assert selected.outcomes[0].winner is None
    assert selected.outcomes[0].pin == p.REMOVED
    assert selected.stale_pins == (m.Pin("top", "camp-1"),)


def test_a_pin_locks_its_campaign_for_the_other_slots_and_a_second_one_gives_way() -> None:
    world = world_with("other", creatives=("camp-1", "camp-2"))
    for _ in range(10):
        outcomes = view(world, top("camp-1"), side()).outcomes
        assert [o.winner.campaign for o in outcomes if o.winner] == ["camp", "other"]
        outcomes = view(world, top("camp-1"), side("camp-2")).outcomes
        assert [o.winner.campaign for o in outcomes if o.winner] == ["camp", "other"]
        assert [o.pin for o in outcomes] == [p.HONOURED, p.NOT_HERE]


def test_what_a_reader_keeps_elsewhere_is_not_shown_here() -> None:
    world = world_with("other", creatives=("camp-1", "camp-2"))
    for _ in range(10):
        selected = view(world, top(), side(), elsewhere=(m.Pin("top", "camp-1"),))
        assert [o.winner.campaign for o in selected.outcomes if o.winner] == ["other"]
        assert selected.stale_pins == ()
    reasons = {c.creative_id: c.reason for c in world.explain(slot="top").candidates}
    assert reasons["camp-1"] == reasons["camp-2"] == explain.EXCLUDED
    gone = (m.Pin("gone", "camp-1"), m.Pin("top", "never"), m.Pin("side", "camp-2"))
    assert view(world, top(), elsewhere=gone).stale_pins == gone[:2], "its slot, or its creative, is no more"


def test_all_slots_of_a_page_are_decided_together_and_no_campaign_stands_twice() -> None:
    world = world_with("b", "c", "d")
    for _ in range(20):
        outcomes = view(world, top(), side()).outcomes
        campaigns = [o.winner.campaign for o in outcomes if o.winner]
        creatives = [o.winner.creative for o in outcomes if o.winner]
        assert len(set(campaigns)) == len(set(creatives)) == 2
    firsts = {view(world, top(), side()).outcomes[0].winner.campaign for _ in range(30)}  # type: ignore[union-attr]
    assert len(firsts) > 1, "and the first slot is not always the first to choose"


def test_who_won_the_page_a_moment_ago_steps_back_on_that_page_only() -> None:
    world = world_with("other")
    world.campaign("auto", AUTO)
    world.classify(CARS, "a text about cars")
    world.advance(3_000)
    world.approve("auto-1")
    world.advance(20_000)
    first, second = (world.winner() for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.campaign != second.campaign, "within 15 s another has its turn"
    for _ in range(5):
        won = world.winner(CARS)
        assert won is not None
        assert won.campaign == "auto", "alone there, it is shown again"


def test_a_slot_that_nobody_knew_heals_itself_and_asks_the_site_once_a_second() -> None:
    world = serving_world()
    new = m.SlotRequest("new", 300, 250)
    told: list[Any] = []
    site = world.actor("site", SITE)
    activate, site._activate = site._activate, lambda *given: (told.append(given), activate(*given))
    assert view(world, new).outcomes[0].reason == "unknown_slot"
    assert {view(world, new).outcomes[0].reason for _ in range(20)} == {"no_pool"}, "known, and not auctioned yet"
    assert len(told) == 1, "a busy page asks once"
    world.advance(3_000)
    won = view(world, new).outcomes[0].winner
    assert won is not None
    assert won.creative == "camp-1"
