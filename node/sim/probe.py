"""An entity type for clusters under test: whatever it is told has a unique number, and it keeps what it was told.

No product composition has it. What a probe handles is also written into the history at that moment, whatever becomes
of its state, so that a checker can compare what was sent, what was handled and what was kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from node.actors.actor import Context, EntityType, ReplyTo
from node.ads.classifier import Classifier
from node.ads.serveindex import ServeIndex
from node.ads.view import CandidateView, ServeView
from node.engine.entities import EntityTypes, entity_types
from node.flows.cluster import Cluster
from node.gossip.replica_io import RemovalOutcome
from node.gossip.version import version_of
from node.sim import history as h
from node.wire.registry import wire_type

if TYPE_CHECKING:
    from node.sim.process import Process

KIND = "probe"
IDLE_MS = 5_000
WORK_MS_MAX = 1_500
SHORT_LIVED = "s3"  # the slot of those whose views all have the same short time to live
KEPT_MS = 100 * 3_600_000  # longer than any clock of a simulation is ahead
Runs = tuple[tuple[int, int], ...]


@wire_type("sim.note")
class Note(msgspec.Struct, frozen=True):
    """A tell. Numbers of one sender to one entity count from 1."""

    sender: str
    number: int


@wire_type("sim.add")
class Add(msgspec.Struct, frozen=True):
    """An ask, answered by `Added` when it is durable. The same key again changes nothing and has the same answer."""

    key: str
    amount: int = 1


@wire_type("sim.added")
class Added(msgspec.Struct, frozen=True):
    """`total`: after this key's first effect."""

    key: str
    total: int


@wire_type("sim.work")
class Work(msgspec.Struct, frozen=True):
    """An ask that is answered by itself, `ms` later, and then once more, which must not reach the asker."""

    key: str
    ms: int


@wire_type("sim.put")
class Put(msgspec.Struct, frozen=True):
    """Write a view into the ServeIndex under one of the probe's slots, or remove what is there. Answered by itself, and
    then once more. `ttl_ms` 0: it outlives the run."""

    slot: str
    value: str
    remove: bool = False
    ttl_ms: int = 0


@wire_type("sim.read")
class Read(msgspec.Struct, frozen=True):
    """Answered by the state, once that is durable."""


@wire_type("sim.poison")
class Poison(msgspec.Struct, frozen=True):
    """No handler survives it."""

    number: int


@wire_type("sim.probe_state")
class ProbeState(msgspec.Struct, frozen=True):
    """`applied`: key → the total after it. `notes`: sender → the numbers that came, as runs (first, last) in the order
    in which they came."""

    id: str
    total: int = 0
    applied: dict[str, int] = {}
    notes: dict[str, Runs] = {}


class PoisonError(Exception):
    """What a `Poison` does to its handler."""


class Witness(Protocol):
    """Sees what a probe does, at that moment."""

    def handled(self, entity: str, verb: str, value: str) -> None:
        """It took a message."""

    def put(self, key: str, removed: bool) -> None:
        """It wrote or removed a key of the ServeIndex, if it may."""


class Probe:
    """Durable; see the messages."""

    def __init__(self, entity_id: str, index: ServeIndex, witness: Witness) -> None:
        self._state = ProbeState(entity_id)
        self._index = index
        self._witness = witness
        self._handled = witness.handled

    def start(self, ctx: Context, state: ProbeState | None) -> None:
        self._state = state or self._state

    def roll_back(self, ctx: Context, state: ProbeState | None) -> None:
        self._state = state or ProbeState(self._state.id)

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case Note(sender, number):
                self._handled(self._state.id, "note", f"{sender}#{number}")
                notes = {**self._state.notes, sender: _longer(self._state.notes.get(sender, ()), number)}
                self._state = msgspec.structs.replace(self._state, notes=notes)
                ctx.persist(self._state)
            case Add(key, amount):
                self._add(ctx, key, amount)
            case Work(key, ms):
                self._handled(self._state.id, "work", key)
                ctx.after(f"work/{key}", ms, (ctx.reply_later(), message))
            case (ReplyTo() as to, Work() as work):
                ctx.answer(to, work)
                ctx.answer_reject(to, "an answer too many")
            case Put():
                self._put(ctx, message)
            case Read():
                ctx.reply_durable(self._state)
            case Poison(number):
                self._handled(self._state.id, "poison", str(number))
                raise PoisonError(f"poison {number}")
            case _:
                ctx.reject(f"a probe does not understand {type(message).__name__}")

    def _put(self, ctx: Context, message: Put) -> None:
        site = self._state.id
        key = f"{site}|{message.slot}"
        if message.remove:
            self._index.remove(site, key)
        else:
            candidate = CandidateView(
                message.value, "c", "a", "https://a.example/a", "https://a.example", "a.example", "image/png",
                728, 90, "150", 1_000_000, ctx.wall_ms(),
            )  # fmt: skip
            self._index.put(
                site, key, ServeView((candidate,), ctx.wall_ms(), ctx.wall_ms() + (message.ttl_ms or KEPT_MS))
            )
        self._witness.put(key, message.remove)
        ctx.reply(message)
        ctx.reject("an answer too many")

    def _add(self, ctx: Context, key: str, amount: int) -> None:
        self._handled(self._state.id, "add", key)
        known = self._state.applied.get(key)
        if known is not None:
            ctx.reply_durable(Added(key, known))
            return
        total = self._state.total + amount
        self._state = msgspec.structs.replace(self._state, total=total, applied={**self._state.applied, key: total})
        ctx.persist(self._state, reply=Added(key, total))


def _longer(runs: Runs, number: int) -> Runs:
    """The runs with one number more, which came now."""
    if runs and runs[-1][1] + 1 == number:
        return (*runs[:-1], (runs[-1][0], number))
    return (*runs, (number, number))


class _Observer:
    """Writes what the probes of one process do into the history."""

    def __init__(self, history: h.History, process: Process, record: Callable[[h.Event], None]) -> None:
        self._history = history
        self._process = process
        self._record = record

    def handled(self, entity: str, verb: str, value: str) -> None:
        process = self._process
        self._history.handled.append(h.Handled(process.host.scheduler.now_ns, process.me, entity, verb, value))

    def put(self, key: str, removed: bool) -> None:
        process = self._process
        entry = process.engine.replication.machine.entry(key) if process.engine is not None else None
        if entry is not None and entry.tombstone == removed:  # else it was refused, or answered by something else
            version, value = version_of(entry), zlib.crc32(entry.value)
            now_ns = process.host.scheduler.now_ns
            self._record(h.Put(now_ns, process.me, key, version, value, entry.tombstone))
            keys = self._history.keys
            keys[key] = max(keys.get(key, h.NEVER), version if entry.tombstone else h.NEVER)
            if entry.tombstone and process.engine is not None:
                process.engine.replication.on_removal(key, version, self._removed)

    def _removed(self, outcome: RemovalOutcome) -> None:
        """A majority has it, or it is pending: then more will be heard."""
        engine, vouched = self._process.engine, self._history.vouched
        if outcome.outcome == "removed":
            vouched[outcome.key] = max(vouched.get(outcome.key, h.NEVER), outcome.version)
        elif outcome.outcome == "pending" and engine is not None:
            engine.replication.on_removal(outcome.key, outcome.version, self._removed)


def with_probes(history: h.History, record: Callable[[h.Event], None], process: Process) -> EntityTypes:
    """The product's types and the probe, for one process."""
    observer = _Observer(history, process, record)

    def types(classifier: Classifier, index: ServeIndex, cluster: Cluster) -> tuple[EntityType, ...]:
        probe = EntityType(KIND, lambda entity: Probe(entity, index, observer), ProbeState, idle_ms=IDLE_MS)
        return (*entity_types(classifier, index, cluster), probe)

    return types
