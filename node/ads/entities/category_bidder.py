"""One stripe of a category: the standing bids of its campaigns, answered from state.

An entity's id is `category|stripe`. It keeps nothing: after a start it asks the directory who bids on the category and
those campaigns for their quotes, and until it has them says that its answer is not complete. A campaign that is late
is late, never erased.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.auction import Offer
from node.ads.pricing import passes_floor
from node.core import limits
from node.core.clock import MS
from node.core.ids import EntityRef, SingletonRef

DIRECTORY = SingletonRef("campaign-directory")
ASK_TIMEOUT_MS = 1_500
RETRY_MS = 1_000
REFRESH_PERIOD_MS = 60_000
QUOTE_AGE_MS_MAX = 10 * 60_000


class _Listed(msgspec.Struct, frozen=True):
    outcome: Any


class _Quoted(msgspec.Struct, frozen=True):
    outcome: Any


class _Refresh(msgspec.Struct, frozen=True):
    pass


class CategoryBidder:
    """In memory only; comes into being with the first question or quote."""

    def __init__(self, entity_id: str) -> None:
        self._category = entity_id.rpartition("|")[0]
        self._registered: tuple[str, ...] | None = None
        self._settled = False
        self._book: dict[str, tuple[m.Quote, int]] = {}

    def start(self, ctx: Context, state: None) -> None:
        ctx.every("refresh", REFRESH_PERIOD_MS, _Refresh())
        self._ask_directory(ctx)

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.CategoryBidRequest():
                ctx.reply(self._answer(ctx, message))
            case m.Quote():
                self._take(ctx, message)
            case _Refresh():
                self._ask_directory(ctx)
            case _Listed(outcome):
                self._listed(ctx, outcome)
            case _Quoted(outcome):
                if isinstance(outcome, m.Quote):
                    self._take(ctx, outcome)
                else:
                    ctx.after("refresh-soon", RETRY_MS, _Refresh())
            case _:
                ctx.reject(f"a category bidder does not understand {type(message).__name__}")

    def _ask_directory(self, ctx: Context) -> None:
        ctx.ask(DIRECTORY, m.GetCampaignsFor(self._category), ASK_TIMEOUT_MS, _Listed)

    def _listed(self, ctx: Context, outcome: Any) -> None:
        if not isinstance(outcome, m.CampaignsFor):
            ctx.after("refresh-soon", RETRY_MS, _Refresh())  # unknown, which is not "nobody"
            return
        self._registered = outcome.campaigns
        self._settled = outcome.settled
        if not outcome.settled:
            ctx.after("refresh-soon", RETRY_MS, _Refresh())
        for campaign in self._missing(ctx):
            ctx.ask(EntityRef("campaign", campaign), m.GetQuote(), ASK_TIMEOUT_MS, _Quoted)

    def _take(self, ctx: Context, quote: m.Quote) -> None:
        known = self._book.get(quote.campaign)
        if known is None or known[0].as_of_ms <= quote.as_of_ms:
            self._book[quote.campaign] = (quote, ctx.now_ns())

    def _missing(self, ctx: Context) -> tuple[str, ...]:
        oldest = ctx.now_ns() - QUOTE_AGE_MS_MAX * MS
        return tuple(c for c in self._registered or () if c not in self._book or self._book[c][1] < oldest)

    def _answer(self, ctx: Context, request: m.CategoryBidRequest) -> m.CategoryBidResponse:
        missing = self._missing(ctx)
        oldest = ctx.now_ns() - QUOTE_AGE_MS_MAX * MS
        bids: list[m.Quote] = []
        rejected = best_rejected = 0
        for quote, taken_ns in self._book.values():
            if not quote.active or self._category not in quote.categories or taken_ns < oldest:
                continue
            if passes_floor(quote.max_cpm_micros, request.floor_micros):
                bids.append(quote)
            else:
                rejected += 1
                best_rejected = max(best_rejected, quote.max_cpm_micros)
        # Whether a bid is approved on the site is not known here, so none may be dropped for being far below the best:
        # one that the publisher has never approved could take everybody's place. One without money today comes last.
        bids.sort(key=lambda quote: (not quote.solvent, -quote.max_cpm_micros, quote.campaign))
        kept = bids[: limits.bidder_campaigns_max]
        sizes = set(request.sizes)
        offers = tuple(
            Offer(
                creative.creative,
                quote.campaign,
                quote.advertiser,
                self._category,
                quote.max_cpm_micros,
                creative.asset_url,
                creative.landing_url,
                creative.landing_domain,
                creative.mime,
                creative.width,
                creative.height,
                product=creative.product,
            )
            for quote in kept
            for creative in quote.creatives
            if (creative.width, creative.height) in sizes
        )
        unfit = sum((c.width, c.height) not in sizes for quote in kept for c in quote.creatives)
        complete = self._registered is not None and self._settled and not missing
        truncated = len(bids) > len(kept) or len(offers) > limits.view_candidates_max
        offers = offers[: limits.view_candidates_max]
        return m.CategoryBidResponse(
            self._category, offers, rejected, complete, missing, truncated, best_rejected, unfit
        )
