"""A replay: every site of its scope sends its fresh classifications to its auctioneer again, and coverage is awaited.

```
running ──all sites answered, coverage 1.0 or unchanged for SETTLE_MS──▶ done
   └──────no site answered, or LIMIT_MS passed while sites were silent──▶ failed
```

Durable at the cluster: an owner that takes it over asks again those sites that had not answered.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context
from node.core.ids import EntityRef
from node.flows.messages import (
    GetCoverage,
    GetReplay,
    ReplayReport,
    ReplaySite,
    ReplayStatus,
    SiteCoverage,
    StartReplay,
)
from node.flows.retention import outlived
from node.wire.registry import wire_type

SITES_AT_ONCE = 8
SITE_TIMEOUT_MS = 5_000
POLL_MS = 500
SETTLE_MS = 6_000
LIMIT_MS = 120_000


@wire_type("state.replay")
class ReplayState(msgspec.Struct, frozen=True):
    """`waiting`: sites that have not answered yet."""

    status: ReplayStatus
    waiting: tuple[str, ...]
    sites: tuple[str, ...]


class _Answered(msgspec.Struct, frozen=True):
    site: str
    outcome: Any


class _Covered(msgspec.Struct, frozen=True):
    site: str
    outcome: Any


class _Poll(msgspec.Struct, frozen=True):
    pass


class Replay:
    """Durable, remembered until it ended long ago."""

    def __init__(self, operation: str) -> None:
        self._id = operation
        self._state: ReplayState | None = None
        self._asked: set[str] = set()
        self._coverage: dict[str, SiteCoverage] = {}
        self._before_known = False
        self._best = -1.0
        self._best_at_ms = 0

    def start(self, ctx: Context, state: ReplayState | None) -> None:
        if state is not None and outlived(state.status, ctx.wall_ms()):
            ctx.delete()
            return
        self._state = state
        if state is not None and state.status.state == "running":
            self._before_known = True
            ctx.every("poll", POLL_MS, _Poll(), first_ms=0)

    def receive(self, ctx: Context, message: Any) -> None:
        if isinstance(message, StartReplay):
            self._begin(ctx, message)
            return
        state = self._state
        if state is None:
            ctx.reject(f"there is no replay {self._id!r}")
            ctx.passivate()
            return
        match message:
            case GetReplay():
                ctx.reply(state.status)
            case _Poll():
                self._poll(ctx, state)
            case _Answered(site, outcome):
                self._answered(ctx, state, site, outcome)
            case _Covered(site, outcome):
                if isinstance(outcome, SiteCoverage):
                    self._coverage[site] = outcome
            case _:
                ctx.reject(f"a replay does not understand {type(message).__name__}")

    def _begin(self, ctx: Context, message: StartReplay) -> None:
        if self._state is not None:
            ctx.reply_durable(self._state.status)
            return
        now_ms = ctx.wall_ms()
        status = ReplayStatus(self._id, "running", message.scope, 0, 0, 0, 0, 0.0, 0.0, now_ms, 0)
        self._state = ReplayState(status, message.sites, message.sites)
        self._best_at_ms = now_ms
        ctx.persist(self._state, reply=status)
        for site in message.sites:
            self._ask_coverage(ctx, site)
        ctx.every("poll", POLL_MS, _Poll())

    def _ask_coverage(self, ctx: Context, site: str) -> None:
        ctx.ask(EntityRef("site", site), GetCoverage(), SITE_TIMEOUT_MS, lambda outcome: _Covered(site, outcome))

    def _poll(self, ctx: Context, state: ReplayState) -> None:
        now_ms = ctx.wall_ms()
        if not self._before_known:
            # Only once every site was heard, or the first poll has passed: "before" means before the replay.
            self._before_known = True
            state = self._update(state, coverage_before=self._ratio())
        for site in state.waiting:
            if len(self._asked) < SITES_AT_ONCE and site not in self._asked:
                self._asked.add(site)
                self._ask_site(ctx, site)
        if state.waiting:
            if now_ms - state.status.started_ms > LIMIT_MS:
                self._end(ctx, state, "failed")
            return
        ratio = self._ratio()
        if ratio > self._best:
            self._best, self._best_at_ms = ratio, now_ms
        if ratio >= 1.0 or now_ms - self._best_at_ms > SETTLE_MS:
            self._end(ctx, state, "done" if state.status.replayed or not state.sites else "failed")
            return
        for site in state.sites:
            self._ask_coverage(ctx, site)

    def _ask_site(self, ctx: Context, site: str) -> None:
        ctx.ask(
            EntityRef("site", site),
            ReplaySite(self._id),
            SITE_TIMEOUT_MS,
            lambda outcome: _Answered(site, outcome),
        )

    def _answered(self, ctx: Context, state: ReplayState, site: str, outcome: Any) -> None:
        self._asked.discard(site)
        if not isinstance(outcome, ReplayReport) or site not in state.waiting:
            return  # asked again at the next poll
        # What was known of its coverage is from before its auctions: only news counts from here on.
        self._coverage.pop(site, None)
        status = state.status
        state = self._update(
            state,
            total=status.total + outcome.total,
            replayed=status.replayed + outcome.replayed,
            ignored=status.ignored + outcome.ignored,
            failed=status.failed + outcome.failed,
        )
        self._state = msgspec.structs.replace(state, waiting=tuple(s for s in state.waiting if s != site))
        self._best_at_ms = ctx.wall_ms()
        ctx.persist(self._state)
        self._ask_coverage(ctx, site)

    def _end(self, ctx: Context, state: ReplayState, outcome: str) -> None:
        ctx.cancel("poll")
        self._state = self._update(state, state=outcome, coverage_after=self._ratio(), ended_ms=ctx.wall_ms())
        ctx.persist(self._state)

    def _update(self, replay: ReplayState, **changes: Any) -> ReplayState:
        self._state = msgspec.structs.replace(replay, status=msgspec.structs.replace(replay.status, **changes))
        return self._state

    def _ratio(self) -> float:
        sites = self._state.sites if self._state else ()
        if any(site not in self._coverage for site in sites):
            return 0.0
        expected = sum(c.expected for c in self._coverage.values())
        return sum(c.present for c in self._coverage.values()) / expected if expected else 1.0
