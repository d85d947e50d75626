"""The roster of replicas in whole nodes: who writes it, joins it, is taken off, and what a return brings back."""

from __future__ import annotations

from node.core.hashing import shard_of
from node.core.ids import EntityRef
from node.gossip.replica_roster import ReplicaRoster
from node.sharding.requests import GetReplicas, LeaveReplicas
from node.sim.conditions import agreed, answered, converged, removed
from node.sim.probe import KIND, Put
from node.sim.story import Condition, Story, story

THREE = ("n1", "n2", "n3")


def roster(s: Story) -> ReplicaRoster:
    found = s.operator(GetReplicas())
    assert isinstance(found, ReplicaRoster)
    return found


def counted(*names: str) -> Condition:
    def look(s: Story) -> str:
        waiting = [name for name in names if not s.engine(name).replication.machine.tenure]
        return f"not on the roster: {waiting}" if waiting else ""

    return look


def write(s: Story, site: str, value: str, *, at: str, remove: bool = False) -> None:
    asked = s.ask(EntityRef(KIND, site), Put("top", value, remove=remove), at=at, timeout_ms=3_000)
    s.until(answered(asked))
    assert isinstance(asked.outcome, Put), asked.outcome


def test_nodes_join_the_roster_membership_takes_off_whom_it_removes_and_a_return_removes_nothing_twice() -> None:
    with story(nodes=3, seed=11) as s:
        s.until(converged(), counted(*THREE), within_s=40)
        assert [(r.node, r.tenure) for r in roster(s).replicas] == [(name, 1) for name in THREE]
        write(s, "e1", "before", at="n1")
        s.until(agreed(), within_s=10)
        s.run(2)
        s.kill("n3")
        s.until(removed("n3", seen_by=("n1", "n2")), within_s=2 * s.bound_s)
        s.until(lambda s: "" if roster(s).names() == {"n1", "n2"} else "n3 is still on the roster", within_s=20)
        (gone,) = roster(s).gone
        assert (gone.node, gone.tenure) == ("n3", 1)
        s.until(lambda s: "" if s.owner("e1") in ("n1", "n2") else "the shard waits for an owner", within_s=20)
        write(s, "e1", "", at="n1", remove=True)
        s.start("n3")
        s.until(converged(), counted(*THREE), within_s=60)
        assert roster(s).tenure_of("n3") == 2
        s.until(agreed(), within_s=10)
        assert [engine.index.read("e1|top") for engine in s.running()] == [None] * 3


def test_a_removal_of_a_whole_node_is_certified_by_the_disks_that_hold_it() -> None:
    with story(nodes=3, seed=12) as s:
        s.until(converged(), counted(*THREE), within_s=40)
        write(s, "e1", "v", at="n1")
        s.until(agreed(), within_s=10)
        owner = s.engine(s.owner("e1"))
        assert owner.sharding.region.epoch(shard_of("e1"))
        write(s, "e1", "", at="n1", remove=True)

        def held_by_all(_: Story) -> str:
            certificate = owner.replication.machine.questions.certificate("e1|top")
            held = {held.node for held in certificate.held} if certificate else set()
            return "" if held == set(THREE) else f"held by {held}"

        s.until(held_by_all, within_s=10)
        certificate = owner.replication.machine.questions.certificate("e1|top")
        assert certificate is not None
        assert certificate.majority_ms >= certificate.asked_ms
        assert owner.replication.machine.questions.pending_removals(9, owner.world.clock.mono_ns()) == []


def test_one_that_an_operator_takes_off_takes_over_and_joins_anew() -> None:
    with story(nodes=3, seed=13) as s:
        s.until(converged(), counted(*THREE), within_s=40)
        write(s, "e1", "v", at="n1")
        s.until(agreed(), within_s=10)
        s.operator(LeaveReplicas("n2", "an operator says so"))
        s.until(lambda s: "" if roster(s).tenure_of("n2") == 2 else "n2 has not joined anew", within_s=30)
        s.until(counted(*THREE), agreed(), within_s=20)
        assert [engine.index.read("e1|top") is not None for engine in s.running()] == [True] * 3


def test_when_the_whole_cluster_starts_again_every_replica_still_counts() -> None:
    with story(nodes=3, seed=14) as s:
        s.until(converged(), counted(*THREE), within_s=40)
        write(s, "e1", "v", at="n1")
        s.until(agreed(), within_s=10)
        s.run(2)
        s.kill(*THREE)
        s.start(*THREE)
        s.until(converged(), counted(*THREE), within_s=90)
        assert [(r.node, r.tenure) for r in roster(s).replicas] == [(name, 1) for name in THREE]
        s.until(agreed(), within_s=10)
