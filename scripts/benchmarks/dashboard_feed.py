"""A made-up cluster for the dashboard's benchmark: as a source that pushes and answers, and as a recording of hours.

What it tells goes through the codec once each, as what comes over a wire does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from node.admin import protocol as p
from node.admin.protocol.diagnosis import GetRates, RateItem, RateList
from node.admin.protocol.operators import GetIdentity, Identity
from node.core.clock import MS, SECOND, ManualClock, SystemClock, rfc3339
from node.wire.codec import CODEC, dumps, loads
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint
from promovolvectl.tui.incoming import Happened, Opened, Pushed, Told
from promovolvectl.tui.recording import Recorder

Reply = TypeVar("Reply", bound=msgspec.Struct)
EVENTS_PER_S: Final = 1_000
ENTITIES: Final = 10_000
SHARDS: Final = 256
NODES: Final = ("api-1", "entity-1", "entity-2", "entity-3", "singleton-1")
RECORDED_EVENTS_PER_S: Final = 5
QUIET_PUSH_S: Final = 5.0  # a quiet node pushes so often
READY: Final = ".ready"  # behind the name of a child's file: it shows what it was told
_SLICE_S: Final = 0.01
_BEGAN_MS: Final = 1_780_000_000_000
_TOPICS: Final = ("shard.moved", "serveindex.put", "entity.started", "entity.stopped", "node.up")


def meta(second: float) -> p.Meta:
    """As told by api-1."""
    at = rfc3339(_BEGAN_MS + int(second * 1_000))
    return p.Meta(cluster_name="bench", cluster_id="c-0001", observed_at=at, observed_by="api-1")


def push(number: int) -> p.StatusPush:
    """The cluster as of a second: every figure is another one than a second before."""
    nodes = tuple(
        p.NodeRow(
            name=name,
            incarnation=7,
            status="up",
            reachable=True,
            roles=("entity",) if name.startswith("entity") else (name.partition("-")[0],),
            address=f"127.0.0.1:{7400 + place}",
            pid=4_000 + place,
            uptime_s=93.5 + number,
            shards=SHARDS // 3 if name.startswith("entity") else 0,
            entities=ENTITIES // 3 + number % 97,
            ready=True,
            max_lag_ms=(number * 7 + place) % 50,
            rss_bytes=(880 << 20) + number * 4_096 % (1 << 24),
            cpu_ratio=0.4 + (number + place) % 10 / 50,
        )
        for place, name in enumerate(NODES)
    )
    index = p.ServeIndexTotals(
        maps=32, keys=ENTITIES + number % 50, agree=True, max_lag_ms=number % 40, tombstones=3, pending_removals=0
    )
    status = p.ClusterStatus(
        converged=True,
        leader="entity-1",
        coordinator="entity-1",
        term=12,
        nodes=nodes,
        shards=p.ShardTotals(total=SHARDS, allocated=0, moving=SHARDS, unallocated=0),
        serveindex=index,
        coverage=p.CoverageTotals(expected=1_200, present=1_190 + number % 10, ratio=0.99),
        requests_per_s=1_200.0 + number % 100,
        served_count=number * 1_200,
    )
    return p.StatusPush(status=status, meta=meta(number), health=p.Health(state="healthy", reasons=()))


def event(number: int, per_s: float) -> p.AdminEvent:
    """The nth of so many a second."""
    shard = number % SHARDS
    node = NODES[1 + number % 3]
    return p.AdminEvent(
        at=rfc3339(_BEGAN_MS + int(number / per_s * 1_000)),
        topic=_TOPICS[number % len(_TOPICS)],
        object=f"shard/{shard}",
        text=f"shard {shard} goes to {node}, number {number}",
        node=node,
    )


def answer(request: msgspec.Struct, number: int) -> msgspec.Struct:
    """To what the screens of the benchmark ask, another one each time; raises CommandFailed for anything else."""
    match request:
        case GetIdentity():
            return Identity(name="ana", role="operator", public_key="k", expires_at=None, may=())
        case p.GetShards():
            return p.ShardList(
                items=tuple(
                    p.ShardItem(
                        shard=shard,
                        node=NODES[1 + (shard + number) % 3],
                        epoch=number,
                        state="moving",
                        entities=(shard + number) % 80,
                        pinned=False,
                    )
                    for shard in range(SHARDS)
                )
            )
        case p.GetEntities(limit=limit):
            items = tuple(_entity(place, number) for place in range(min(limit, ENTITIES)))
            return p.EntityList(items=items, total=ENTITIES)
        case p.ListOperations():
            return p.OperationList(items=())
        case GetRates():
            return RateList(items=tuple(_rate(name, number + place) for place, name in enumerate(NODES)))
        case _:
            raise CommandFailed(ExitStatus.UNREACHABLE, "E-LOST", "the benchmark has no answer to this")


def _entity(place: int, number: int) -> p.EntityItem:
    return p.EntityItem(
        kind="campaign",
        id=f"c{place:06d}",
        shard=place % SHARDS,
        node=NODES[1 + place % 3],
        state="running",
        mailbox=(place + number) % 9,
        last_used=rfc3339(_BEGAN_MS + number * 1_000),
        epoch=number % 50,
    )


def _rate(node: str, number: int) -> RateItem:
    return RateItem(
        node=node,
        interval_ms=500,
        requests_per_s=200.0 + number % 40,
        messages_per_s=900.0 + number % 70,
        writes_per_s=20.0,
        unhandled_per_s=0.0,
        cpu_ratio=0.4,
        rss_bytes=880 << 20,
        run_queue=1,
        entities=3_000,
        shards=85,
        max_lag_ms=3,
    )


class MadeUp:
    """`events_per_s` events and a push each second; a quiet one pushes as a quiet node does, and has no events."""

    def __init__(self, events_per_s: int) -> None:
        self.endpoint: Endpoint | None = Endpoint(node="api-1", admin="127.0.0.1:1")
        self._per_s = events_per_s
        self._clock = SystemClock()
        self._asked = 0

    async def subscribe(
        self, min_interval_ms: int = 500, beat: Callable[[], None] | None = None
    ) -> AsyncIterator[p.StatusPush | p.AdminEvent]:
        began_ns = self._clock.mono_ns()
        pushed = happened = 0
        every_s = 1.0 if self._per_s else QUIET_PUSH_S
        while True:
            since_s = (self._clock.mono_ns() - began_ns) / SECOND
            while pushed * every_s <= since_s:
                yield _wired(push(int(pushed * every_s)))
                pushed += 1
            while happened < since_s * self._per_s:
                yield _wired(event(happened, self._per_s))
                happened += 1
            if beat is not None and not self._per_s:
                beat()
            await asyncio.sleep(_SLICE_S if self._per_s else 1.0)

    async def ask(self, params: msgspec.Struct, reply: type[Reply], timeout_ms: int = 10_000) -> tuple[Reply, p.Meta]:
        await asyncio.sleep(0.005)
        self._asked += 1
        found = _wired(answer(params, self._asked))
        assert isinstance(found, reply)
        return found, meta(self._asked)

    def close(self) -> None:
        """There is nothing to close."""


def _wired(message: Any) -> Any:
    """The message after its way over a wire."""
    name, version, body = loads(dumps(list(CODEC.body_of(message))))
    return CODEC.message_of(name, version, body)


def write_recording(path: Path, hours: float) -> int:
    """What a dashboard on its Overview records of a lively cluster; returns how many messages that is."""
    clock = ManualClock(mono_ns=SECOND)
    recorder = Recorder(path, "bench", clock)
    written = 0

    def keep(incoming: Any) -> None:
        nonlocal written
        recorder(incoming)
        written += 1

    keep(Opened(clock.mono_ns(), "api-1"))
    for second in range(int(hours * 3_600)):
        now_ns = clock.mono_ns()
        keep(Pushed(now_ns, push(second)))
        if second % 3 == 0:
            keep(Told(now_ns, p.ListOperations(), answer(p.ListOperations(), second), meta(second)))
        if second % 30 == 0:
            keep(Told(now_ns, p.GetShards(), answer(p.GetShards(), second), meta(second)))
        for number in range(RECORDED_EVENTS_PER_S):
            keep(Happened(event(second * RECORDED_EVENTS_PER_S + number, RECORDED_EVENTS_PER_S)))
        clock.advance_ns(1_000 * MS)
    recorder.close()
    return written
