"""What happened between two subscriptions: the node that is followed next keeps it, and is asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from node.admin.protocol import AdminEvent
from node.admin.protocol.diagnosis import EventList, GetEventList

# The clocks of two nodes differ, and what was told just before the break may have been lost with it. What was seen
# already is told apart by itself.
_MARGIN_MS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Missed:
    """`since_ms`: wall time from which on events may be missing; `node`: who is asked, empty while nobody is
    followed."""

    since_ms: int
    node: str = ""

    @property
    def question(self) -> GetEventList:
        return GetEventList(node=self.node, since_ms=self.since_ms)


def missed_since(told_at: str) -> Missed | None:
    """What may be missing behind the last moment, RFC 3339, at which a node told something; None where that is none."""
    try:
        seconds = datetime.fromisoformat(told_at).timestamp()
    except ValueError:
        return None
    return Missed(since_ms=max(0, int(seconds * 1000) - _MARGIN_MS))


def lacking(seen: tuple[AdminEvent, ...], kept: EventList) -> tuple[AdminEvent, ...]:
    """What a node kept and nobody has seen, oldest first. It was told as it is kept: the same words are the same
    event."""
    known = set(seen)
    found = (
        AdminEvent(at=each.at, topic=each.topic, object=each.object, text=each.text, node=each.node, gap=each.gap)
        for each in kept.items
    )
    return tuple(each for each in found if each not in known)
