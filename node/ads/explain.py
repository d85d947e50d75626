"""The record of one serve decision: enough to answer "why this ad" and "why not that one" without a guess.

It is built from the objects that the decision used anyway, so recording it costs little; names and amounts are turned
into text only when somebody asks.
"""

from __future__ import annotations

import msgspec

from node.ads.serveindex import PoolVersion
from node.ads.view import AuctionInfo, TurnedAway
from node.wire.registry import wire_type

# Outcomes of a candidate, in the order in which the checks run.
WON = "won"
LOST = "lost"
FILTERED = "filtered"
REFUSED = "refused"

# Reasons: stable words, so that a script can match them.
NOT_APPROVED = "not_approved"
WRONG_SIZE = "wrong_size"
WRONG_CATEGORY = "not_auctioned_for_page"
EXCLUDED = "excluded_by_request"
SHOWN_IN_BATCH = "already_in_this_batch"
RECENT_ON_PAGE = "won_this_page_recently"
BLOCKED = "blocked_by_publisher"
BELOW_FLOOR = "below_floor"
PACED = "held_back_by_pacing"
PINNED = "pinned_by_the_reader"
BUDGET = "insufficient_budget"
NOT_ACTIVE = "paused_or_suspended"
WITHDRAWN = "creative_withdrawn"
NO_ANSWER = "reserve_unanswered"
OUTSCORED = "outscored"


@wire_type("ads.candidate_outcome", version=1)
class CandidateOutcome(msgspec.Struct, frozen=True, gc=False):
    """What became of one candidate. Drawn and expected values are 0 for one that was filtered before the draw. A price
    follows from the winner's `mean_engagement` and bid, its runner-up's `mean_score` and the floor."""

    creative_id: str
    campaign_id: str
    category: str
    ancestor_hops: int
    cpm_micros: int
    outcome: str
    reason: str = ""
    ctr_draw: float = 0.0
    fold_draw: float = 0.0
    score: float = 0.0
    ctr_mean: float = 0.0
    fold_mean: float = 0.0
    mean_score: float = 0.0
    mean_engagement: float = 0.0


@wire_type("ads.serve_decision", version=1)
class ServeDecision(msgspec.Struct, frozen=True):
    """One slot of one request. `winner` is a creative id or empty; `reason` says why a slot stayed empty.
    `turned_away`: some of those that the page's newest auction left out, by their own targeting."""

    request_id: str
    at_ms: int
    site_id: str
    slot_id: str
    page_url: str
    page_categories: tuple[str, ...]
    candidates: tuple[CandidateOutcome, ...]
    winner: str = ""
    runner_up: str = ""
    price_micros: int = 0
    floor_micros: int = 0
    bid_weight: float = 0.5
    auction: AuctionInfo | None = None
    view_version_ms: int = 0
    reason: str = ""
    pool: PoolVersion | None = None
    page_places: tuple[str, ...] = ()
    turned_away: tuple[TurnedAway, ...] = ()
