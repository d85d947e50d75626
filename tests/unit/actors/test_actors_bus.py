"""Topics: bounded subscribers, gaps, snapshots; cells and code outside; other nodes."""

from __future__ import annotations

from typing import Any

import pytest
from actors_harness import Get, Got, Node, Put, Scripted, kind

from node.actors.actor import Context
from node.actors.bus import Bus, Gap, Subscription
from node.core import limits
from node.core.errors import LocalProtocolError
from node.core.ids import EntityRef

A = EntityRef("thing", "a")
B = EntityRef("thing", "b")


def drain(subscription: Subscription) -> list[Any]:
    return list(iter(subscription.take, None))


def test_a_slow_subscriber_loses_the_oldest_and_is_told_how_many() -> None:
    bus = Bus()
    bus.declare("topic", lambda: Got(9))
    ready: list[Subscription] = []
    slow = bus.subscribe("topic", ready.append, events_max=2)
    quick = bus.subscribe("topic", lambda subscription: None)
    for value in range(5):
        bus.publish("topic", Put(value))
    assert ready == [slow], "told once, when there was something"
    assert drain(slow) == [Gap("topic", 3), Put(3), Put(4)]
    assert drain(quick) == [Put(value) for value in range(5)]
    assert bus.lost == 3
    assert bus.snapshot("topic") == Got(9)
    bus.publish("topic", Put(6))
    assert ready == [slow, slow]
    slow.close()
    slow.close()
    bus.publish("topic", Put(7))
    assert drain(slow) == []


def test_topics_are_declared_once_and_unknown_ones_are_our_fault_or_a_newer_peers() -> None:
    bus = Bus()
    bus.declare("topic")
    with pytest.raises(LocalProtocolError):
        bus.declare("topic")
    for call in (lambda: bus.publish("other", Put(1)), lambda: bus.subscribe("other", lambda s: None)):
        with pytest.raises(LocalProtocolError, match="other"):
            call()
    bus.publish_remote("other", Put(1))
    assert bus.unknown == 1
    assert bus.snapshot("topic") is None


def test_cells_subscribe_publish_and_get_gaps_until_they_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    logs: dict[str, list[Any]] = {"a": [], "b": []}

    def receive(ctx: Context, message: Any) -> None:
        if message == Get(1):
            ctx.subscribe("topic")
            ctx.subscribe("topic")
        if message == Get(2):
            for value in range(limits.bus_events_max + 2):
                ctx.publish("topic", Put(value))

    node = Node(kind(lambda entity_id: Scripted(logs[entity_id], receive)))
    node.own(A, B)
    node.system.bus.declare("topic")
    node.system.tell(A, Get(1))
    node.run()
    node.system.tell(B, Get(2))
    node.run()
    assert logs["a"][:3] == [Get(1), Gap("topic", 2), Put(2)]
    assert len(logs["a"]) == limits.bus_events_max + 2
    assert len(node.published) == limits.bus_events_max + 2
    node.system.publish_remote("topic", Put(-1))
    node.run()
    assert logs["a"][-1] == Put(-1)
    assert len(node.published) == limits.bus_events_max + 2, "what came from outside is not sent on"
    node.system.shard_stopping(A.shard, lambda tally: None)
    node.run()
    count = len(logs["a"])
    node.system.publish("topic", Put(5))
    node.run()
    assert len(logs["a"]) == count
    assert node.system.dead_letters.counters == {}
    assert not node.system.depths()
