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
from node.ads.bidbook import Book, answer, listed, taken, told
from node.core.clock import MS
from node.core.ids import EntityRef, SingletonRef

DIRECTORY = SingletonRef("campaign-directory")
ASK_TIMEOUT_MS = 1_500
RETRY_MS = 1_000
REFRESH_PERIOD_MS = 60_000


class _Listed(msgspec.Struct, frozen=True):
    outcome: Any


class _Quoted(msgspec.Struct, frozen=True):
    outcome: Any


class _Refresh(msgspec.Struct, frozen=True):
    pass


class CategoryBidder:
    """In memory only; comes into being with the first question or quote."""

    def __init__(self, entity_id: str) -> None:
        self._book = Book(entity_id.rpartition("|")[0])
        self._answered_ms = 0

    def start(self, ctx: Context, state: None) -> None:
        ctx.every("refresh", REFRESH_PERIOD_MS, _Refresh())
        self._ask_directory(ctx)

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.CategoryBidRequest():
                ctx.reply(answer(self._book, message, _now_ms(ctx)))
                self._answered_ms = ctx.wall_ms()
            case m.GetStripe(campaign):
                ctx.reply(told(self._book, campaign, self._answered_ms, _now_ms(ctx)))
            case m.Quote():
                self._take(ctx, message)
            case m.GetBidderState():
                ctx.reply(m.BidderState(len(self._book.bids), len(self._book.missing(_now_ms(ctx)))))
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
        ctx.ask(DIRECTORY, m.GetCampaignsFor(self._book.category), ASK_TIMEOUT_MS, _Listed)

    def _listed(self, ctx: Context, outcome: Any) -> None:
        if not isinstance(outcome, m.CampaignsFor):
            ctx.after("refresh-soon", RETRY_MS, _Refresh())  # unknown, which is not "nobody"
            return
        self._book = listed(self._book, outcome.campaigns, settled=outcome.settled)
        if not outcome.settled or self._book.strangers(_now_ms(ctx)):
            ctx.after("refresh-soon", RETRY_MS, _Refresh())
        for campaign in self._book.missing(_now_ms(ctx)):
            ctx.ask(EntityRef("campaign", campaign), m.GetQuote(), ASK_TIMEOUT_MS, _Quoted)

    def _take(self, ctx: Context, quote: m.Quote) -> None:
        self._book = taken(self._book, quote, _now_ms(ctx))
        if quote.active and self._book.is_stranger(quote.campaign):
            # It may have registered since the directory was asked, and must not wait for the next time.
            ctx.after("refresh-soon", RETRY_MS, _Refresh())


def _now_ms(ctx: Context) -> int:
    return ctx.now_ns() // MS
