"""Dumps and loads of the ServeIndex through the admin server: what a plan says, and what it writes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from index_world import KEY, NAMES, World, played

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin.asking import ends_ns
from node.ads.view import ServeView
from node.core import limits
from node.core.clock import MS
from node.core.hashing import LEAF_COUNT, shard_of
from node.engine.index_messages import LoadIndex
from node.engine.registries import registry_key
from node.store.replica_port import ReplicaEntry
from node.wire.codec import CODEC


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


def test_a_load_goes_on_when_its_owner_was_busy_for_once_and_counts_nothing_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch whose answer comes late is told again: of a hundred thousand rows some are."""

    async def scene(world: World) -> None:
        for number in range(12):
            world.put(f"s{number}.example|top")
        rows = await dumped(world)
        monkeypatch.setattr(limits, "index_load_turn_rows", 2)
        told: Counter[str] = Counter()

        def late(to: Any, message: msgspec.Struct, timeout_ms: int, done: Callable[[Any], None]) -> None:
            """Every other answer is lost, of what was read and of what was written."""
            told[type(message).__name__] += 1
            reply = fresh.nodes[to.node].asked(message)
            lost = told[type(message).__name__] % 2 and (waits or isinstance(message, LoadIndex))
            done(Failed(Failure.TIMEOUT) if lost else reply)

        for waits, written in ((True, 12), (False, 0)):
            fresh = World()
            fresh.server.engine.ask = late
            ends_ns.set(fresh.clock.mono_ns() + 60_000 * MS if waits else None)
            told.clear()
            plan = await staged(fresh, rows)
            if written:
                operation = await fresh.commit(plan)
                assert operation.result["written_count"] == written
                assert operation.result["stale_count"] == 0
                assert told["LoadIndex"] >= 2 * 6
                assert told["GetIndexRows"] > 2
            else:
                with pytest.raises(p.AdminRefusal) as refused:
                    await fresh.commit(plan)
                assert refused.value.code == "E-NO-ANSWER", "nobody waits any more"
            await fresh.server.close()

    played(scene)


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


@pytest.mark.parametrize(
    "change",
    [
        {"map": "serve-99"},
        {"expires_at": "yesterday"},
        {"expires_at": ""},
        {"version": p.EntryVersion(epoch=-1, hlc=1, origin="n1")},
        {"version": p.EntryVersion(epoch=1, hlc=2**70, origin="n1")},
    ],
)
def test_a_row_that_contradicts_itself_is_refused_by_its_number_before_there_is_a_plan(change: dict[str, Any]) -> None:
    async def scene(world: World) -> None:
        for number in range(2):
            world.put(f"s{number}.example|top")
        good, row = await dumped(world)
        (field,) = change
        with pytest.raises(p.AdminRefusal, match=rf"row 2, key .*{row.key[:10]}") as refused:
            await staged(World(), [good, msgspec.structs.replace(row, **change)])
        assert (refused.value.code, refused.value.exit_status) == ("E-BAD-INPUT", 2)
        assert field in str(refused.value) or "epoch" in str(refused.value) or "hlc" in str(refused.value)

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
