"""What was not handled, and why (I9): a ring of the newest, counters of all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from node.core import limits
from node.core.ids import NodeId, Ref


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One message that was not handled. `message` is kept for a replay and is not shown unless asked for."""

    number: int
    at_ms: int
    reason: str
    to: Ref
    type: str
    sender: NodeId
    message: Any
    deliveries: int = 0
    error: str = ""
    trace: str = ""


class DeadLetters:
    """The ring and the counters. Numbers only grow, so that a reader sees what it missed."""

    def __init__(self, kept_max: int = limits.dead_letters_kept) -> None:
        self._ring: deque[DeadLetter] = deque(maxlen=kept_max)
        self._number = 0
        self.counters: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._ring)

    def __iter__(self) -> Iterator[DeadLetter]:
        return iter(self._ring)

    def add(
        self,
        at_ms: int,
        reason: str,
        to: Ref,
        type_name: str,
        sender: NodeId,
        message: Any,
        *,
        deliveries: int = 0,
        error: str = "",
        trace: str = "",
    ) -> None:
        """Keep and count one."""
        self._number += 1
        self.count(reason, type_name)
        self._ring.append(
            DeadLetter(self._number, at_ms, reason, to, type_name, sender, message, deliveries, error, trace)
        )

    def count(self, reason: str, type_name: str) -> None:
        """Count one of which nothing is worth keeping."""
        key = (reason, type_name)
        self.counters[key] = self.counters.get(key, 0) + 1

    def total(self, reason: str) -> int:
        """How many there were of one reason."""
        return sum(count for (why, _), count in self.counters.items() if why == reason)

    def take(self, number: int, *, replayable: bool = False) -> DeadLetter | None:
        """Removes one from the ring, to discard it or (`replayable`) to send it again; None when it is not there, or
        can't be sent again."""
        for letter in self._ring:
            if letter.number == number and not (replayable and letter.message is None):
                self._ring.remove(letter)
                return letter
        return None
