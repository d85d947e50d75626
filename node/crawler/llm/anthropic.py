"""Anthropic: the Messages API (docs.claude.com/en/api/messages). The judgement is the input of a tool that the model
must call, which is how its answers get a schema."""

from __future__ import annotations

from typing import Any

import msgspec

from node.core.limits import classify_answer_tokens_max
from node.crawler.llm.failure import CUT_SHORT, WITHHELD, Failure, withheld
from node.crawler.llm.judgement import SCHEMA
from node.crawler.llm.wires import TEMPERATURE, UNREADABLE, Request, Service, Wire

VERSION = "2023-06-01"
TOOL = "judgement"


class _Block(msgspec.Struct, frozen=True):
    type: str
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"")


class _Reply(msgspec.Struct, frozen=True):
    content: tuple[_Block, ...]
    stop_reason: str


def request(service: Service, told: str, shown: str) -> Request:
    body: dict[str, Any] = {
        "model": service.model,
        "max_tokens": classify_answer_tokens_max,
        "temperature": TEMPERATURE,
        "system": told,
        "messages": [{"role": "user", "content": shown}],
        "tools": [{"name": TOOL, "description": "Takes what the page is about.", "input_schema": SCHEMA}],
        "tool_choice": {"type": "tool", "name": TOOL, "disable_parallel_tool_use": True},
    }
    headers = {"content-type": "application/json", "x-api-key": service.key, "anthropic-version": VERSION}
    return Request(f"{service.base_url}/messages", headers, msgspec.json.encode(body))


def text_of(body: bytes) -> str | Failure:
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return UNREADABLE
    if reply.stop_reason == "max_tokens":
        return withheld(CUT_SHORT)
    called = [block for block in reply.content if block.type == "tool_use" and block.name == TOOL]
    if reply.stop_reason != "tool_use" or len(called) != 1:
        return withheld(WITHHELD)
    return bytes(called[0].input).decode(errors="replace")


def failure_of(failure: Failure, _body: bytes) -> Failure:
    """Its errors say nothing that status and headers don't."""
    return failure


WIRE = Wire(
    base_url="https://api.anthropic.com/v1",
    model="claude-haiku-4-5",
    key_variable="ANTHROPIC_API_KEY",
    request=request,
    text_of=text_of,
    failure_of=failure_of,
)
