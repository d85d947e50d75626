"""What each event does to a site's pools at once, and which pages it has auctioned again: 3.8 of the reference.

Of an event of one campaign those pages are auctioned that its categories reach, which are all that it could win or
lose; of an event of the site, or of an advertiser who is stopped, all are. An auction follows a second after its event.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from ads_world import AUTO, CARS, PAGE, SITE, World, serving_world

from node.ads import messages as m
from node.ads.entities.auctioneer import DEBOUNCE_MS

ALL = {"camp-1", "other-1", "other-2", "auto-1"}
TARGETED, FULL, NONE = {PAGE}, {PAGE, CARS}, set[str]()
Act = Callable[[World], object]


def market() -> World:
    """Two campaigns on the travel page, one of them with two creatives; one on the page about cars."""
    world = serving_world()
    world.advertiser("other-adv")
    world.campaign("other", advertiser="other-adv", cpm=3_000_000, creatives=("other-1", "other-2"))
    world.ask("advertiser", "other-adv", m.AttachCampaign("other"))
    world.campaign("auto", AUTO)
    world.classify(CARS, "a text about cars")
    world.advance(3_000)
    world.approve("other-1", "other-2", "auto-1")
    world.advance(5_000)
    assert world.index.creatives() == ALL
    return world


def to_campaign(order: object) -> Act:
    return lambda world: world.ask("campaign", "other", order)  # type: ignore[arg-type]


def to_advertiser(order: object) -> Act:
    return lambda world: world.ask("advertiser", "other-adv", order)  # type: ignore[arg-type]


def to_site(order: object) -> Act:
    return lambda world: world.ask("site", SITE, order)  # type: ignore[arg-type]


def nothing(_world: World) -> None:
    pass


def spend_all(world: World) -> None:
    """What is left of the day pays for no impression at its own price."""
    spent = m.Confirm("r", SITE, "other-1", 99_999_999)
    assert world.ask("campaign", "other", m.Reserve("r", 99_999_999, world.clock.wall_ms(), "other-1")).outcome
    assert world.ask("campaign", "other", spent).counted


class Row(NamedTuple):
    event: str
    before: Act
    act: Act
    left: set[str]
    auctioned: set[str]


PAUSED = to_campaign(m.SetCampaignStatus("paused"))
REVOKED = to_site(m.RevokeCreative("other-1"))
FLAGGED = to_site(m.FlagCreative("other-1", "taste"))
WITHOUT = ALL - {"other-1", "other-2"}
TABLE = [
    Row("creative paused", nothing, to_campaign(m.SetCreativeStatus("other-1", "paused")), ALL - {"other-1"}, TARGETED),
    Row(
        "creative reactivated",
        to_campaign(m.SetCreativeStatus("other-1", "paused")),
        to_campaign(m.SetCreativeStatus("other-1", "active")),
        ALL - {"other-1"},
        TARGETED,
    ),
    Row("campaign paused", nothing, PAUSED, WITHOUT, TARGETED),
    Row("campaign resumed", PAUSED, to_campaign(m.SetCampaignStatus("active")), WITHOUT, TARGETED),
    Row("campaign deleted", nothing, to_campaign(m.SetCampaignStatus("deleted")), WITHOUT, TARGETED),
    Row("another bid", nothing, to_campaign(m.UpdateCampaign(max_cpm_micros=4_000_000)), ALL, TARGETED),
    Row("another name", nothing, to_campaign(m.UpdateCampaign(name="new")), ALL, TARGETED),
    Row("campaign exhausted", nothing, spend_all, ALL, TARGETED),
    Row(
        "budget raised above the spend",
        spend_all,
        to_campaign(m.UpdateCampaign(daily_budget_micros=200_000_000)),
        ALL,
        TARGETED,
    ),
    Row("not on its list of sites", nothing, to_campaign(m.UpdateCampaign(sites=("a.example",))), WITHOUT, TARGETED),
    Row("places narrowed", nothing, to_campaign(m.UpdateCampaign(places=("JP",))), ALL, TARGETED),
    Row("advertiser suspended", nothing, to_advertiser(m.SetAdvertiserStatus("suspended")), WITHOUT, FULL),
    Row(
        "advertiser resumed",
        to_advertiser(m.SetAdvertiserStatus("suspended")),
        to_advertiser(m.SetAdvertiserStatus("active")),
        WITHOUT,
        TARGETED,
    ),
    Row("approved", REVOKED, to_site(m.ApproveCreative("other-1")), ALL - {"other-1"}, FULL),
    Row("approved already", nothing, to_site(m.ApproveCreative("other-1")), ALL, NONE),
    Row("rejected", nothing, to_site(m.RevokeCreative("other-1", reject=True)), ALL - {"other-1"}, FULL),
    Row("flagged", nothing, FLAGGED, ALL - {"other-1"}, FULL),
    Row("unflagged", FLAGGED, to_site(m.UnflagCreative("other-1")), ALL - {"other-1"}, FULL),
    Row("revoked", nothing, REVOKED, ALL - {"other-1"}, FULL),
    Row("domain blocked", nothing, to_site(m.UpdateSite(block_domains=("shop.example",))), set(), FULL),
    Row("floor raised", nothing, to_site(m.UpdateSite(floor_micros=2_500_000)), {"other-1", "other-2"}, FULL),
    Row("the same floor again", nothing, to_site(m.UpdateSite(floor_micros=100_000)), ALL, NONE),
    Row("site suspended", nothing, to_site(m.UpdateSite(suspended=True)), set(), NONE),
    Row("site resumed", to_site(m.UpdateSite(suspended=True)), to_site(m.UpdateSite(suspended=False)), set(), FULL),
]


def auctioned_since(world: World, at_ms: int) -> set[str]:
    return {url for url, report in world.actor("site", SITE)._reports.items() if report.at_ms > at_ms}


@pytest.mark.parametrize("row", TABLE, ids=[row.event for row in TABLE])
def test_what_an_event_takes_out_at_once_and_what_it_has_auctioned_a_second_later(row: Row) -> None:
    world = market()
    row.before(world)
    world.advance(3_000)
    began_ms = world.clock.wall_ms()
    row.act(world)
    acted_ms = world.clock.wall_ms()
    assert world.index.creatives() == row.left
    world.advance(DEBOUNCE_MS - 1 - (acted_ms - began_ms))
    assert auctioned_since(world, began_ms) == NONE, "events that come together are auctioned together"
    world.advance(1_500)
    assert auctioned_since(world, began_ms) == row.auctioned
    settled_ms = world.clock.wall_ms()
    world.advance(3_000)
    assert auctioned_since(world, settled_ms) == NONE, "one event, one auction"


def test_what_an_event_took_out_is_back_once_it_is_undone() -> None:
    world = market()
    for order, undone in (
        (m.SetCampaignStatus("paused"), m.SetCampaignStatus("active")),
        (m.UpdateCampaign(sites=("a.example",)), m.UpdateCampaign(sites=())),
        (m.SetCreativeStatus("other-1", "paused"), m.SetCreativeStatus("other-1", "active")),
    ):
        to_campaign(order)(world)
        world.advance(3_000)
        assert "other-1" not in world.index.creatives(), order
        to_campaign(undone)(world)
        world.advance(3_000)
        assert world.index.creatives() == ALL, undone


def test_a_hundred_events_within_a_second_are_one_auction() -> None:
    world = market()
    rounds = world.actor("auctioneer", SITE)._rounds
    for cents in range(100):
        world.ask("campaign", "other", m.UpdateCampaign(max_cpm_micros=3_000_000 + 10_000 * (cents + 1)))
    world.advance(3_000)
    assert world.actor("auctioneer", SITE)._rounds - rounds == 1
    view = world.index.read(f"{SITE}|top")
    assert view is not None
    assert {c.cpm_micros for c in view.candidates if c.campaign_id == "other"} == {4_000_000}
