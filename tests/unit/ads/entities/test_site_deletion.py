"""A site that is deleted: nothing of it is served or published again, whatever is away or under way; its id is free."""

from __future__ import annotations

from typing import Any

import pytest
from ads_world import PAGE, SITE, TRAVEL, TRAVEL_PARENT, World, serving_world

from node.actors.actor import Failed
from node.ads import messages as m
from node.ads.entities.auctioneer import BIDDER_TIMEOUT_MS, DEBOUNCE_MS, PERIOD_MS
from node.ads.entities.ranker import FLUSH_MS
from node.ads.entities.ranker import KIND as RANKER
from node.ads.entities.site_leaving import AGAIN_MS
from node.ads.ranking import ranker_id
from node.core.hashing import stripe_of
from node.core.ids import EntityRef
from node.store.port import ListStates, StatePage

PUBLISHER = EntityRef("publisher", "acme")
LEARNED = EntityRef(RANKER, ranker_id(TRAVEL, SITE))


def delete(world: World) -> Any:
    return world.ask("site", SITE, m.DeleteSite())


def is_gone(world: World) -> bool:
    found = world.ask("site", SITE, m.GetSite())
    return isinstance(found, Failed) and found.detail == f"there is no site {SITE!r}"


def records(world: World) -> list[str]:
    """Durable states of the site and of its shelves."""
    [page] = world.store.apply([ListStates(("site", "page-shelf", RANKER), limit=500)])
    assert isinstance(page, StatePage)
    return [f"{record.kind}/{record.id}" for record in page.records if SITE in record.id]


def test_nothing_of_a_deleted_site_is_left_but_what_happened_there() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    world.beacon(won.impression_query)
    before = world.facts()
    assert len(records(world)) == 2, "the site and a shelf"
    assert delete(world).suspended_by == ("deletion",)
    assert is_gone(world)
    assert (world.index.views, records(world)) == ({}, [])
    assert world.ask("publisher", "acme", m.GetPublisher()).sites == {}
    assert world.ask("publisher", "acme", m.ResolveSite(SITE)) == m.ResolvedSite("")
    assert world.facts() == [*before, "fact.site_deleted"]
    assert world.select().state in ("suspended", "unknown_site")
    world.restart()
    world.advance(6 * 60_000)
    assert (world.index.views, records(world), world.select().state) == ({}, [], "unknown_site")


def test_an_auction_that_is_under_way_publishes_nothing() -> None:
    world = serving_world()
    bidder = EntityRef("category-bidder", f"{TRAVEL_PARENT}|{stripe_of(SITE)}")
    world.silence(bidder)
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(DEBOUNCE_MS + BIDDER_TIMEOUT_MS // 2)
    assert world.actor("auctioneer", SITE)._round is not None
    delete(world)
    for _ in range(60):
        world.advance(500)
        assert world.index.views == {}
    world.unsilence(bidder)
    world.advance(4_000)
    assert is_gone(world), "some rankers of it lived where the bidder does"
    assert world.index.views == {}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_deletion_goes_on_when_who_was_away_is_back(restarts: bool) -> None:
    world = serving_world()
    assert PUBLISHER.shard != EntityRef("site", SITE).shard
    world.silence(PUBLISHER)
    assert delete(world).changed
    world.advance(10 * AGAIN_MS)
    assert world.ask("site", SITE, m.GetSite()).suspended_by == ("deletion",)
    assert (world.index.views, world.select().state) == ({}, "suspended")
    assert not delete(world).changed, "said again"
    for order in (m.UpdateSite(suspended=False), m.ApproveCreative("camp-1"), m.ClassifyPage(PAGE, "travel")):
        refused = world.ask("site", SITE, order)
        assert isinstance(refused, Failed)
        assert refused.detail == f"conflict: site {SITE!r} is being deleted"
    assert "is being deleted" in world.site().detail
    if restarts:
        world.restart()
    else:
        world.unsilence(PUBLISHER)
    world.advance(5 * AGAIN_MS)
    assert is_gone(world)
    assert (world.index.views, records(world)) == ({}, [])


def test_a_new_site_of_the_same_id_knows_nothing_of_the_former() -> None:
    world = serving_world()
    delete(world)
    assert world.site(publisher="else").changed
    info = world.ask("site", SITE, m.GetSite())
    assert (info.publisher, info.approved, info.pages_fresh, info.suspended) == ("else", (), 0, False)
    world.advance(6 * 60_000)
    assert world.index.views == {}, "the former's pages are not auctioned again"
    world.classify()
    world.advance(3_000)
    assert world.index.views == {}, "nor are its approvals remembered"
    world.approve("camp-1")
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1"}
    assert world.winner() is not None


def test_who_is_not_there_can_t_be_deleted() -> None:
    world = World()
    refused = delete(world)
    assert isinstance(refused, Failed)
    assert refused.detail == f"there is no site {SITE!r}"


def test_what_its_categories_were_worth_is_forgotten_and_nobody_of_it_stays_in_memory() -> None:
    world = serving_world()
    won = world.winner()
    assert won is not None
    world.beacon(won.impression_query)
    world.advance(FLUSH_MS + 1_000)
    assert f"{RANKER}/{LEARNED.id}" in records(world)
    world.silence(LEARNED)
    delete(world)
    world.advance(4_000)
    assert f"{RANKER}/{LEARNED.id}" in records(world), "who is away keeps it until it is asked again"
    assert not is_gone(world)
    world.unsilence(LEARNED)
    world.advance(4_000)
    assert is_gone(world)
    assert records(world) == []
    world.advance(PERIOD_MS + 5_000)
    kinds = {cell.ref.kind for cell in world.system.cells() if SITE in cell.ref.id}
    assert kinds <= {"adserver"}, "which leaves when nobody has visited it for an hour"
