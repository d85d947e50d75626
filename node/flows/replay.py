"""A replay: every site of its scope sends its fresh classifications to its auctioneer again, and coverage is awaited.

```
survey ──all sites said their coverage, or SURVEY_MS without news──▶ pages ──all sites through──▶ settle
pages, settle ──the wanted coverage is reached──▶ done
settle ──coverage 1.0, or unchanged for SETTLE_MS (PENDING_MS while auctions go on)──▶ done; failed below the wanted
pages, settle ──LIMIT_MS passed while sites were silent──▶ failed      any ──somebody cancels──▶ cancelled
```

Durable at the cluster: what is counted and how far each site is are one record, so that an owner that takes it over
goes on behind the pages that were counted, and counts none twice. Sites go page by page (`CHUNK` at once) at the
rate that was asked for.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from node.actors.actor import Context, Failed, Failure
from node.core.ids import EntityRef
from node.flows import replay_state as rules
from node.flows.messages import (
    CancelReplay,
    GetCoverage,
    GetReplay,
    ReplayReport,
    ReplaySite,
    ReplayStatus,
    SiteCoverage,
    StartReplay,
)
from node.flows.replay_state import ReplayState
from node.flows.retention import outlived

SITES_AT_ONCE = 8
COVERAGES_AT_ONCE = 32
CHUNK = 100
TRIES_MAX = 3
SITE_TIMEOUT_MS = 5_000
POLL_MS = 500
SURVEY_MS = 2_000
SETTLE_MS = 6_000
PENDING_MS = 45_000  # an auctioneer repeats an auction for half a minute
LIMIT_MS = 120_000


class _Answered(msgspec.Struct, frozen=True):
    site: str
    limit: int
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
        self._asked: set[str] = set()  # for pages
        self._tries: dict[str, int] = {}
        self._known: dict[str, SiteCoverage] = {}
        self._round: deque[str] = deque()  # to be asked for their coverage
        self._hearing: set[str] = set()
        self._budget = 0.0
        self._polled_ms = 0
        self._heard_ms = 0
        self._best = -1.0
        self._best_at_ms = 0
        self._unsaved = False

    def start(self, ctx: Context, state: ReplayState | None) -> None:
        if state is not None and outlived(state.status, ctx.wall_ms()):
            ctx.delete()
            return
        self._state = state
        if state is not None and state.status.state == "running":
            self._go(ctx)

    def receive(self, ctx: Context, message: Any) -> None:
        if isinstance(message, StartReplay):
            self._begin(ctx, message)
            return
        state = self._state
        if state is None:
            ctx.reject(f"there is no replay {self._id!r}")
            ctx.passivate()
            return
        running = state.status.state == "running"
        seen = running and state.surveyed and self._known
        match message:
            case GetReplay():
                ctx.reply((rules.seen(state, self._known) if seen else state).status)
            case CancelReplay(reason):
                if running:
                    self._end(ctx, state, "cancelled", reason)
                ctx.reply_durable(self._status())
            case _Poll() if running:
                self._poll(ctx, state)
            case _Answered() if running:
                self._answered(ctx, state, message)
            case _Covered(site, outcome) if running:
                self._covered(ctx, state, site, outcome)
            case _Poll() | _Answered() | _Covered():
                pass  # it has ended
            case _:
                ctx.reject(f"a replay does not understand {type(message).__name__}")

    def _begin(self, ctx: Context, order: StartReplay) -> None:
        if self._state is not None:
            ctx.reply_durable(self._state.status)
            return
        status = ReplayStatus(self._id, "running", order.scope, 0, 0, 0, 0, 0.0, 0.0, ctx.wall_ms(), 0, why=order.why)
        self._state = ReplayState(
            status, order.sites, order.sites, missing=order.missing, rate=order.rate, until=order.until
        )
        ctx.persist(self._state, reply=status)
        self._go(ctx)

    def _go(self, ctx: Context) -> None:
        self._polled_ms = self._heard_ms = self._best_at_ms = ctx.moment().mono_ms
        ctx.every("poll", POLL_MS, _Poll(), first_ms=0)

    def _status(self) -> ReplayStatus:
        assert self._state is not None
        return self._state.status

    # ---- what comes next

    def _poll(self, ctx: Context, state: ReplayState) -> None:
        now_ms = ctx.moment().mono_ms
        if state.rate:
            earned = state.rate * max(0, now_ms - self._polled_ms) / 1_000
            self._budget = min(self._budget + earned, float(state.rate))  # nothing is saved up for a burst
        self._polled_ms = now_ms
        if not self._round and not self._hearing:
            self._round.extend(site for site in state.sites if self._wants_coverage(state, site))
        self._ask_coverages(ctx)
        if not state.surveyed:
            heard = all(site in self._known for site in state.sites)
            if not heard and now_ms - self._heard_ms < SURVEY_MS:
                return
            self._state = state = rules.surveyed(state, self._known)
            self._heard_ms, self._unsaved = now_ms, True
        if not self._is_over(ctx, state, now_ms):
            self._ask_sites(ctx, state)
            if self._unsaved:
                self._save(ctx, state)

    def _wants_coverage(self, state: ReplayState, site: str) -> bool:
        """Nothing is known of it, or it is through and may be filled any moment."""
        known = self._known.get(site)
        return known is None or (state.surveyed and site not in state.waiting and not rules.full(known))

    def _is_over(self, ctx: Context, state: ReplayState, now_ms: int) -> bool:
        ratio = rules.ratio(state.sites, self._known)
        if ratio > self._best:
            self._best, self._best_at_ms = ratio, now_ms
        unknown = [site for site in state.sites if site not in self._known]
        reached = not unknown and ratio >= (state.until or 1.0)
        pending = any(coverage.pending for coverage in self._known.values())
        patience_ms = PENDING_MS if pending else SETTLE_MS
        settled = not state.waiting and not unknown and now_ms - self._best_at_ms > patience_ms
        if (reached and (state.until or not state.waiting)) or settled:
            self._end(ctx, state)
        elif (state.waiting or unknown) and now_ms - self._heard_ms > LIMIT_MS:
            self._end(ctx, state, "failed", rules.silent(state.waiting or unknown))
        else:
            return False
        return True

    def _ask_coverages(self, ctx: Context) -> None:
        while self._round and len(self._hearing) < COVERAGES_AT_ONCE:
            self._hear(ctx, self._round.popleft())

    def _hear(self, ctx: Context, site: str) -> None:
        self._hearing.add(site)
        ctx.ask(EntityRef("site", site), GetCoverage(), SITE_TIMEOUT_MS, lambda outcome: _Covered(site, outcome))

    def _ask_sites(self, ctx: Context, state: ReplayState) -> None:
        for site in state.waiting:
            limit = min(CHUNK, int(self._budget)) if state.rate else CHUNK
            if len(self._asked) >= SITES_AT_ONCE or limit < 1:
                return
            if site not in self._asked:
                self._asked.add(site)
                self._budget -= limit if state.rate else 0
                self._ask_site(ctx, site, state.begun.get(site, ("", 0))[0], limit, missing=state.missing)

    def _ask_site(self, ctx: Context, site: str, after: str, limit: int, *, missing: bool) -> None:
        order = ReplaySite(self._id, after, limit, missing)
        ctx.ask(EntityRef("site", site), order, SITE_TIMEOUT_MS, lambda outcome: _Answered(site, limit, outcome))

    # ---- what sites say

    def _covered(self, ctx: Context, state: ReplayState, site: str, outcome: Any) -> None:
        self._hearing.discard(site)
        if isinstance(outcome, SiteCoverage):
            if not state.surveyed or site not in self._known:
                self._heard_ms = ctx.moment().mono_ms
            self._known[site] = outcome
        elif _is_gone(outcome):
            self._drop(ctx, state, site)
        self._ask_coverages(ctx)

    def _answered(self, ctx: Context, state: ReplayState, answered: _Answered) -> None:
        site, report = answered.site, answered.outcome
        self._asked.discard(site)
        if state.rate:  # what did not go out did not cost
            went_out = report.replayed if isinstance(report, ReplayReport) else 0
            self._budget = min(self._budget + answered.limit - went_out, float(state.rate))
        if _is_gone(report):
            self._drop(ctx, state, site)
        if not isinstance(report, ReplayReport) or site not in state.waiting:
            return  # asked again at the next poll
        if report.failed and self._tries.get(site, 1) < TRIES_MAX:
            self._tries[site] = self._tries.get(site, 1) + 1
            return
        self._tries.pop(site, None)
        self._state = state = rules.counted(state, site, report)
        self._heard_ms, self._unsaved = ctx.moment().mono_ms, True
        if not report.next:
            # What was known of its coverage is from before its auctions: only news counts from here on.
            self._known.pop(site, None)
            self._best, self._best_at_ms = -1.0, ctx.moment().mono_ms
            if site not in self._hearing:
                self._hear(ctx, site)
        self._ask_sites(ctx, state)

    def _drop(self, ctx: Context, state: ReplayState, site: str) -> None:
        self._known.pop(site, None)
        self._state = rules.without(state, site)
        self._unsaved = True

    # ---- what stays

    def _save(self, ctx: Context, state: ReplayState) -> None:
        """Once a poll and not with each answer: with many sites the record is large."""
        self._state, self._unsaved = rules.seen(state, self._known), False
        ctx.persist(self._state)

    def _end(self, ctx: Context, state: ReplayState, outcome: str = "", reason: str = "") -> None:
        ctx.cancel("poll")
        state = rules.seen(state, self._known) if self._known else state
        if not outcome:
            outcome, reason = rules.verdict(state)
        self._state = rules.with_status(state, state=outcome, reason=reason, ended_ms=ctx.wall_ms())
        ctx.persist(self._state)


def _is_gone(outcome: Any) -> bool:
    return (
        isinstance(outcome, Failed)
        and outcome.failure is Failure.REJECTED
        and outcome.detail.startswith("there is no site")
    )
