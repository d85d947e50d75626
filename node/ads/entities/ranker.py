"""What a category is worth on a site, learned from its impressions and clicks; the id is `category|site`.

Evidence is written some seconds after it came, in one write: a crash costs those seconds of it, beside a half-life of a
week. A category without any takes no memory and no room in the store.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.ranking import CategoryRank, click, impression, mean, quote

KIND = "ranker"
FLUSH_MS = 5_000


class _Flush(msgspec.Struct, frozen=True):
    """Time to write what was learned."""


# Asked of all of a site's categories again and again: no use of them, so that the unvisited leave memory.
ASKED = frozenset({m.GetRank, _Flush})


class Ranker:
    """Durable. Not remembered: it comes into being with the first impression, or when it is asked."""

    def __init__(self, _name: str) -> None:
        self._rank = CategoryRank()
        self._kept = False  # there is a record, or one is being written
        self._dirty = False

    def start(self, ctx: Context, state: CategoryRank | None) -> None:
        self._kept = state is not None
        self._rank = state or self._rank

    def receive(self, ctx: Context, message: Any) -> None:
        now_ms = ctx.wall_ms()
        match message:
            case m.GetRank():
                draws = np.random.default_rng(ctx.rng.getrandbits(64))
                ctx.reply(m.Rank(quote(self._rank, now_ms, draws), mean(self._rank, now_ms)))
                if self._rank == CategoryRank():
                    ctx.passivate()
            case m.RankSeen(revenue_micros):
                self._learn(ctx, impression(self._rank, revenue_micros, now_ms))
            case m.RankClicked():
                self._learn(ctx, click(self._rank, now_ms))
            case _Flush():
                self._dirty, self._kept = False, True
                ctx.persist(self._rank)
            case m.ForgetRank():
                self._forget(ctx)
            case _:
                ctx.reject(f"a ranker does not understand {type(message).__name__}")

    def _learn(self, ctx: Context, rank: CategoryRank) -> None:
        self._rank = rank
        if not self._dirty:
            self._dirty = True
            ctx.after("flush", FLUSH_MS, _Flush())

    def _forget(self, ctx: Context) -> None:
        known, self._rank = self._rank, CategoryRank()
        if self._kept:
            ctx.delete(reply=m.Accepted())
            return
        ctx.cancel("flush")
        self._dirty = False
        ctx.reply(m.Accepted(changed=known != self._rank))
        ctx.passivate()
