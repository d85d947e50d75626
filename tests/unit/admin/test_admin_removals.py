"""Removals through the admin server, over the replicas of `test_admin_index`: asking for one, what is known of it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from test_admin_index import KEY, NAMES, World, played

from node.admin import protocol as p
from node.core.clock import MS
from node.core.hashing import shard_of
from node.engine import removal_messages as n
from node.gossip import replica_io
from node.gossip.replica_roster import ReplicaRoster, RosterReplica, left
from node.gossip.replica_views import WriteToken
from node.gossip.view import ClusterView, Unreachability
from node.sharding.requests import GetReplicas, LeaveReplicas
from node.wire.envelope import Envelope

ROSTER = ReplicaRoster(4, tuple(RosterReplica(name, 1, 1_700_000_000_000, "complete") for name in NAMES))
OWNER = NAMES[shard_of("example.com") % 3]


class Rostered:
    """A world whose coordinator, on n1, has a roster."""

    def __init__(self, world: World) -> None:
        self.roster = ROSTER
        self.world = world
        engine = cast(Any, world.server.engine)
        engine.sharding.coordinator_node = lambda: "n1"
        for node in world.nodes.values():
            node.services[GetReplicas] = lambda envelope, node=node: node.reply(envelope, self.roster)
            node.services[LeaveReplicas] = lambda envelope, node=node: node.reply(envelope, self._left(envelope))
            node.step(replica_io.RosterKnown(ROSTER))

    def _left(self, envelope: Envelope) -> ReplicaRoster:
        order = envelope.message
        assert isinstance(order, LeaveReplicas)
        self.roster = left(self.roster, order.node, 1, order.cause) or self.roster
        return self.roster

    def away(self, name: str) -> None:
        me = self.world.nodes["n1"].me
        unreachable = {name: Unreachability((me,), 0)}
        members = self.world.view.members
        cast(Any, self.world.server.engine).view = ClusterView(me, members=members, unreachable=unreachable)

    def outcome(self, outcome: str, held: int = 1) -> None:
        """What the owner answers to the next removal."""
        version = n.VersionRow(7, 99, OWNER)
        rows = tuple(n.HeldRow(name, 1, 1_700_000_000_000) for name in NAMES[:held])
        certificate = n.CertificateRow(KEY, version, 1_700_000_000_000, "ann", 4, 2, rows, 0, 0)
        node = self.world.nodes[OWNER]
        removed = n.KeyRemoved(OWNER, outcome, f"7.99.{OWNER}.{KEY}", certificate)
        node.services[n.RemoveKey] = lambda envelope: node.reply(envelope, removed)


def test_a_removal_is_planned_with_its_majority_and_done_when_that_has_it() -> None:
    async def scene(world: World) -> None:
        rostered = Rostered(world)
        world.put(KEY)
        rostered.away(next(name for name in NAMES if name not in ("n1", OWNER)))
        plan = await world.one(p.StageKeyRemoval(key=KEY))
        assert {counter.name: counter.count for counter in plan.before} == {"required": 2, "available": 2}
        assert any("required 2 of 3 replicas, available 2" in note for note in plan.notes)
        rostered.outcome("removed", held=2)
        operation = await world.commit(plan)
        assert (operation.state, operation.result["required"], operation.result["available"]) == ("done", 2, 2)
        assert operation.result["token"] == f"7.99.{OWNER}.{KEY}"

    played(scene)


def test_a_removal_without_a_majority_is_pending_not_done() -> None:
    async def scene(world: World) -> None:
        rostered = Rostered(world)
        world.put(KEY)
        plan = await world.one(p.StageKeyRemoval(key=KEY))
        rostered.outcome("pending")
        with pytest.raises(p.AdminRefusal) as refused:
            await world.commit(plan)
        found = refused.value
        assert (found.exit_status, found.code) == (9, "E-REMOVAL-PENDING")
        assert found.operation == f"7.99.{OWNER}.{KEY}"
        assert "required 2, available 1" in found.message

    played(scene)


@pytest.mark.parametrize("outcome", ["stale", "superseded", "cancelled", "refused"])
def test_a_key_that_was_written_since_is_not_removed(outcome: str) -> None:
    async def scene(world: World) -> None:
        rostered = Rostered(world)
        world.put(KEY)
        plan = await world.one(p.StageKeyRemoval(key=KEY))
        rostered.outcome(outcome)
        with pytest.raises(p.AdminRefusal) as refused:
            await world.commit(plan)
        assert (refused.value.exit_status, refused.value.code) == (4, "E-STALE-PLAN")

    played(scene)


def test_the_owner_removes_only_the_version_that_the_plan_saw() -> None:
    async def scene(world: World) -> None:
        Rostered(world)
        entry = world.put(KEY)
        owner = world.nodes[OWNER]
        older = n.VersionRow(entry.epoch, entry.hlc - 1, entry.origin)
        assert owner.asked(n.RemoveKey(KEY, older, "ann")).outcome == "stale"
        assert owner.machine.entry(KEY) == entry
        with pytest.raises(p.AdminRefusal) as refused:
            await world.one(p.StageKeyRemoval(key="example.com|none"))
        assert refused.value.exit_status == 3

    played(scene)


def test_what_is_known_of_a_removal_its_tombstone_and_the_key_before_it() -> None:
    async def scene(world: World) -> None:
        Rostered(world)
        entry = world.put(KEY)
        owner = world.nodes[OWNER]
        version, effects = owner.machine.remove(
            KEY, 7, world.clock.mono_ns(), world.clock.wall_ms(), by="ann: takedown", last_serve_ms=1_799_999_999_000
        )
        owner.carry_out(effects)
        for _ in range(20):
            world.clock.advance_ns(1_000 * MS)
            owner.step(replica_io.Tick())
        pending = await world.one(p.GetPendingRemovals())
        (item,) = pending.items
        assert (item.key, item.node, item.asked_by, item.required) == (KEY, OWNER, "ann: takedown", 2)
        assert item.attempts >= 5
        assert (item.available, set(item.awaited) | set(item.held_by)) == (len(item.held_by), set(NAMES))
        assert item.available < item.required
        assert item.id == str(WriteToken(KEY, version))
        found = await world.one(p.GetTombstones())
        (tombstone,) = found.items
        assert (tombstone.key, tombstone.caretaker, found.total) == (KEY, OWNER, 1)
        assert tombstone.age_ms >= 20_000
        assert set(tombstone.awaited) >= set(NAMES) - {OWNER}
        history = await world.one(p.GetKeyHistory(key=KEY))
        assert [(i.node, i.what) for i in history.items if i.version.hlc == version.hlc] == [(OWNER, "removed")]
        assert history.removal is not None
        assert (history.removal.asked_by, history.removal.majority_at) == ("ann: takedown", None)
        assert history.removal.last_serve_at is not None
        assert (await world.one(p.GetIndexStatus())).pending_removals == 1
        seen = await world.one(p.GetSeen(token=str(WriteToken(KEY, version))))
        assert {one.node: one.seen for one in seen.items} == {name: name == OWNER for name in NAMES}
        assert not seen.everywhere
        old = f"{entry.epoch}.{entry.hlc}.{entry.origin}.{KEY}"
        assert (await world.one(p.GetSeen(token=old))).everywhere

    async def served(world: World) -> None:
        async def no_reports(**_: Any) -> Any:
            return {}, ()

        world.server.gatherer.reports = no_reports  # type: ignore[method-assign]
        await scene(world)

    played(served)


def test_a_replica_is_taken_off_the_roster_only_while_its_node_is_away() -> None:
    async def scene(world: World) -> None:
        rostered = Rostered(world)
        found = await world.one(p.GetRoster())
        assert (found.version, found.required, found.available) == (4, 2, 3)
        plan = await world.one(p.StageRosterRemove(node="n3"))
        assert any("n3 can be reached" in text for text in plan.violations)
        rostered.away("n3")
        plan = await world.one(p.StageRosterRemove(node="n3"))
        assert not plan.violations
        assert any("2 of 2 replicas, available 2" in note for note in plan.notes)
        stale = await world.one(p.StageRosterRemove(node="n3"))
        operation = await world.commit(plan)
        assert (operation.result["replicas"], operation.result["required"]) == (2, 2)
        after = await world.one(p.GetRoster())
        assert [(i.node, i.counts, i.reachable) for i in after.items] == [
            ("n1", True, True),
            ("n2", True, True),
            ("n3", False, False),
        ]
        with pytest.raises(p.AdminRefusal) as refused:
            await world.commit(stale)
        assert refused.value.exit_status == 4
        with pytest.raises(p.AdminRefusal) as refused:
            await world.one(p.StageRosterRemove(node="n9"))
        assert refused.value.exit_status == 3

    played(scene)
