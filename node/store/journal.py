"""A short list of lines that outlives its process: the newest are kept, the rest is forgotten."""

from __future__ import annotations

from collections import deque
from typing import Protocol


class Journal(Protocol):
    """Kept on this node's own disk, so that it can be written also when everything else is out of reach."""

    def append(self, line: bytes) -> None:
        """Durable when it returns; `line` holds no newline. Raises OSError, and the line is then kept in memory."""
        ...

    def lines(self) -> list[bytes]:
        """The newest ones, oldest first."""
        ...


class MemoryJournal:
    """The model, and the simulator's: lives as long as its owner keeps it."""

    def __init__(self, lines_max: int) -> None:
        self._lines: deque[bytes] = deque(maxlen=lines_max)

    def append(self, line: bytes) -> None:
        self._lines.append(line)

    def lines(self) -> list[bytes]:
        return list(self._lines)
