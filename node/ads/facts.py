"""Facts: what happened, appended in the transaction of the state that it follows from. Never changed, never removed."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("fact.page_classified")
class PageClassified(msgspec.Struct, frozen=True):
    """`fallback`: `provider` judged in place of the one that should have."""

    site: str
    url: str
    categories: tuple[tuple[str, float], ...]
    provider: str
    fallback: bool = False


@wire_type("fact.creative_approved")
class CreativeApproved(msgspec.Struct, frozen=True):
    """`auto`: nobody was asked, for its campaign or the domain it lands on is trusted."""

    site: str
    creative: str
    campaign: str
    auto: bool = False


@wire_type("fact.creative_flagged")
class CreativeFlagged(msgspec.Struct, frozen=True):
    """An empty `reason`: the flag was taken back."""

    site: str
    creative: str
    reason: str


@wire_type("fact.creative_revoked")
class CreativeRevoked(msgspec.Struct, frozen=True):
    """An approval was taken back; `rejected`: the publisher wants to hear no more of the creative."""

    site: str
    creative: str
    rejected: bool


@wire_type("fact.floor_decided")
class FloorDecided(msgspec.Struct, frozen=True):
    """A sweep has ended with another floor than the one before (None: it was the first); `category` is empty for the
    site's own. What the sweep brought, in all of its holds."""

    site: str
    category: str
    floor_micros: int
    before_micros: int | None
    revenue_micros: int
    impressions: int


@wire_type("fact.site_suspected")
class SiteSuspected(msgspec.Struct, frozen=True):
    """A day (from 1970, UTC) of a site looked bought: `signal` measured `severity` where `threshold` is odd."""

    site: str
    day: int
    signal: str
    severity: float
    threshold: float


@wire_type("fact.publisher_standing")
class PublisherStanding(msgspec.Struct, frozen=True):
    """A publisher was suspended, with all its sites, or may be served again."""

    publisher: str
    suspended: bool


@wire_type("fact.site_deleted")
class SiteDeleted(msgspec.Struct, frozen=True):
    """A site is no more; facts of what was shown on it stay."""

    site: str
    publisher: str


@wire_type("fact.money_held")
class MoneyHeld(msgspec.Struct, frozen=True):
    """A campaign has set money aside for ads that it promised to pay (reference: reservations, in blocks: see
    `node.ads.budget`). `day` is the account's own."""

    campaign: str
    advertiser: str
    amount_micros: int
    day: str


@wire_type("fact.money_released")
class MoneyReleased(msgspec.Struct, frozen=True):
    """What was set aside and is not needed: nobody was shown an ad for it."""

    campaign: str
    advertiser: str
    amount_micros: int
    day: str


@wire_type("fact.impression")
class Impression(msgspec.Struct, frozen=True):
    """Counted once for each request id; `price_micros` is what the campaign's account was charged.

    Of the price `from_held_micros` had been set aside before, and `margin_micros` stay with the platform; the rest is
    the publisher's. `at_ms` is when it was counted, `day` the day of the account in `timezone` that it was charged to;
    the publisher's days are those of `site_timezone`. `category` is the one that the ad won under, empty when the ad
    server that served it has forgotten."""

    request_id: str
    site: str
    campaign: str
    creative: str
    price_micros: int
    advertiser: str = ""
    publisher: str = ""
    category: str = ""
    from_held_micros: int = 0
    margin_micros: int = 0
    at_ms: int = 0
    day: str = ""
    timezone: str = "UTC"
    site_timezone: str = "UTC"


@wire_type("fact.click")
class Click(msgspec.Struct, frozen=True):
    """Costs nothing: an ad is paid by the impression. The other fields are as an impression's."""

    request_id: str
    site: str
    campaign: str
    creative: str
    advertiser: str = ""
    publisher: str = ""
    category: str = ""
    at_ms: int = 0
    timezone: str = "UTC"
    site_timezone: str = "UTC"


@wire_type("fact.cta")
class CallToAction(msgspec.Struct, frozen=True):
    """Behind the click somebody did what the ad asks for. Costs nothing; the fields are as a click's."""

    request_id: str
    site: str
    campaign: str
    creative: str
    advertiser: str = ""
    publisher: str = ""
    category: str = ""
    at_ms: int = 0
    timezone: str = "UTC"
    site_timezone: str = "UTC"


@wire_type("fact.fold")
class Folded(msgspec.Struct, frozen=True):
    """A reader folded the ad's corner to keep it. Costs nothing; the fields are as a click's."""

    request_id: str
    site: str
    campaign: str
    creative: str
    advertiser: str = ""
    publisher: str = ""
    category: str = ""
    at_ms: int = 0
    timezone: str = "UTC"
    site_timezone: str = "UTC"
