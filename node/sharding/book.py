"""What the coordinator keeps durably beside the placement table: pins, cordons, plans, who owned each shard when, and
the roster of replicas (`node.gossip.replica_roster`).

The book is read with the table when a tenure begins and written with the rows it belongs to, under the same term. In
memory it holds what is durable, nothing else. A record that this release can't read is left alone and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from node.core import limits
from node.core.errors import RemoteProtocolError
from node.gossip.replica_roster import ReplicaRoster
from node.sharding.messages import NodeCordoned, Receipt, ShardPinned
from node.store.port import BookEntry
from node.wire.codec import CODEC
from node.wire.registry import wire_type

STAGED, RUNNING, CANCELLING = "staged", "running", "cancelling"
DONE, FAILED, CANCELLED = "done", "failed", "cancelled"
REPLICAS_KEY: Final = "replicas"
DISCARDED = "discarded"  # how the answer to a discard shows it; nothing of it is kept
ENDED: Final = (DONE, FAILED, CANCELLED)


@wire_type("sharding.pin")
class Pin(msgspec.Struct, frozen=True):
    """`shard` belongs on the node of that name as soon as, and as long as, that node takes shards."""

    shard: int
    node: str
    reason: str = ""
    at_ms: int = 0


@wire_type("sharding.cordon")
class Cordon(msgspec.Struct, frozen=True):
    """The node keeps the shards it has and gets no more; by name, so that it outlives a restart."""

    node: str
    reason: str = ""
    at_ms: int = 0


@wire_type("sharding.ownership")
class Ownership(msgspec.Struct, frozen=True):
    """A shard was given to `node@incarnation` under `epoch`. `receipt` accounts for the move that brought it there;
    none when nobody was there to give one."""

    node: str
    incarnation: int
    epoch: int
    cause: str
    at_ms: int
    receipt: Receipt | None = None


@wire_type("sharding.history")
class History(msgspec.Struct, frozen=True):
    """The newest ownerships of one shard, oldest first."""

    shard: int
    entries: tuple[Ownership, ...] = ()


@wire_type("sharding.planned_move")
class PlannedMove(msgspec.Struct, frozen=True):
    """`shard`, owned under `epoch` when the plan was made, goes from the node `source` to the node `to`. With `at_once`
    the new epoch is issued without asking the owner: what still runs under an older one is fenced."""

    shard: int
    source: str
    to: str
    epoch: int
    entities: int = 0
    why: str = ""
    at_once: bool = False


@wire_type("sharding.plan")
class Plan(msgspec.Struct, frozen=True):
    """One staged change. How far its moves are stands in the placement table: a row whose epoch has grown has moved.

    `state`: staged → running → done, failed (something was dropped) or cancelled. `dropped` names the shards that will
    not move by this plan, with why. Milliseconds are wall time.
    """

    id: str
    verb: str
    target: str
    base_version: int
    moves: tuple[PlannedMove, ...] = ()
    pins: tuple[Pin, ...] = ()
    unpins: tuple[int, ...] = ()
    cordons: tuple[Cordon, ...] = ()
    uncordons: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    expected_ms: int = 0
    state: str = STAGED
    reason: str = ""
    operation: str = ""
    staged_ms: int = 0
    ended_ms: int = 0
    dropped: tuple[tuple[int, str], ...] = ()

    @property
    def asks_owners(self) -> bool:
        return any(not move.at_once for move in self.moves)

    @property
    def changes(self) -> bool:
        return bool(self.moves or self.pins or self.unpins or self.cordons or self.uncordons)


# Carried out by the nodes that it is about, watched over by its operation: not by the coordinator.
SELF_DRIVEN = ("drain", "restart")

Kept = Pin | Cordon | History | Plan | ReplicaRoster


class Book:
    """The durable records. `unreadable` are keys of records of another release, or damaged ones."""

    def __init__(self, entries: Iterable[BookEntry] = ()) -> None:
        self.pins: dict[int, Pin] = {}
        self.cordons: dict[str, Cordon] = {}
        self.plans: dict[str, Plan] = {}
        self.histories: dict[int, History] = {}
        self.replicas = ReplicaRoster()
        self.unreadable: list[str] = []
        self.apply(entries)

    def apply(self, entries: Iterable[BookEntry]) -> None:
        """Take what was read, or was just made durable."""
        for entry in entries:
            if not entry.body:
                self._forget(entry.key)
                continue
            try:
                record = CODEC.decode_record(entry.body)
            except RemoteProtocolError:
                self.unreadable.append(entry.key)
                continue
            match record:
                case Pin(shard=shard):
                    self.pins[shard] = record
                case Cordon(node=node):
                    self.cordons[node] = record
                case Plan(id=id_):
                    self.plans[id_] = record
                case History(shard=shard):
                    self.histories[shard] = record
                case ReplicaRoster():
                    self.replicas = record
                case _:
                    self.unreadable.append(entry.key)

    def _forget(self, key: str) -> None:
        kind, _, name = key.partition("/")
        if kind == "pin":
            self.pins.pop(int(name), None)
        elif kind == "cordon":
            self.cordons.pop(name, None)
        elif kind == "plan":
            self.plans.pop(name, None)

    def news(self, entries: Iterable[BookEntry]) -> Iterator[NodeCordoned | ShardPinned]:
        """What people are told of entries that were just made durable, and taken: cordons and pins, and their ends."""
        for entry in entries:
            kind, _, name = entry.key.partition("/")
            if kind == "cordon":
                cordon = self.cordons.get(name)
                yield NodeCordoned(name, cordon is not None, cordon.reason if cordon else "")
            elif kind == "pin":
                pin = self.pins.get(int(name))
                yield ShardPinned(int(name), pin.node if pin else "", pin.reason if pin else "")

    def running(self) -> list[Plan]:
        """The plans that are being carried out: one that asks owners, and repairs that don't beside it."""
        return [plan for plan in self.plans.values() if plan.state in (RUNNING, CANCELLING)]

    def owned(self, shard: int, ownership: Ownership) -> BookEntry:
        """The shard's history with one more line, bounded."""
        known = self.histories.get(shard, History(shard)).entries
        return entry_of(History(shard, (*known, ownership)[-limits.ownerships_kept_max :]))

    def settled(self, shard: int, epoch: int, forwarded: int, refused: int) -> BookEntry | None:
        """The shard's history with the receipt of its move away from `epoch` complete; None when that isn't kept."""
        history = self.histories.get(shard)
        for place, line in enumerate(history.entries if history else ()):
            if history is not None and line.epoch > epoch and line.receipt is not None:
                receipt = replace(line.receipt, forwarded=forwarded, refused=refused)
                if receipt == line.receipt:
                    return None
                entries = (*history.entries[:place], replace(line, receipt=receipt), *history.entries[place + 1 :])
                return entry_of(replace(history, entries=entries))
        return None

    def surplus(self) -> list[BookEntry]:
        """What makes room for one more plan: ended plans go first, then the oldest that were never committed."""
        over = len(self.plans) - limits.plans_kept_max + 1
        idle = [plan for plan in self.plans.values() if plan.state == STAGED or plan.state in ENDED]
        idle.sort(key=lambda plan: (plan.state == STAGED, plan.staged_ms, plan.id))
        return [BookEntry(f"plan/{plan.id}", b"") for plan in idle[: max(0, over)]]


def replicas_in(entries: Iterable[BookEntry]) -> ReplicaRoster:
    """The roster of replicas as the store has it, for nodes that don't coordinate. Raises RemoteProtocolError when this
    release can't read it: that must not be taken for an empty one."""
    for entry in entries:
        if entry.key == REPLICAS_KEY:
            record = CODEC.decode_record(entry.body)
            if isinstance(record, ReplicaRoster):
                return record
            raise RemoteProtocolError("roster", f"{REPLICAS_KEY} is a {type(record).__name__}")
    return ReplicaRoster()


def entry_of(record: Kept) -> BookEntry:
    """A record under its key."""
    return BookEntry(_key_of(record), CODEC.encode_record(record))


def _key_of(record: Kept) -> str:
    match record:
        case Pin(shard=shard):
            return pin_key(shard)
        case Cordon(node=node):
            return cordon_key(node)
        case Plan(id=id_):
            return f"plan/{id_}"
        case History(shard=shard):
            return f"history/{shard}"
        case ReplicaRoster():
            return REPLICAS_KEY


def pin_key(shard: int) -> str:
    return f"pin/{shard}"


def cordon_key(node: str) -> str:
    return f"cordon/{node}"
