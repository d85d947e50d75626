"""What administration answers where the admin protocol has no shape of its own for it."""

from __future__ import annotations

import msgspec


class Changed(msgspec.Struct, frozen=True):
    """`changed`: false where it held already."""

    site: str
    creative: str
    changed: bool


class Shown(msgspec.Struct, frozen=True):
    """A creative as a publisher looks at it; empty, as far as its campaign does not have it any more."""

    creative: str
    campaign: str = ""
    advertiser: str = ""
    asset_url: str = ""
    landing_url: str = ""
    mime: str = ""
    width: int = 0
    height: int = 0


class PendingCreative(Shown, frozen=True):
    """`slots` are those that it won."""

    slots: tuple[str, ...] = ()
    first_seen_at: str = ""
    landing_domain: str = ""


class ServingCreative(Shown, frozen=True):
    approved_at: str = ""


class Pending(msgspec.Struct, frozen=True):
    """Creatives that won and wait for the publisher."""

    items: tuple[PendingCreative, ...]
    next: str = ""


class Serving(msgspec.Struct, frozen=True):
    """Creatives that the publisher has approved: they are served where they win."""

    items: tuple[ServingCreative, ...]
    next: str = ""


class FlaggedCreative(msgspec.Struct, frozen=True):
    creative: str
    reason: str


class Flagged(msgspec.Struct, frozen=True):
    items: tuple[FlaggedCreative, ...]
    next: str = ""


class Bulk(msgspec.Struct, frozen=True):
    """Of what waited; what failed waits still."""

    approved: tuple[str, ...]
    failed: tuple[str, ...]


class AutoApprove(msgspec.Struct, frozen=True):
    enabled: bool
    trusted: tuple[str, ...]


class Category(msgspec.Struct, frozen=True):
    id: str
    name: str
    path: str


class Categories(msgspec.Struct, frozen=True):
    items: tuple[Category, ...]
    next: str = ""


class SiteToken(msgspec.Struct, frozen=True):
    site: str
    token: str
