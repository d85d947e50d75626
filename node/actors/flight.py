"""What a node did last, and what held it up: a ring of its newest turns, and slow handlers; never a payload."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from node.core.clock import MS
from node.core.ids import EntityRef

# One cell's share of a dispatcher's turn: begin and end (monotonic ns), the entity, the class of the last message,
# how many messages ran, and whether all of them went well. A plain tuple: one is made for every turn of every cell.
Turn = tuple[int, int, EntityRef, type, int, bool]


@dataclass(frozen=True, slots=True)
class AtWork:
    """The handler that runs now; `after` is the turn that ended before it."""

    ref: EntityRef
    message_type: type
    message: object
    after: Turn | None

    def same_as(self, other: AtWork) -> bool:
        """Whether it is one and the same run of a handler."""
        return self.message is other.message and self.after is other.after


_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SlowHandler:
    """Handlers of one kind of entity that took longer than `handler_slow_ms` over one type of message."""

    kind: str
    message_type: str
    count: int = 0
    longest_ms: int = 0
    last_id: str = ""
    last_at_ms: int = 0


class SlowHandlers:
    """Bounded by the kinds of entities and the types of messages that there are."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], SlowHandler] = {}
        self.count = 0

    def note(self, ref: EntityRef, message_type: str, took_ns: int, at_ms: int) -> None:
        took_ms = took_ns // MS
        key = (ref.kind, message_type)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = SlowHandler(ref.kind, message_type)
        self.count += 1
        found.count += 1
        found.longest_ms = max(found.longest_ms, took_ms)
        found.last_id = ref.id
        found.last_at_ms = at_ms
        if found.count & (found.count - 1) == 0:  # the 1st, 2nd, 4th, …: a habit is not news for ever
            _log.warning("%s took %d ms over %s (%d times so far)", ref, took_ms, message_type, found.count)

    def all(self) -> tuple[SlowHandler, ...]:
        """The worst first."""
        return tuple(sorted(self._found.values(), key=lambda slow: -slow.longest_ms))
