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
    """`score` is what was drawn; `mean_engagement` and `mean_score` are what is expected, from which prices follow: 0
    for one that was filtered before the draw."""

    creative: str
    campaign: str
    cpm: str
    score: float
    ctr_mean: float
    fold_mean: float
    hops: int
    outcome: str
    reason: str
    mean_engagement: float = 0.0
    mean_score: float = 0.0


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
    """`age_s`: how old it was when it was decided on; of a slot that nobody asked for yet, how old it is."""

    version: EntryVersion | None
    age_s: float
    origin: str


@wire_type("admin.serve_explanation")
class ServeExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """One decision, with all that its price follows from: `(runner-up's mean_score / winner's mean_engagement) ^
    (1 / bid_weight)`, never below `floor` nor above the winner's cpm; the floor where nobody was runner-up; nothing for
    what its reader had pinned. `bid_weight` is 0 where nothing was decided."""

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
    bid_weight: float = 0.0
