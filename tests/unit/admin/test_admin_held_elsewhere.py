"""A plan and what was done by it are the same whichever node is asked; a silent node is named."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin.caller import ASKED_BY, NEEDED, ROLE
from node.admin.gather import Gatherer
from node.admin.held_elsewhere import HeldElsewhere
from node.admin.held_plans import HeldPlans, Result
from node.core.clock import MS, ManualClock
from node.core.ids import NodeId, ServiceRef
from node.wire.codec import CODEC
from node.wire.envelope import Envelope, Kind
from node.wire.roster import OperatorRole

META = p.Meta(cluster_name="demo", cluster_id="c-1", observed_at="", observed_by="n1")
NAMES = ("n1", "n2", "n3")


class Node:
    """One node's desk; the cluster itself has no plan and no operation on record."""

    def __init__(self, name: str, world: World) -> None:
        self.unknown = p.AdminRefusal(3, "E-NOT-FOUND", f"there is no such thing, {name} says")
        self.engine = SimpleNamespace(
            me=NodeId(name, 1),
            world=SimpleNamespace(clock=world.clock, rng=random.Random(name)),
            sharding=SimpleNamespace(region=SimpleNamespace(version=1)),
            view=SimpleNamespace(members=dict.fromkeys(NAMES)),
            services={},
            ask=world.ask,
            reply=world.reply,
        )
        self.gatherer = Gatherer(cast(Any, self.engine), cast(Any, None))
        self.handlers: dict[type, Any] = {
            p.GetPlans: self._answers(p.PlanList(items=())),
            p.ListOperations: self._answers(p.OperationList(items=())),
            **dict.fromkeys((p.GetPlan, p.DiscardPlan, p.CommitPlan, p.GetOperation, p.CancelOperation), self._refuses),
        }
        self.held = HeldPlans(cast(Any, self))
        HeldElsewhere(cast(Any, self), self.held)
        self.carried_out_for: list[tuple[str, OperatorRole | None, str]] = []

    def stage(self, target: str = "campaign/rail") -> p.Plan:
        NEEDED.set(OperatorRole.OPERATOR)

        async def carry_out(reason: str) -> Result:
            self.carried_out_for.append((ASKED_BY.get(), ROLE.get(), reason))
            return {"changed": True}

        return self.held.hold("delete", target, carry_out)

    async def ask(self, request: msgspec.Struct) -> Any:
        return (await self.asked(request))[0]

    async def asked(self, request: msgspec.Struct) -> tuple[Any, p.Meta]:
        answer: tuple[Any, p.Meta] = await self.handlers[type(request)](request, META)
        return answer

    # ---- as much of an AdminServer as the desk needs

    def meta(self) -> p.Meta:
        return META

    def with_missing(self, meta: p.Meta, missing: tuple[p.Missing, ...]) -> p.Meta:
        return msgspec.structs.replace(meta, missing=missing)

    @property
    def guard(self) -> Any:
        return SimpleNamespace(not_allowed=lambda *_: p.AdminRefusal(7, "E-NOT-ALLOWED", "an operator may"))

    async def carried_out(self, handler: Any, _who: str, _ms: int, request: msgspec.Struct, meta: p.Meta) -> Any:
        try:
            return await handler(request, meta)
        except p.AdminRefusal as refused:
            return p.AdminError(code=refused.code, exit=refused.exit_status, message=refused.message), meta

    def _answers(self, found: msgspec.Struct) -> Any:
        async def answer(_request: Any, call: p.Meta) -> Any:
            return found, call

        return answer

    async def _refuses(self, _request: Any, _call: p.Meta) -> Any:
        raise self.unknown


class World:
    """Three nodes; those in `silent` answer nobody else."""

    def __init__(self) -> None:
        self.clock = ManualClock(wall_ms=10_000)
        self.silent: set[str] = set()
        self._asked: dict[int, Callable[[Any], None]] = {}
        self.nodes = {name: Node(name, self) for name in NAMES}

    def ask(self, to: ServiceRef, message: msgspec.Struct, _timeout_ms: int, done: Callable[[Any], None]) -> None:
        if to.node in self.silent:
            done(Failed(Failure.TIMEOUT))
            return
        number = len(self._asked) + 1
        self._asked[number] = done
        crossed = CODEC.message_of(*CODEC.body_of(message))
        self.nodes[to.node].engine.services[type(message)](Envelope(Kind.ASK, to, NodeId("n9", 1), crossed, number))

    def reply(self, envelope: Envelope, message: msgspec.Struct) -> None:
        self._asked[envelope.correlation](CODEC.message_of(*CODEC.body_of(message)))


def played(scene: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scene(World()))


def test_all_nodes_list_and_show_the_same() -> None:
    async def scene(world: World) -> None:
        done = []
        for name in NAMES:
            world.clock.advance_ns(1_000 * MS)
            plan = world.nodes[name].stage(name)
            done.append(await world.nodes[name].ask(p.CommitPlan(id=plan.id)))
        waits = world.nodes["n2"].stage()
        for node in world.nodes.values():
            assert (await node.ask(p.ListOperations())).items == tuple(reversed(done))
            assert (await node.ask(p.ListOperations(state="failed"))).items == ()
            assert [await node.ask(p.GetOperation(id=one.id)) for one in done] == done
            assert await node.ask(p.CancelOperation(id=done[0].id)) == done[0], "it is over"
            assert (await node.ask(p.GetPlans())).items == (waits,)
            assert await node.ask(p.GetPlan(id=waits.id)) == waits

    played(scene)


def test_a_plan_is_committed_and_forgotten_through_any_node() -> None:
    async def scene(world: World) -> None:
        ASKED_BY.set("ann")
        ROLE.set(OperatorRole.OPERATOR)
        holder = world.nodes["n1"]
        plan = holder.stage()
        commit = p.CommitPlan(id=plan.id, reason="over", request_id="once")
        done = await world.nodes["n3"].ask(commit)
        assert (done.state, done.verb, done.reason) == ("done", "delete", "over")
        for node in world.nodes.values():
            assert await node.ask(commit) == done, "asked again, nothing happens again"
        assert holder.carried_out_for == [("ann", OperatorRole.OPERATOR, "over")]
        other = holder.stage("campaign/road")
        assert await world.nodes["n2"].ask(p.DiscardPlan(id=other.id)) == other
        assert (await holder.ask(p.GetPlans())).items == ()

    played(scene)


def test_the_holder_refuses_whom_the_plan_is_not_for() -> None:
    async def scene(world: World) -> None:
        plan = world.nodes["n1"].stage()
        ROLE.set(OperatorRole.VIEWER)
        refused = await world.nodes["n2"].ask(p.CommitPlan(id=plan.id))
        assert (refused.exit, world.nodes["n1"].carried_out_for) == (7, [])

    played(scene)


def test_a_plan_under_way_is_not_carried_out_once_more() -> None:
    async def scene(world: World) -> None:
        held = world.nodes["n1"].held
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def carry_out(_reason: str) -> Result:
            assert not begun.is_set(), "once more"
            begun.set()
            await go_on.wait()
            return {}

        plan = held.hold("delete", "campaign/rail", carry_out)
        first = asyncio.create_task(world.nodes["n2"].ask(p.CommitPlan(id=plan.id, request_id="a")))
        await begun.wait()
        assert (await world.nodes["n3"].ask(p.CommitPlan(id=plan.id, request_id="b"))).exit == 4
        go_on.set()
        assert (await first).state == "done"

    played(scene)


def test_a_silent_node_is_named_and_nobody_says_that_there_is_nothing() -> None:
    async def scene(world: World) -> None:
        world.silent = {"n2"}
        node = world.nodes["n1"]
        for request in (p.GetPlans(), p.ListOperations()):
            _, meta = await node.asked(request)
            assert [missing.node for missing in meta.missing] == ["n2"]
        for asked in (p.GetPlan, p.GetOperation, p.CommitPlan, p.DiscardPlan):
            with pytest.raises(p.AdminRefusal, match="n2 may hold it") as refused:
                await node.ask(asked(id="p-1"))
            assert refused.value.exit_status == 9
        world.silent = set()
        with pytest.raises(p.AdminRefusal) as refused:
            await node.ask(p.GetPlan(id="p-1"))
        assert refused.value is node.unknown

    played(scene)


def test_what_is_refused_for_another_reason_is_asked_of_nobody_else() -> None:
    async def scene(world: World) -> None:
        node = world.nodes["n1"]
        world.silent = {"n2", "n3"}
        node.unknown = p.AdminRefusal(4, "E-CONFLICT", "another one is under way")
        with pytest.raises(p.AdminRefusal) as refused:
            await node.ask(p.CommitPlan(id="p-1"))
        assert refused.value is node.unknown

    played(scene)
