"""Typed topics. Every subscriber has a bounded buffer: a slow one loses the oldest events, is told how many with the
next delivery, and never holds up a publisher."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from node.core import limits
from node.core.errors import LocalProtocolError

Snapshot = Callable[[], msgspec.Struct]


@dataclass(frozen=True, slots=True)
class Gap:
    """`lost` events of `topic` did not fit the buffer: read the topic's snapshot again."""

    topic: str
    lost: int


class Subscription:
    """One subscriber's buffer. `on_ready` is called when it turns from empty to not empty; then `take` until None."""

    __slots__ = ("_bus", "_events", "_events_max", "_lost", "_on_ready", "topic")

    def __init__(self, bus: Bus, topic: str, on_ready: Callable[[Subscription], None], events_max: int) -> None:
        self.topic = topic
        self._bus = bus
        self._on_ready = on_ready
        self._events: deque[msgspec.Struct] = deque()
        self._events_max = events_max
        self._lost = 0

    def __len__(self) -> int:
        return len(self._events) + bool(self._lost)

    def offer(self, event: msgspec.Struct) -> bool:
        """Adds an event; False when the oldest one was lost for it."""
        empty = not self._events and not self._lost
        full = len(self._events) >= self._events_max
        if full:
            self._events.popleft()
            self._lost += 1
        self._events.append(event)
        if empty:
            self._on_ready(self)
        return not full

    def take(self) -> msgspec.Struct | Gap | None:
        """The next event, a Gap before it when some were lost, None when there is none."""
        if self._lost:
            gap = Gap(self.topic, self._lost)
            self._lost = 0
            return gap
        return self._events.popleft() if self._events else None

    def close(self) -> None:
        """No more events; idempotent."""
        self._bus.remove(self)
        self._events.clear()
        self._lost = 0


class _Topic:
    __slots__ = ("snapshot", "subscribers")

    def __init__(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self.subscribers: dict[Subscription, None] = {}


class Bus:
    """The topics of this node; reaching other nodes is the system's business."""

    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}
        self.published = 0
        self.lost = 0
        self.unknown = 0

    def declare(self, topic: str, snapshot: Snapshot | None = None) -> None:
        """Makes a topic known; `snapshot` gives what a subscriber needs to start from. Raises LocalProtocolError
        when it is known already."""
        if topic in self._topics:
            raise LocalProtocolError(f"topic {topic!r} is declared twice")
        self._topics[topic] = _Topic(snapshot)

    def knows(self, topic: str) -> bool:
        return topic in self._topics

    def subscribe(
        self,
        topic: str,
        on_ready: Callable[[Subscription], None],
        events_max: int = limits.bus_events_max,
    ) -> Subscription:
        """Events published from now on. Raises LocalProtocolError for a topic that is not declared."""
        subscription = Subscription(self, topic, on_ready, events_max)
        self._topic(topic).subscribers[subscription] = None
        return subscription

    def snapshot(self, topic: str) -> msgspec.Struct | None:
        """Where a subscriber starts from, or resynchronises with; None when the topic has no source."""
        source = self._topic(topic).snapshot
        return None if source is None else source()

    def publish(self, topic: str, event: msgspec.Struct) -> None:
        """To the subscribers on this node. Raises LocalProtocolError for a topic that is not declared."""
        self._fan_out(self._topic(topic), event)

    def publish_remote(self, topic: str, event: msgspec.Struct) -> None:
        """An event from another node; of an unknown topic (a newer release's) it is counted and dropped."""
        found = self._topics.get(topic)
        if found is None:
            self.unknown += 1
            return
        self._fan_out(found, event)

    def remove(self, subscription: Subscription) -> None:
        self._topic(subscription.topic).subscribers.pop(subscription, None)

    def _fan_out(self, topic: _Topic, event: msgspec.Struct) -> None:
        self.published += 1
        for subscription in tuple(topic.subscribers):
            if not subscription.offer(event):
                self.lost += 1

    def _topic(self, topic: str) -> _Topic:
        found = self._topics.get(topic)
        if found is None:
            raise LocalProtocolError(f"topic {topic!r} is not declared")
        return found
