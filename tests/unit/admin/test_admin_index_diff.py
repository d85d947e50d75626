"""Differences between replicas through the admin server: found, told apart, and mended."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from index_world import KEY, World, played

from node.admin import protocol as p
from node.core import limits
from node.core.hashing import map_of
from node.engine.index_messages import FileProblem, IndexVerified
from node.gossip.inspector import content_of
from node.gossip.version import version_of
from node.store.replica_port import ReplicaEntry


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
        for item in found.items:  # what is compared, what is read and what is mended go by one rule
            views = (await world.one(p.GetEntry(key=item.key))).replicas
            assert [view.node for view in views if view.wins] == [view.node for view in item.views if view.wins]
        here = await world.one(p.GetDiff(maps=(f"serve-{map_of(keys['older']):02d}",)))
        assert keys["older"] in {item.key for item in here.items}

        plan = await world.one(p.StageIndexRepair())
        assert plan.changed
        assert sum(move.entities for move in plan.moves) == 4
        assert {move.to for move in plan.moves} == {"n2", "n3"}
        named = {key: (move.to, move.why) for move in plan.moves for key in move.keys}
        assert named.keys() == {item.key for item in found.items}
        content = named[keys["content"]]
        assert content[0] == "n3"
        assert content[1].startswith("it holds other contents under the same version: put as ")
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


def test_a_key_put_into_one_file_by_hand_has_a_history_before_and_after_its_repair() -> None:
    async def scene(world: World) -> None:
        forged = ReplicaEntry(KEY, 7, world.clock.wall_ms() << 16, "n2", 0, False, b"by hand")
        world.nodes["n2"].disk.meddle(forged)
        history = await world.one(p.GetKeyHistory(key=KEY))
        assert [(item.node, item.what, item.at) for item in history.items] == [("n2", "held", None)]
        await world.commit(await world.one(p.StageIndexRepair()))
        history = await world.one(p.GetKeyHistory(key=KEY))
        assert [(item.node, item.what) for item in history.items] == [
            ("n1", "mended"),
            ("n2", "held"),
            ("n3", "mended"),
        ]
        assert all((item.at is None) == (item.what == "held") for item in history.items)
        other = msgspec.structs.replace(forged, value=b"again by hand")
        world.nodes["n1"].settle()
        world.nodes["n1"].disk.meddle(other)
        await world.commit(await world.one(p.StageIndexRepair()))
        seen = [item for item in (await world.one(p.GetKeyHistory(key=KEY))).items if item.node == "n1"]
        assert [(item.what, item.bytes) for item in seen] == [("mended", 7), ("mended", 7)]
        with pytest.raises(p.AdminRefusal) as refused:
            await world.one(p.GetKeyHistory(key="example.com|none"))
        assert refused.value.exit_status == 3

    played(scene)


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
