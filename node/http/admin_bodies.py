"""Bodies and queries of administration. Names are those of the command line, in camel case; what is not known is
refused, for a misspelt name would silently change nothing."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Limit = Annotated[int, msgspec.Meta(ge=0, le=500)]
# An id is looked behind that need not be there any more.
After = Annotated[str, msgspec.Meta(pattern=r"^[!-~]*$", max_length=253)]
AfterUrl = Annotated[str, msgspec.Meta(max_length=2_048)]


def _described(pattern: str, chars: int) -> msgspec.Meta:
    """Of a text that the domain checks, with a better word than a pattern has: it stands in the description only."""
    return msgspec.Meta(extra_json_schema={"pattern": f"^{pattern}$", "maxLength": chars})


EntityId = Annotated[str, _described("[A-Za-z0-9][A-Za-z0-9._-]*", 64)]
SiteId = Annotated[str, _described("[a-z0-9]([a-z0-9._:-]*[a-z0-9])?", 253)]
SlotId = Annotated[str, _described("[A-Za-z0-9._:-]+", 128)]
Id = Annotated[str, msgspec.Meta(max_length=253)]
Money = Annotated[str, _described(r"[0-9]{1,6}(\.[0-9]{1,6})?", 13)]
Url = Annotated[str, msgspec.Meta(extra_json_schema={"format": "uri", "maxLength": 2_048})]
# What a path's parameters are.
PARAMS = {
    "publisher": EntityId,
    "advertiser": EntityId,
    "campaign": EntityId,
    "creative": EntityId,
    "site": SiteId,
    "slot": SlotId,
    "sender": EntityId,
}


class Body(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What the others have in common."""


class PageQuery(Body, frozen=True):
    """`after`: behind which item the page begins, as the page before said in `next`; `limit` 0: as many as fit."""

    after: After = ""
    limit: Limit = 0


class UrlsQuery(Body, frozen=True):
    """As PageQuery, of pages."""

    after: AfterUrl = ""
    limit: Limit = 0


class SearchQuery(PageQuery, frozen=True):
    q: str = ""


class SlotBody(Body, frozen=True):
    """A place on a site's pages, in CSS pixels."""

    slot: SlotId
    width: int
    height: int


class CreateSite(Body, frozen=True):
    site: SiteId
    host: str
    slots: tuple[SlotBody, ...]
    floor_cpm: Money = "0.50"


class UpdateSite(Body, frozen=True):
    """What is left out, or null, stays as it is."""

    floor_cpm: Money | None = None
    paced: bool | None = None
    auto_approve: bool | None = None
    timezone: str = ""


class AutoApproval(Body, frozen=True):
    enabled: bool


class Anchor(Body, frozen=True):
    """What skips the queue no more: a campaign by its id, or a domain that ads land on."""

    kind: Literal["campaign", "domain"]
    value: Annotated[str, msgspec.Meta(min_length=1, max_length=253)]


class SlotSize(Body, frozen=True):
    """In CSS pixels."""

    width: int
    height: int


class SlotFloor(Body, frozen=True):
    """null: the site's floor holds for the slot again."""

    floor_cpm: Money | None


class Domains(Body, frozen=True):
    domains: tuple[str, ...]


class Products(Body, frozen=True):
    """Ids of the IAB Ad Product Taxonomy."""

    categories: tuple[str, ...]


class Creative(Body, frozen=True):
    creative: EntityId


class Flag(Body, frozen=True):
    creative: EntityId
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class CreateAdvertiser(Body, frozen=True):
    advertiser: EntityId
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    daily_budget: Money
    timezone: str = "UTC"


class UpdateAdvertiser(Body, frozen=True):
    """What is left out stays as it is."""

    name: Annotated[str, msgspec.Meta(max_length=200)] = ""
    daily_budget: Money | None = None


class Budget(Body, frozen=True):
    daily_budget: Money


class CreateCampaign(Body, frozen=True):
    """`sites` and `places`: where it bids, empty for anywhere; never on pages of `blockedCategories` or below them.
    From `startAt` until `endAt` (RFC 3339; empty: open). `unmatched`: on pages without a category, too."""

    campaign: EntityId
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    daily_budget: Money
    max_cpm: Money
    categories: tuple[str, ...]
    sites: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    blocked_categories: tuple[str, ...] = ()
    start_at: str = ""
    end_at: str = ""
    unmatched: bool = False


class UpdateCampaign(UpdateAdvertiser, frozen=True):
    """Of where and when it bids, what is empty is lifted."""

    max_cpm: Money | None = None
    sites: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = None
    blocked_categories: tuple[str, ...] | None = None
    start_at: str | None = None
    end_at: str | None = None
    unmatched: bool | None = None


class Status(Body, frozen=True):
    status: Literal["active", "paused"]


class CreateCreative(Body, frozen=True):
    creative: EntityId
    asset_url: Url
    landing_url: Url
    width: int
    height: int
    mime: Annotated[str, msgspec.Meta(max_length=100)] = "image/png"
    product: str = ""
