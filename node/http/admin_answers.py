"""What administration answers where the admin protocol has no shape of its own for it."""

from __future__ import annotations

import msgspec


class Changed(msgspec.Struct, frozen=True):
    """`changed`: false where it held already."""

    site: str
    creative: str
    changed: bool


class PendingCreative(msgspec.Struct, frozen=True):
    creative: str


class Pending(msgspec.Struct, frozen=True):
    """Creatives that won and wait for the publisher."""

    items: tuple[PendingCreative, ...]
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
