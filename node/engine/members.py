"""Membership at work in one engine: its machine is stepped here, and its effects are carried out in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from node.core.clock import MS
from node.core.ids import NodeId
from node.core.limits import split_lease_ttl_ms
from node.engine.config import Exit
from node.engine.decisions import DecisionLog
from node.engine.events import of_move
from node.gossip import events as gossip
from node.gossip.member import Status
from node.gossip.membership import Membership
from node.gossip.splitbrain import Decision
from node.store.port import AcquireLease, Answer, LeaseGranted, LeaseHeld

if TYPE_CHECKING:
    from node.engine.engine import Engine

SPLIT_LEASE = "split-brain"


def went(known: Mapping[NodeId, int], move: gossip.Moved, now_ms: int) -> Mapping[NodeId, int]:
    """When starts were first seen to go; of each name the last start, so that it grows with names and not with time."""
    member = move.member
    if member.status < Status.DOWN or move.before is None or member.id in known:
        return known
    return {node: ms for node, ms in known.items() if node.name != member.node} | {member.id: now_ms}


class Members:
    """`machine` is the state machine; `decisions` what it decided about splits; `went_ms` when this node saw the last
    start of a name go, by its own wall clock."""

    def __init__(self, engine: Engine) -> None:
        config, world = engine.config, engine.world
        self._engine = engine
        self.decisions = DecisionLog(world.journal, world.clock)
        self.went_ms: Mapping[NodeId, int] = {}
        self.machine = Membership(
            config.member,
            config.membership,
            config.seeds,
            config.cluster,
            world.rng,
            may_bootstrap=True,
            bootstrap=config.bootstrap,
            existed=config.existed,
            wall_zero_ms=world.clock.wall_ms() - world.clock.mono_ns() // MS,
        )

    def tick(self, now_ns: int) -> None:
        due = self.machine.next_wake_ns()
        if due is not None and due <= now_ns:
            self.step(gossip.Tick())

    def step(self, event: gossip.Event) -> None:
        """Take in an event and do what follows from it."""
        clock = self._engine.world.clock
        for effect in self.machine.step(event, clock.mono_ns(), clock.wall_ms()):
            self._carry_out(effect)
        self._engine.wake_before(self.machine.next_wake_ns())

    def remove(self, node: NodeId, by: str) -> bool:
        """Declare this very incarnation dead; whether that changed anything."""
        known = self.machine.state.members.get(node.name)
        if known is None or known.id != node or known.status >= Status.DOWN:
            return False
        self.step(gossip.Down(node.name, by))
        return True

    def _carry_out(self, effect: gossip.Effect) -> None:
        engine = self._engine
        match effect:
            case gossip.Send(node, message):
                engine.send_message(node, "/membership", message)
            case gossip.Connect(peer):
                engine.world.transport.connect(peer)
            case gossip.Disconnect(node):
                engine.world.transport.disconnect(node)
            case gossip.Changed(view):
                engine.view_changed(view)
            case gossip.AskLease():
                self._ask_lease()
            case gossip.Removed(cause, left, misfit):
                engine.exit(Exit(cause, removed=not (left or misfit), misfit=misfit))
            case _:
                self._note(effect)

    def _note(self, effect: gossip.Effect) -> None:
        """What people are told."""
        engine = self._engine
        match effect:
            case gossip.Moved():
                self.went_ms = went(self.went_ms, effect, engine.world.clock.wall_ms())
                engine.emit(*of_move(effect))
            case gossip.Decided(decision):
                self._decided(decision)
            case gossip.Blocked(reason):
                engine.faults.put("E-LEADER-BLOCKED", "cluster", reason)
            case gossip.Late(node, late_ms):
                text = f"its event loop ran {late_ms} ms late; what others call a failure may be only that"
                engine.faults.put("E-NODE-LATE", f"node/{node.name}", text if late_ms else "")
            case gossip.ClockAhead(ahead_ms):
                text = f"this node's wall clock is {ahead_ms} ms ahead of most others': what it writes is refused"
                engine.faults.put("E-CLOCK-AHEAD", f"node/{engine.me.name}", text if ahead_ms else "")
            case gossip.Refused(reason):
                engine.faults.put("E-NOT-JOINED", f"node/{engine.me.name}", reason)
            case gossip.TurnedAway(node, reason):
                engine.emit("node.turned_away", f"node/{node.name}", reason)
            case _:
                pass

    def _decided(self, decision: Decision) -> None:
        problem = self.decisions.add(decision)
        self._engine.faults.put("E-DECISION-LOG", f"node/{self._engine.me.name}", problem)
        self._engine.emit("cluster.decision", "cluster", f"{decision.id}: {decision.text()}")

    def _ask_lease(self) -> None:
        def answered(answer: Answer) -> None:
            holder = answer.holder if isinstance(answer, LeaseHeld) else ""
            self.step(gossip.LeaseAnswered(isinstance(answer, LeaseGranted), holder))

        request = AcquireLease(SPLIT_LEASE, str(self._engine.me), split_lease_ttl_ms)
        self._engine.world.submit(request, answered)
