"""Events between nodes: numbered, so that what did not come is known."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from node.actors.bus import Bus, Gap
from node.ads.messages import CAMPAIGN_CHANGED, CampaignChanged
from node.core.ids import NodeId
from node.engine.events import EVENTS, EventLog
from node.engine.messages import TopicEvent
from node.engine.topics import ClusterBus, topics

N2 = NodeId("n2", 7)


def changed(number: int) -> CampaignChanged:
    return CampaignChanged(f"c{number}", ("653",))


class World:
    """A sender and a receiver; `sent` is what the sender gave to the wire."""

    def __init__(self) -> None:
        self.sent: list[TopicEvent] = []
        self.bus = Bus()
        for topic in topics(EventLog()):
            self.bus.declare(topic)
        self.counters: Counter[str] = Counter()
        system: Any = SimpleNamespace(bus=self.bus, publish_remote=self.bus.publish_remote)
        sender: Any = SimpleNamespace(broadcast=lambda path, message: self.sent.append(message))
        receiver: Any = SimpleNamespace(counters=self.counters, system=system)
        self.sender, self.receiver = ClusterBus(sender), ClusterBus(receiver)
        self.seen = self.bus.subscribe(CAMPAIGN_CHANGED, lambda subscription: None)
        for number in range(6):
            self.sender.publish(CAMPAIGN_CHANGED, changed(number))

    def receive(self, *numbers: int, sender: NodeId = N2) -> list[str]:
        return [self.receiver.received(sender, self.sent[number]) for number in numbers]

    def taken(self) -> list[Any]:
        return list(iter(self.seen.take, None))


def test_an_event_that_did_not_come_is_a_gap_for_every_subscriber() -> None:
    """B6: between nodes, too."""
    world = World()
    assert world.receive(2, 3) == ["", ""], "what was before the two nodes met is not missed"
    assert world.taken() == [changed(2), changed(3)]
    world.receive(5)
    assert world.taken() == [Gap(CAMPAIGN_CHANGED, 1), changed(5)]
    assert world.receive(4, 5) == ["repeated_event"] * 2
    assert (world.taken(), world.counters["dropped_repeated_event"]) == ([], 2)


def test_a_restarted_sender_counts_from_one_again() -> None:
    world = World()
    world.receive(4, 5)
    world.receive(0, 1, sender=NodeId("n2", 8))
    assert Gap not in {type(event) for event in world.taken()}
    world.receiver.forget(frozenset({NodeId("n2", 8)}))
    assert world.receive(0) == [""], "of a node that is gone nothing is remembered"


def test_topics_count_apart_and_an_older_release_does_not_count() -> None:
    world = World()
    other = TopicEvent(EVENTS, world.sent[0].event, 1)
    assert world.receiver.received(N2, other) == ""
    assert world.bus.unknown == 1, "not an event of that topic"
    world.receive(3, 4)
    uncounted = TopicEvent(CAMPAIGN_CHANGED, world.sent[5].event)
    assert [world.receiver.received(NodeId("n3", 1), uncounted) for _ in range(2)] == ["", ""]
    assert world.taken() == [changed(3), changed(4), changed(5), changed(5)]


def test_an_event_that_can_not_be_read_is_counted_and_missed() -> None:
    world = World()
    world.receive(0)
    reason = world.receiver.received(N2, TopicEvent(CAMPAIGN_CHANGED, b"\xff", 2))
    assert reason
    assert world.counters[f"dropped_{reason}"] == 1
    assert world.taken() == [Gap(CAMPAIGN_CHANGED, 1), changed(0)]
