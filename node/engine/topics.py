"""The topics of a node, and how their events reach the other nodes: best effort, and whoever misses some is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from node.actors.bus import Newest, Topic
from node.ads.messages import (
    ADVERTISER_CHANGED,
    CAMPAIGN_CHANGED,
    DIRECTORY_STARTED,
    AdvertiserChanged,
    CampaignChanged,
    DirectoryStarted,
)
from node.core.errors import RemoteProtocolError
from node.core.ids import NodeId
from node.engine.events import EVENTS, EventLog, NodeEvent
from node.engine.messages import TopicEvent
from node.wire.codec import CODEC

if TYPE_CHECKING:
    from node.engine.engine import Engine


def topics(events: EventLog) -> tuple[Topic, ...]:
    """Every topic, with where its subscribers start from."""
    return (
        Topic(CAMPAIGN_CHANGED, CampaignChanged, Newest(lambda event: event.campaign)),
        Topic(ADVERTISER_CHANGED, AdvertiserChanged, Newest(lambda event: event.advertiser)),
        Topic(DIRECTORY_STARTED, DirectoryStarted, Newest(lambda event: event.node)),
        Topic(EVENTS, NodeEvent, events),
    )


class ClusterBus:
    """Numbers what this node publishes, and notices what it did not get of what others did."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._published: dict[str, int] = {}
        self._heard: dict[tuple[NodeId, str], int] = {}

    def publish(self, topic: str, event: msgspec.Struct) -> None:
        """To every other member in reach."""
        number = self._published.get(topic, 0) + 1
        self._published[topic] = number
        self._engine.broadcast("/bus", TopicEvent(topic, CODEC.encode(event), number))

    def received(self, sender: NodeId, message: TopicEvent) -> str:
        """An event of another node; why it was dropped, empty when it was not."""
        engine = self._engine
        if message.number and not self._next(sender, message):
            engine.counters["dropped_repeated_event"] += 1
            return "repeated_event"
        try:
            event = CODEC.decode(message.event)
        except RemoteProtocolError as error:
            engine.counters[f"dropped_{error.reason}"] += 1
            engine.system.bus.miss(message.topic, 1)
            return error.reason
        engine.system.publish_remote(message.topic, event)
        return ""

    def _next(self, sender: NodeId, message: TopicEvent) -> bool:
        """Whether it is a new one; what was left out before it is missed."""
        key = (sender, message.topic)
        before = self._heard.get(key, message.number - 1)  # what was before the two nodes met is not missed
        if message.number <= before:
            return False
        self._heard[key] = message.number
        if message.number > before + 1:
            self._engine.system.bus.miss(message.topic, message.number - before - 1)
        return True

    def forget(self, present: frozenset[NodeId]) -> None:
        """Only these are members now."""
        self._heard = {key: number for key, number in self._heard.items() if key[0] in present}
