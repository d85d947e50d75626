"""The newest lines of this process's log in its memory, for who asks from afar; and levels that are set for a time."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque

from node.core.errors import BadInput
from node.core.limits import log_level_s_max, log_line_chars_max, log_lines_kept
from node.core.redaction import redacted
from node.engine.diagnosis_messages import LogLevel, LogLine
from node.wiring.log_lines import LogLines

_FORMAT = LogLines("%(message)s")  # a traceback follows its message, as it does in the file
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_log = logging.getLogger(__name__)


class LogRing(logging.Handler):
    """A handler of the root logger. Lines may come from any thread: `emit` runs under the handler's own lock."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: deque[LogLine] = deque(maxlen=log_lines_kept)
        self._numbers = itertools.count(1)
        self.last = 0
        self._before: dict[str, tuple[int, asyncio.TimerHandle]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = redacted(_FORMAT.format(record))
        except Exception:
            self.handleError(record)
            return
        cut = text if len(text) <= log_line_chars_max else f"{text[:log_line_chars_max]}…"
        self.last = next(self._numbers)
        self._kept.append(LogLine(self.last, int(record.created * 1_000), record.levelname, record.name, cut))

    def kept(self) -> tuple[LogLine, ...]:
        """Oldest first."""
        assert self.lock is not None
        with self.lock:
            return tuple(self._kept)

    # ---- levels

    def set_level(self, logger: str, level: str, for_s: int) -> bool:
        """Whether something changed; after `for_s` the level is as it was. An empty level takes it back at once.
        Raises BadInput. To be called on the loop."""
        if level and (level not in LEVELS or not 1 <= for_s <= log_level_s_max):
            text = f"a level is {', '.join(LEVELS)}, for 1 to {log_level_s_max} s"
            raise BadInput("level", text)
        name = "" if logger == "root" else logger
        known = logging.root.manager.loggerDict
        if name and name not in known and not any(each.startswith(f"{name}.") for each in known):
            raise BadInput("logger", f"there is no logger {logger!r:.80}")
        found = logging.getLogger(name)
        if not level:
            return self._take_back(name)
        held = self._before.get(name)
        if held is not None:
            held[1].cancel()
        before = found.level if held is None else held[0]
        timer = asyncio.get_running_loop().call_later(for_s, self._take_back, name)
        self._before[name] = (before, timer)
        level_before = found.level
        found.setLevel(level)
        _log.warning("the log level of %s is %s for %d s", name or "root", level, for_s)
        return found.level != level_before

    def _take_back(self, name: str) -> bool:
        held = self._before.pop(name, None)
        if held is None:
            return False
        level, timer = held
        timer.cancel()
        logging.getLogger(name).setLevel(level)
        _log.warning("the log level of %s is as before", name or "root")
        return True

    def levels(self) -> tuple[LogLevel, ...]:
        """Every logger with a level of its own, and how long it has it."""
        found = [("", logging.root), *sorted(logging.root.manager.loggerDict.items())]
        now = asyncio.get_running_loop().time()
        return tuple(
            LogLevel(name or "root", logging.getLevelName(logger.level), self._left_s(name, now))
            for name, logger in found
            if isinstance(logger, logging.Logger) and logger.level
        )

    def _left_s(self, name: str, now: float) -> int:
        held = self._before.get(name)
        return max(1, round(held[1].when() - now)) if held is not None else 0

    def close(self) -> None:
        """Levels go back, and nothing more is kept."""
        for name in list(self._before):
            self._take_back(name)
        logging.root.removeHandler(self)
        super().close()
