"""Live views: events as they come, and a status when something is new; nothing for who has gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from admin_console import ME, Console, played

from node.admin import protocol as p
from node.admin.live import SUBSCRIBER_MS_MAX
from node.core.clock import MS
from node.engine.events import EVENTS, NodeEvent
from node.engine.messages import GetNodeReport
from node.gossip.view import Unreachability


def test_events_and_status_are_pushed_under_the_subscriptions_id() -> None:
    async def scene(console: Console) -> None:
        console.request(p.Subscribe(min_interval_ms=100), number=3)
        assert isinstance(console.replies[0][2], p.Subscribed)
        await console.until(lambda: any(isinstance(reply[2], p.StatusPush) for reply in console.replies))
        console.engine.system.bus.publish(EVENTS, NodeEvent(1_000, "node.up", "node/n2", "was joining", "n1"))
        event = console.replies[-1][2]
        assert (event.topic, event.object, event.at) == ("node.up", "node/n2", "1970-01-01T00:00:01.000Z")
        assert {number for number, _, _ in console.replies} == {3}

    played(scene)


@pytest.mark.parametrize("stirred_by", ["an event", "another subscription"])
def test_a_cluster_at_rest_is_looked_at_when_something_happens(
    monkeypatch: pytest.MonkeyPatch, stirred_by: str
) -> None:
    monkeypatch.setattr("node.admin.live.pause_ms", lambda shortest_ms, quiet: 3_600_000 if quiet else shortest_ms)

    async def scene(console: Console) -> None:
        def looks() -> int:
            return sum(isinstance(message, GetNodeReport) for _, message in console.engine.asked)

        console.request(p.Subscribe(min_interval_ms=100), number=3)
        # The second look shows nothing new, so that there is no third for an hour.
        await console.until(lambda: looks() == 2)
        if stirred_by == "an event":
            told = NodeEvent(at_ms=0, topic="node.up", object="node/n2", text="is up", node="n1")
            console.engine.system.bus.publish(EVENTS, told)
        else:
            console.request(p.Subscribe(min_interval_ms=100), number=4)
        await console.until(lambda: looks() > 2)

    played(scene)


def test_who_is_known_to_be_out_of_reach_is_named_and_not_waited_for() -> None:
    async def scene(console: Console) -> None:
        console.engine.view = replace(console.engine.view, unreachable={"n2": Unreachability((ME,), 0)})
        console.request(p.Subscribe(min_interval_ms=100), number=3)
        await console.until(lambda: any(isinstance(reply[2], p.StatusPush) for reply in console.replies))
        assert [to for to, message in console.engine.asked if isinstance(message, GetNodeReport)] == []
        meta = next(meta for _, meta, body in console.replies if isinstance(body, p.StatusPush))
        assert "n2" in [each.node for each in meta.missing]

    played(scene)


def test_a_status_that_fails_once_does_not_end_the_pushes() -> None:
    async def scene(console: Console) -> None:
        region = console.engine.sharding.region
        del console.engine.sharding.region
        console.request(p.Subscribe(min_interval_ms=100), number=3)
        for _ in range(20):
            await asyncio.sleep(0)
        console.engine.sharding.region = region
        await console.until(lambda: any(isinstance(reply[2], p.StatusPush) for reply in console.replies))

    played(scene)


def test_a_subscriber_that_is_not_heard_any_more_is_forgotten() -> None:
    async def scene(console: Console) -> None:
        console.request(p.Subscribe(min_interval_ms=100), number=3)
        await console.until(lambda: len(console.replies) > 1)
        live = console.server.live
        console.engine.world.clock.advance_ns((SUBSCRIBER_MS_MAX + 1) * MS)
        await console.until(lambda: not live._watchers and live._task is None)
        console.request(p.Subscribe(min_interval_ms=100), number=4)
        await console.until(lambda: any(n == 4 and isinstance(a, p.StatusPush) for n, _, a in console.replies))

    played(scene)


def test_check_v16_a_subscriber_whose_connection_has_ended_is_forgotten_by_the_next_push() -> None:
    """Whoever reads the first line of a stream and leaves costs a node nothing more, and is not waited for."""

    async def scene(console: Console) -> None:
        console.request(p.Subscribe(min_interval_ms=100), number=3)
        await console.until(lambda: len(console.replies) > 1)
        live = console.server.live
        console.gone = True
        told = NodeEvent(at_ms=0, topic="node.up", object="node/n2", text="is up", node="n1")
        console.engine.system.bus.publish(EVENTS, told)
        await console.until(lambda: not live._watchers and live._task is None)

    played(scene)
