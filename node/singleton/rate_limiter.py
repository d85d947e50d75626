"""How often the whole cluster asks a service that judges pages: one bucket for all nodes, under the service's name.

There is one in the cluster, like a singleton, but in a shard: what it keeps is fenced there, and a token is handed out
once its taking is durable, so that a restart hands out none twice.
"""

from __future__ import annotations

from typing import Any

from node.actors.actor import Context
from node.ads import messages as m
from node.ads.guards.limiter import Limiter, LimiterSettings, LimiterState, acquire, missing_ms, opened

KIND = "rate-limiter"
NOBODY = 0  # waits here: whoever gets no token is told when to come again


class RateLimiter:
    """Durable. Not remembered: it comes into being when a node asks."""

    def __init__(self, _service: str) -> None:
        self._kept: LimiterState | None = None
        self._limiter: Limiter | None = None

    def start(self, ctx: Context, state: LimiterState | None) -> None:
        self._kept = state

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case m.AcquireToken(tokens_max, rate_per_s) if tokens_max >= 1 and rate_per_s > 0:
                self._acquire(ctx, LimiterSettings(tokens_max, rate_per_s, waiting_max=0))
            case m.AcquireToken():
                ctx.reject("a bucket holds at least one token, and is refilled")
            case _:
                ctx.reject(f"a rate limiter does not understand {type(message).__name__}")

    def _acquire(self, ctx: Context, pace: LimiterSettings) -> None:
        wall_ms, now_ms = ctx.moment()
        kept = self._kept
        before = self._limiter or opened(pace, now_ms, kept, wall_ms - kept.at_ms if kept else 0)
        self._limiter, ((_, verdict),) = acquire(before, NOBODY, now_ms + 1, pace, now_ms)
        if verdict == "granted":
            ctx.persist(self._limiter.state(wall_ms), reply=m.TokenTold(0))
        else:
            ctx.reply(m.TokenTold(missing_ms(self._limiter, pace)))
