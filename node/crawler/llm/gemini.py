"""Gemini: `models.generateContent` of the Generative Language API, v1beta (ai.google.dev/api/generate-content)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from node.core.limits import classify_answer_tokens_max, classify_pause_ms_max
from node.crawler.llm.failure import CUT_SHORT, NOT_ALLOWED, WITHHELD, Failure, withheld
from node.crawler.llm.judgement import SCHEMA
from node.crawler.llm.wires import TEMPERATURE, UNREADABLE, Request, Service, Wire


class _Part(msgspec.Struct, frozen=True):
    text: str = ""
    thought: bool = False


class _Content(msgspec.Struct, frozen=True):
    parts: tuple[_Part, ...] = ()


class _Candidate(msgspec.Struct, frozen=True, rename="camel"):
    content: _Content = _Content()
    finish_reason: str = ""


class _Feedback(msgspec.Struct, frozen=True, rename="camel"):
    block_reason: str = ""


class _Reply(msgspec.Struct, frozen=True, rename="camel"):
    candidates: tuple[_Candidate, ...] = ()
    prompt_feedback: _Feedback = _Feedback()


class _Detail(msgspec.Struct, frozen=True, rename="camel"):
    retry_delay: str = ""
    reason: str = ""


class _Error(msgspec.Struct, frozen=True):
    details: tuple[_Detail, ...] = ()


class _Refusal(msgspec.Struct, frozen=True):
    error: _Error = _Error()


def request(service: Service, told: str, shown: str) -> Request:
    generation: dict[str, Any] = {
        "temperature": TEMPERATURE,
        "maxOutputTokens": classify_answer_tokens_max,
        "responseMimeType": "application/json",
        "responseSchema": _schema(SCHEMA),
    }
    if service.model.startswith("gemini-2.5-flash"):  # others refuse to think not at all
        generation["thinkingConfig"] = {"thinkingBudget": 0}
    body = {
        "systemInstruction": {"parts": [{"text": told}]},
        "contents": [{"role": "user", "parts": [{"text": shown}]}],
        "generationConfig": generation,
    }
    headers = {"content-type": "application/json", "x-goog-api-key": service.key}
    url = f"{service.base_url}/models/{quote(service.model, safe='')}:generateContent"
    return Request(url, headers, msgspec.json.encode(body))


def text_of(body: bytes) -> str | Failure:
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return UNREADABLE
    if reply.prompt_feedback.block_reason:
        return withheld(WITHHELD)
    if not reply.candidates or not reply.candidates[0].finish_reason:
        return UNREADABLE
    first = reply.candidates[0]
    if first.finish_reason != "STOP":
        return withheld(CUT_SHORT if first.finish_reason == "MAX_TOKENS" else WITHHELD)
    return "".join(part.text for part in first.content.parts if not part.thought)


def failure_of(failure: Failure, body: bytes) -> Failure:
    """Gemini names the time in its error's details (google.rpc.RetryInfo) rather than in a header, and answers a wrong
    key with 400."""
    try:
        details = msgspec.json.decode(body, type=_Refusal).error.details
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return failure
    if any(detail.reason == "API_KEY_INVALID" for detail in details):
        return Failure(NOT_ALLOWED, again=False, counts=True, status=failure.status)
    delays = [ms for detail in details if (ms := _milliseconds(detail.retry_delay)) is not None]
    if not failure.again or not delays:
        return failure
    return msgspec.structs.replace(failure, after_ms=min(max(failure.after_ms or 0, *delays), classify_pause_ms_max))


def _milliseconds(duration: str) -> int | None:
    """Of a duration in protobuf's JSON, such as `17.5s`."""
    number = duration.removesuffix("s")
    whole, _, part = number.partition(".")
    digits = whole + part
    if number == duration or not (whole and digits.isascii() and digits.isdigit() and len(digits) <= 15):
        return None
    return int(float(number) * 1_000)


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The same in the subset of OpenAPI that `responseSchema` takes."""
    found: dict[str, Any] = {"type": schema["type"].upper()}
    if "properties" in schema:
        found["properties"] = {name: _schema(inner) for name, inner in schema["properties"].items()}
        found["required"] = schema["required"]
    if "items" in schema:
        found["items"] = _schema(schema["items"])
    return found


WIRE = Wire(
    base_url="https://generativelanguage.googleapis.com/v1beta",
    model="gemini-2.5-flash",
    key_variable="GEMINI_API_KEY",
    request=request,
    text_of=text_of,
    failure_of=failure_of,
)
