"""What is asked of a service and when, and what is believed of its answers: numbers and texts alone."""

from __future__ import annotations

import heapq
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.ads.guards.limiter import LimiterSettings
from node.ads.places import load_gazetteer
from node.ads.taxonomy import load_taxonomy
from node.core import limits
from node.core.clock import MS, SECOND
from node.crawler.llm import anthropic, gemini, openai
from node.crawler.llm.breaker import Breaker, admitted, failed, succeeded, withdrawn
from node.crawler.llm.failure import (
    CUT_SHORT,
    NOT_ALLOWED,
    OUT_OF_QUOTA,
    RATE_LIMITED,
    SERVER_ERROR,
    WITHHELD,
    Failure,
    no_answer,
    of_status,
    retry_after_ms,
    withheld,
)
from node.crawler.llm.judgement import Judgement, judged
from node.crawler.llm.prompt import shown, told
from node.crawler.llm.stack import Ask, Call, GiveUp, Send, Stack, Wait, wait_ms
from node.crawler.llm.wires import UNREADABLE

UNWELL = Failure(SERVER_ERROR, again=True, counts=True, status=503)
PLENTY = LimiterSettings(1_000.0, 1_000.0)
DEADLINE = limits.classify_ms_max * MS
TAXONOMY = load_taxonomy()


def verdict(text: str) -> Judgement | str:
    return judged(text, TAXONOMY, load_gazetteer())


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


@pytest.mark.parametrize(
    ("headers", "ms"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7_000),
        ({"retry-after": " 0 "}, 0),
        ({"retry-after": "1.5"}, 1_500),
        ({"retry-after": "Mon, 30 Nov 2026 12:00:09 GMT"}, 9_000),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "99999999999"}, limits.classify_pause_ms_max),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "٣"}, None),
        ({"retry-after": "9", "retry-after-ms": "250"}, 250),
    ],
)
def test_retry_after_is_read_as_it_is_written(headers: dict[str, str], ms: int | None) -> None:
    assert retry_after_ms(headers, 1_796_040_000_000) == ms


@pytest.mark.parametrize(
    ("status", "reason", "again", "counts"),
    [
        (429, "rate_limited", True, True),
        *((status, "server_error", True, True) for status in (408, 500, 502, 503, 504, 529)),
        (401, "not_allowed", False, True),
        (403, "not_allowed", False, True),
        (404, "not_found", False, True),
        (302, "not_found", False, True),
        (400, "not_taken", False, False),
        (413, "not_taken", False, False),
    ],
)
def test_what_a_page_may_have_caused_does_not_count_against_the_service(
    status: int, reason: str, again: bool, counts: bool
) -> None:
    failure = of_status(status, {}, 0)
    assert (failure.reason, failure.again, failure.counts) == (reason, again, counts)


def test_who_was_given_little_time_may_be_well() -> None:
    assert not no_answer(limits.classify_patience_ms - 1).counts
    assert no_answer(limits.classify_patience_ms).counts


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


# ---- what is believed

GOOD = {"categories": [{"id": "210", "confidence": 0.4}, {"id": "653", "confidence": 1}], "places": ["Lyon, FR", "FR"]}


def with_(**parts: Any) -> str:
    return json.dumps(GOOD | parts)


def test_a_good_answer_is_believed_with_its_surest_category_first() -> None:
    found = verdict(json.dumps(GOOD))
    assert found == Judgement((("653", 1.0), ("210", 0.4)), ("GN2996944", "FR"))
    assert verdict(with_(categories=[], places=[])) == Judgement((), ()), "too little evidence is an answer"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not_json"),
        ("I think it is about food.", "not_json"),
        ("```json\n" + json.dumps(GOOD) + "\n```", "not_json"),
        (json.dumps(GOOD) + json.dumps(GOOD), "not_json"),
        (with_(categories=[{"id": "210", "confidence": float("nan")}]), "not_json"),
        ("null", "wrong_shape"),
        ("[]", "wrong_shape"),
        ('{"categories": []}', "wrong_shape"),
        (with_(categories={"210": 0.9}), "wrong_shape"),
        (with_(categories=[{"id": 210, "confidence": 0.9}]), "wrong_shape"),
        (with_(categories=[{"id": "210", "confidence": "0.9"}]), "wrong_shape"),
        (with_(categories=[{"id": "210", "confidence": True}]), "wrong_shape"),
        (with_(categories=[{"id": "210"}]), "wrong_shape"),
        (with_(categories=[{"id": "210", "confidence": 0.9, "name": "Food"}]), "wrong_shape"),
        (with_(provider="someone else"), "wrong_shape"),
        (with_(places=[{"code": "FR"}]), "wrong_shape"),
        (with_(places=["FR", "IT", "ES", "PT"]), "too_many"),
        (with_(categories=[{"id": i, "confidence": 0.5} for i in ("1", "42", "52", "123", "132", "150")]), "too_many"),
        (with_(categories=[*GOOD["categories"], {"id": "Finance", "confidence": 0.1}]), "unknown_category"),
        (with_(categories=[{"id": "IAB13", "confidence": 0.9}]), "unknown_category"),
        (with_(categories=[{"id": " 210", "confidence": 0.9}]), "unknown_category"),
        (with_(categories=[{"id": "210", "confidence": 0.9}, {"id": "210", "confidence": 0.1}]), "repeated_category"),
        (with_(categories=[{"id": "210", "confidence": 1.01}]), "bad_confidence"),
        (with_(categories=[{"id": "210", "confidence": -0.1}]), "bad_confidence"),
        (with_(categories=[{"id": "210", "confidence": 0}]), "bad_confidence"),
        (with_(categories=[{"id": "210", "confidence": 90}]), "bad_confidence"),
        (with_(places=["Atlantis"]), "unknown_place"),
        (with_(places=["Paris, ZZ"]), "unknown_place"),
    ],
)
def test_an_answer_that_breaks_a_rule_is_refused_whole(text: str, reason: str) -> None:
    assert verdict(text) == reason


@settings(deadline=None)
@given(st.integers(0, len(json.dumps(GOOD)) - 1))
def test_an_answer_that_ends_early_is_refused_wherever_it_ends(length: int) -> None:
    assert verdict(json.dumps(GOOD)[:length]) == "not_json"


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_gets_a_verdict(text: str) -> None:
    verdict(text)


# ---- what is shown


@settings(deadline=None)
@given(st.text(max_size=400), st.text(max_size=100))
def test_a_page_stands_in_one_string_of_the_document_and_nowhere_else(text: str, hint: str) -> None:
    document = json.loads(shown(text, hint))
    assert document == {"page": text, "section": hint}
    assert told() == told()


def test_long_pages_and_hints_are_cut() -> None:
    document = json.loads(shown("x" * 9_000, "y" * 900))
    assert (len(document["page"]), len(document["section"])) == (8_000, 200)


def test_the_instructions_hold_every_category() -> None:
    lines = set(told().splitlines())
    assert all(f"{each.id}\t{' > '.join(TAXONOMY.path(each.id))}" in lines for each in TAXONOMY)


# ---- what services say in ways of their own


def test_a_service_that_gives_no_judgement_of_a_page_is_told_from_one_that_is_unwell() -> None:
    def both(wire: Any, document: Any) -> Any:
        found = wire.text_of(json.dumps(document).encode())
        return found if isinstance(found, str) else (found.reason, found.counts)

    candidate = {"content": {"parts": [{"text": "thinks", "thought": True}, {"text": "{}"}]}, "finishReason": "STOP"}
    assert both(gemini.WIRE, {"candidates": [candidate]}) == "{}"
    for ended, reason in (("MAX_TOKENS", CUT_SHORT), ("SAFETY", WITHHELD), ("RECITATION", WITHHELD)):
        assert both(gemini.WIRE, {"candidates": [{**candidate, "finishReason": ended}]}) == (reason, False)
    assert both(gemini.WIRE, {"promptFeedback": {"blockReason": "SAFETY"}}) == (WITHHELD, False)
    for wire in (gemini.WIRE, openai.WIRE, anthropic.WIRE):
        for wrong in ({}, [], None, "text", {"choices": []}, {"content": 3}):
            assert both(wire, wrong) == ("not_its_format", True)
        assert not isinstance(wire.text_of(b'{"candidates": ['), str)
        assert not isinstance(wire.text_of(b"\xff\xfe"), str)
    message = {"content": "{}", "refusal": None}
    assert both(openai.WIRE, {"choices": [{"message": message, "finish_reason": "content_filter"}]})[0] == WITHHELD
    block = {"type": "tool_use", "name": "another", "input": {}}
    assert both(anthropic.WIRE, {"content": [block], "stop_reason": "tool_use"}) == (WITHHELD, False)


def test_gemini_names_a_time_in_its_error_and_a_wrong_key_with_400() -> None:
    limited = of_status(429, {}, 0)

    def body(**detail: str) -> bytes:
        return json.dumps({"error": {"code": 429, "details": [{"@type": "x", "links": []}, detail]}}).encode()

    assert gemini.failure_of(limited, body(retryDelay="17.5s")).after_ms == 17_500
    assert gemini.failure_of(limited, body(retryDelay="9999999s")).after_ms == limits.classify_pause_ms_max
    for wrong in ("17.5", "s", "-3s", "", "1e3s"):
        assert gemini.failure_of(limited, body(retryDelay=wrong)) == limited
    assert gemini.failure_of(limited, b"<html>") == limited
    wrong_key = gemini.failure_of(of_status(400, {}, 0), body(reason="API_KEY_INVALID"))
    assert (wrong_key.reason, wrong_key.again, wrong_key.counts) == (NOT_ALLOWED, False, True)


def test_openai_says_with_429_too_that_nothing_is_left_to_spend() -> None:
    limited = of_status(429, {}, 0)
    spent = openai.failure_of(limited, b'{"error": {"code": "insufficient_quota"}}')
    assert (spent.reason, spent.again) == (OUT_OF_QUOTA, False)
    assert openai.failure_of(limited, b'{"error": {"code": "rate_limit_exceeded"}}') == limited
    assert openai.failure_of(limited, b"busy") == limited


# ---- many calls at once


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


def test_an_answer_nested_too_deep_is_one_that_can_not_be_read() -> None:
    """A page's text can talk a model into writing anything, and what stands before a service may answer anything."""
    deep = '{"more":' + 100_000 * "["
    assert verdict(deep) in ("not_json", "wrong_shape")
    refusal = Failure(SERVER_ERROR, again=True, counts=True, status=429)
    for wire in (anthropic.WIRE, gemini.WIRE, openai.WIRE):
        assert wire.text_of(deep.encode()) == UNREADABLE
        assert wire.failure_of(refusal, deep.encode()) == refusal
