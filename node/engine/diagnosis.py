"""What a node answers to who looks for a fault: how it sees the cluster, what stands still on it, what it has seen.

A handler that never returns keeps the node from answering this, too: its silence is then the finding, and the watchdog
has named the handler in the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from node.actors.cell import Phase
from node.actors.cellview import CellView
from node.core import limits
from node.core.clock import MS, rfc3339
from node.engine.diagnosis_messages import (
    EventPage,
    GetEvents,
    GetStuck,
    GetView,
    MemberSeen,
    StuckReport,
    StuckRow,
    ViewReport,
)
from node.gossip.view import ClusterView
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine

# How many calls wait or run at each of the node's edges, and for how long the oldest has: (what, name, calls, ms).
EdgeLoad = Callable[[], tuple[tuple[str, str, int, int], ...]]


class Diagnosis:
    """Registers itself with the engine. `edges` say what waits outside the engine: executors, the store."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.edges: list[EdgeLoad] = []
        engine.services |= {
            GetView: self._view_wanted,
            GetStuck: self._stuck_wanted,
            GetEvents: self._events_wanted,
        }

    # ---- how it sees the cluster

    def view(self) -> ViewReport:
        engine = self._engine
        coordinator = engine.sharding.coordinator.status()
        return view_report(
            engine.view,
            engine.world.clock.mono_ns(),
            placement_version=engine.sharding.region.version,
            coordinating=coordinator.term if coordinator.active else 0,
        )

    def _view_wanted(self, envelope: Envelope) -> None:
        self._engine.reply(envelope, self.view())

    # ---- what stands still

    def stuck(self, after_ms: int) -> StuckReport:
        engine = self._engine
        now_ns = engine.world.clock.mono_ns()
        found = [row for row in (standing(view, now_ns) for view in engine.system.cells()) if row is not None]
        found += [
            StuckRow("buffer", f"shard/{shard}", oldest_ms, f"{count} messages wait for a home")
            for shard, count, oldest_ms in engine.sharding.region.buffers(now_ns)
        ]
        found += self._at_the_edges()
        late = sorted((row for row in found if row.for_ms >= after_ms), key=lambda row: (-row.for_ms, row.object))
        late += [
            StuckRow(
                "handler",
                f"{slow.kind}/{slow.last_id}",
                slow.longest_ms,
                f"{slow.message_type}: {slow.count} took too long, the last at {rfc3339(slow.last_at_ms)}",
            )
            for slow in engine.system.slow_handlers()
            if slow.longest_ms >= limits.handler_stuck_ms
        ]
        return StuckReport(engine.me.name, tuple(late[: limits.actor_rows_max]), len(late))

    def _at_the_edges(self) -> Iterator[StuckRow]:
        for edge in self.edges:
            for what, name, calls, for_ms in edge():
                yield StuckRow(what, name, for_ms, f"{calls} calls wait or run")

    def _stuck_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetStuck):
            self._engine.reply(envelope, self.stuck(envelope.message.after_ms))

    # ---- what it has seen

    def events(self, after: int, incarnation: int) -> EventPage:
        """What came after event number `after` of this incarnation; all that is kept when it is of another."""
        log, me = self._engine.events, self._engine.me
        kept = log.snapshot()
        first = log.count - len(kept) + 1
        wanted = after + 1 if incarnation == me.incarnation else first
        found = kept[max(0, wanted - first) :][-limits.events_page :]
        sent_from = log.count - len(found) + 1
        return EventPage(me.name, me.incarnation, found, log.count, max(0, sent_from - wanted))

    def _events_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, GetEvents):
            self._engine.reply(envelope, self.events(message.after, message.incarnation))


def view_report(view: ClusterView, now_ns: int, *, placement_version: int, coordinating: int) -> ViewReport:
    """A view in the words in which views are compared."""
    seen = []
    for name, member in sorted(view.members.items()):
        against = view.unreachable.get(name)
        seen.append(
            MemberSeen(
                member.id,
                member.status.word,
                view.reachable(name),
                member.control,
                member.roles,
                member.app_version,
                member.up_number,
                tuple(o.name for o in against.observers) if against else (),
                (now_ns - against.since_ns) // MS if against else 0,
            )
        )
    return ViewReport(
        view.me,
        view.leader,
        view.converged,
        view.blocked_by,
        view.digest,
        placement_version,
        coordinating,
        tuple(seen),
        tuple((a.name, b.name) for a, b in view.indirect),
    )


def standing(view: CellView, now_ns: int) -> StuckRow | None:
    """What keeps a cell from going on, and since when; None for one that waits for nothing."""
    for_ms = (now_ns - view.used_ns) // MS
    about = f"{view.ref.kind}/{view.ref.id}"
    if view.phase is Phase.RUNNING and not view.depth and not view.asks_open:
        return None
    if view.phase is Phase.QUARANTINED:
        return None  # a fault of its own, which `health` and `entity quarantine list` name
    match view.phase:
        case Phase.RUNNING if view.depth:
            return StuckRow("mailbox", about, for_ms, f"{view.depth} messages wait; none was handled meanwhile")
        case Phase.RUNNING:
            return StuckRow("waiting", about, for_ms, f"waits for {view.asks_open} answers")
        case _:
            return StuckRow(view.phase.value, about, for_ms, f"{view.depth} messages wait until it runs")
