"""One stripe of a category: the standing bids of its campaigns, answered from state.

An entity's id is `category|stripe`. It keeps nothing: after a start it asks the directory who bids on the category and
those campaigns for their quotes, and until it has them says that its answer is not complete. A campaign that is late
is late, never erased.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.bidbook import BidBook, answer, told
from node.ads.register import UNREAD, Reading
from node.core.clock import MS
from node.core.ids import EntityRef, SingletonRef
from node.core.limits import bidder_quotes_asked_max

DIRECTORY = SingletonRef("campaign-directory")
ASK_TIMEOUT_MS = 1_500
RETRY_MS = 1_000
REFRESH_PERIOD_MS = 60_000


class _Listed(msgspec.Struct, frozen=True):
    outcome: Any


class _Quoted(msgspec.Struct, frozen=True):
    campaign: str
    outcome: Any


class _Refresh(msgspec.Struct, frozen=True):
    pass


class CategoryBidder:
    """In memory only; comes into being with the first question or quote."""

    def __init__(self, entity_id: str) -> None:
        self._book = BidBook(entity_id.rpartition("|")[0])
        self._known = UNREAD
        self._reading: Reading | None = None
        self._refreshes_soon = False
        self._unasked: OrderedDict[str, None] = OrderedDict()  # whose bid is missing, as they are asked for it
        self._asked: set[str] = set()
        self._answered_ms = 0

    def start(self, ctx: Context, state: None) -> None:
        ctx.every("refresh", REFRESH_PERIOD_MS, _Refresh())
        self._refresh(ctx)

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
                self._refresh(ctx)
            case _Listed(outcome):
                self._listed(ctx, outcome)
            case _Quoted(campaign, outcome):
                self._quoted(ctx, campaign, outcome)
            case _:
                ctx.reject(f"a category bidder does not understand {type(message).__name__}")

    # ---- the directory's register

    def _refresh_soon(self, ctx: Context) -> None:
        """Not put off by one reason more: a thousand strangers a second would put it off for ever."""
        if not self._refreshes_soon:
            self._refreshes_soon = True
            ctx.after("refresh-soon", RETRY_MS, _Refresh())

    def _refresh(self, ctx: Context) -> None:
        self._refreshes_soon = False
        if self._reading is None:
            self._reading = Reading()
            self._read_on(ctx, m.GetCampaignsFor(self._book.category, known=self._known))

    def _read_on(self, ctx: Context, request: m.GetCampaignsFor) -> None:
        ctx.ask(DIRECTORY, request, ASK_TIMEOUT_MS, _Listed)

    def _listed(self, ctx: Context, outcome: Any) -> None:
        reading = self._reading
        if reading is None or not isinstance(outcome, m.CampaignsFor):
            self._reading = None
            self._refresh_soon(ctx)  # unknown, which is not "nobody"
            return
        if outcome.unchanged:
            self._book.confirm(settled=outcome.settled)
        else:
            reading.hear(outcome)
            if outcome.more:
                self._read_on(ctx, m.GetCampaignsFor(self._book.category, reading.after))
                return
            self._book.enlist(reading.names, settled=reading.settled)
            self._known = reading.digest
        self._reading = None
        now_ms = _now_ms(ctx)
        if not self._book.settled or self._book.strangers(now_ms):
            self._refresh_soon(ctx)
        self._unasked.update(dict.fromkeys(self._book.missing(now_ms)))
        self._ask_missing(ctx)

    # ---- the bids

    def _take(self, ctx: Context, quote: m.Quote) -> None:
        self._book.take(quote, _now_ms(ctx))
        if quote.active and self._book.is_stranger(quote.campaign):
            # It may have registered since the directory was asked, and must not wait for the next time.
            self._refresh_soon(ctx)

    def _ask_missing(self, ctx: Context) -> None:
        """Some at a time: of all at once most would be late."""
        now_ms = _now_ms(ctx)
        while self._unasked and len(self._asked) < bidder_quotes_asked_max:
            campaign, _ = self._unasked.popitem(last=False)
            if campaign not in self._asked and self._book.lacks(campaign, now_ms):
                self._asked.add(campaign)
                ctx.ask(
                    EntityRef("campaign", campaign),
                    m.GetQuote(),
                    ASK_TIMEOUT_MS,
                    lambda outcome, campaign=campaign: _Quoted(campaign, outcome),  # type: ignore[misc]
                )

    def _quoted(self, ctx: Context, campaign: str, outcome: Any) -> None:
        self._asked.discard(campaign)
        if isinstance(outcome, m.Quote):
            self._take(ctx, outcome)
        else:
            self._refresh_soon(ctx)
        self._ask_missing(ctx)


def _now_ms(ctx: Context) -> int:
    return ctx.now_ns() // MS
