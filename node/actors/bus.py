"""Typed topics. Every subscriber has a bounded buffer: a slow one loses the oldest events, is told how many with the
next delivery, and never holds up a publisher."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from node.core import limits
from node.core.errors import LocalProtocolError


@dataclass(frozen=True, slots=True)
class Gap:
    """`lost` events of `topic` did not fit the buffer, or never came here: read the topic's snapshot again."""

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

    def miss(self, count: int) -> None:
        """Events that never came: the next thing taken is a Gap."""
        empty = not self._events and not self._lost
        self._lost += count
        if empty:
            self._on_ready(self)

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


class Source(Protocol):
    """Where a subscriber starts from, and what it resynchronises with after a Gap: the events that make up the present
    state, oldest first, so that who can handle events can handle a snapshot."""

    def note(self, event: Any) -> None:
        """An event was published, here or elsewhere."""
        ...

    def snapshot(self) -> tuple[msgspec.Struct, ...]: ...


class Newest:
    """The newest event about each thing; of more things than `kept_max` those go that were quiet the longest."""

    def __init__(self, about: Callable[[Any], Hashable], kept_max: int = limits.snapshot_events_max) -> None:
        self._about = about
        self._kept_max = kept_max
        self._events: dict[Hashable, msgspec.Struct] = {}

    def note(self, event: Any) -> None:
        key = self._about(event)
        self._events.pop(key, None)
        self._events[key] = event
        if len(self._events) > self._kept_max:
            del self._events[next(iter(self._events))]

    def snapshot(self) -> tuple[msgspec.Struct, ...]:
        return tuple(self._events.values())


@dataclass(frozen=True, slots=True)
class Topic:
    """A name, the one type of its events, and where a subscriber starts from: there is no topic without it, since
    whoever misses an event must be able to catch up."""

    name: str
    event: type[msgspec.Struct]
    source: Source
    subscribers: dict[Subscription, None] = field(default_factory=dict)


class Bus:
    """The topics of this node; reaching other nodes is the system's business."""

    def __init__(self) -> None:
        self._topics: dict[str, Topic] = {}
        self.published = 0
        self.lost = 0
        self.unknown = 0
        self.missed = 0

    def declare(self, topic: Topic) -> None:
        """Makes a topic known. Raises LocalProtocolError when it is already."""
        if topic.name in self._topics:
            raise LocalProtocolError(f"topic {topic.name!r} is declared twice")
        self._topics[topic.name] = topic

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

    def snapshot(self, topic: str) -> tuple[msgspec.Struct, ...]:
        """Where a subscriber starts from, or resynchronises with."""
        return self._topic(topic).source.snapshot()

    def publish(self, topic: str, event: msgspec.Struct) -> None:
        """To the subscribers on this node. Raises LocalProtocolError for a topic that is not declared, or an event
        that is not of its type."""
        found = self._topic(topic)
        if type(event) is not found.event:
            raise LocalProtocolError(f"topic {topic!r} carries {found.event.__name__}, not {type(event).__name__}")
        self._fan_out(found, event)

    def publish_remote(self, topic: str, event: msgspec.Struct) -> None:
        """An event from another node; of an unknown topic or type (a newer release's) it is counted and dropped."""
        found = self._topics.get(topic)
        if found is None or type(event) is not found.event:
            self.unknown += 1
            return
        self._fan_out(found, event)

    def miss(self, topic: str, count: int) -> None:
        """That many events of another node never came here: every subscriber is told."""
        found = self._topics.get(topic)
        if found is not None:
            self.missed += count
            for subscription in tuple(found.subscribers):
                subscription.miss(count)

    def remove(self, subscription: Subscription) -> None:
        self._topic(subscription.topic).subscribers.pop(subscription, None)

    def _fan_out(self, topic: Topic, event: msgspec.Struct) -> None:
        self.published += 1
        topic.source.note(event)
        for subscription in tuple(topic.subscribers):
            if not subscription.offer(event):
                self.lost += 1

    def _topic(self, topic: str) -> Topic:
        found = self._topics.get(topic)
        if found is None:
            raise LocalProtocolError(f"topic {topic!r} is not declared")
        return found
