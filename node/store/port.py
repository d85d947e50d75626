"""The state store's port: what durable state may be asked, as data, and what it answers, as data.

An adapter applies a batch of requests in one transaction and answers each on its own: one that is refused does not
disturb its neighbours. `node.store.memory` is the reference that every adapter is compared with. The store knows no
domain types; it keeps bytes.

What the driver owes: a reply may leave for a client only after the `Written` that covers it. Requests of one entity
are submitted one after the other, the next when the former was answered.

Leases are measured by the store's own clock (one for all who use it), never by a holder's: a holder counts its safe
time from *before* it asked.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from node.store.projection import (
    AdvanceConsumer as AdvanceConsumer,
)
from node.store.projection import (
    Advanced as Advanced,
)
from node.store.projection import (
    Consumer as Consumer,
)
from node.store.projection import (
    ListProjection as ListProjection,
)
from node.store.projection import (
    ProjectionPage as ProjectionPage,
)
from node.store.projection import (
    ReadConsumer as ReadConsumer,
)
from node.store.scrub import Verified as Verified
from node.store.scrub import VerifyRecords as VerifyRecords


class ShardState(enum.StrEnum):
    """What the placement table says of a shard."""

    UNALLOCATED = "unallocated"
    RUNNING = "running"
    MOVING = "moving"


class Fact(msgspec.Struct, frozen=True):
    """An event to append beside a state: its wire name and its encoded body."""

    type: str
    body: bytes


class StoredFact(msgspec.Struct, frozen=True):
    """A fact with its place in the log: offsets are dense and in commit order."""

    offset: int
    kind: str
    id: str
    at_ms: int
    type: str
    body: bytes


class Record(msgspec.Struct, frozen=True):
    """One entity's durable state; `revision` counts its writes from 1."""

    kind: str
    id: str
    revision: int
    epoch: int
    body: bytes


class ShardRow(msgspec.Struct, frozen=True):
    """One row of the placement table; `node` is empty when unallocated. `epoch` only ever grows."""

    shard: int
    node: str = ""
    incarnation: int = 0
    epoch: int = 0
    state: ShardState = ShardState.UNALLOCATED


class BookEntry(msgspec.Struct, frozen=True):
    """A record that the coordinator keeps beside the placement table, under a name of its own; an empty body in a
    write removes it."""

    key: str
    body: bytes


class Identity(msgspec.Struct, frozen=True):
    """What a store was made for; compared at every start."""

    cluster_id: str
    cluster_name: str
    shard_count: int
    map_count: int
    hash_version: str
    format: int = 1


# ---- requests


class Initialise(msgspec.Struct, frozen=True):
    """Make the store this cluster's, or learn whose it is. → Identity (the one in force)."""

    identity: Identity


class NextIncarnation(msgspec.Struct, frozen=True):
    """A new start of a node. → Incarnation, greater than all before for that name."""

    node: str


class ReadState(msgspec.Struct, frozen=True):
    """→ Record, or Absent, which names the revision that the next write is based on."""

    kind: str
    id: str


class WriteState(msgspec.Struct, frozen=True):
    """Write a state and the facts it implies. → Written, Conflict or Fenced.

    `revision` is the one this write is based on (0: the entity must never have existed); `epoch` is the writer's
    fencing epoch, which must be the placement table's for `shard` (I1).
    """

    kind: str
    id: str
    shard: int
    epoch: int
    revision: int
    body: bytes
    facts: tuple[Fact, ...] = ()


class DeleteState(msgspec.Struct, frozen=True):
    """Delete a state, and append the facts that this implies. → Written, Conflict or Fenced, as for WriteState.

    What stays is a tombstone under the revision of that answer. It is neither read nor listed, and it is what keeps a
    late write of anybody who does not know of it from bringing the state back: that conflicts. Only who has read
    Absent with its revision may write a new state there.
    """

    kind: str
    id: str
    shard: int
    epoch: int
    revision: int
    facts: tuple[Fact, ...] = ()


StateChange = WriteState | DeleteState


class ListStates(msgspec.Struct, frozen=True):
    """States of some kinds, in order of (kind, id), behind `after`. → StatePage. With `shard` only that shard's;
    `bodies` false leaves the bodies empty."""

    kinds: tuple[str, ...]
    shard: int | None = None
    after: tuple[str, str] | None = None
    limit: int = 500
    bodies: bool = True


class ReadFacts(msgspec.Struct, frozen=True):
    """Facts with an offset greater than `after`. → FactPage."""

    after: int = 0
    limit: int = 500


class AcquireLease(msgspec.Struct, frozen=True):
    """→ LeaseGranted with a new term when free or expired, or the present term when the holder asks again;
    LeaseHeld otherwise."""

    name: str
    holder: str
    ttl_ms: int


class ReleaseLease(msgspec.Struct, frozen=True):
    """Give a lease up; nothing happens when it is not the holder's under that term. → Done."""

    name: str
    holder: str
    term: int


class ReadPlacement(msgspec.Struct, frozen=True):
    """→ Placement."""


class WritePlacement(msgspec.Struct, frozen=True):
    """Replace rows of the placement table under a coordinator's term. → PlacementWritten, Conflict or Fenced.

    Fenced when `term` is not the present term of the lease `lease` held by `holder`; Conflict when `version` is not
    the table's, or a row's epoch would go back. `book` is written with the rows or not at all; a write without rows
    leaves the version as it is.
    """

    lease: str
    holder: str
    term: int
    version: int
    rows: tuple[ShardRow, ...]
    book: tuple[BookEntry, ...] = ()


Request = (
    Initialise
    | NextIncarnation
    | ReadState
    | WriteState
    | DeleteState
    | ListStates
    | ReadFacts
    | AcquireLease
    | ReleaseLease
    | ReadPlacement
    | WritePlacement
    | ReadConsumer
    | ListProjection
    | AdvanceConsumer
    | VerifyRecords
)


# ---- answers


class Absent(msgspec.Struct, frozen=True):
    """The store was read and holds no such state. `revision` is that of the tombstone of a deleted one, else 0."""

    revision: int = 0


class Done(msgspec.Struct, frozen=True):
    """It holds now."""


class Incarnation(msgspec.Struct, frozen=True):
    number: int


class Written(msgspec.Struct, frozen=True):
    """Durable under `revision`; its facts took the offsets up to `last_offset` (0 when there were none)."""

    revision: int
    last_offset: int = 0


class Conflict(msgspec.Struct, frozen=True):
    """Not written: somebody else wrote first. `found` is the present revision or version."""

    found: int


class Fenced(msgspec.Struct, frozen=True):
    """Not written: the writer is not the owner any more (I1). `found` is the present epoch or term."""

    found: int


class StatePage(msgspec.Struct, frozen=True):
    records: tuple[Record, ...]
    more: bool


class FactPage(msgspec.Struct, frozen=True):
    facts: tuple[StoredFact, ...]
    more: bool


class LeaseGranted(msgspec.Struct, frozen=True):
    term: int
    ttl_ms: int


class LeaseHeld(msgspec.Struct, frozen=True):
    holder: str
    term: int
    left_ms: int


class Placement(msgspec.Struct, frozen=True):
    """The whole table: `version` counts its changes, `rows` holds one per shard, in order; `book` in order of keys."""

    version: int
    rows: tuple[ShardRow, ...]
    book: tuple[BookEntry, ...] = ()


class PlacementWritten(msgspec.Struct, frozen=True):
    version: int


BAD_KEY = "E-BAD-KEY"  # the code of a name that nothing can be kept under


class StoreFailed(msgspec.Struct, frozen=True):
    """The store could not answer. `definite`: nothing was written; otherwise it may have been."""

    code: str
    message: str
    definite: bool


Answer = (
    Identity
    | Incarnation
    | Record
    | Absent
    | Done
    | Written
    | Conflict
    | Fenced
    | StatePage
    | FactPage
    | LeaseGranted
    | LeaseHeld
    | Placement
    | PlacementWritten
    | Consumer
    | ProjectionPage
    | Advanced
    | Verified
    | StoreFailed
)


class StateStore(Protocol):
    """A synchronous adapter: the driver calls it from a thread (LMDB) or directly (memory, simulator)."""

    def apply(self, batch: Sequence[Request]) -> list[Answer]:
        """Answers in the order of the requests, all within one durable transaction."""
        ...

    def close(self) -> None: ...


# How machines and actors reach the store: the answer comes back later, as a call on the owner's turn.
Submit = Callable[[Request, Callable[[Answer], None]], None]
