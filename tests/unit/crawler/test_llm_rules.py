"""When a service is asked, and how often: breaker, waits and pace, by numbers alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from node.ads.guards.limiter import LimiterSettings
from node.core import limits
from node.core.clock import MS, SECOND
from node.crawler.llm.breaker import Breaker, admitted, failed, succeeded, withdrawn
from node.crawler.llm.failure import (
    RATE_LIMITED,
    SERVER_ERROR,
    WITHHELD,
    Failure,
    of_status,
    withheld,
)
from node.crawler.llm.stack import Ask, Call, GiveUp, Send, Stack, Wait, wait_ms

UNWELL = Failure(SERVER_ERROR, again=True, counts=True, status=503)
PLENTY = LimiterSettings(1_000.0, 1_000.0)
DEADLINE = limits.classify_ms_max * MS


# ---- breaker


def test_five_failures_in_a_row_open_the_breaker_for_thirty_seconds_and_one_call_tells() -> None:
    breaker = Breaker()
    for _ in range(4):
        breaker = failed(breaker, 0, probe=False)
    assert not failed(succeeded(breaker), 0, probe=False).is_open, "what was answered in between begins anew"
    breaker = failed(breaker, 0, probe=False)
    assert breaker.open_until_ns == 30 * SECOND
    assert admitted(breaker, 30 * SECOND - 1) is None
    probing = admitted(breaker, 30 * SECOND)
    assert probing is not None
    assert probing.probing
    assert admitted(probing, 31 * SECOND) is None, "one call, whoever else comes"
    again = failed(probing, 31 * SECOND, probe=True)
    assert again.open_until_ns == 61 * SECOND
    assert not again.probing
    assert succeeded(probing) == Breaker()


def test_a_probe_that_is_dropped_lets_the_next_one_tell() -> None:
    open_ = Breaker(5, 1)
    probing = admitted(open_, 2)
    assert probing is not None
    assert admitted(withdrawn(probing, probe=True), 3) == probing
    assert withdrawn(probing, probe=False) == probing, "somebody else's end says nothing"


def test_a_straggler_neither_holds_the_breaker_open_nor_reopens_it() -> None:
    open_ = Breaker(5, 30 * SECOND)
    assert failed(open_, 29 * SECOND, probe=False) == open_
    assert failed(Breaker(), 40 * SECOND, probe=True) == Breaker(1), "another call closed it while the probe was away"


# ---- retries


def test_waits_double_and_are_jittered_within_their_upper_half() -> None:
    limited = Failure(RATE_LIMITED, again=True, counts=True)
    for attempt, (server_ms, limited_ms) in enumerate(((500, 5_000), (1_000, 10_000), (2_000, 20_000)), 1):
        assert wait_ms(UNWELL, attempt, 0.0) == server_ms // 2
        assert wait_ms(UNWELL, attempt, 0.999) in range(server_ms - 2, server_ms)
        assert wait_ms(limited, attempt, 0.0) == limited_ms // 2


@settings(deadline=None)
@given(st.integers(0, 600_000), st.integers(1, 3), st.floats(0, 0.999))
def test_nobody_is_asked_before_the_time_that_it_named(after_ms: int, attempt: int, draw: float) -> None:
    failure = Failure(RATE_LIMITED, again=True, counts=True, after_ms=after_ms)
    assert after_ms <= wait_ms(failure, attempt, draw) < after_ms + limits.classify_backoff_ms


# ---- one call


def run(stack: Stack, outcomes: list[Failure | None], begun_ns: int = 0, until_ns: int = 0) -> tuple[str, list[int]]:
    """How a call ends and when it sent; the outcomes of its attempts come at once, None for an answer."""
    call, now_ns, sent = stack.call(until_ns or begun_ns + DEADLINE), begun_ns, []
    left = list(outcomes)
    while True:
        step = call.next(now_ns)
        if isinstance(step, GiveUp):
            return step.reason, sent
        if isinstance(step, Wait):
            assert step.until_ns > now_ns
            now_ns = step.until_ns
            continue
        sent.append(now_ns)
        outcome = left.pop(0)
        if outcome is None:
            call.answered()
            return "answered", sent
        call.failed(outcome, now_ns, 0.0)


def test_an_attempt_that_may_succeed_is_made_again_four_times_at_most() -> None:
    assert run(Stack(PLENTY, 0), [UNWELL, UNWELL, UNWELL, None])[0] == "answered"
    reason, sent = run(Stack(PLENTY, 0), [UNWELL] * 9)
    assert (reason, [at // MS for at in sent]) == ("server_error", [0, 250, 750, 1_750])
    assert len(run(Stack(PLENTY, 0), [withheld(WITHHELD)] * 9)[1]) == 1


def test_a_call_ends_by_its_deadline_rather_than_wait_beyond_it() -> None:
    late = Failure(RATE_LIMITED, again=True, counts=True, after_ms=20_000)
    stack = Stack(PLENTY, 0)
    assert run(stack, [late, None]) == ("rate_limited", [0]), "there is no sense in a wait that nobody waits for"
    assert run(stack, [None], begun_ns=1 * SECOND) == ("asked_to_wait", []), "and the time holds for all calls"
    assert run(stack, [None], begun_ns=8 * SECOND) == ("answered", [20 * SECOND])
    assert run(Stack(PLENTY, 0), [None], begun_ns=5, until_ns=5) == ("no_time", [])


def test_the_bucket_paces_attempts_and_who_waits_too_long_gives_up() -> None:
    stack = Stack(LimiterSettings(2.0, 0.1), 0)
    assert [run(stack, [None])[1] for _ in range(2)] == [[0], [0]]
    reason, sent = run(stack, [None])
    assert reason == "answered"
    assert 10 * SECOND <= sent[0] <= 10 * SECOND + 2 * MS
    assert run(stack, [None], begun_ns=sent[0], until_ns=sent[0] + 3 * SECOND)[0] == "paced"
    assert stack.counters["fallback_paced"] == 1


def test_who_waits_for_a_token_gets_it_in_order() -> None:
    stack = Stack(LimiterSettings(1.0, 1.0), 0)
    first, second, third = (stack.call(DEADLINE) for _ in range(3))
    assert isinstance(first.next(0), Send)
    assert isinstance(second.next(0), Wait)
    assert isinstance(third.next(0), Wait)
    assert isinstance(third.next(1_001 * MS), Wait), "it came later, and does not overtake"
    assert isinstance(second.next(1_001 * MS), Send)
    second.withdrawn()
    assert isinstance(third.next(2_002 * MS), Send)


def test_an_attempt_needs_a_token_of_the_cluster_s_bucket_beside_one_of_its_own() -> None:
    stack = Stack(LimiterSettings(2.0, 0.1), 0, shared=True)
    call = stack.call(DEADLINE)
    assert call.next(0) == Ask()
    call.told(2_000, 0)
    assert call.next(0) == Wait(2 * SECOND)
    assert call.next(2 * SECOND) == Ask()
    call.told(0, 2 * SECOND)
    assert isinstance(call.next(2 * SECOND), Send)
    call.failed(UNWELL, 2 * SECOND, 0.0)
    again = call.next(3 * SECOND)
    assert again == Ask(), "each attempt needs one"
    call.told(60_000, 3 * SECOND)
    assert call.next(3 * SECOND) == Wait(DEADLINE)
    assert call.next(DEADLINE) == GiveUp("server_error")
    late = stack.call(DEADLINE)
    assert isinstance(late.next(3 * SECOND), Wait), "this node's own bucket is empty"


def test_a_limiter_that_is_away_leaves_the_node_its_own_bucket() -> None:
    stack = Stack(LimiterSettings(1.0, 0.001), 0, shared=True)
    call = stack.call(DEADLINE)
    assert call.next(0) == Ask()
    call.told(None, 0)
    assert isinstance(call.next(0), Send)
    assert stack.counters["limiter_silent"] == 1
    other = stack.call(DEADLINE)
    assert other.next(0) == Wait(DEADLINE)
    assert other.next(DEADLINE) == GiveUp("paced")


def opened() -> Stack:
    stack = Stack(PLENTY, 0)
    for _ in range(limits.breaker_failures_max):
        assert run(stack, [Failure(SERVER_ERROR, again=False, counts=True)])[0] == "server_error"
    return stack


def test_while_the_breaker_is_open_nothing_is_sent_and_then_one_call_is() -> None:
    stack = opened()
    assert run(stack, [None]) == ("breaker_open", [])
    after_ns = 31 * SECOND
    probe, other = stack.call(after_ns + DEADLINE), stack.call(after_ns + DEADLINE)
    assert isinstance(probe.next(after_ns), Send)
    assert other.next(after_ns) == GiveUp("breaker_open")
    probe.answered()
    assert run(stack, [None], begun_ns=after_ns) == ("answered", [after_ns])


def test_a_dropped_probe_does_not_leave_the_service_unasked_for_ever() -> None:
    stack = opened()
    probe = stack.call(90 * SECOND)
    assert isinstance(probe.next(31 * SECOND), Send)
    probe.withdrawn()
    assert run(stack, [None], begun_ns=32 * SECOND) == ("answered", [32 * SECOND])


def test_a_call_that_waits_to_try_again_ends_when_others_open_the_breaker() -> None:
    stack = Stack(PLENTY, 0)
    waiting = stack.call(DEADLINE)
    assert isinstance(waiting.next(0), Send)
    waiting.failed(UNWELL, 0, 0.0)
    for _ in range(limits.breaker_failures_max):
        run(stack, [Failure(SERVER_ERROR, again=False, counts=True)])
    assert waiting.next(1 * SECOND) == GiveUp("breaker_open")


def test_pages_that_the_service_refuses_to_judge_never_open_the_breaker() -> None:
    stack = Stack(PLENTY, 0)
    for _ in range(3 * limits.breaker_failures_max):
        run(stack, [withheld(WITHHELD)])
        run(stack, [of_status(400, {}, 0)])
    assert not stack.breaker.is_open
    assert stack.counters["fallback_withheld"] == stack.counters["fallback_not_taken"] == 15


def test_every_end_of_a_call_is_counted_once() -> None:
    stack = opened()
    run(stack, [None])
    told_of = {name: count for name, count in stack.counters.items() if name.startswith("fallback_")}
    assert told_of == {"fallback_server_error": 5, "fallback_breaker_open": 1}
    assert isinstance(stack.call(1), Call)
