"""Bids, budgets and creatives that are changed while they serve: at once, for good over restarts, and never twice."""

from __future__ import annotations

import pytest
from ads_world import PAGE, SITE, World, serving_world

from node.actors.actor import Failed
from node.ads import explain
from node.ads import messages as m

SLOTS = ("top", "side")


def world_with_two_creatives() -> World:
    """One campaign, both of its creatives approved and in both slots."""
    world = serving_world()
    spec = m.CreativeSpec("camp-2", "https://cdn.example/2", "https://shop.example/", 300, 250, "image/png")
    assert world.ask("campaign", "camp", m.AddCreative(spec)) == m.Accepted()
    world.advance(3_000)
    world.approve("camp-2")
    world.advance(3_000)
    assert all(world.index.creatives(slot) == {"camp-1", "camp-2"} for slot in SLOTS)
    return world


def withdraw(world: World, status: str, creative: str = "camp-2") -> m.Accepted:
    done = world.ask("campaign", "camp", m.SetCreativeStatus(creative, status))
    assert isinstance(done, m.Accepted), done
    return done


@pytest.mark.parametrize("status", ["paused", "deleted"])
def test_a_creative_that_is_withdrawn_leaves_every_key_at_once_and_its_sibling_stays(status: str) -> None:
    world = world_with_two_creatives()
    assert withdraw(world, status) == m.Accepted()
    assert withdraw(world, status) == m.Accepted(changed=False)
    assert all(world.index.creatives(slot) == {"camp-1"} for slot in SLOTS), "before any auction"
    world.advance(6 * 60_000)
    assert all(world.index.creatives(slot) == {"camp-1"} for slot in SLOTS), "after auctions and resends"
    assert {w.creative for _ in range(10) if (w := world.winner())} == {"camp-1"}


def test_an_auction_alone_takes_out_what_is_not_bid_with_any_more() -> None:
    """The word of the withdrawal is lost: the next auction is enough."""
    world = world_with_two_creatives()
    stale = dict(world.index.views)
    withdraw(world, "paused")
    world.index.views.update(stale)
    world.tell("auctioneer", SITE, m.Reevaluate((), "test"))
    world.advance(3_000)
    assert all(world.index.creatives(slot) == {"camp-1"} for slot in SLOTS)


def test_a_pool_that_came_late_gets_no_money_for_a_withdrawn_creative() -> None:
    world = world_with_two_creatives()
    stale = dict(world.index.views)
    withdraw(world, "paused")
    world.index.views.update(stale)
    winners, told = set(), set()
    for _ in range(20):
        winner = world.winner()
        assert winner is not None, "its sibling takes the slot"
        winners.add(winner.creative)
        [withdrawn] = [c for c in world.explain(slot="top").candidates if c.creative_id == "camp-2"]
        told.add(withdrawn.reason)
    assert winners == {"camp-1"}
    assert explain.WITHDRAWN in told, "its campaign was asked for money, and gave none"
    assert told <= {explain.WITHDRAWN, explain.OUTSCORED, explain.RECENT_ON_PAGE}


def test_a_paused_creative_comes_back_a_deleted_one_never_and_both_survive_a_restart() -> None:
    world = world_with_two_creatives()
    withdraw(world, "paused")
    world.index.views.clear()
    world.restart()
    world.advance(30_000)
    assert world.index.creatives() == {"camp-1"}
    withdraw(world, "active")
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", "camp-2"}
    withdraw(world, "deleted")
    refused = world.ask("campaign", "camp", m.SetCreativeStatus("camp-2", "active"))
    assert isinstance(refused, Failed)
    assert "for ever" in refused.detail
    spec = m.CreativeSpec("camp-2", "https://cdn.example/other", "https://x.example/", 300, 250, "image/png")
    again = world.ask("campaign", "camp", m.AddCreative(spec))
    assert isinstance(again, Failed), "nothing else may stand under an id that publishers have judged"
    unknown = world.ask("campaign", "camp", m.SetCreativeStatus("none", "paused"))
    assert isinstance(unknown, Failed)
    assert unknown.detail.startswith("there is no creative")


def test_a_campaign_whose_creatives_are_all_withdrawn_bids_with_nothing() -> None:
    world = serving_world()
    withdraw(world, "paused", "camp-1")
    world.advance(3_000)
    assert world.index.views == {}
    assert world.winner() is None


def test_a_site_forgets_a_creative_that_is_no_more() -> None:
    world = world_with_two_creatives()
    assert world.ask("site", SITE, m.ForgetCreative("camp-2")) == m.Accepted()
    assert world.ask("site", SITE, m.ForgetCreative("camp-2")) == m.Accepted(changed=False)
    info = world.ask("site", SITE, m.GetSite())
    assert (info.approved, info.pending, info.rejected) == (("camp-1",), (), ())
    assert world.index.creatives() == {"camp-1"}
    assert world.facts().count("fact.creative_revoked") == 1


@pytest.mark.parametrize("cpm", [500_000, 4_000_000])
def test_another_bid_is_auctioned_within_seconds(cpm: int) -> None:
    world = serving_world()
    info = world.ask("campaign", "camp", m.UpdateCampaign(max_cpm_micros=cpm))
    assert (info.max_cpm_micros, info.changed) == (cpm, True)
    assert not world.ask("campaign", "camp", m.UpdateCampaign(max_cpm_micros=cpm)).changed
    world.advance(3_000)
    view = world.index.read(f"{SITE}|top")
    assert view is not None
    assert [c.cpm_micros for c in view.candidates] == [cpm]
    world.restart()
    assert world.ask("campaign", "camp", m.GetCampaign()).max_cpm_micros == cpm


def test_a_bid_below_the_floor_leaves_the_pools() -> None:
    world = serving_world()
    world.ask("campaign", "camp", m.UpdateCampaign(max_cpm_micros=50_000))  # the site's floor is 100,000
    world.advance(3_000)
    assert world.index.views == {}


@pytest.mark.parametrize("payer", ["campaign", "advertiser"])
def test_a_larger_budget_serves_again_at_once_and_a_smaller_one_counts_what_was_spent(payer: str) -> None:
    """OP6."""
    world = serving_world()
    name = {"campaign": "camp", "advertiser": "adv"}[payer]
    update = {"campaign": m.UpdateCampaign, "advertiser": m.UpdateAdvertiser}[payer]
    won = world.winner()
    assert won is not None
    assert world.beacon(won.impression_query) == m.Tracked("counted")
    spent = won.price_micros // 1_000
    smaller = world.ask(payer, name, update(daily_budget_micros=spent))
    assert (smaller.daily_budget_micros, smaller.spent_micros) == (spent, spent)
    world.advance(1_000)
    assert world.winner() is None, "all of it is spent"
    assert world.ask(payer, name, update(daily_budget_micros=spent * 3)).daily_budget_micros == spent * 3
    world.advance(1_000)
    assert sum(world.winner() is not None for _ in range(10)) == 2, "what is spent counts (I7)"
    world.restart()
    world.advance(30_000)
    asked = m.GetCampaign() if payer == "campaign" else m.GetAdvertiser()
    again = world.ask(payer, name, asked)
    assert (again.daily_budget_micros, again.spent_micros) == (spent * 3, spent)


def test_a_deleted_campaign_can_not_be_changed_and_a_name_alone_can() -> None:
    world = serving_world()
    assert world.ask("campaign", "camp", m.UpdateCampaign(name="Night trains")).name == "Night trains"
    assert world.ask("advertiser", "adv", m.UpdateAdvertiser(name="Acme")).name == "Acme"
    assert world.select(PAGE).outcomes[0].winner is not None
    world.ask("campaign", "camp", m.SetCampaignStatus("deleted"))
    assert isinstance(world.ask("campaign", "camp", m.UpdateCampaign(name="x")), Failed)
