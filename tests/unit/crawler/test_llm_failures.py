"""What went wrong, as services say it in ways of their own, and whether it counts against them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from node.core import limits
from node.crawler.llm import anthropic, gemini, openai
from node.crawler.llm.failure import (
    CUT_SHORT,
    NOT_ALLOWED,
    OUT_OF_QUOTA,
    WITHHELD,
    no_answer,
    of_status,
    retry_after_ms,
)


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
