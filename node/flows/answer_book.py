"""An answer book: which requests of one asker were answered before, and how, so that none has its effect twice.

Durable, in the cluster: a repeat is known on whatever node it arrives. Who carries a request out asks `BeginOnce`
first, and says `EndOnce` when it has its answer; without that word the request may be begun again after a while.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from node.actors.actor import Context
from node.core.limits import answer_book_bytes_max, answer_book_entries_max, answer_held_ms, answer_kept_ms
from node.wire.registry import wire_type

KIND: Final = "answer-book"
FIRST, RUNNING, ANSWERED, OTHER, FULL = "first", "running", "answered", "other", "full"


@wire_type("flows.begin_once")
class BeginOnce(msgspec.Struct, frozen=True):
    """`print` tells requests apart: another one under the same key is somebody's mistake. Answered by BegunOnce."""

    key: str
    print: str


@wire_type("flows.begun_once")
class BegunOnce(msgspec.Struct, frozen=True):
    """`state`: first, so carry it out; running, by somebody else now; answered, so with `status` and `body`; other: the
    key stands for another request; full: no further key can be kept now."""

    state: str
    status: int = 0
    body: bytes = b""


@wire_type("flows.end_once")
class EndOnce(msgspec.Struct, frozen=True):
    """How a request was answered; `status` 0: not at all, it may be begun again. Answered by EndedOnce."""

    key: str
    print: str
    status: int
    body: bytes = b""


@wire_type("flows.ended_once")
class EndedOnce(msgspec.Struct, frozen=True):
    pass


@wire_type("flows.kept_answer")
class KeptAnswer(msgspec.Struct, frozen=True):
    key: str
    print: str
    status: int
    body: bytes
    at_ms: int


@wire_type("state.answer_book")
class AnswerBookState(msgspec.Struct, frozen=True):
    """The oldest first."""

    answers: tuple[KeptAnswer, ...] = ()


class AnswerBook:
    """See the module."""

    def __init__(self, _name: str) -> None:
        self._answers: dict[str, KeptAnswer] = {}
        self._running: dict[str, tuple[str, int]] = {}  # until when, by the monotonic clock

    def start(self, ctx: Context, state: AnswerBookState | None) -> None:
        self._answers = {answer.key: answer for answer in state.answers} if state else {}

    def roll_back(self, ctx: Context, state: AnswerBookState | None) -> None:
        self.start(ctx, state)

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case BeginOnce(key, fingerprint):
                ctx.reply(self._begin(key, fingerprint, *ctx.moment()))
            case EndOnce():
                self._end(ctx, message)
            case _:
                ctx.reject(f"an answer book does not understand {type(message).__name__}")

    def _begin(self, key: str, fingerprint: str, now_ms: int, mono_ms: int) -> BegunOnce:
        known = self._answers.get(key)
        if known is not None and now_ms - known.at_ms < answer_kept_ms:
            if known.print != fingerprint:
                return BegunOnce(OTHER)
            return BegunOnce(ANSWERED, known.status, known.body)
        self._running = {name: held for name, held in self._running.items() if held[1] > mono_ms}
        running = self._running.get(key)
        if running is not None:
            return BegunOnce(RUNNING if running[0] == fingerprint else OTHER)
        fresh = sum(now_ms - answer.at_ms < answer_kept_ms for answer in self._answers.values())
        if fresh + len(self._running) >= answer_book_entries_max:
            return BegunOnce(FULL)
        self._running[key] = (fingerprint, mono_ms + answer_held_ms)
        return BegunOnce(FIRST)

    def _end(self, ctx: Context, end: EndOnce) -> None:
        self._running.pop(end.key, None)
        if end.status == 0:
            ctx.reply(EndedOnce())
            return
        now_ms = ctx.wall_ms()
        kept = {key: a for key, a in self._answers.items() if now_ms - a.at_ms < answer_kept_ms and key != end.key}
        kept[end.key] = KeptAnswer(end.key, end.print, end.status, end.body, now_ms)
        self._answers = _within_bytes(kept)
        ctx.persist(AnswerBookState(tuple(self._answers.values())), reply=EndedOnce())


def _within_bytes(answers: dict[str, KeptAnswer]) -> dict[str, KeptAnswer]:
    """The bodies of the oldest go first: that a request was answered is known longer than what it was answered."""
    size = sum(len(answer.body) for answer in answers.values())
    found = dict(answers)
    for key, answer in answers.items():
        if size <= answer_book_bytes_max:
            break
        size -= len(answer.body)
        found[key] = msgspec.structs.replace(answer, body=b"")
    return found
