"""What holds on all of a publisher's sites: suspension and blocked domains, heard by each of them, whatever is away."""

from __future__ import annotations

from typing import Any

import pytest
from ads_world import SITE, World, serving_world

from node.actors.actor import Failed
from node.ads import messages as m
from node.ads.entities.publisher import TELL_AGAIN_MS, changed_terms
from node.ads.facts import PublisherStanding
from node.core import limits
from node.core.errors import BadInput
from node.core.ids import EntityRef
from node.store.port import FactPage, ReadFacts
from node.wire.codec import CODEC

BLOG, STRANGER = "blog.example", "stranger.example"
SUSPEND, RESUME = m.UpdatePublisher(suspended=True), m.UpdatePublisher(suspended=False)


@pytest.fixture
def world() -> World:
    """A serving site and another of the publisher acme, and one of somebody else's."""
    world = serving_world()
    world.site(BLOG)
    world.site(STRANGER, publisher="else")
    return world


def order(world: World, message: m.UpdatePublisher) -> m.PublisherInfo:
    info = world.ask("publisher", "acme", message)
    assert isinstance(info, m.PublisherInfo), info
    return info


def untold(world: World) -> tuple[str, ...]:
    info: m.PublisherInfo = world.ask("publisher", "acme", m.GetPublisher())
    return info.untold


def shown(world: World, site: str) -> m.SiteInfo:
    info = world.ask("site", site, m.GetSite())
    assert isinstance(info, m.SiteInfo), info
    return info


def standings(world: World) -> list[Any]:
    [page] = world.store.apply([ReadFacts(0, 5_000)])
    assert isinstance(page, FactPage)
    facts = [CODEC.decode_record(stored.body) for stored in page.facts]
    return [fact for fact in facts if isinstance(fact, PublisherStanding)]


def test_a_suspended_publisher_is_served_nowhere_and_a_resumed_one_everywhere(world: World) -> None:
    assert (order(world, SUSPEND).suspended, untold(world)) == (True, ())
    assert world.index.views == {}
    assert world.select().state == "suspended"
    assert [shown(world, site).suspended_by for site in (SITE, BLOG, STRANGER)] == [("publisher",)] * 2 + [()]
    world.advance(6 * 60_000)
    assert world.index.views == {}, "no auction brings a pool back"
    assert order(world, RESUME).changed
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1"}
    assert world.winner() is not None
    assert standings(world) == [PublisherStanding("acme", True), PublisherStanding("acme", False)]


def test_what_was_ordered_for_a_site_alone_stays_when_its_publisher_is_resumed(world: World) -> None:
    world.ask("site", SITE, m.UpdateSite(suspended=True))
    order(world, SUSPEND)
    assert shown(world, SITE).suspended_by == ("site", "publisher")
    order(world, RESUME)
    assert (shown(world, SITE).suspended_by, shown(world, BLOG).suspended) == (("site",), False)
    order(world, SUSPEND)
    world.ask("site", SITE, m.UpdateSite(suspended=False))
    assert shown(world, SITE).suspended_by == ("publisher",), "nor does a site resume by itself"
    assert world.index.views == {}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_site_that_is_away_hears_of_it_later(world: World, restarts: bool) -> None:
    away = EntityRef("site", SITE)
    assert away.shard != EntityRef("publisher", "acme").shard
    world.silence(away)
    order(world, SUSPEND)
    world.advance(3 * TELL_AGAIN_MS)
    assert untold(world) == (SITE,)
    if restarts:
        world.restart()
    else:
        world.unsilence(away)
    world.advance(2 * TELL_AGAIN_MS)
    assert untold(world) == ()
    assert shown(world, SITE).suspended
    assert world.select().state == "suspended"
    assert world.index.views == {}


def test_an_order_that_is_said_again_reaches_all_again_and_is_no_second_fact(world: World) -> None:
    order(world, SUSPEND)
    again = order(world, SUSPEND)
    assert (again.changed, again.untold, untold(world)) == (False, (BLOG, SITE), ())
    assert standings(world) == [PublisherStanding("acme", True)]


def test_a_late_answer_to_an_older_order_does_not_pass_for_one_to_the_newer(world: World) -> None:
    world.silence(EntityRef("site", SITE))
    order(world, SUSPEND)
    order(world, RESUME)
    world.unsilence(EntityRef("site", SITE))
    world.advance(3 * TELL_AGAIN_MS)
    assert (untold(world), shown(world, SITE).suspended) == ((), False)


def test_a_site_that_is_made_meanwhile_is_suspended_too(world: World) -> None:
    order(world, SUSPEND)
    world.site("new.example")
    assert shown(world, "new.example").suspended_by == ("publisher",)
    order(world, RESUME)
    assert not shown(world, "new.example").suspended


def test_a_site_that_was_registered_and_never_made_is_not_waited_for(world: World) -> None:
    world.ask("publisher", "acme", m.RegisterSite("never.example", "never.example"))
    order(world, SUSPEND)
    assert untold(world) == ()


def test_a_domain_that_a_publisher_blocks_leaves_the_pools_of_all_its_sites(world: World) -> None:
    order(world, m.UpdatePublisher(block_domains=("shop.example",)))
    assert world.index.creatives() == set()
    world.classify()
    world.advance(6 * 60_000)
    assert world.index.creatives() == set()
    info = shown(world, BLOG)
    assert (info.blocked_domains, info.publisher_domains) == ((), ("shop.example",))
    order(world, m.UpdatePublisher(unblock_domains=("shop.example",)))
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1"}


def test_a_publisher_blocks_so_many_domains_and_no_more() -> None:
    full = tuple(f"d{number}.example" for number in range(limits.site_blocks_max))
    terms = changed_terms(m.PublisherTerms(), m.UpdatePublisher(block_domains=full))
    assert changed_terms(terms, m.UpdatePublisher(block_domains=full[:1])) == terms
    with pytest.raises(BadInput) as caught:
        changed_terms(terms, m.UpdatePublisher(block_domains=("one-more.example",)))
    assert caught.value.field == "domains"


def test_who_has_no_site_is_no_publisher(world: World) -> None:
    for message in (SUSPEND, m.GetPublisher()):
        refused = world.ask("publisher", "nobody", message)
        assert isinstance(refused, Failed)
        assert refused.detail == "there is no publisher 'nobody'"


def test_an_empty_slot_says_that_its_publisher_is_suspended(world: World) -> None:
    order(world, SUSPEND)
    explained = world.ask("site", SITE, m.ExplainCoverage())
    assert {slot.reason for slot in explained.slots} == {"suspended"}
    assert all("publisher acme is suspended" in slot.why for slot in explained.slots)
    assert all("/v1/internal/publishers/acme/resume" in slot.fill for slot in explained.slots)


def test_trust_is_taken_back_by_its_name(world: World) -> None:
    world.ask("site", SITE, m.UpdateSite(auto_approve=True))
    trusted = shown(world, SITE).trusted
    assert "campaign|camp" in trusted
    left = world.ask("site", SITE, m.UpdateSite(distrust=("campaign|camp",)))
    assert left.trusted == tuple(name for name in trusted if name != "campaign|camp")
    assert left.auto_approve
    assert not world.ask("site", SITE, m.UpdateSite(distrust=("campaign|camp",))).changed
    assert shown(world, SITE).approved == ("camp-1",), "what was approved stays so"
