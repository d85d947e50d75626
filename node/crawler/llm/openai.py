"""OpenAI: chat completions (platform.openai.com/docs/api-reference/chat), which other servers speak as well."""

from __future__ import annotations

from typing import Any

import msgspec

from node.core.limits import classify_answer_tokens_max
from node.crawler.llm.failure import CUT_SHORT, OUT_OF_QUOTA, WITHHELD, Failure, withheld
from node.crawler.llm.judgement import SCHEMA
from node.crawler.llm.wires import TEMPERATURE, UNREADABLE, Request, Service, Wire

# Models that think before they write refuse any temperature but their own.
_THINKING = ("gpt-5", "o1", "o3", "o4")


class _Message(msgspec.Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct, frozen=True):
    message: _Message
    finish_reason: str


class _Reply(msgspec.Struct, frozen=True):
    choices: tuple[_Choice, ...]


class _Error(msgspec.Struct, frozen=True):
    code: str | int | None = None


class _Refusal(msgspec.Struct, frozen=True):
    error: _Error = _Error()


def request(service: Service, told: str, shown: str) -> Request:
    body: dict[str, Any] = {
        "model": service.model,
        "messages": [{"role": "system", "content": told}, {"role": "user", "content": shown}],
        "max_completion_tokens": classify_answer_tokens_max,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "judgement", "strict": True, "schema": SCHEMA},
        },
    }
    if not service.model.startswith(_THINKING):
        body["temperature"] = TEMPERATURE
    headers = {"content-type": "application/json", "authorization": f"Bearer {service.key}"}
    return Request(f"{service.base_url}/chat/completions", headers, msgspec.json.encode(body))


def text_of(body: bytes) -> str | Failure:
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return UNREADABLE
    if not reply.choices:
        return UNREADABLE
    first = reply.choices[0]
    if first.finish_reason == "length":
        return withheld(CUT_SHORT)
    if first.finish_reason != "stop" or first.message.refusal or first.message.content is None:
        return withheld(WITHHELD)
    return first.message.content


def failure_of(failure: Failure, body: bytes) -> Failure:
    """A 429 also says that nothing is left to spend, which no waiting mends."""
    try:
        refusal = msgspec.json.decode(body, type=_Refusal)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return failure
    if failure.status == 429 and refusal.error.code == "insufficient_quota":
        return Failure(OUT_OF_QUOTA, again=False, counts=True, status=failure.status)
    return failure


WIRE = Wire(
    base_url="https://api.openai.com/v1",
    model="gpt-4o-mini",
    key_variable="OPENAI_API_KEY",
    request=request,
    text_of=text_of,
    failure_of=failure_of,
)
