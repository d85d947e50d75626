"""`cluster repair`: one plan of several parts, each committed in its turn."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.admin import protocol as p
from node.admin.cluster_repair import ClusterRepair
from node.admin.held_plans import HeldPlans
from node.admin.protocol.diagnosis import StageClusterRepair
from node.core.clock import ManualClock

META = p.Meta(cluster_name="demo", cluster_id="c-1", observed_at="", observed_by="n1")


def part(target: str, *, changed: bool = True, **fields: Any) -> p.Plan:
    move = p.PlanMove(shard=3, from_node="n1", to="n2")
    moves = (move,) if changed else ()
    name = f"p-{target}"
    return p.Plan(id=name, verb="repair", target=target, base_version=1, moves=moves, changed=changed, **fields)


class Server:
    """Answers as the parts would; `committed` are the plans in their order."""

    def __init__(self, shards: p.Plan | p.AdminRefusal, index: p.Plan, *rows: p.CheckRow) -> None:
        self.committed: list[str] = []
        self.ends = {"p-cluster": ("done", {}), "p-serveindex": ("done", {"mended_count": 2, "missed_count": 0})}
        self._looks = 0
        world = SimpleNamespace(clock=ManualClock(), rng=random.Random(1))
        region = SimpleNamespace(version=1)
        self.engine = SimpleNamespace(world=world, sharding=SimpleNamespace(region=region))
        self.handlers: dict[type, Any] = {
            p.CheckCluster: self._answers(p.ClusterCheck(ok=not rows, checks=rows)),
            p.StageRepair: self._answers(shards),
            p.StageIndexRepair: self._answers(index),
            p.CommitPlan: self._commit,
            p.GetOperation: self._operation,
        }
        held = HeldPlans(cast(Any, self))
        ClusterRepair(cast(Any, self), held)

    def _answers(self, found: msgspec.Struct | p.AdminRefusal) -> Any:
        async def answer(_request: Any, call: p.Meta) -> Any:
            if isinstance(found, p.AdminRefusal):
                raise found
            return found, call

        return answer

    async def _commit(self, request: p.CommitPlan, call: p.Meta) -> Any:
        self.committed.append(request.id)
        return self._of(request.id, "running" if request.id == "p-cluster" else ""), call

    async def _operation(self, request: p.GetOperation, call: p.Meta) -> Any:
        self._looks += 1
        return self._of(request.id.removeprefix("op-"), "running" if self._looks == 1 else ""), call

    def _of(self, plan: str, state: str) -> p.Operation:
        ended, result = self.ends[plan]
        return p.Operation(
            id=f"op-{plan}",
            verb="repair",
            target=plan.removeprefix("p-"),
            state=state or ended,
            phases=(),
            elapsed_s=0.1,
            result=cast(Any, result),
        )

    def ask(self, request: msgspec.Struct) -> Any:
        return asyncio.run(self.handlers[type(request)](request, META))[0]


def test_the_parts_are_one_plan_and_are_committed_shards_first() -> None:
    server = Server(part("cluster", notes=("a",)), part("serveindex", notes=("b",)))
    plan = server.ask(StageClusterRepair())
    assert (plan.changed, len(plan.moves), plan.notes, server.committed) == (True, 2, ("a", "b"), [])
    done = server.ask(p.CommitPlan(id=plan.id))
    assert server.committed == ["p-cluster", "p-serveindex"]
    assert (done.state, done.result["mended_count"], done.result["missed_count"]) == ("done", 2, 0)


def test_a_whole_cluster_needs_no_repair() -> None:
    server = Server(part("cluster", changed=False), part("serveindex", changed=False))
    assert not server.ask(StageClusterRepair()).changed


def test_only_what_is_broken_is_committed() -> None:
    server = Server(part("cluster", changed=False), part("serveindex"))
    server.ask(p.CommitPlan(id=server.ask(StageClusterRepair()).id))
    assert server.committed == ["p-serveindex"]


def test_a_part_that_cannot_be_planned_does_not_keep_the_other() -> None:
    server = Server(p.AdminRefusal(8, "E-NO-COORDINATOR", "nobody coordinates"), part("serveindex"))
    plan = server.ask(StageClusterRepair())
    assert plan.changed
    assert "not planned: nobody coordinates" in plan.notes


def test_what_no_plan_mends_is_named() -> None:
    rows = (
        p.CheckRow(check="one coordinator", result="fail", detail="nobody"),
        p.CheckRow(check="I4 replicas equal", result="fail", detail="differ"),
        p.CheckRow(check="I5 one owner", result="ok", detail=""),
    )
    plan = Server(part("cluster", changed=False), part("serveindex"), *rows).ask(StageClusterRepair())
    assert plan.notes == ("no plan mends it: one coordinator: nobody",)


@pytest.mark.parametrize("ends", [("failed", {}), ("done", {"missed_count": 1}), ("cancelled", {})])
def test_a_part_that_fails_makes_the_repair_fail_and_the_next_is_tried(ends: Any) -> None:
    server = Server(part("cluster"), part("serveindex"))
    server.ends["p-cluster"] = ends
    plan = server.ask(StageClusterRepair())
    done = server.ask(p.CommitPlan(id=plan.id))
    assert (done.state, done.result["missed_count"]) == ("failed", 1)
    assert server.committed == ["p-cluster", "p-serveindex"]
