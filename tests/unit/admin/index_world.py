"""Three real replicas behind an admin server that hear nothing of each other, and a silent node."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin.held_messages import GetHeld, Held
from node.admin.server import AdminServer
from node.ads.view import CandidateView, ServeView
from node.core.clock import MS, ManualClock
from node.core.hashing import SHARD_COUNT, leaf_of, map_of
from node.core.ids import NodeId, ServiceRef
from node.engine.faults import Faults
from node.engine.index_messages import IndexVerified, VerifyIndex
from node.engine.indexservice import IndexService
from node.engine.removalservice import RemovalService
from node.engine.serveindex import ReplicaServeIndex
from node.gossip import replica_io
from node.gossip.member import Member, Status
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.gossip.view import ClusterView
from node.store.memory import MemoryStore
from node.store.port import ShardRow, ShardState
from node.store.replica_memory import MemoryReplica
from node.store.replica_opening import KeptFile
from node.store.replica_port import ReplicaEntry, ReplicaIdentity
from node.wire.codec import CODEC
from node.wire.envelope import Envelope, Kind

NAMES = ("n1", "n2", "n3")
WALL_MS = 1_800_000_000_000
KEY = "example.com|top"


class Disk(MemoryReplica):
    """A replica whose file somebody meddles with: behind the digests, or into an entry's bytes."""

    def __init__(self, name: str) -> None:
        super().__init__(ReplicaIdentity("c-1", name, 1))
        self.hurt: set[str] = set()
        self.condemned_for = ""

    def condemn(self, reason: str) -> None:
        self.condemned_for = reason

    @property
    def damaged(self) -> frozenset[str]:
        return frozenset(self.hurt)

    def get(self, map: int, leaf: int, key: str) -> ReplicaEntry | None:  # noqa: A002 - the port's name
        return None if key in self.hurt else super().get(map, leaf, key)

    def scan(self, map: int, leaf: int) -> Sequence[ReplicaEntry]:  # noqa: A002 - the port's name
        return [entry for entry in super().scan(map, leaf) if entry.key not in self.hurt]

    def commit(self, batch: Any) -> None:
        super().commit(batch)
        self.hurt -= {entry.key for entry in batch.puts} | set(batch.drops)

    def meddle(self, entry: ReplicaEntry) -> None:
        """By hand: the entry is another now, and no digest knows."""
        leaf = self._leaves.setdefault((map_of(entry.key), leaf_of(entry.key)), {})
        leaf[entry.key] = entry

    def lose(self, key: str) -> None:
        del self._leaves[(map_of(key), leaf_of(key))][key]


class Node:
    """One node's replica and its service, without the rest of an engine."""

    def __init__(self, name: str, world: World) -> None:
        self.me = NodeId(name, 1)
        self.disk = Disk(name)
        self.world = SimpleNamespace(
            clock=world.clock, replica=self.disk, opening=None, opened_ms=0, kept=lambda: self.kept
        )
        self.kept: tuple[KeptFile, ...] = ()
        self.services: dict[type, Callable[[Envelope], None]] = {}
        self.faults = Faults(world.clock)
        self.view = world.view
        self.sharding = SimpleNamespace(region=SimpleNamespace(homes=lambda: world.homes))
        self.config = SimpleNamespace(replication=replica_io.ReplicationSettings())
        machine = Replicator(name, self.disk, replica_io.ReplicationSettings(), random.Random(1))
        self.machine = machine
        self.replication = SimpleNamespace(
            machine=machine, carry_out=self.carry_out, ready=True, unwritten=machine.uncommitted
        )
        self.index = ReplicaServeIndex(
            machine,
            CODEC,
            world.clock,
            lambda shard: world.homes[shard].epoch if world.homes[shard].node == name else 0,
            self.carry_out,
            lambda _now_ns, _wall_ms: 0,
        )
        self.replies: list[Any] = []
        self._clock = world.clock
        self.service = IndexService(cast(Any, self))
        RemovalService(cast(Any, self))
        self.checked = IndexVerified(name, "none")
        self.services[GetHeld] = lambda envelope: self.reply(envelope, Held(name))
        self.services[VerifyIndex] = lambda envelope: self.reply(envelope, self.checked)
        self.step(replica_io.RosterKnown(ReplicaRoster()))
        self.step(replica_io.PeersChanged(frozenset()))

    def step(self, event: Any) -> None:
        self.carry_out(self.machine.step(event, self._clock.mono_ns(), self._clock.wall_ms()))

    def carry_out(self, effects: Any) -> None:
        for effect in effects:
            if isinstance(effect, replica_io.Commit):
                self.disk.commit(effect.batch)
                self.step(replica_io.Committed(effect.token, True))

    def settle(self) -> None:
        """Everything is on disk."""
        while self.machine.uncommitted():
            self._clock.advance_ns(1_000 * MS)
            self.step(replica_io.Tick())

    def emit(self, topic: str, about: str, text: str) -> None:
        self.faults.put(topic, about, text)

    def reply(self, _envelope: Envelope, message: Any) -> None:
        self.replies.append(message)

    def asked(self, message: msgspec.Struct) -> Any:
        envelope = Envelope(Kind.ASK, ServiceRef(self.me.name, "/node"), NodeId("n9", 1), message, 1)
        self.services[type(message)](envelope)
        # What crosses a wire must survive it.
        return CODEC.message_of(*CODEC.body_of(self.replies.pop()))


class World:
    """n1 to n3 have replicas; n4 is a member that never answers, when there is one."""

    def __init__(self, *, silent: bool = False) -> None:
        self.clock = ManualClock(mono_ns=1_000 * MS, wall_ms=WALL_MS)
        self.homes = tuple(ShardRow(shard, NAMES[shard % 3], 1, 7, ShardState.RUNNING) for shard in range(SHARD_COUNT))
        names = (*NAMES, "n4") if silent else NAMES
        members = {n: Member(n, 1, f"{n}:1", roles=("entity",), status=Status.UP) for n in names}
        self.view = ClusterView(NodeId("n1", 1), members=members)
        self.nodes = {name: Node(name, self) for name in NAMES}
        store = MemoryStore(self.clock)
        engine = SimpleNamespace(
            me=NodeId("n1", 1),
            counters=Counter(),
            config=SimpleNamespace(cluster=SimpleNamespace(name="demo", id="c-1")),
            world=SimpleNamespace(
                clock=self.clock,
                rng=random.Random(3),
                submit=lambda request, done: done(store.apply([request])[0]),
            ),
            view=self.view,
            sharding=SimpleNamespace(region=SimpleNamespace(homes=lambda: self.homes, version=1)),
            ask=self._ask,
            services={},
        )
        service = SimpleNamespace(index=self.nodes["n1"].service)
        self.server = AdminServer(cast(Any, engine), cast(Any, service), cast(Any, None))

    def _ask(self, to: Any, message: msgspec.Struct, timeout_ms: int, done: Callable[[Any], None]) -> None:
        node = self.nodes.get(to.node)
        done(Failed(Failure.TIMEOUT) if node is None else node.asked(message))

    def put(self, key: str, *names: str, epoch: int = 7, value: bytes = b"", ttl_ms: int = 600_000) -> ReplicaEntry:
        """One write, as it came to these nodes, all of them if none is named."""
        self.clock.advance_ns(MS)
        wall_ms = self.clock.wall_ms()
        view = ServeView(candidates=(candidate(),), version_ms=wall_ms, expires_at_ms=wall_ms + ttl_ms)
        entry = ReplicaEntry(key, epoch, wall_ms << 16, "n1", view.expires_at_ms, False, value or CODEC.encode(view))
        return self.hold(entry, *names)

    def hold(self, entry: ReplicaEntry, *names: str) -> ReplicaEntry:
        for name in names or NAMES:
            node = self.nodes[name]
            taken, effects = node.machine.mended([(entry, None)], self.clock.mono_ns(), self.clock.wall_ms())
            assert taken == 1
            node.carry_out(effects)
            node.settle()
        return entry

    async def ask(self, request: msgspec.Struct) -> tuple[Any, p.Meta]:
        return await self.server.handlers[type(request)](request, self.server.meta())

    async def one(self, request: msgspec.Struct) -> Any:
        return (await self.ask(request))[0]

    async def commit(self, plan: p.Plan) -> Any:
        return await self.one(p.CommitPlan(id=plan.id))


def candidate(creative: str = "cr-1") -> CandidateView:
    return CandidateView(
        creative, "cp-1", "acme", "https://c/a.png", "https://l/", "l", "image/png", 728, 90, "653", 2_000_000, WALL_MS
    )


def played(scene: Callable[[World], Coroutine[Any, Any, None]], *, silent: bool = False) -> None:
    async def play() -> None:
        world = World(silent=silent)
        await scene(world)
        await world.server.close()

    asyncio.run(play())


# ---- reading
