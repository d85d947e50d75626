"""Facts: what happened, appended in the transaction of the state that it follows from. Never changed, never removed."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("fact.page_classified")
class PageClassified(msgspec.Struct, frozen=True):
    site: str
    url: str
    categories: tuple[tuple[str, float], ...]
    provider: str


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


@wire_type("fact.impression")
class Impression(msgspec.Struct, frozen=True):
    """Counted once for each request id; `price_micros` is what the campaign's account was charged."""

    request_id: str
    site: str
    campaign: str
    creative: str
    price_micros: int


@wire_type("fact.click")
class Click(msgspec.Struct, frozen=True):
    request_id: str
    site: str
    campaign: str
    creative: str
