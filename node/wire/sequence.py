"""Numbers of messages on one lane between two incarnations: what was lost on the way, and what comes a second time.

The sender numbers every message that it hands to the network, from 1 for each incarnation of the receiver. Frames of
one connection keep their order, but after a reconnect those of the old connection may come behind the first of the
new one, so a receiver remembers the latest gaps and lets each be filled once. Pure.
"""

from __future__ import annotations

from typing import Final

from node.core import limits
from node.core.errors import RemoteProtocolError
from node.core.ids import NodeId
from node.wire.registry import Lane

_END: Final = 1 << 63


class Window:
    """The receiver's side of one lane. `lost`: messages that left the sender and have not arrived so far."""

    __slots__ = ("_gaps", "lost", "next")

    def __init__(self) -> None:
        self.next = 1
        self.lost = 0
        self._gaps: list[tuple[int, int]] = []

    def take(self, first: int, count: int) -> bool:
        """Whether the messages `first` to `first + count - 1` come for the first time."""
        if first == self.next:
            self.next += count
            return True
        if first > self.next:
            if first + count >= _END:
                return False
            self.lost += first - self.next
            self._gaps.append((self.next, first))
            del self._gaps[: -limits.sequence_gaps_max]
            self.next = first + count
            return True
        return self._fill(first, first + count)

    def _fill(self, first: int, end: int) -> bool:
        for place, (low, high) in enumerate(self._gaps):
            if low <= first and end <= high:
                self._gaps[place : place + 1] = [gap for gap in ((low, first), (end, high)) if gap[0] < gap[1]]
                self.lost -= end - first
                return True
        return False


class Windows:
    """A receiver's side of every lane of every peer, of whose incarnations only the newest are remembered."""

    def __init__(self) -> None:
        self._windows: dict[tuple[NodeId, Lane], Window] = {}

    def take(self, sender: NodeId, lane: Lane, first: int, count: int) -> int:
        """How many more of the sender's messages are now known to be lost; below zero: a gap was filled. Raises
        RemoteProtocolError for messages that are not to be let through: they came before, or are of long ago."""
        window = self._windows.get((sender, lane))
        if window is None:
            window = self._window(sender, lane)
        lost = window.lost
        if not window.take(first, count):
            raise RemoteProtocolError("replayed", f"messages {first} to {first + count - 1} again, or of long ago")
        return window.lost - lost

    def _window(self, sender: NodeId, lane: Lane) -> Window:
        known = sorted({node for node, _ in self._windows if node.name == sender.name})
        if len(known) >= limits.ledger_incarnations_max:
            if sender < known[0]:
                raise RemoteProtocolError("old_incarnation", f"{sender}; {known[-1]} was here since")
            for each in Lane:
                self._windows.pop((known[0], each), None)
        found = self._windows[(sender, lane)] = Window()
        return found
