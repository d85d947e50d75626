"""The checkers of every instant: they take the log event by event, remember what they need, and stop a run at once.

All decide from the record alone: what the store or a node thought of it is no argument. Each has histories in the tests
that it must refuse. Those that look at a whole run are in `node.sim.rules_messages` and `node.sim.rules_states`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from node.core.clock import MS, SECOND
from node.core.ids import NodeId
from node.sim import history as h
from node.sim.verdict import Violation

# An ask ends by its deadline; its node may have to come round first.
LATE_MS = 250
# Clocks may drift against the store's by so much of a lease (node.sim.faults draws up to 2 %).
LEASE_TOLERANCE = 0.05


@dataclass(slots=True)
class SingleWriter:
    """I1: a state is written only by the placement's owner of its shard at that moment, under the placement's epoch;
    an epoch has one owner; neither epochs nor revisions go back or skip."""

    placed: dict[int, tuple[int, NodeId]] = field(default_factory=dict)
    revisions: dict[tuple[str, str], int] = field(default_factory=dict)

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.Placed):
            epoch, owner = self.placed.get(event.shard, (0, event.owner))
            if event.epoch < epoch or (event.epoch == epoch and event.owner != owner):
                words = f"shard {event.shard} goes from {owner} epoch {epoch} to {event.owner} epoch {event.epoch}"
                return Violation("I1", event.at_ns, words)
            self.placed[event.shard] = (event.epoch, event.owner)
        elif isinstance(event, h.Wrote):
            epoch, owner = self.placed.get(event.shard, (0, NodeId("", 0)))
            if event.epoch != epoch or event.node != owner:
                found = f"{event.node} wrote {event.kind}:{event.id} under epoch {event.epoch}"
                return Violation("I1", event.at_ns, f"{found}; shard {event.shard} is {owner}'s, epoch {epoch}")
            revision = self.revisions.get((event.kind, event.id), 0)
            if event.revision != revision + 1:
                found = f"{event.kind}:{event.id} went from revision {revision} to {event.revision}"
                return Violation("I2", event.at_ns, found)
            self.revisions[(event.kind, event.id)] = event.revision
        return None


@dataclass(slots=True)
class OneCoordinator:
    """I1 of the placement table: it is changed only by who holds the coordinator's lease when it asks for the change,
    and a term belongs to one holder. The fence refuses what comes too late; nobody may rely on that."""

    held: dict[int, tuple[NodeId, int, int]] = field(default_factory=dict)

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.Leased):
            holder, _, _ = self.held.get(event.term, (event.node, 0, 0))
            if holder != event.node:
                return Violation("I1", event.at_ns, f"term {event.term} was {holder}'s and was given to {event.node}")
            self.held[event.term] = (event.node, event.until_ns, event.ttl_ns)
        elif isinstance(event, h.Decided):
            holder, until_ns, ttl_ns = self.held.get(event.term, (NodeId("", 0), 0, 0))
            if holder != event.node:
                return Violation("I1", event.at_ns, f"{event.node} places shards under {holder}'s term {event.term}")
            late_ns = event.at_ns - until_ns
            if late_ns > ttl_ns * LEASE_TOLERANCE:
                words = f"{event.node} places shards {late_ns / SECOND:.3f} s after its lease of term {event.term}"
                return Violation("I1", event.at_ns, words)
        return None


@dataclass(slots=True)
class BudgetsHold:
    """I7: spent and reserved never pass the daily budget; a campaign's spend is the sum of the impressions that its day
    has counted, and no day comes after a later one; an impression or a click is counted once."""

    counted: set[tuple[str, str, str]] = field(default_factory=set)
    ledger: dict[str, int] = field(default_factory=dict)
    days: dict[tuple[str, str], str] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)  # counted by the write of which the budget is still to come

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.Counted):
            key = (event.event, event.campaign, event.request_id)
            if key in self.counted:
                return Violation("I7", event.at_ns, f"{event.event} {event.request_id} was counted twice")
            self.counted.add(key)
            self.newest[event.campaign] = self.newest.get(event.campaign, 0) + event.price_micros
        elif isinstance(event, h.Budget):
            account = (event.kind, event.id)
            day = self.days.get(account, event.day)
            if event.day < day:
                return Violation("I7", event.at_ns, f"{event.kind}:{event.id} goes from {day} back to {event.day}")
            self.days[account] = event.day
            if event.spent_micros + event.reserved_micros > event.daily_micros:
                found = f"spent {event.spent_micros} + reserved {event.reserved_micros} > {event.daily_micros}"
                return Violation("I7", event.at_ns, f"{event.kind}:{event.id} {found}")
            if event.kind != "campaign":
                return None
            facts = self.newest.pop(event.id, 0) + (self.ledger.get(event.id, 0) if event.day == day else 0)
            self.ledger[event.id] = facts
            if event.spent_micros != facts:
                found = f"{event.id} has spent {event.spent_micros}, its impressions say {facts}"
                return Violation("I7", event.at_ns, found)
        return None


@dataclass(slots=True)
class ApprovalGate:
    """I8: nothing is served on a site before somebody asked to approve it there."""

    asked: set[tuple[str, str]] = field(default_factory=set)

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.ApprovalAsked):
            self.asked.add((event.site, event.creative))
        elif isinstance(event, h.Served) and (event.site, event.creative) not in self.asked:
            return Violation("I8", event.at_ns, f"{event.creative} was served on {event.site}, and never approved")
        return None


@dataclass(slots=True)
class UniqueStarts:
    """X7: no two starts have one number, and a name's numbers grow."""

    started: dict[str, int] = field(default_factory=dict)

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.Started):
            before = self.started.get(event.node.name, 0)
            if event.node.incarnation <= before:
                return Violation("X7", event.at_ns, f"{event.node} was given out after incarnation {before}")
            self.started[event.node.name] = event.node.incarnation
        return None


@dataclass(slots=True)
class InTime:
    """X4: an ask has one outcome, by its deadline, unless its node died or stood still meanwhile; and
    one answer goes over the wire."""

    ended: set[int] = field(default_factory=set)
    replied: set[tuple[NodeId, str, int]] = field(default_factory=set)

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.Ended):
            if event.ask in self.ended:
                return Violation("X4", event.at_ns, f"ask {event.ask} of {event.node} ended twice")
            self.ended.add(event.ask)
            late_ns = event.at_ns - event.deadline_ns
            if late_ns > LATE_MS * MS and not event.excused:
                words = "has no outcome" if event.never else "ended"
                return Violation("X4", event.at_ns, f"ask {event.ask} of {event.node} {words} {late_ns // MS} ms late")
        elif isinstance(event, h.Replied):
            key = (event.node, event.to, event.correlation)
            if key in self.replied:
                return Violation(
                    "X4", event.at_ns, f"{event.node} answered ask {event.correlation} of {event.to} twice"
                )
            self.replied.add(key)
        return None

    def forget(self) -> None:
        """What was asked and answered so far: a second answer after that is not noticed any more."""
        self.ended.clear()
        self.replied.clear()


@dataclass(slots=True)
class ReplicaTruth:
    """X1: what a replica holds for a key was written so, under that version, by somebody. I3: within one start of a
    node, a key never goes back: not to an older version, and not to an older one after it was gone. What leaves no
    trace is what expired, what a take-over discards, and a removal that all have and forget: an older removal may come
    after it from who was away, or what expired as well, and reads as absent. It may have come and gone between two
    looks at a replica; that it was, another one's look has told."""

    written: dict[tuple[str, h.KeyVersion], int] = field(default_factory=dict)
    removals: set[tuple[str, h.KeyVersion]] = field(default_factory=set)
    newest: dict[tuple[NodeId, str], h.KeyVersion] = field(default_factory=dict)
    expiring: dict[str, dict[h.KeyVersion, int]] = field(default_factory=dict)

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.Put):
            known = self.written.setdefault((event.key, event.version), event.value)
            if known != event.value:
                return Violation("X1", event.at_ns, f"{event.key} has two values under version {event.version}")
            if event.removed:
                self.removals.add((event.key, event.version))
        elif isinstance(event, h.Held):
            if self.written.get((event.key, event.version)) != event.value:
                words = f"{event.node} holds {event.key} as nobody wrote it, under version {event.version}"
                return Violation("X1", event.at_ns, words)
            if event.expires_at_ms:
                self.expiring.setdefault(event.key, {})[event.version] = event.expires_at_ms
            newest = self.newest.get((event.node, event.key), event.version)
            forgotten = self.removals.issuperset(((event.key, newest), (event.key, event.version)))
            traceless = forgotten or event.discarded >= newest or self._expired_since(newest, event)
            excused = event.damaged or (event.absent and traceless)
            if event.version < newest and not excused:
                words = f"{event.key} on {event.node} went back from version {newest} to {event.version}"
                return Violation("I3", event.at_ns, words)
            self.newest[(event.node, event.key)] = max(newest, event.version) if forgotten else event.version
        return None

    def _expired_since(self, newest: h.KeyVersion, held: h.Held) -> bool:
        """Whether this replica may have held what was as new as `newest`, or newer, and has expired by its clock."""
        expiring = self.expiring.get(held.key, {})
        return any(version >= newest and ends_ms <= held.wall_ms for version, ends_ms in expiring.items())


@dataclass(slots=True)
class AcknowledgedCame:
    """I4 between two replicas: a node acknowledges writes of a peer's stream only when all of them have arrived."""

    whole: dict[tuple[NodeId, int], int] = field(default_factory=dict)
    early: dict[tuple[NodeId, int], dict[int, int]] = field(default_factory=dict)

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.DeltaCame):
            key = (event.node, event.stream)
            early = self.early.setdefault(key, {})
            early[event.first] = max(event.last, early.get(event.first, 0))
            whole = max(event.since, self.whole.get(key, 0))
            for first, last in sorted(early.items()):
                if first <= whole + 1:
                    whole = max(whole, last)
                    del early[first]
            self.whole[key] = whole
        elif isinstance(event, h.DeltaAcked):
            whole = self.whole.get((event.node, event.stream), 0)
            if event.upto > whole:
                words = f"{event.node} acknowledged writes up to {event.upto} and has them up to {whole}"
                return Violation("I4", event.at_ns, words)
        return None


Checker = (
    SingleWriter | OneCoordinator | BudgetsHold | ApprovalGate | UniqueStarts | InTime | ReplicaTruth | AcknowledgedCame
)


class EveryInstant:
    """All checkers of every instant, over one log. Each event goes only to those that know its kind."""

    def __init__(self) -> None:
        writer, coordinator, budgets = SingleWriter(), OneCoordinator(), BudgetsHold()
        approvals, starts, asks, replicas = ApprovalGate(), UniqueStarts(), InTime(), ReplicaTruth()
        deltas = AcknowledgedCame()
        self._asks = asks
        self._checkers: dict[type[h.Event], Checker] = {
            h.Placed: writer,
            h.Wrote: writer,
            h.Leased: coordinator,
            h.Decided: coordinator,
            h.Counted: budgets,
            h.Budget: budgets,
            h.ApprovalAsked: approvals,
            h.Served: approvals,
            h.Started: starts,
            h.Ended: asks,
            h.Replied: asks,
            h.Put: replicas,
            h.Held: replicas,
            h.DeltaCame: deltas,
            h.DeltaAcked: deltas,
        }

    def see(self, event: h.Event) -> Violation | None:
        return self._checkers[type(event)].see(event)

    def forget(self) -> None:
        """Drop what grows with every message, for runs of days."""
        self._asks.forget()


def first_violation(log: Iterable[h.Event]) -> Violation | None:
    """What the checkers of every instant say of a whole log."""
    checkers = EveryInstant()
    return next((found for event in log if (found := checkers.see(event)) is not None), None)
