"""The checkers: pure functions of what was recorded, each with a history in the tests that it must refuse.

Those of every instant take the log event by event and remember what they need; the others look at the end of a run.
They decide from the record alone: what the store or a node thought of it is no argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from node.core.clock import SECOND
from node.core.ids import NodeId
from node.sim import history as h


@dataclass(frozen=True, slots=True)
class Violation:
    """`invariant` is I1 … I9, or a word for what has no number; `text` names what was found."""

    invariant: str
    at_ns: int
    text: str

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at_ns / SECOND:.6f} s: {self.text}"


# ---- every instant


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
class BudgetsHold:
    """I7: spent and reserved never pass the daily budget; a campaign's spend is the sum of its counted impressions; an
    impression or a click is counted once. Within one day: a simulated run has no midnight."""

    counted: set[tuple[str, str, str]] = field(default_factory=set)
    ledger: dict[str, int] = field(default_factory=dict)

    def see(self, event: h.Event) -> Violation | None:
        if isinstance(event, h.Counted):
            key = (event.event, event.campaign, event.request_id)
            if key in self.counted:
                return Violation("I7", event.at_ns, f"{event.event} {event.request_id} was counted twice")
            self.counted.add(key)
            self.ledger[event.campaign] = self.ledger.get(event.campaign, 0) + event.price_micros
        elif isinstance(event, h.Budget):
            if event.spent_micros + event.reserved_micros > event.daily_micros:
                found = f"spent {event.spent_micros} + reserved {event.reserved_micros} > {event.daily_micros}"
                return Violation("I7", event.at_ns, f"{event.kind}:{event.id} {found}")
            facts = self.ledger.get(event.id, 0)
            if event.kind == "campaign" and event.spent_micros != facts:
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


class EveryInstant:
    """All checkers of every instant, over one log."""

    def __init__(self) -> None:
        self._checkers = (SingleWriter(), BudgetsHold(), ApprovalGate())

    def see(self, event: h.Event) -> Violation | None:
        for checker in self._checkers:
            found = checker.see(event)
            if found is not None:
                return found
        return None


def first_violation(log: Iterable[h.Event]) -> Violation | None:
    """What the checkers of every instant say of a whole log."""
    checkers = EveryInstant()
    return next((found for event in log if (found := checkers.see(event)) is not None), None)


# ---- the end


def nothing_lost(ops: Iterable[h.Op], final: Mapping[str, frozenset[tuple[str, ...]]], now_ns: int) -> list[Violation]:
    """I2: what was acknowledged as durable is there, and nothing is there that nobody asked for. `final`: keys found
    in the store, by the verb that makes them."""
    made = [op for op in ops if op.verb in final]
    found: list[Violation] = []
    for op in made:
        if op.outcome is h.Outcome.OK and op.key not in final[op.verb]:
            asked = f"{op.verb} {'/'.join(op.key)}, acknowledged at {op.ended_ns / SECOND:.3f} s by {op.node}, is gone"
            found.append(Violation("I2", now_ns, asked))
    for verb, keys in final.items():
        possible = {op.key for op in made if op.verb == verb and op.outcome is not h.Outcome.FAIL}
        found.extend(
            Violation("I2", now_ns, f"{verb} {'/'.join(key)} is there, though every attempt failed for certain")
            for key in sorted(keys - possible)
        )
    return found


@dataclass(frozen=True, slots=True)
class Replica:
    """One node's replica: its 32 map digests, and its entries as `key → (epoch, hlc, origin, tombstone, value)`."""

    node: str
    digests: tuple[int, ...]
    entries: Mapping[str, tuple[int, int, str, bool, bytes]]


def replicas_agree(replicas: Sequence[Replica], now_ns: int) -> list[Violation]:
    """I4: equal digests, and equal contents behind them."""
    found: list[Violation] = []
    for other in replicas[1:]:
        first = replicas[0]
        differing = [n for n, (a, b) in enumerate(zip(first.digests, other.digests, strict=True)) if a != b]
        if differing:
            words = f"{first.node} and {other.node} differ in maps {differing[:8]}"
            found.append(Violation("I4", now_ns, words))
            continue
        for key in sorted(first.entries.keys() | other.entries.keys()):
            if first.entries.get(key) != other.entries.get(key):
                words = f"{first.node} and {other.node} have equal digests and differ at {key!r}"
                found.append(Violation("I4", now_ns, words))
    return found


@dataclass(frozen=True, slots=True)
class Owning:
    """What one live node says it owns: `region` and `actors`, both shard → epoch."""

    node: NodeId
    roles: tuple[str, ...]
    region: Mapping[int, int]
    actors: Mapping[int, int]


def one_owner(
    placement: Mapping[int, tuple[int, NodeId]], nodes: Sequence[Owning], shard_count: int, now_ns: int
) -> list[Violation]:
    """I5: each shard has exactly one live owner, with the role `entity`, and placement, region and actors agree.
    `placement`: shard → (epoch, owner)."""
    owners: dict[int, list[Owning]] = {}
    found: list[Violation] = []
    for node in nodes:
        if dict(node.region) != dict(node.actors):
            differing = sorted(set(node.region.items()) ^ set(node.actors.items()))[:5]
            words = f"{node.node}: region and actors differ in (shard, epoch) {differing}"
            found.append(Violation("I5", now_ns, words))
        for shard in node.region:
            owners.setdefault(shard, []).append(node)
    for shard in range(shard_count):
        here = owners.get(shard, [])
        epoch, owner = placement.get(shard, (0, NodeId("", 0)))
        if len(here) != 1:
            names = ", ".join(str(n.node) for n in here) or "nobody"
            found.append(Violation("I5", now_ns, f"shard {shard} runs on {names}; placement says {owner}"))
        elif here[0].node != owner or here[0].region[shard] != epoch:
            words = f"shard {shard} runs on {here[0].node} epoch {here[0].region[shard]}"
            found.append(Violation("I5", now_ns, f"{words}; placement says {owner} epoch {epoch}"))
        elif "entity" not in here[0].roles:
            found.append(Violation("I5", now_ns, f"shard {shard} runs on {here[0].node}, which has no role entity"))
    return found
