"""Whether a campaign bids for a place: every rule that can say no, in the order in which they are told.

What follows from a site alone is asked of its bidders once for many pages; what follows from a page is asked for each
auction, and again for each page view, since the pool of a slot serves many pages.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from node.ads.places import Gazetteer, hops_within, place_reach
from node.ads.pricing import passes_floor
from node.core.errors import BadInput
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
    and `end_ms` the first after; 0: open. `unmatched`: it bids for pages without a category too."""

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


def timed(targeting: Targeting) -> Targeting:
    """The same; raises BadInput for one that would end before it begins."""
    if targeting.end_ms and targeting.end_ms <= targeting.start_ms:
        raise BadInput("end_at", "a campaign ends after it begins")
    return targeting


def in_schedule(targeting: Targeting, now_ms: int) -> bool:
    return targeting.start_ms <= now_ms and (targeting.end_ms == 0 or now_ms < targeting.end_ms)


def audience_fits(targeting: Targeting, audience: Mapping[str, int], *, verified: bool = False) -> bool:
    """`audience`: where a site's readers are, and what that lies in, each with its distance. A verified one is known by
    country only: anything finer is a publisher's word."""
    if not targeting.verified_audience:
        return hops_within(targeting.audience, audience) is not None
    countries = {code: hops for code, hops in audience.items() if not hops and _is_country(code)}
    return verified and hops_within(targeting.audience, countries) is not None


def _is_country(code: str) -> bool:
    return "-" not in code and not code.startswith("GN")


def category_fits(targeting: Targeting, page_reach: Collection[str]) -> bool:
    """A page that matches nobody goes to those who have opted into such; `page_reach` is empty then."""
    if not page_reach:
        return targeting.unmatched
    return any(category in page_reach for category in targeting.categories)


def site_fits(targeting: Targeting, site: str) -> bool:
    return not targeting.sites or site in targeting.sites


def page_objection(
    places: Collection[str], blocked: Collection[str], page_places: Mapping[str, int], page_reach: Collection[str]
) -> str:
    """Why a campaign that wants these places, and none of the blocked categories, does not bid for a page; empty when
    it does. `page_places`: what the page is about and what that lies in."""
    if hops_within(places, page_places) is None:
        return PLACE_NOT_ALLOWED
    return CATEGORY_BLOCKED if any(category in page_reach for category in blocked) else ""


def objection(gazetteer: Gazetteer, targeting: Targeting, bidder: Bidder, chance: Opportunity, now_ms: int) -> str:
    """The first reason for which a campaign does not bid; empty when it does."""
    places, audience = (place_reach(gazetteer, codes) for codes in (chance.page_places, chance.site_audience))
    page = page_objection(targeting.places, targeting.blocked_categories, places, chance.page_reach)
    checks = (
        (PAUSED, bidder.active),
        (OUT_OF_SCHEDULE, in_schedule(targeting, now_ms)),
        (SITE_NOT_ALLOWED, site_fits(targeting, chance.site)),
        (AUDIENCE_NOT_ALLOWED, audience_fits(targeting, audience, verified=chance.verified)),
        (PLACE_NOT_ALLOWED, page != PLACE_NOT_ALLOWED),
        (CATEGORY_MISMATCH, category_fits(targeting, chance.page_reach)),
        (CATEGORY_BLOCKED, page != CATEGORY_BLOCKED),
        (BELOW_FLOOR, passes_floor(bidder.cpm_micros, chance.floor_micros)),
        (BUDGET_EXHAUSTED, bidder.solvent),
        (NO_CREATIVES, bidder.creatives > 0),
    )
    return next((reason for reason, holds in checks if not holds), "")
