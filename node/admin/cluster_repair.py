"""`cluster repair`: one plan of everything that `cluster check` finds and that can be mended: shards first, since their
owners say what their keys should be, then the replicas of the ServeIndex.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

import msgspec

from node.admin import protocol as p
from node.admin.held_plans import HeldPlans, Result
from node.admin.protocol.diagnosis import StageClusterRepair

if TYPE_CHECKING:
    from node.admin.server import AdminServer

POLL_S = 0.3
# What a part of the plan mends is asked of that part; of what else a check finds nobody can make a plan.
MENDED = ("I5 one owner", "shards balanced", "I4 replicas equal")
S = TypeVar("S", bound=msgspec.Struct)


class ClusterRepair:
    """Stages the parts, holds them as one plan, and commits each in its turn."""

    def __init__(self, server: AdminServer, held: HeldPlans) -> None:
        self._server = server
        self._held = held
        server.handlers[StageClusterRepair] = self.stage

    async def stage(self, request: StageClusterRepair, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        checked, meta = await self._ask(p.CheckCluster(), call, p.ClusterCheck)
        stages = (p.StageRepair(reason=request.reason), p.StageIndexRepair())
        parts: list[p.Plan] = []
        notes: list[str] = []
        for stage in stages:
            try:
                part, _ = await self._ask(stage, call, p.Plan)
            except p.AdminRefusal as refused:
                # The other part may be mended all the same, and this one by the same command later.
                notes.append(f"not planned: {refused.message}")
                continue
            parts.append(part)
        notes += [
            f"no plan mends it: {row.check}: {row.detail}"
            for row in checked.checks
            if row.result != "ok" and row.check not in MENDED
        ]
        notes += [f"not checked: {what}" for what in checked.unchecked]
        mending = [part for part in parts if part.changed]
        plan = self._held.hold(
            "repair",
            "cluster",
            lambda reason: self._carry_out(mending, reason, call),
            moves=tuple(move for part in mending for move in part.moves),
            violations=tuple(text for part in mending for text in part.violations),
            changed=bool(mending),
            overridden=tuple(rule for part in mending for rule in part.overridden),
            notes=(*(note for part in mending for note in part.notes), *notes),
            before=tuple(count for part in mending for count in part.before),
            after=tuple(count for part in mending for count in part.after),
        )
        return plan, meta

    async def _carry_out(self, parts: list[p.Plan], reason: str, call: p.Meta) -> Result:
        """One part after the other; one that fails is counted, and the next is tried all the same."""
        result: Result = {"missed_count": 0}
        total = 0
        for part in parts:
            done, _ = await self._ask(p.CommitPlan(id=part.id, reason=reason), call, p.Operation)
            done = await self._ended(done, call)
            name = part.verb if part.target == "cluster" else f"{part.verb}_{part.target}".replace("/", "_")
            result[name] = done.state
            missed = done.result.get("missed_count", 0)
            result |= {key: value for key, value in done.result.items() if key != "missed_count"}
            counted = int(missed) if isinstance(missed, int) else 0
            failed = done.state != "done" and not counted
            total += counted + failed
        return {**result, "missed_count": total}

    async def _ended(self, operation: p.Operation, call: p.Meta) -> p.Operation:
        while operation.state == "running":
            await asyncio.sleep(POLL_S)
            operation, _ = await self._ask(p.GetOperation(id=operation.id), call, p.Operation)
        return operation

    async def _ask(self, request: msgspec.Struct, call: p.Meta, answer: type[S]) -> tuple[S, p.Meta]:
        found, meta = await self._server.handlers[type(request)](request, call)
        assert isinstance(found, answer)
        return found, meta
