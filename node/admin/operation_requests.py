"""Requests about operations: list, show, cancel; and what a drain is called, so that who starts one starts the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from node.admin import protocol as p
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.outcomes import NOT_FOUND, ask, no_member, read
from node.ads.keys import entity_id
from node.core.clock import rfc3339
from node.core.ids import EntityRef, ServiceRef
from node.core.limits import operations_listed_max
from node.flows import drain_outcome
from node.flows import messages as f
from node.flows.state import OperationState

if TYPE_CHECKING:
    from node.admin.server import AdminServer


class OperationRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.ListOperations: self.list,
            p.GetOperation: self.show,
            p.CancelOperation: self.cancel,
            p.Undrain: self.undrain,
        }

    async def list(self, request: p.ListOperations, call: p.Meta) -> tuple[p.OperationList, p.Meta]:
        states = await self._server.states.all("operation", OperationState)
        standing = [self._as_it_stands(state) for state in states]
        found = [status for status in standing if not request.state or status.state == request.state]
        found.sort(key=lambda status: (-status.started_ms, status.id))
        now_ms = self._engine.world.clock.wall_ms()
        items = tuple(operation(status, now_ms) for status in found[:operations_listed_max])
        return p.OperationList(items=items), call

    async def show(self, request: p.GetOperation, call: p.Meta) -> tuple[p.Operation, p.Meta]:
        name = entity_id(request.id, "id")
        try:
            status = await read(self._engine, EntityRef("operation", name), f.GetOperation(), NODE_DEADLINE_MS)
            state = None if status.verb != "drain" else await self._recorded(name)
        except p.AdminRefusal as refused:
            # Its entity may be on its way to another node, or have none: what is durable can be read all the same.
            state = await self._recorded(name)
            if refused.exit_status == NOT_FOUND or state is None:
                raise
            status = state.status
        if state is not None:
            status = self._as_it_stands(msgspec.structs.replace(state, status=status))
        return operation(status, self._engine.world.clock.wall_ms()), call

    async def _recorded(self, name: str) -> OperationState | None:
        return await self._server.states.one("operation", name, OperationState)

    def _as_it_stands(self, state: OperationState) -> f.OperationStatus:
        """What is on record, with what the cluster knows of a drain whose node can't say so itself. When the last
        entity node drains, nobody is left who could write its end down."""
        start, status = state.start, state.status
        cluster = self._engine.sharding
        if start.verb != "drain" or status.state in ("done", "cancelled"):
            return status
        if status.state == "running" and not cluster.is_member(start.node, start.incarnation):
            how = cluster.how_ended(start.node, start.incarnation)
            outcome, phases, more = drain_outcome.ended(status.phases, how)
            status = msgspec.structs.replace(status, state=outcome, phases=phases, result=status.result | more)
        elif status.state == "running" and cluster.reachable(start.node):
            return status
        left = [r.shard for r in cluster.region.homes() if (r.node, r.incarnation) == (start.node, start.incarnation)]
        phases = drain_outcome.left_on(start.node, status.phases, left)
        return msgspec.structs.replace(status, phases=phases, result=status.result | {"shards_left": len(left)})

    async def running_drain(self, node: str, incarnation: int) -> str:
        """The operation that drains this start of a node, empty when none does; the node need not answer."""
        for state in await self._server.states.all("operation", OperationState):
            start = state.start
            of_node = (start.verb, start.node, start.incarnation) == ("drain", node, incarnation)
            if of_node and self._as_it_stands(state).state == "running":
                return state.status.id
        return ""

    async def cancel(self, request: p.CancelOperation, call: p.Meta) -> tuple[p.Operation, p.Meta]:
        name = entity_id(request.id, "id")
        status = await ask(self._engine, EntityRef("operation", name), f.CancelOperation(request.reason))
        return operation(status, self._engine.world.clock.wall_ms()), call

    async def undrain(self, request: p.Undrain, call: p.Meta) -> tuple[p.Done, p.Meta]:
        """Cancels the node's drain, whoever started it."""
        members = self._engine.view.members
        if request.node not in members:
            raise no_member(self._engine, request.node)
        named = await ask(self._engine, ServiceRef(request.node, "/node"), f.GetDrainName())
        if not named.active:
            return p.Done(changed=False, message=f"{request.node} does not drain"), call
        await ask(self._engine, EntityRef("operation", named.operation), f.CancelOperation(request.reason))
        return p.Done(changed=True, message=f"{named.operation} is cancelled; what has moved stays"), call


async def drain_name(server: AdminServer, node: str) -> str:
    """The operation of the drain that the node is in, or would be in; empty when it can't be asked."""
    try:
        named: f.DrainName = await read(server.engine, ServiceRef(node, "/node"), f.GetDrainName(), NODE_DEADLINE_MS)
    except p.AdminRefusal:
        return ""
    return named.operation


def operation(status: f.OperationStatus, now_ms: int) -> p.Operation:
    """An operation as operators read it."""
    return p.Operation(
        id=status.id,
        verb=status.verb,
        target=status.target,
        state=status.state,
        phases=tuple(
            p.OperationPhase(
                name=phase.name,
                state=phase.state,
                elapsed_s=phase.elapsed_ms / 1_000,
                detail=phase.detail,
                blockers=phase.blockers,
            )
            for phase in status.phases
        ),
        elapsed_s=((status.ended_ms or now_ms) - status.started_ms) / 1_000,
        result=dict(status.result),
        started_at=rfc3339(status.started_ms),
        reason=status.reason,
    )
