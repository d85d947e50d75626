"""The operation `restart`: carries a rolling restart out, and says how far it is.

It asks every node how it stands, starts the drain of one node at a time, and waits: who starts a process again is that
process's supervisor. All that it must remember is its durable `Roll`; whoever owns its shard next goes on from there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from node.actors.actor import Context
from node.core.ids import EntityRef, ServiceRef
from node.flows import rolling
from node.flows.cluster import Cluster
from node.flows.messages import (
    CancelOperation,
    Counts,
    DrainName,
    GetDrainName,
    GetOperation,
    GetStanding,
    HoldBalance,
    NodeStanding,
    OperationStatus,
    StartOperation,
)
from node.flows.rolling import Over, Roll, Sight
from node.flows.state import OperationState

POLL_MS = 500
ASK_MS = 2_000
HOLD_MS = 15_000


class _Poll(msgspec.Struct, frozen=True):
    pass


class _Stands(msgspec.Struct, frozen=True):
    round: int
    node: str
    outcome: Any


class _Named(msgspec.Struct, frozen=True):
    at: int
    outcome: Any


class _DrainSeen(msgspec.Struct, frozen=True):
    at: int
    outcome: Any


class Restart:
    """See the module. Takes the place of the operation that it is."""

    def __init__(self, cluster: Cluster, state: OperationState) -> None:
        self._cluster = cluster
        self._state = state
        self._round = 0
        self._standings: dict[str, NodeStanding | None] = {}
        self._waits_for: set[str] = set()
        self._asked_ms = 0
        self._drained: OperationStatus | None = None

    def start(self, ctx: Context) -> None:
        if self._state.status.state == "running":
            ctx.every("poll", POLL_MS, _Poll(), first_ms=0)

    @property
    def status(self) -> OperationStatus:
        return self._state.status

    def receive(self, ctx: Context, message: Any) -> None:
        running = self._state.status.state == "running"
        match message:
            case GetOperation():
                ctx.reply(self._state.status)
            case CancelOperation():
                self._cancel(ctx)
            case _Poll() if running:
                self._poll(ctx)
            case _Stands(number, node, outcome) if running and number == self._round:
                self._waits_for.discard(node)
                self._standings[node] = outcome if isinstance(outcome, NodeStanding) else None
                if not self._waits_for:
                    self._look(ctx)
            case _Named(at, DrainName(operation=name)) if running and at == self._roll.at and not self._roll.drain:
                self._keep(ctx, msgspec.structs.replace(self._roll, drain=name))
                self._drive_drain(ctx)
            case _DrainSeen(at, outcome) if running and at == self._roll.at:
                self._drained = outcome if isinstance(outcome, OperationStatus) else self._drained
            case _Poll() | _Stands() | _Named() | _DrainSeen():
                pass  # of an earlier round, or it is over
            case _:
                ctx.reject(f"an operation does not understand {type(message).__name__}")

    # ---- looking

    @property
    def _roll(self) -> Roll:
        return self._state.roll or Roll(entered_ms=self._state.status.started_ms)

    @property
    def _nodes(self) -> rolling.Lives:
        return self._state.start.nodes

    @property
    def _witnesses(self) -> tuple[str, ...]:
        """Whose standing says whether the cluster is whole: also nodes that stay, since what moves goes to them."""
        return self._state.start.witnesses or tuple(name for name, _ in self._nodes)

    def _poll(self, ctx: Context) -> None:
        if self._waits_for and ctx.moment().mono_ms - self._asked_ms < 2 * ASK_MS:
            return
        self._round += 1
        self._asked_ms = ctx.moment().mono_ms
        # Who is away is not asked: each round would last as long as its silence.
        self._standings = dict.fromkeys(self._witnesses)
        self._waits_for = {name for name in self._witnesses if self._cluster.reachable(name)}
        number = self._round
        for name in sorted(self._waits_for):
            node = ServiceRef(name, "/node")
            ctx.tell(node, HoldBalance(HOLD_MS))
            ctx.ask(node, GetStanding(), ASK_MS, lambda outcome, name=name: _Stands(number, name, outcome))  # type: ignore[misc]
        if self._roll.stage == rolling.DRAIN:
            self._drive_drain(ctx)
        if not self._waits_for:
            self._look(ctx)

    def _drive_drain(self, ctx: Context) -> None:
        """Everything here may be asked again and again."""
        roll = self._roll
        name, incarnation = self._nodes[roll.at]
        at = roll.at
        if not roll.drain:
            if self._cluster.is_member(name, incarnation):
                ctx.ask(ServiceRef(name, "/node"), GetDrainName(), ASK_MS, lambda outcome: _Named(at, outcome))
            return
        drain = EntityRef("operation", roll.drain)
        reason = self._state.start.reason or "rolling restart"
        order = StartOperation("drain", name, incarnation, reason=reason)
        ctx.ask(drain, order, ASK_MS, lambda outcome: _DrainSeen(at, outcome))

    def _look(self, ctx: Context) -> None:
        roll, now_ms = self._roll, ctx.wall_ms()
        sight = self._sight()
        found = rolling.next_step(roll, self._nodes, sight, now_ms)
        if isinstance(found, Over):
            self._end(ctx, found, sight, now_ms)
        elif found != roll:
            self._drained = None
            self._keep(ctx, found, sight.lacking)
            self._poll(ctx)  # the next stage asks anew, and need not wait for its turn
        else:
            # How it stands is asked again after a move: it is not written down.
            self._show(roll, sight.lacking, now_ms)

    def _sight(self) -> Sight:
        roll = self._roll
        sight = rolling.whole(self._cluster.why_not_placed(), self._standings, roll)
        if roll.at == len(self._nodes):
            return sight
        name, incarnation = self._nodes[roll.at]
        standing = self._standings.get(name)
        drained = self._drained if self._drained is not None and self._drained.id == roll.drain else None
        result = drained.result if drained is not None else {}
        return Sight(
            sight.lacking,
            sight.sites,
            sight.missing,
            gone=not self._cluster.is_member(name, incarnation),
            back=standing is not None and standing.incarnation > incarnation and not standing.why_not_ready,
            drain=drained.state if drained is not None else "",
            moved=int(result.get("shards_moved") or 0),
            lost=int(result.get("messages_lost") or 0),
        )

    # ---- writing

    def _show(self, roll: Roll, lacking: tuple[str, ...], now_ms: int) -> None:
        status = msgspec.structs.replace(
            self._state.status, phases=rolling.phases(roll, self._nodes, lacking, now_ms), result=_result(roll)
        )
        self._state = msgspec.structs.replace(self._state, status=status, roll=roll)

    def _keep(self, ctx: Context, roll: Roll, lacking: tuple[str, ...] = ()) -> None:
        self._show(roll, lacking, ctx.wall_ms())
        ctx.persist(self._state)

    def _end(self, ctx: Context, over: Over, sight: Sight, now_ms: int) -> None:
        ctx.cancel("poll")
        for name in sorted(self._witnesses):
            ctx.tell(ServiceRef(name, "/node"), HoldBalance(0))
        last = "done" if over.outcome == "done" else "interrupted"
        status = msgspec.structs.replace(
            self._state.status,
            state=over.outcome,
            phases=rolling.phases(over.roll, self._nodes, sight.lacking, now_ms, last),
            ended_ms=now_ms,
            result=_result(over.roll) | ({"reason": over.reason} if over.reason else {}),
        )
        self._state = msgspec.structs.replace(self._state, status=status, roll=over.roll)
        ctx.persist(self._state)

    def _cancel(self, ctx: Context) -> None:
        """No further node is drained; the one that drains goes on if it can't be held any more."""
        if self._state.status.state == "running":
            roll = self._roll
            if roll.stage == rolling.DRAIN and roll.drain:
                ctx.tell(EntityRef("operation", roll.drain), CancelOperation("the rolling restart is cancelled"))
            self._end(ctx, Over("cancelled", roll), Sight((), 0, 0), ctx.wall_ms())
        ctx.reply_durable(self._state.status)


def _result(roll: Roll) -> Counts:
    return {"nodes_restarted": roll.at, "shards_moved": roll.moved, "messages_lost": roll.lost}
