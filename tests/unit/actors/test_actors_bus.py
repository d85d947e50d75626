"""Topics: bounded subscribers, gaps, snapshots; cells and code outside; other nodes."""

from __future__ import annotations

from typing import Any

import pytest
from actors_harness import Get, Got, Node, Put, Scripted, kind

from node.actors.actor import Context
from node.actors.bus import Bus, Gap, Newest, Subscription, Topic
from node.core import limits
from node.core.errors import LocalProtocolError
from node.core.ids import EntityRef

A = EntityRef("thing", "a")
B = EntityRef("thing", "b")


def numbers(kept_max: int = 2) -> Topic:
    return Topic("topic", Put, Newest(lambda event: event.value, kept_max))


def drain(subscription: Subscription) -> list[Any]:
    return list(iter(subscription.take, None))


def test_a_slow_subscriber_loses_the_oldest_and_is_told_how_many() -> None:
    """B6: the oldest are lost, a Gap says how many, the snapshot holds what is true now."""
    bus = Bus()
    bus.declare(numbers())
    ready: list[Subscription] = []
    slow = bus.subscribe("topic", ready.append, events_max=2)
    quick = bus.subscribe("topic", lambda subscription: None)
    for value in range(5):
        bus.publish("topic", Put(value))
    assert ready == [slow], "told once, when there was something"
    assert drain(slow) == [Gap("topic", 3), Put(3), Put(4)]
    assert drain(quick) == [Put(value) for value in range(5)]
    assert bus.lost == 3
    assert bus.snapshot("topic") == (Put(3), Put(4)), "what it missed is there, as far as it still holds"
    bus.publish("topic", Put(6))
    assert ready == [slow, slow]
    slow.close()
    slow.close()
    bus.publish("topic", Put(7))
    assert drain(slow) == []


def test_topics_are_declared_once_and_unknown_ones_are_our_fault_or_a_newer_peers() -> None:
    bus = Bus()
    bus.declare(numbers())
    with pytest.raises(LocalProtocolError):
        bus.declare(numbers())
    with pytest.raises(LocalProtocolError, match="carries Put, not Got"):
        bus.publish("topic", Got(1))
    for call in (lambda: bus.publish("other", Put(1)), lambda: bus.subscribe("other", lambda s: None)):
        with pytest.raises(LocalProtocolError, match="other"):
            call()
    bus.publish_remote("other", Put(1))
    bus.publish_remote("topic", Got(1))
    assert bus.unknown == 2
    assert bus.snapshot("topic") == ()


def test_a_topic_without_a_snapshot_source_can_not_be_registered() -> None:
    """B6: who was told of a gap must be able to read what it missed."""
    with pytest.raises(TypeError):
        Topic("topic", Put)  # type: ignore[call-arg]


def test_what_never_came_from_another_node_is_a_gap_too() -> None:
    bus = Bus()
    bus.declare(numbers())
    subscription = bus.subscribe("topic", lambda subscription: None)
    bus.publish_remote("topic", Put(1))
    bus.miss("topic", 2)
    bus.publish_remote("topic", Put(4))
    assert drain(subscription) == [Gap("topic", 2), Put(1), Put(4)]
    assert bus.missed == 2


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
    node.system.bus.declare(numbers())
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


def test_a_cell_that_was_told_of_a_gap_reads_the_snapshot() -> None:
    """B6: after the Gap it has every event's outcome."""
    seen: list[Any] = []

    def receive(ctx: Context, message: Any) -> None:
        if message == Get(1):
            ctx.subscribe("topic")
        elif isinstance(message, Gap):
            seen.extend(ctx.snapshot(message.topic))
        elif isinstance(message, Put):
            seen.append(message)

    node = Node(kind(lambda _: Scripted([], receive)))
    node.own(A)
    node.system.bus.declare(numbers(10_000))
    node.system.tell(A, Get(1))
    node.run()
    count = 3 * limits.bus_events_max
    for value in range(count):
        node.system.publish_remote("topic", Put(value))
    node.run()
    assert {event.value for event in seen} == set(range(count))


def test_the_newest_of_each_thing_is_kept_and_the_quietest_thing_goes_first() -> None:
    newest = Newest(lambda event: event.value % 3, 2)
    for value in (0, 1, 3, 2):
        newest.note(Put(value))
    assert newest.snapshot() == (Put(3), Put(2))
