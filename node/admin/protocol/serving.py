"""Decisions, explained."""

from __future__ import annotations

import msgspec

from node.admin.protocol.serveindex import EntryVersion
from node.wire.registry import wire_type


@wire_type("admin.serve_explain_get")
class GetExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """By request id, or the newest decision of a site (and slot, and page)."""

    request_id: str = ""
    site: str = ""
    slot: str = ""
    page: str = ""


@wire_type("admin.serve_probe_get")
class GetProbe(msgspec.Struct, frozen=True, kw_only=True):
    """What would be served in a slot of a page now; answered by a ServeExplanation under no request's id."""

    site: str
    slot: str
    page: str


@wire_type("admin.explained_candidate")
class ExplainedCandidate(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    campaign: str
    cpm: str
    score: float
    ctr_mean: float
    fold_mean: float
    hops: int
    outcome: str
    reason: str


@wire_type("admin.explained_turned_away")
class ExplainedTurnedAway(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign that has the page's categories and whose own targeting kept it out."""

    campaign: str
    reason: str


@wire_type("admin.explained_auction")
class ExplainedAuction(msgspec.Struct, frozen=True, kw_only=True):
    """The auction that the winner came from: of `page`, whoever asked later. `fallback`: the page's categories are not
    the judgement of the provider that should have judged it."""

    at: str
    trigger: str
    categories: tuple[str, ...]
    page: str = ""
    fallback: bool = False


@wire_type("admin.explained_pool")
class ExplainedPool(msgspec.Struct, frozen=True, kw_only=True):
    version: EntryVersion | None
    age_s: float
    origin: str


@wire_type("admin.serve_explanation")
class ServeExplanation(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    slot: str
    page: str
    served: bool
    winner: str | None
    price: str | None
    floor: str
    runner_up: str | None
    candidates: tuple[ExplainedCandidate, ...]
    auction: ExplainedAuction | None
    pool: ExplainedPool | None
    request_id: str = ""
    at: str = ""
    why: str = ""
    page_places: tuple[str, ...] = ()
    turned_away: tuple[ExplainedTurnedAway, ...] = ()
