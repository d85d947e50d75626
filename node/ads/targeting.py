"""Whether a campaign bids for a place: every rule that can say no, in the order in which they are told."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from node.ads.places import Gazetteer, match_hops
from node.ads.pricing import passes_floor
from node.wire.registry import wire_type

PAUSED = "paused"
OUT_OF_SCHEDULE = "out_of_schedule"
SITE_NOT_ALLOWED = "site_not_allowed"
AUDIENCE_NOT_ALLOWED = "audience_not_allowed"
PLACE_NOT_ALLOWED = "place_not_allowed"
CATEGORY_MISMATCH = "category_mismatch"
CATEGORY_BLOCKED = "category_blocked"
BELOW_FLOOR = "below_floor"
BUDGET_EXHAUSTED = "budget_exhausted"
NO_CREATIVES = "no_creatives"


@wire_type("ads.targeting")
class Targeting(msgspec.Struct, frozen=True):
    """Filters that add up; empty means no restriction. Places and audience are codes, `start_ms` is the first moment
    and `end_ms` the first after; 0: open."""

    categories: tuple[str, ...] = ()
    blocked_categories: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    audience: tuple[str, ...] = ()
    verified_audience: bool = False
    places: tuple[str, ...] = ()
    start_ms: int = 0
    end_ms: int = 0
    unmatched: bool = False


class Opportunity(msgspec.Struct, frozen=True):
    """A slot on a page: its site, the page's categories with everything above them, its places, and the site's readers
    by region; `verified`: the site has shown that its readers are from there."""

    site: str
    page_reach: Mapping[str, int]
    floor_micros: int
    page_places: tuple[str, ...] = ()
    site_audience: tuple[str, ...] = ()
    verified: bool = False


class Bidder(msgspec.Struct, frozen=True):
    """What of a campaign's standing decides."""

    active: bool
    cpm_micros: int
    solvent: bool
    creatives: int


def in_schedule(targeting: Targeting, now_ms: int) -> bool:
    return targeting.start_ms <= now_ms and (targeting.end_ms == 0 or now_ms < targeting.end_ms)


def audience_fits(gazetteer: Gazetteer, targeting: Targeting, chance: Opportunity) -> bool:
    """A verified audience is known by country only: anything finer is a publisher's word."""
    if not targeting.verified_audience:
        return match_hops(gazetteer, targeting.audience, chance.site_audience) is not None
    countries = tuple(code for code in chance.site_audience if "-" not in code and not code.startswith("GN"))
    return chance.verified and match_hops(gazetteer, targeting.audience, countries) is not None


def category_fits(targeting: Targeting, page_reach: Collection[str]) -> bool:
    """A page that matches nobody goes to those who have opted into such; `page_reach` is empty then."""
    if not page_reach:
        return targeting.unmatched
    return any(category in page_reach for category in targeting.categories)


def objection(gazetteer: Gazetteer, targeting: Targeting, bidder: Bidder, chance: Opportunity, now_ms: int) -> str:
    """The first reason for which a campaign does not bid; empty when it does."""
    checks = (
        (PAUSED, bidder.active),
        (OUT_OF_SCHEDULE, in_schedule(targeting, now_ms)),
        (SITE_NOT_ALLOWED, not targeting.sites or chance.site in targeting.sites),
        (AUDIENCE_NOT_ALLOWED, audience_fits(gazetteer, targeting, chance)),
        (PLACE_NOT_ALLOWED, match_hops(gazetteer, targeting.places, chance.page_places) is not None),
        (CATEGORY_MISMATCH, category_fits(targeting, chance.page_reach)),
        (CATEGORY_BLOCKED, not any(c in chance.page_reach for c in targeting.blocked_categories)),
        (BELOW_FLOOR, passes_floor(bidder.cpm_micros, chance.floor_micros)),
        (BUDGET_EXHAUSTED, bidder.solvent),
        (NO_CREATIVES, bidder.creatives > 0),
    )
    return next((reason for reason, holds in checks if not holds), "")
