"""The ServeIndex through the admin server: three real replicas that hear nothing of each other, and a silent node."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin.index_verify import IndexVerify
from node.admin.server import AdminServer
from node.ads.keys import serve_key
from node.ads.view import CandidateView, ServeView
from node.core import limits
from node.core.clock import MS, ManualClock
from node.core.hashing import LEAF_COUNT, SHARD_COUNT, leaf_of, map_of, shard_of
from node.core.ids import NodeId, ServiceRef
from node.engine.faults import Faults
from node.engine.index_messages import FileProblem, IndexVerified, VerifyIndex
from node.engine.indexservice import IndexService
from node.engine.registries import registry_key
from node.engine.removalservice import RemovalService
from node.engine.serveindex import ReplicaServeIndex
from node.gossip import replica_io
from node.gossip.inspector import content_of
from node.gossip.member import Member, Status
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.gossip.version import version_of
from node.gossip.view import ClusterView
from node.store.memory import MemoryStore
from node.store.port import ShardRow, ShardState
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import ReplicaEntry, ReplicaIdentity
from node.store.replica_report import Problem, ReplicaReport, VerifyProgress
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
        self.world = SimpleNamespace(clock=world.clock, replica=self.disk)
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
        self.homes = tuple(
            ShardRow(shard, NAMES[shard % 3], 1, 7, ShardState.RUNNING) for shard in range(SHARD_COUNT)
        )
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


def test_keys_of_a_site_come_page_by_page_in_order() -> None:
    async def scene(world: World) -> None:
        keys = [serve_key("example.com", f"slot-{number:05d}") for number in range(2_500)]
        for key in keys:
            world.nodes["n1"].machine.put(key, b"v", 7, 0, world.clock.mono_ns(), world.clock.wall_ms())
        found: list[str] = []
        after, pages = "", 0
        while pages == 0 or after:
            page = await world.one(p.GetKeys(site="example.com", after=after))
            found += [item.key for item in page.items]
            assert len(page.items) <= limits.index_page_rows
            assert page.total == 2_500
            after, pages = page.next, pages + 1
        assert (found, pages) == (keys, 3)
        part = await world.one(p.GetKeys(site="example.com", after=keys[9], limit=2))
        assert [item.key for item in part.items] == keys[10:12]
        with pytest.raises(p.AdminRefusal) as refused:  # n2 has no key of it, and no such site is in the store
            await world.one(p.GetKeys(site="example.com", node="n2"))
        assert refused.value.exit_status == 3

    played(scene)


def test_get_shows_both_views_their_writers_and_which_epoch_will_win() -> None:
    async def scene(world: World) -> None:
        new = world.put(KEY, "n1", epoch=47)
        world.clock.advance_ns(5_000 * MS)
        old = msgspec.structs.replace(new, epoch=46, hlc=world.clock.wall_ms() << 16, origin="n3", value=b"\xf6")
        world.hold(old, "n2")
        found, meta = await world.ask(p.GetEntry(key=KEY))
        views = {replica.node: replica for replica in found.replicas}
        assert not found.agree
        assert (found.winner.epoch, found.winner.origin) == (47, "n1"), "the later clock of an older epoch loses"
        assert {name: (view.state, view.wins) for name, view in views.items()} == {
            "n1": ("live", True),
            "n2": ("live", False),
            "n3": ("absent", False),
        }
        assert (views["n2"].version.epoch, views["n2"].version.origin, views["n2"].age_ms) == (46, "n3", 0)
        assert views["n1"].age_ms == 5_000
        assert [c.creative for c in views["n1"].candidates] == ["cr-1"]
        shard = shard_of("example.com")
        assert (views["n2"].owner, views["n2"].epoch_now) == (NAMES[shard % 3], 7)
        assert [missing.node for missing in meta.missing] == ["n4"]
        alone, meta = await world.ask(p.GetEntry(key=KEY, local=True))
        assert ([replica.node for replica in alone.replicas], meta.missing) == (["n1"], ())
        with pytest.raises(p.AdminRefusal) as refused:
            await world.ask(p.GetEntry(key="example.com|none"))
        assert refused.value.exit_status == 3

    played(scene, silent=True)


def test_the_largest_are_found_in_the_whole_replica() -> None:
    async def scene(world: World) -> None:
        for number in range(1_200):
            value = bytes(10 + number)
            world.nodes["n2"].machine.put(
                f"s{number}.example|top", value, 7, 0, world.clock.mono_ns(), world.clock.wall_ms()
            )
        found = await world.one(p.GetLargest(limit=3, node="n2"))
        assert [(item.key, item.bytes) for item in found.items] == [
            ("s1199.example|top", 1_209),
            ("s1198.example|top", 1_208),
            ("s1197.example|top", 1_207),
        ]
        assert found.total == 1_200

    played(scene)


def test_status_counts_maps_that_differ_and_their_leaves() -> None:
    async def scene(world: World) -> None:
        world.put(KEY)
        world.put("other.example|top", "n1")
        found = await world.one(p.GetIndexStatus())
        differ = [item for item in found.items if not item.agree]
        assert [(item.map, item.leaves_different) for item in differ] == [
            (f"serve-{map_of('other.example|top'):02d}", 1)
        ]
        assert (found.maps_equal, found.keys, len(found.replicas)) == (31, 2, 3)
        lag = await world.one(p.GetLag())
        assert lag.items == (), "they have no peers"

    async def served(world: World) -> None:
        world.server.gatherer.reports = no_reports  # type: ignore[method-assign]
        await scene(world)

    async def no_reports(**_: Any) -> Any:
        return {}, ()

    played(served)


# ---- comparing and mending


def test_a_difference_behind_the_digests_is_found_told_apart_and_mended() -> None:
    async def scene(world: World) -> None:
        keys = {kind: f"{kind}.example|top" for kind in ("missing", "older", "content", "damaged", "spare")}
        entries = {kind: world.put(key) for kind, key in keys.items()}
        # Nobody touches the digests: by them all replicas are equal.
        world.nodes["n2"].disk.lose(keys["missing"])
        older = msgspec.structs.replace(entries["older"], hlc=entries["older"].hlc - 1)
        world.nodes["n2"].disk.meddle(older)
        world.nodes["n3"].disk.meddle(msgspec.structs.replace(entries["content"], value=b"\xff by hand"))
        world.nodes["n3"].disk.hurt.add(keys["damaged"])
        assert len({tuple(node.machine.digests()) for node in world.nodes.values()}) == 1

        found = await world.one(p.GetDiff())
        told = {item.key: (item.kind, [v.node for v in item.views if not v.wins]) for item in found.items}
        assert told == {
            keys["missing"]: ("missing", ["n2"]),
            keys["older"]: ("older", ["n2"]),
            keys["content"]: ("content", ["n3"]),
            keys["damaged"]: ("damaged", ["n3"]),
        }
        assert (found.equal, found.total) == (False, 4)
        assert {r.node: (r.damaged, r.digests_wrong) for r in found.replicas} == {
            "n1": (0, 0),
            "n2": (0, 2),
            "n3": (1, 1),
        }
        two = await world.one(p.GetDiff(nodes=("n1", "n2")))
        assert {item.key for item in two.items} == {keys["missing"], keys["older"]}
        here = await world.one(p.GetDiff(maps=(f"serve-{map_of(keys['older']):02d}",)))
        assert keys["older"] in {item.key for item in here.items}

        plan = await world.one(p.StageIndexRepair())
        assert plan.changed
        assert sum(move.entities for move in plan.moves) == 4
        assert {move.to for move in plan.moves} == {"n2", "n3"}
        # A write that comes between plan and commit stays.
        newer = msgspec.structs.replace(entries["older"], hlc=entries["older"].hlc + 99, value=b"\xf6")
        for node in world.nodes.values():
            held = node.machine.entry(keys["older"])
            assert held is not None
            node.carry_out(
                node.machine.mended([(newer, identity(held))], world.clock.mono_ns(), world.clock.wall_ms())[1]
            )
            node.settle()
        operation = await world.commit(plan)
        assert (operation.state, operation.result["left_count"]) == ("done", 0)
        assert operation.result["mended_count"] == 3
        for node in world.nodes.values():
            assert node.machine.entry(keys["older"]) == newer
            for kind in ("missing", "content", "damaged", "spare"):
                assert node.machine.entry(keys[kind]) == entries[kind], (node.me.name, kind)
        after = await world.one(p.GetDiff())
        assert (after.equal, after.total) == (True, 0)
        assert all(replica.digests_wrong == replica.damaged == 0 for replica in after.replicas)
        assert not (await world.one(p.StageIndexRepair())).changed

    played(scene)


def test_more_differences_than_one_answer_names_are_told_page_by_page_and_mended_by_one_plan(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "index_diff_rows_max", 3)
    monkeypatch.setattr(limits, "index_look_again_ms", 1)

    async def scene(world: World) -> None:
        keys = {f"example.com|s{number}" for number in range(8)}
        for key in keys:
            world.put(key, "n1", "n3")
        told: list[str] = []
        totals, after = [], ""
        while not totals or after:
            page = await world.one(p.GetDiff(after=after))
            totals.append(page.total)
            told += [item.key for item in page.items]
            after = page.next
        assert sorted(told) == sorted(keys), "each of them once"
        assert totals == [8, 5, 2]
        plan = await world.one(p.StageIndexRepair())
        assert any("8 keys differ" in note for note in plan.notes)
        operation = await world.commit(plan)
        assert (operation.state, operation.result["mended_count"], operation.result["left_count"]) == ("done", 8, 0)
        assert (await world.one(p.GetDiff())).equal

    played(scene)


def identity(entry: ReplicaEntry) -> Any:
    return version_of(entry), content_of(entry)


def test_what_only_arrives_late_is_no_difference() -> None:
    async def scene(world: World) -> None:
        entry = world.put(KEY, "n1", "n2")
        first_look = asyncio.create_task(world.one(p.GetDiff()))
        await asyncio.sleep(limits.index_look_again_ms / 3_000)
        world.hold(entry, "n3")
        assert (await first_look).total == 0

    played(scene)


def test_a_damaged_entry_that_nobody_has_is_dropped_and_named() -> None:
    async def scene(world: World) -> None:
        world.put(KEY, "n2")
        world.nodes["n2"].disk.hurt.add(KEY)
        plan = await world.one(p.StageIndexRepair(nodes=("n2",)))
        assert any(KEY in note and "no replica holds a sound copy" in note for note in plan.notes)
        operation = await world.commit(plan)
        world.nodes["n2"].settle()
        assert operation.state == "done"
        assert world.nodes["n2"].disk.hurt == set()
        assert (await world.one(p.GetDiff())).equal

    played(scene)


def test_a_file_that_ends_too_soon_is_condemned_and_not_read() -> None:
    async def scene(world: World) -> None:
        entry = world.put(KEY)
        bad = world.nodes["n2"]
        bad.disk.meddle(msgspec.structs.replace(entry, value=b"\xff"))
        assert not (await world.one(p.StageIndexRepair(nodes=("n1",)))).changed
        problem = FileProblem("structure", "page 37 is not there", -1, "")
        bad.checked = IndexVerified("n2", "done", problems_found=1, problems=(problem,))
        bad.disk.scan = never  # type: ignore[method-assign]
        plan = await world.one(p.StageIndexRepair())
        assert (plan.changed, plan.moves) == (True, ())
        assert any("n2: page 37 is not there" in note for note in plan.notes)
        operation = await world.commit(plan)
        assert (operation.state, operation.result["restart"]) == ("done", "n2")
        assert {name: node.disk.condemned_for for name, node in world.nodes.items()} == {
            "n1": "",
            "n2": "page 37 is not there",
            "n3": "",
        }
        assert "E-REPLICA-CONDEMNED" in {fault.code for fault in bad.faults.all()}

    def never(*_: Any) -> Any:
        raise AssertionError("whoever reads that file may be killed")

    played(scene)


def test_a_node_that_is_silent_is_missing_from_a_comparison_not_equal() -> None:
    async def scene(world: World) -> None:
        world.put(KEY)
        found, meta = await world.ask(p.GetDiff())
        assert [replica.node for replica in found.replicas] == ["n1", "n2", "n3"]
        assert [missing.node for missing in meta.missing] == ["n4"]

    played(scene, silent=True)


# ---- dump and load


async def dumped(world: World, node: str = "n1") -> list[p.DumpRow]:
    rows: list[p.DumpRow] = []
    for number in range(32):
        place, after, more = 0, "", True
        while more:
            page = await world.one(p.GetDump(map=f"serve-{number:02d}", node=node, place=place, after=after))
            rows += page.items
            place, after, more = page.place, page.after, page.more
            assert number * LEAF_COUNT <= place < (number + 1) * LEAF_COUNT or not page.items
    return rows


async def staged(world: World, rows: list[p.DumpRow], name: str = "l1") -> p.Plan:
    half = len(rows) // 2
    await world.one(p.SendLoad(load=name, offset=0, rows=tuple(rows[:half])))
    await world.one(p.SendLoad(load=name, offset=half, rows=tuple(rows[half:])))
    plan: p.Plan = await world.one(p.StageLoad(load=name, rows_count=len(rows)))
    return plan


def test_a_load_gives_the_node_s_loop_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that works through a hundred thousand rows at a stretch is removed by its peers."""

    async def scene(world: World) -> None:
        for number in range(40):
            world.put(f"s{number}.example|top")
        rows = await dumped(world)
        fresh = World()
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.create_task(others())
        taken: dict[int, int] = {}
        for rows_a_turn in (1_000, 4):
            monkeypatch.setattr(limits, "index_load_turn_rows", rows_a_turn)
            before = turns
            plan = await staged(fresh, rows, f"by-{rows_a_turn}")
            assert sum(move.entities for move in plan.moves) == 40
            taken[rows_a_turn] = turns - before
        beside.cancel()
        assert taken[4] - taken[1_000] == 3 * 40 // 4, "rows, keys by their owners, outcomes"

    played(scene)


def test_a_load_puts_only_what_the_dump_has_later_and_by_the_owner_under_its_epoch() -> None:
    async def scene(world: World) -> None:
        keys = {what: f"{what}.example|top" for what in ("gone", "same", "newer", "removed", "older", "expired")}
        dump: list[p.DumpRow] = []
        for what, key in keys.items():
            world.put(key, ttl_ms=1_000 if what == "expired" else 600_000)
        world.put(registry_key("exhausted-campaigns", "camp"), value=bytes(8))  # no view, and over by itself
        dump = await dumped(world)
        assert sorted(row.key for row in dump) == sorted(keys.values())
        world.clock.advance_ns(2_000 * MS)
        fresh = World()
        fresh.clock.advance_ns(world.clock.mono_ns())
        by_key = {row.key: row for row in dump}
        for what in ("same", "newer", "removed", "older"):
            row = by_key[keys[what]]
            held = entry_of(row)
            if what == "newer":
                held = msgspec.structs.replace(held, hlc=held.hlc + 9, value=b"\xf6")
            if what == "older":
                held = msgspec.structs.replace(held, hlc=held.hlc - 9, value=b"\xf6")
            if what == "removed":
                held = msgspec.structs.replace(held, hlc=held.hlc + 9, value=b"", tombstone=True, expires_at_ms=0)
            fresh.hold(held)
        plan = await staged(fresh, dump)
        told = {counter.name: counter.count for counter in plan.after}
        assert told == {"expired": 1, "newer": 1, "put": 1, "removed": 1, "replace": 1, "same": 1}
        before = {node: dict(entries(fresh, node, keys)) for node in NAMES}
        operation = await fresh.commit(plan)
        assert operation.result["written_count"] == 2
        for what, key in keys.items():
            owner = fresh.homes[shard_of(f"{what}.example")].node
            held = fresh.nodes[owner].machine.entry(key)
            if what in ("gone", "older"):
                assert held is not None
                assert (held.epoch, held.origin, held.value) == (7, owner, by_key[key].value)
            else:
                assert held == before[owner][key], what
        await fresh.server.close()

    played(scene)


def entry_of(row: p.DumpRow) -> ReplicaEntry:
    view = CODEC.decode(row.value)
    assert isinstance(view, ServeView)
    version = row.version
    return ReplicaEntry(row.key, version.epoch, version.hlc, version.origin, view.expires_at_ms, False, row.value)


def entries(world: World, node: str, keys: dict[str, str]) -> list[tuple[str, ReplicaEntry | None]]:
    return [(key, world.nodes[node].machine.entry(key)) for key in keys.values()]


def test_a_load_whose_plan_is_stale_writes_nothing() -> None:
    async def scene(world: World) -> None:
        world.put(KEY)
        rows = await dumped(world)
        fresh = World()
        plan = await staged(fresh, rows)
        owner = fresh.nodes[fresh.homes[shard_of("example.com")].node]
        other = msgspec.structs.replace(entry_of(rows[0]), epoch=3)
        fresh.hold(other, owner.me.name)
        with pytest.raises(p.AdminRefusal) as refused:
            await fresh.commit(plan)
        assert (refused.value.exit_status, refused.value.code) == (4, "E-STALE-PLAN")
        assert owner.machine.entry(KEY) == other
        await fresh.server.close()

    played(scene)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [("nonsense", b"\xf6", "site|slot"), (KEY, b"\xff", "row 1"), (KEY, b"\xf6", "row 1")],
)
def test_rows_that_are_no_entries_are_refused_by_their_number(key: str, value: bytes, words: str) -> None:
    async def scene(world: World) -> None:
        version = p.EntryVersion(epoch=1, hlc=1, origin="n1")
        row = p.DumpRow(key=key, map="serve-00", version=version, expires_at=None, removed=False, value=value)
        with pytest.raises(p.AdminRefusal, match="row 1") as refused:
            await staged(world, [row])
        assert refused.value.exit_status == 2
        assert words in str(refused.value)

    played(scene)


def test_a_load_that_was_planned_makes_room_for_the_next_and_one_under_way_does_not() -> None:
    async def scene(world: World) -> None:
        world.put(KEY)
        rows = await dumped(world)
        for number in range(limits.index_loads_open_max + 2):
            await staged(world, rows, f"planned-{number}")
        for number in range(limits.index_loads_open_max):
            await world.one(p.SendLoad(load=f"open-{number}", offset=0, rows=tuple(rows)))
        with pytest.raises(p.AdminRefusal) as refused:
            await world.one(p.SendLoad(load="more", offset=0, rows=tuple(rows)))
        assert refused.value.code == "E-BUSY"
        world.clock.advance_ns((limits.chunks_idle_ms_max + 1) * MS)
        await world.one(p.SendLoad(load="more", offset=0, rows=tuple(rows)))

    played(scene)


def test_rows_out_of_order_or_not_all_of_them_are_refused() -> None:
    async def scene(world: World) -> None:
        for request in (
            p.SendLoad(load="a", offset=3, rows=()),
            p.StageLoad(load="b", rows_count=1),
        ):
            with pytest.raises(p.AdminRefusal) as refused:
                await world.one(request)
            assert refused.value.exit_status == 2

    played(scene)


# ---- checking files


def test_a_check_of_a_file_runs_once_and_tells_how_far_it_is() -> None:
    async def scene(world: World) -> None:
        problem = Problem("damaged", "its checksum is wrong", 17, KEY)
        go = asyncio.Event()
        runs = 0

        async def check(progress: Callable[[VerifyProgress], None]) -> ReplicaReport:
            nonlocal runs
            runs += 1
            progress(VerifyProgress(20_000, 50_000, 0))
            await go.wait()
            return ReplicaReport("p", True, (problem,), 1, checked=50_000)

        index = cast(Any, SimpleNamespace(nodes=lambda names: list(names or NAMES)))
        engine = cast(Any, world.server.engine)
        engine.services, engine.reply = world.nodes["n1"].services, world.nodes["n1"].reply
        verify = IndexVerify(world.server, index, check)
        before, meta = await world.ask(p.GetVerify(nodes=("n1",)))
        assert ([item.state for item in before.items], before.sound, meta.missing) == (["none"], False, ())
        for _ in range(2):
            await world.ask(p.StartVerify(nodes=("n1",)))
            await asyncio.sleep(0)
        found, _ = await world.ask(p.GetVerify(nodes=("n1",)))
        assert [(i.state, i.checked, i.total, i.sound) for i in found.items] == [("running", 20_000, 50_000, False)]
        assert runs == 1
        go.set()
        async with asyncio.timeout(5):
            while found.items[0].state == "running":
                await asyncio.sleep(0.005)
                found = await world.one(p.GetVerify(nodes=("n1",)))
        (item,) = found.items
        assert (item.state, item.sound, item.complete, item.problems_found) == ("done", False, True, 1)
        assert [(one.kind, one.map, one.key) for one in item.problems] == [("damaged", "serve-17", KEY)]
        assert not found.sound
        await verify.close()

    played(scene)
