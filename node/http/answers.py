"""What the public API answers, as shapes; `openapi.json` describes them, and tests hold the answers to them."""

from __future__ import annotations

import msgspec


class Winner(msgspec.Struct, frozen=True, rename="camel"):
    """An ad to show in a slot, and the urls that tell of it."""

    creative_id: str
    campaign_id: str
    asset_url: str
    mime: str
    width: int
    height: int
    landing_url: str
    imp_url: str
    click_url: str
    cta_url: str
    version: str
    request_id: str
    category: str
    can_fold: bool
    honor_pin: bool
    fold_token: str


class Dogear(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of the pin that was asked for; `reason`: creative_removed, for good, or not_here."""

    honored: bool
    reason: str = ""


class Seat(msgspec.Struct, frozen=True, omit_defaults=True):
    """A slot's outcome: a winner, or why there is none."""

    id: str
    winner: Winner | None = None
    reason: str = ""
    dogear: Dogear | None = None


class StalePin(msgspec.Struct, frozen=True, rename="camel"):
    """A pin that will not be shown again: its creative, or its slot, is no more."""

    slot_id: str
    creative_id: str


class Served(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """`needText`: the page's text is wanted; `reclassifyInMs`: when it will be."""

    seatbid: tuple[Seat, ...]
    need_text: bool
    reclassify_in_ms: int
    stale_pins: tuple[StalePin, ...] = ()


class Taken(msgspec.Struct, frozen=True):
    status: str


class TokenChecked(msgspec.Struct, frozen=True):
    """`state`: valid, stale or unknown."""

    state: str


class Alive(msgspec.Struct, frozen=True):
    alive: bool


class ReadyCheck(msgspec.Struct, frozen=True):
    name: str
    ok: bool
    latches: bool
    reason: str


class Ready(msgspec.Struct, frozen=True):
    ready: bool
    reasons: tuple[str, ...]
    checks: tuple[ReadyCheck, ...]


class Phase(msgspec.Struct, frozen=True):
    name: str
    state: str
    reason: str


class Startup(msgspec.Struct, frozen=True):
    started: bool
    phases: tuple[Phase, ...]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """RFC 9457; `field` names the part of the request that is wrong, `code` tells apart what has one status."""

    type: str
    title: str
    status: int
    detail: str
    field: str = ""
    code: str = ""
