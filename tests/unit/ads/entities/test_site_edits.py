"""What takes candidates out of pools, each from the word that somebody says to the last key of the site."""

from typing import Any

import msgspec
import pytest
from ads_world import AUTO, CARS, DAY_MS, PAGE, SITE, World, serving_world

from node.actors.actor import Failed
from node.ads import edits, explain
from node.ads import messages as m
from node.ads.entities.pools import VIEW_TTL_MS
from node.ads.serveindex import SiteKeys
from node.core.ids import EntityRef
from node.wire.codec import CODEC

SLOTS = {"top", "side"}
OTHER = EntityRef("campaign", "other")


def world_with_two() -> World:
    """Two campaigns of two advertisers, both approved, in both slots."""
    world = serving_world()
    world.advertiser("other-adv")
    world.campaign("other", advertiser="other-adv", cpm=3_000_000)
    world.ask("advertiser", "other-adv", m.AttachCampaign("other"))
    world.advance(3_000)
    world.approve("other-1")
    world.advance(3_000)
    assert all(world.index.creatives(slot) == {"camp-1", "other-1"} for slot in SLOTS)
    return world


def pause(world: World) -> None:
    assert world.ask("campaign", "other", m.SetCampaignStatus("paused")).status == "paused"


def delete(world: World) -> None:
    assert world.ask("campaign", "other", m.SetCampaignStatus("deleted")).status == "deleted"


def suspend(world: World) -> None:
    assert world.ask("advertiser", "other-adv", m.SetAdvertiserStatus("suspended")).status == "suspended"


def end_advertiser(world: World) -> None:
    """For good, and nothing takes it back or adds to it."""
    assert world.ask("advertiser", "other-adv", m.SetAdvertiserStatus("deleted")).status == "deleted"
    again = world.ask("advertiser", "other-adv", m.SetAdvertiserStatus("deleted"))
    assert (again.status, again.changed) == ("deleted", False)
    for order in (m.SetAdvertiserStatus("active"), m.UpdateAdvertiser(name="new"), m.AttachCampaign("another")):
        refused = world.ask("advertiser", "other-adv", order)
        assert isinstance(refused, Failed), order
        assert "is deleted, which is for ever" in refused.detail


def revoke(world: World) -> None:
    assert world.ask("site", SITE, m.RevokeCreative("other-1")) == m.Accepted()


def reject(world: World) -> None:
    assert world.ask("site", SITE, m.RevokeCreative("other-1", reject=True)) == m.Accepted()


@pytest.mark.parametrize("trigger", [pause, delete, suspend, end_advertiser, revoke, reject])
def test_what_may_not_be_served_leaves_every_key_at_once_and_no_auction_brings_it_back(trigger: Any) -> None:
    world = world_with_two()
    trigger(world)
    assert all(world.index.creatives(slot) == {"camp-1"} for slot in SLOTS), "before any auction"
    world.advance(6 * 60_000)
    assert all(world.index.creatives(slot) == {"camp-1"} for slot in SLOTS), "after auctions and resends"
    assert {w.campaign for _ in range(10) if (w := world.winner())} == {"camp"}


def test_the_last_candidate_takes_the_key_with_it() -> None:
    world = serving_world()
    world.ask("campaign", "camp", m.SetCampaignStatus("paused"))
    assert world.index.views == {}


def test_pausing_is_idempotent_and_survives_a_restart_and_resuming_brings_it_back() -> None:
    world = world_with_two()
    pause(world)
    assert not world.ask("campaign", "other", m.SetCampaignStatus("paused")).changed
    assert isinstance(world.ask("campaign", "other", m.SetCampaignStatus("sleeping")), Failed)
    world.index.views.clear()
    world.restart()
    world.advance(30_000)
    assert world.index.creatives() == {"camp-1"}
    assert world.ask("campaign", "other", m.SetCampaignStatus("active")).changed
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", "other-1"}


def test_a_deleted_campaign_stays_so() -> None:
    world = world_with_two()
    delete(world)
    refused = world.ask("campaign", "other", m.SetCampaignStatus("active"))
    assert isinstance(refused, Failed)
    assert "conflict" in refused.detail


def test_a_paused_campaign_is_refused_whatever_a_late_view_says() -> None:
    world = world_with_two()
    late = world.index.views[f"{SITE}|top"]
    pause(world)
    world.index.views[f"{SITE}|top"] = late
    assert {w.campaign for _ in range(10) if (w := world.winner())} == {"camp"}
    refusals = {c.reason for c in world.explain(slot="top").candidates if c.campaign_id == "other"}
    assert refusals <= {explain.NOT_ACTIVE, explain.OUTSCORED}


def test_a_suspended_advertiser_tells_campaigns_that_were_away_also_after_a_restart() -> None:
    """Repair intent is durable: who did not hear of it is told until it says that it knows."""
    world = world_with_two()
    world.silence(OTHER)
    suspend(world)
    assert all(world.index.creatives(slot) == {"camp-1"} for slot in SLOTS), "its advertiser alone is enough"
    world.unsilence(OTHER)
    world.restart()
    world.advance(30_000)
    assert world.ask("campaign", "other", m.GetQuote()).active is False
    assert world.ask("advertiser", "other-adv", m.SetAdvertiserStatus("active")).changed
    world.advance(10_000)
    assert world.ask("campaign", "other", m.GetQuote()).active is True
    assert world.index.creatives() == {"camp-1", "other-1"}


def test_a_revoked_creative_waits_again_and_a_rejected_one_never() -> None:
    world = world_with_two()
    revoke(world)
    world.advance(3_000)
    assert "other-1" in world.ask("site", SITE, m.GetSite()).pending
    reject(world)
    world.advance(6 * 60_000)
    info = world.ask("site", SITE, m.GetSite())
    assert ("other-1" in info.pending, info.rejected) == (False, ("other-1",))
    assert world.ask("site", SITE, m.RevokeCreative("other-1", reject=True)) == m.Accepted(changed=False)
    world.approve("other-1")
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", "other-1"}, "an approval takes the rejection back"
    assert world.facts().count("fact.creative_revoked") == 2


@pytest.mark.parametrize(
    ("order", "undone"),
    [
        (m.UpdateSite(floor_micros=2_500_000), m.UpdateSite(floor_micros=100_000)),
        (m.UpdateSite(block_domains=("bad.example",)), m.UpdateSite(unblock_domains=("bad.example",))),
        (m.UpdateSite(block_products=("1052",)), m.UpdateSite(unblock_products=("1052",))),
    ],
)
def test_a_site_s_own_settings_clear_its_pools_and_fill_them_again(order: m.UpdateSite, undone: m.UpdateSite) -> None:
    world = serving_world(cpm=3_000_000)
    spec = m.CreativeSpec("bad-1", "https://cdn.example/b", "https://www.bad.example/", 300, 250, "image/png", "1052")
    world.ask("campaign", "bad", m.CreateCampaign("bad", "adv", "bad", 2_000_000, 10**8, ("654",), "UTC"))
    world.ask("campaign", "bad", m.AddCreative(spec))
    world.advance(3_000)
    world.approve("bad-1")
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", "bad-1"}
    late = world.index.views[f"{SITE}|top"]
    assert world.ask("site", SITE, order).changed
    assert all(world.index.creatives(slot) == {"camp-1"} for slot in SLOTS)
    assert not world.ask("site", SITE, order).changed
    world.advance(6 * 60_000)
    assert world.index.creatives() == {"camp-1"}
    world.index.views[f"{SITE}|top"] = late
    assert {w.campaign for _ in range(10) if (w := world.winner())} == {"camp"}, "a late view is judged at serve time"
    world.restart()
    world.advance(30_000)
    assert world.index.creatives() == {"camp-1"}, "and cleared by whoever owns the site next"
    assert world.ask("site", SITE, undone).changed
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", "bad-1"}


def test_a_suspended_site_has_no_pools_and_a_resumed_one_has_them_back() -> None:
    world = serving_world()
    assert world.ask("site", SITE, m.UpdateSite(suspended=True)).suspended
    assert world.index.views == {}
    assert world.select().state == "suspended"
    world.advance(6 * 60_000)
    assert world.index.views == {}
    world.ask("site", SITE, m.UpdateSite(suspended=False))
    world.advance(3_000)
    assert all(world.index.creatives(slot) == {"camp-1"} for slot in SLOTS)
    assert world.winner() is not None


def test_an_exhausted_campaign_keeps_its_place_until_its_next_day() -> None:
    world = serving_world(budget=2_050)  # one impression at its own price of 2,000 micros
    world.campaign("rival", cpm=1_999_999)
    world.advance(3_000)
    world.approve("rival-1")
    world.advance(3_000)
    for _ in range(30):
        won = world.winner()
        if won is not None and won.campaign == "camp":
            world.beacon(won.impression_query)
            break
    view = world.index.views[f"{SITE}|top"]
    assert "camp-1" in {c.creative_id for c in view.candidates}
    assert view.expires_at_ms > world.clock.wall_ms() + VIEW_TTL_MS
    assert view.expires_at_ms <= world.clock.wall_ms() + DAY_MS + VIEW_TTL_MS


def test_an_edit_reaches_keys_of_slots_that_the_site_knows_no_more_and_spares_other_sites() -> None:
    world = serving_world()
    view = world.index.views[f"{SITE}|top"]
    world.index.views[f"{SITE}|renamed"] = view
    world.index.views[f"{SITE}.org|top"] = view
    answer = world.ask("adserver", SITE, m.EditSite((edits.drop_campaign("camp"),)))
    assert answer == m.SiteEdited(0, 3)
    assert list(world.index.views) == [f"{SITE}.org|top"]
    assert world.ask("adserver", SITE, m.EditSite((edits.drop_campaign("camp"),))) == m.SiteEdited(0, 0)


def test_an_edit_goes_on_until_the_replica_knows_all_its_keys() -> None:
    world = serving_world()
    view = world.index.views[f"{SITE}|top"]
    world.index.views[f"{SITE}|hidden"] = view
    seen = world.index.keys_of
    world.index.keys_of = lambda site: SiteKeys((), False)  # type: ignore[method-assign]
    assert not world.ask("adserver", SITE, m.EditSite((edits.drop_campaign("camp"),))).complete
    assert list(world.index.views) == [f"{SITE}|hidden"]
    world.index.keys_of = seen  # type: ignore[method-assign]
    world.advance(1_000)
    assert world.index.views == {}


def test_an_edit_needs_nothing_that_an_ad_server_has_to_learn_first() -> None:
    world = world_with_two()
    world.actor("adserver", SITE)._settings = None
    assert world.ask("adserver", SITE, m.EditSite((edits.drop_advertiser("other-adv"),))).changed == 2
    assert world.index.creatives() == {"camp-1"}


def test_an_expired_pool_is_neither_served_nor_revived_by_an_edit() -> None:
    """TR22."""
    world = serving_world()
    key = f"{SITE}|top"
    dead = msgspec.structs.replace(world.index.views[key], expires_at_ms=world.clock.wall_ms())
    world.index.views = {key: dead}
    assert world.winner() is None
    later = world.clock.wall_ms() + DAY_MS
    assert world.ask("adserver", SITE, m.EditSite((edits.extend_campaign("camp", later),))) == m.SiteEdited(0, 0)
    assert world.index.views == {key: dead}
    world.advance(6 * 60_000)
    assert world.winner() is not None, "the next auction makes a new one"


def test_an_unknown_rule_changes_nothing() -> None:
    world = serving_world()
    before = dict(world.index.views)
    order = m.EditSite((edits.drop_campaign("camp"), edits.SiteEdit("everything-bad")))
    assert isinstance(world.ask("adserver", SITE, order), Failed)
    assert world.index.views == before


def test_one_campaign_s_page_does_not_lose_the_other_page_s_candidates() -> None:
    world = serving_world()
    world.campaign("auto", AUTO)
    world.classify(CARS, "a text about cars")
    world.advance(3_000)
    world.approve("auto-1")
    world.advance(3_000)
    assert world.index.creatives() == {"camp-1", "auto-1"}
    world.ask("campaign", "camp", m.SetCampaignStatus("paused"))
    assert world.index.creatives() == {"auto-1"}
    assert world.winner(PAGE) is None
    assert world.winner(CARS) is not None


def test_the_rules_are_data_and_travel() -> None:
    orders = (edits.drop_campaign("c", keep=("k",)), edits.block_domains({"b.example", "a.example"}))
    assert CODEC.decode(CODEC.encode(m.EditSite(orders))) == m.EditSite(orders)
    assert msgspec.structs.asdict(orders[1])["values"] == ("a.example", "b.example")


def test_what_a_former_owner_wrote_and_no_auction_produced_again_goes() -> None:
    """`replication.md` section 2: a key of an older epoch, after the take-over and its replay."""
    world = serving_world()
    view = world.index.read(f"{SITE}|top")
    assert view is not None
    world.index.views[f"{SITE}|gone"] = msgspec.structs.replace(view, expires_at_ms=view.expires_at_ms + VIEW_TTL_MS)
    world.index.of_former |= {f"{SITE}|gone", f"{SITE}|top"}
    world.advance(16 * 60_000)
    assert world.index.read(f"{SITE}|gone") is None
    assert world.index.creatives("top") == {"camp-1"}, "this one was produced again"
