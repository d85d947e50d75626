"""Which stripes of the category bidders answer: watched from the oldest `singleton` node, stripe by stripe.

An auction that gets no answer takes nothing away and is repeated, so a stripe that hangs, or that nobody can reach,
would show nowhere: a fifth of the sites would just never hear of the campaigns of its category again. So each stripe of
each category that somebody bids on is asked in turn, whether there are auctions or not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from node.actors.actor import Context
from node.ads import messages as m
from node.core.clock import MS
from node.core.hashing import STRIPE_COUNT
from node.core.ids import EntityRef, SingletonRef

DIRECTORY = SingletonRef("campaign-directory")
# Together under a minute: how long nobody asks, how long an answer may take, and how long that must go on.
PROBE_MS = 15_000
ANSWER_MS = 5_000
SILENT_MS = 30_000


class _Probe(msgspec.Struct, frozen=True):
    pass


class _Listed(msgspec.Struct, frozen=True):
    outcome: Any


class _Answered(msgspec.Struct, frozen=True):
    bidder: str
    outcome: Any


class StripeWatch:
    """When each stripe was heard last; one that was never heard, since when that is expected. Times are ms."""

    def __init__(self) -> None:
        self._heard: dict[str, int] = {}

    def expect(self, bidders: Collection[str], now_ms: int, *, all_known: bool) -> None:
        """These are to answer; with `all_known` no others are: what a directory has not heard of yet is not gone."""
        if all_known:
            self._heard = {bidder: at for bidder, at in self._heard.items() if bidder in bidders}
        for bidder in bidders:
            self._heard.setdefault(bidder, now_ms)

    def heard(self, bidder: str, now_ms: int) -> None:
        if bidder in self._heard:
            self._heard[bidder] = now_ms

    def ages_ms(self, now_ms: int) -> dict[str, int]:
        """How long ago each was heard."""
        return {bidder: now_ms - at for bidder, at in sorted(self._heard.items())}

    def silent(self, now_ms: int) -> dict[str, int]:
        """Those that have not been heard for so long that it is a fault, and how long."""
        return {bidder: age for bidder, age in self.ages_ms(now_ms).items() if age >= SILENT_MS}


class DemandLiveness:
    """In memory only."""

    def __init__(self, _entity_id: str) -> None:
        self.watch = StripeWatch()

    def start(self, ctx: Context, state: None) -> None:
        ctx.every("probe", PROBE_MS, _Probe())

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.GetStripes():
                ages = self.watch.ages_ms(_now_ms(ctx))
                ctx.reply(m.Stripes(tuple(m.StripeHeard(bidder, age) for bidder, age in ages.items())))
            case _Probe():
                ctx.ask(DIRECTORY, m.GetCategories(), ANSWER_MS, _Listed)
            case _Listed(outcome):
                if isinstance(outcome, m.Categories):
                    bidders = {f"{name}|{stripe}" for name in outcome.categories for stripe in range(STRIPE_COUNT)}
                    self.watch.expect(bidders, _now_ms(ctx), all_known=outcome.settled)
                self._ask_all(ctx)
            case _Answered(bidder, outcome):
                if isinstance(outcome, m.BidderState):
                    self.watch.heard(bidder, _now_ms(ctx))
            case _:
                ctx.reject(f"who watches the demand does not understand {type(message).__name__}")

    def _ask_all(self, ctx: Context) -> None:
        for bidder in self.watch.ages_ms(_now_ms(ctx)):
            ctx.ask(
                EntityRef("category-bidder", bidder),
                m.GetBidderState(),
                ANSWER_MS,
                lambda outcome, bidder=bidder: _Answered(bidder, outcome),  # type: ignore[misc]
            )


def _now_ms(ctx: Context) -> int:
    return ctx.now_ns() // MS
