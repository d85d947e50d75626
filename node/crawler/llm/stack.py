"""The resilience that all services are asked through: deadline, circuit breaker, token bucket, retries. Sans-IO.

`Stack` is what the calls of one node share; a `Call` is one page's question, with all its attempts. The driver owes it:

- it asks `next` what to do, does that and nothing else: sends, asks for a token, waits and asks again, or gives up;
- after a `Send` it says `answered` or `failed`, and asks `next` again after the latter;
- after an `Ask` it asks the cluster's limiter, says what was `told`, and asks `next` again;
- it says `withdrawn` for a call that it drops in the midst, or the breaker waits for its word for ever.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from node.ads.guards.limiter import Limiter, LimiterSettings, Verdict, acquire, next_ms, opened, step
from node.core import limits
from node.core.clock import MS
from node.crawler.llm import breaker as rules
from node.crawler.llm.breaker import Breaker
from node.crawler.llm.failure import RATE_LIMITED, Failure

BREAKER_OPEN = "breaker_open"
ASKED_TO_WAIT = "asked_to_wait"
PACED = "paced"
NO_TIME = "no_time"


class Send(msgspec.Struct, frozen=True):
    """Make an attempt, which has `left_ns`."""

    left_ns: int


class Wait(msgspec.Struct, frozen=True):
    """Ask again at this time."""

    until_ns: int


class Ask(msgspec.Struct, frozen=True):
    """All nodes share one bucket: ask it for a token."""


class GiveUp(msgspec.Struct, frozen=True):
    """`reason` is a stable word for counters."""

    reason: str


def wait_ms(failure: Failure, attempt: int, draw: float) -> int:
    """Before the next attempt, after `attempt` of them failed; `draw` is in [0, 1).

    Between half of the doubled step and all of it, so that nodes which failed together don't come back together; where
    the service named a time, that and a little more, never less.
    """
    if failure.after_ms is not None:
        return failure.after_ms + int(draw * limits.classify_backoff_ms)
    first_ms = limits.classify_limited_backoff_ms if failure.reason == RATE_LIMITED else limits.classify_backoff_ms
    return int(first_ms * 2 ** (attempt - 1) * (0.5 + draw / 2))


class Stack:
    """`counters` are by what happened. `shared`: an attempt needs a token of the cluster's bucket, besides one of this
    node's own, which is all there is while nobody answers for the other."""

    def __init__(self, pace: LimiterSettings, now_ns: int, *, shared: bool = False) -> None:
        self.shared = shared
        self.breaker = Breaker()
        self.counters: Counter[str] = Counter()
        self.last: Failure | None = None  # of the newest call that failed, None since one was answered
        self._pace = pace
        self._limiter: Limiter = opened(pace, now_ns // MS)
        self._verdicts: dict[int, Verdict] = {}
        self._resume_ns = 0
        self._calls = 0

    def call(self, until_ns: int) -> Call:
        """A new call, which ends by `until_ns`."""
        self._calls += 1
        return Call(self, self._calls, until_ns)

    def token(self, number: int, until_ns: int, now_ns: int, *, waits: bool) -> Verdict | int:
        """What the bucket says to a call, or when to ask it again; `waits` says that it asked before."""
        now_ms = now_ns // MS
        if waits:
            self._limiter, answers = step(self._limiter, self._pace, now_ms)
        else:
            self._limiter, answers = acquire(self._limiter, number, until_ns // MS, self._pace, now_ms)
        self._verdicts.update(answers)
        verdict = self._verdicts.pop(number, None)
        if verdict is not None:
            return verdict
        return max(next_ms(self._limiter, self._pace) or 0, now_ms + 1) * MS

    def leave(self, number: int) -> None:
        """A call that no longer waits for a token."""
        waiting = tuple(waiter for waiter in self._limiter.waiting if waiter.caller != number)
        self._limiter = msgspec.structs.replace(self._limiter, waiting=waiting)
        self._verdicts.pop(number, None)

    @property
    def resume_ns(self) -> int:
        return self._resume_ns

    def hold_off(self, until_ns: int) -> None:
        """The service named a time before which it wants no request: of any call."""
        self._resume_ns = max(self._resume_ns, until_ns)


class Call:
    """Made by `Stack.call`."""

    def __init__(self, stack: Stack, number: int, until_ns: int) -> None:
        self._stack = stack
        self._number = number
        self._until_ns = until_ns
        self._let_in = False
        self._probe = False
        self._waits = False  # in the bucket's queue
        self._has_token = False  # of this node's bucket, for the next attempt
        self._may_send = not stack.shared
        self._ask_again_ns = 0
        self._attempts = 0
        self._not_before_ns = 0
        self._last: Failure | None = None

    def next(self, now_ns: int) -> Send | Wait | Ask | GiveUp:
        """What to do now."""
        reason = self._barred(now_ns)
        if reason:
            return self._end(reason, now_ns)
        if now_ns >= self._until_ns:
            paced = self._waits or self._ask_again_ns
            return self._end(self._last.reason if self._last else PACED if paced else NO_TIME, now_ns)
        ready_ns = max(self._not_before_ns, self._stack.resume_ns)
        if ready_ns >= self._until_ns:
            return self._end(self._last.reason if self._last else ASKED_TO_WAIT, now_ns)
        if ready_ns > now_ns:
            return Wait(ready_ns)
        held_up = self._paced(now_ns)
        if held_up is not None:
            return held_up
        self._has_token, self._may_send = False, not self._stack.shared
        self._attempts += 1
        self._stack.counters["asked" if self._attempts == 1 else "asked_again"] += 1
        return Send(self._until_ns - now_ns)

    def told(self, wait_ms: int | None, now_ns: int) -> None:
        """What the cluster's limiter says: 0 for a token, else how long there is none; None: it did not answer."""
        self._may_send = not wait_ms
        self._ask_again_ns = now_ns + (wait_ms or 0) * MS
        self._stack.counters["limiter_silent"] += wait_ms is None

    def answered(self) -> None:
        """The service gave a judgement, whatever it is worth."""
        self._stack.breaker = rules.succeeded(self._stack.breaker)
        self._stack.last = None
        self._stack.counters["answered"] += 1

    def failed(self, failure: Failure, now_ns: int, draw: float) -> None:
        """The attempt failed; `draw` is in [0, 1)."""
        self._last = failure
        self._stack.counters[f"failed_{failure.reason}"] += 1
        if failure.after_ms is not None:
            self._stack.hold_off(now_ns + failure.after_ms * MS)
        if failure.again and self._attempts < limits.classify_attempts_max:
            self._not_before_ns = now_ns + wait_ms(failure, self._attempts, draw) * MS
        else:
            self._not_before_ns = self._until_ns

    def withdrawn(self) -> None:
        """Nobody goes on with this call."""
        self._stack.leave(self._number)
        self._stack.breaker = rules.withdrawn(self._stack.breaker, probe=self._probe)

    def _paced(self, now_ns: int) -> Wait | Ask | GiveUp | None:
        """What stands between this call and its next attempt: this node's bucket, then the cluster's."""
        if not self._has_token:
            said = self._stack.token(self._number, self._until_ns, now_ns, waits=self._waits)
            if isinstance(said, int):
                self._waits = True
                return Wait(min(said, self._until_ns))
            self._waits = False
            if said != "granted":
                return self._end(PACED, now_ns)
            self._has_token = True
        if self._may_send:
            return None
        return Wait(min(self._ask_again_ns, self._until_ns)) if now_ns < self._ask_again_ns else Ask()

    def _barred(self, now_ns: int) -> str:
        """Why the breaker lets this call not go on; empty when it does."""
        if self._let_in:
            return BREAKER_OPEN if self._stack.breaker.is_open and not self._probe else ""
        found = rules.admitted(self._stack.breaker, now_ns)
        if found is None:
            return BREAKER_OPEN
        self._let_in = True
        self._probe = found.probing
        self._stack.breaker = found
        return ""

    def _end(self, reason: str, now_ns: int) -> GiveUp:
        stack, last = self._stack, self._last
        stack.leave(self._number)
        stack.counters[f"fallback_{reason}"] += 1
        if last is None:
            stack.breaker = rules.withdrawn(stack.breaker, probe=self._probe)
        elif last.counts:
            stack.breaker = rules.failed(stack.breaker, now_ns, probe=self._probe)
            stack.last = last
        else:
            stack.breaker = rules.succeeded(stack.breaker)
            stack.last = None
        return GiveUp(reason)
