"""What a node answers about its log when another node asks for an operator, under `/node`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol

from node.actors.actor import Failure
from node.core import limits
from node.core.errors import BadInput
from node.engine.diagnosis_messages import GetLogLevels, GetLogs, LogLevel, LogLevels, LogLine, LogPage, SetLogLevel
from node.engine.messages import NodeDone
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine


class LogBook(Protocol):
    """The process's log: see `node.wiring.logring`. `last` is the number of the newest line."""

    last: int

    def kept(self) -> tuple[LogLine, ...]: ...
    def set_level(self, logger: str, level: str, for_s: int) -> bool: ...
    def levels(self) -> tuple[LogLevel, ...]: ...


class LogService:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine, book: LogBook) -> None:
        self._engine = engine
        self._book = book
        engine.services |= {
            GetLogs: self._logs_wanted,
            SetLogLevel: self._level_set,
            GetLogLevels: self._levels_wanted,
        }

    def page(self, wanted: GetLogs) -> LogPage:
        me = self._engine.me
        after = wanted.after if wanted.incarnation == me.incarnation else 0
        kept, last = self._book.kept(), self._book.last
        found = [line for line in kept if line.number > after and fits(line, wanted)]
        # Who follows must not miss any: of what came after a number the oldest come first, else the newest.
        limit = max(1, min(wanted.limit, limits.actor_rows_max))
        cut = _within(found[:limit] if after else found[-limit:], newest=not after)
        more = after and len(cut) < len(found)
        lost = max(0, kept[0].number - after - 1) if kept and after else 0
        return LogPage(me.name, me.incarnation, cut, cut[-1].number if more else last, lost)

    def _logs_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetLogs):
            self._engine.reply(envelope, self.page(envelope.message))

    def _level_set(self, envelope: Envelope) -> None:
        message = envelope.message
        if not isinstance(message, SetLogLevel):
            return
        try:
            changed = self._book.set_level(message.logger, message.level, message.for_s)
        except BadInput as error:
            self._engine.system.refuse(envelope, Failure.REJECTED, error.message)
            return
        self._engine.reply(envelope, NodeDone(changed))

    def _levels_wanted(self, envelope: Envelope) -> None:
        self._engine.reply(envelope, LogLevels(self._engine.me.name, self._book.levels()))


def fits(line: LogLine, wanted: GetLogs) -> bool:
    """Whether a line is asked for."""
    number = logging.getLevelNamesMapping().get(line.level, logging.CRITICAL)
    return line.at_ms >= wanted.since_ms and number >= wanted.level and wanted.text.lower() in line.text.lower()


def _within(lines: list[LogLine], *, newest: bool) -> tuple[LogLine, ...]:
    """As many as one answer takes, from the newest or from the oldest on."""
    found: list[LogLine] = []
    size = 0
    for line in reversed(lines) if newest else lines:
        size += len(line.text.encode()) + len(line.logger) + 40
        if found and size > limits.log_page_bytes:
            break
        found.append(line)
    return tuple(reversed(found)) if newest else tuple(found)
