"""Many calls of a service at once, over virtual time."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from test_llm_rules import UNWELL

from node.ads.guards.limiter import LimiterSettings
from node.core.clock import MS, SECOND
from node.crawler.llm.failure import (
    RATE_LIMITED,
    WITHHELD,
    Failure,
    no_answer,
    of_status,
    withheld,
)
from node.crawler.llm.stack import Call, GiveUp, Stack, Wait


class Played:
    """Calls over virtual time, each with what its attempts come to and how long they take; the rest is the stack's."""

    def __init__(self, pace: LimiterSettings) -> None:
        self.stack = Stack(pace, 0)
        self.sent_ns: list[int] = []
        self.ended_ns: dict[int, int] = {}
        self.due: list[tuple[int, int, int, Failure | str | None]] = []  # time, order, call, what it is time for
        self.calls: list[tuple[Call, int]] = []
        self.probes: set[int] = set()
        self.pushed = 0

    def begin(self, at_ns: int, deadline_ms: int) -> None:
        until_ns = at_ns + deadline_ms * MS
        self.calls.append((self.stack.call(until_ns), until_ns))
        self._push(at_ns, len(self.calls) - 1, "next")

    def run(self, attempts: Callable[[], tuple[Failure | None, int]]) -> None:
        while self.due:
            now_ns, _, number, what = heapq.heappop(self.due)
            call, _ = self.calls[number]
            if what is None:
                call.answered()
                self._end(number, now_ns)
            elif isinstance(what, Failure):
                call.failed(what, now_ns, 0.5)
                self._push(now_ns, number, "next")
            else:
                self._step(number, now_ns, attempts)

    def _step(self, number: int, now_ns: int, attempts: Callable[[], tuple[Failure | None, int]]) -> None:
        held_off_ns = self.stack.resume_ns
        step = self.calls[number][0].next(now_ns)
        if isinstance(step, GiveUp):
            self._end(number, now_ns)
        elif isinstance(step, Wait):
            assert step.until_ns > now_ns, "it would spin"
            self._push(step.until_ns, number, "next")
        else:
            assert now_ns >= held_off_ns, "the service wanted to be left alone"
            if self.stack.breaker.is_open:
                assert not self.probes - {number}, "one call tells"
                self.probes.add(number)
            self.sent_ns.append(now_ns)
            outcome, took_ms = attempts()
            late = took_ms * MS > step.left_ns
            self._push(now_ns + min(took_ms * MS, step.left_ns), number, no_answer(took_ms) if late else outcome)

    def _end(self, number: int, now_ns: int) -> None:
        assert number not in self.ended_ns
        self.ended_ns[number] = now_ns
        self.probes.discard(number)
        self.calls[number][0].withdrawn()

    def _push(self, at_ns: int, number: int, what: Failure | str | None) -> None:
        self.pushed += 1
        heapq.heappush(self.due, (at_ns, self.pushed, number, what))


OUTCOMES = st.sampled_from(
    [None, UNWELL, withheld(WITHHELD), Failure(RATE_LIMITED, again=True, counts=True), of_status(401, {}, 0)]
    + [Failure(RATE_LIMITED, again=True, counts=True, after_ms=ms) for ms in (0, 900, 4_000, 40_000)]
)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 9_000), st.sampled_from([50, 2_000, 15_000])), min_size=1, max_size=40),
    st.lists(st.tuples(OUTCOMES, st.integers(0, 20_000)), min_size=1, max_size=20),
    st.tuples(st.integers(1, 6), st.sampled_from([0.05, 0.5, 20.0])),
)
def test_whatever_comes_each_call_ends_in_time_and_the_service_is_asked_no_more_than_it_may_be(
    arrivals: list[tuple[int, int]], attempts: list[tuple[Failure | None, int]], pace: tuple[int, float]
) -> None:
    burst, rate = pace
    played, at_ms = Played(LimiterSettings(float(burst), rate)), 0
    for gap_ms, deadline_ms in arrivals:
        at_ms += gap_ms
        played.begin(at_ms * MS, deadline_ms)
    script = itertools.cycle(attempts)
    played.run(lambda: next(script))
    assert len(played.ended_ns) == len(arrivals)
    assert all(played.ended_ns[number] <= until_ns for number, (_, until_ns) in enumerate(played.calls))
    counters = played.stack.counters
    fallbacks = sum(count for name, count in counters.items() if name.startswith("fallback_"))
    assert counters["answered"] + fallbacks == len(arrivals), "each end is counted, once"
    assert counters["asked"] + counters["asked_again"] == len(played.sent_ns)
    for first, begun_ns in enumerate(played.sent_ns):
        for later, sent_ns in enumerate(played.sent_ns[first:], 1):
            assert later <= burst + rate * (sent_ns - begun_ns) / SECOND + 0.01
