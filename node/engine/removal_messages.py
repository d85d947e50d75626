"""What nodes tell each other about removals, tombstones and histories, for operators: `node.gossip.replica_views`."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


class VersionRow(msgspec.Struct, frozen=True, array_like=True):
    epoch: int
    hlc: int
    origin: str


class SeenRow(msgspec.Struct, frozen=True, array_like=True):
    """One version of a key that the replica held, or discarded; `at_ms` 0: since before it remembers anything of the
    key. `mended`: a repair put it there."""

    version: VersionRow
    tombstone: bool
    bytes: int
    expires_at_ms: int
    at_ms: int
    source: str
    discarded: bool = False
    mended: bool = False


class HeldRow(msgspec.Struct, frozen=True, array_like=True):
    node: str
    tenure: int
    durable_ms: int


class CertificateRow(msgspec.Struct, frozen=True, array_like=True):
    """What a node knows of a removal in its care."""

    key: str
    version: VersionRow
    asked_ms: int
    asked_by: str
    roster_version: int
    needed: int
    held: tuple[HeldRow, ...]
    majority_ms: int
    last_serve_ms: int


@wire_type("node.index_history_get")
class GetKeyHistory(msgspec.Struct, frozen=True):
    """→ KeyHistory."""

    key: str


@wire_type("node.index_history")
class KeyHistory(msgspec.Struct, frozen=True):
    node: str
    seen: tuple[SeenRow, ...]
    certificate: CertificateRow | None = None


@wire_type("node.removals_get")
class GetRemovals(msgspec.Struct, frozen=True):
    """The oldest `limit` removals of the node that are pending, and tombstones. → Removals."""

    limit: int = 200


class PendingRow(msgspec.Struct, frozen=True, array_like=True):
    key: str
    version: VersionRow
    asked_ms: int
    asked_by: str
    attempts: int
    needed: int
    held_by: tuple[str, ...]
    awaited: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    next_ms: int


class TombstoneRow(msgspec.Struct, frozen=True, array_like=True):
    key: str
    version: VersionRow
    age_ms: int
    caretaker: str
    awaited: tuple[str, ...]


@wire_type("node.removals")
class Removals(msgspec.Struct, frozen=True):
    """`pending_total` and `tombstones_total` count those that did not fit, too."""

    node: str
    pending: tuple[PendingRow, ...]
    pending_total: int
    tombstones: tuple[TombstoneRow, ...]
    tombstones_total: int
    why_not_settling: str
    min_age_ms: int


@wire_type("node.key_remove")
class RemoveKey(msgspec.Struct, frozen=True):
    """Asked of the key's owner, which must still hold this version of it. → KeyRemoved, once a majority has it, or has
    not for long."""

    key: str
    version: VersionRow
    by: str


@wire_type("node.key_removed")
class KeyRemoved(msgspec.Struct, frozen=True):
    """`outcome`: removed, pending, cancelled, superseded; stale when something else is held by now, refused when the
    node may not write the key."""

    node: str
    outcome: str
    token: str = ""
    certificate: CertificateRow | None = None


@wire_type("node.seen_get")
class GetSeen(msgspec.Struct, frozen=True):
    """Whether the replica has a write. → Seen."""

    token: str


@wire_type("node.seen")
class Seen(msgspec.Struct, frozen=True):
    node: str
    seen: bool


@wire_type("node.replica_phase_get")
class GetReplicaPhase(msgspec.Struct, frozen=True):
    """How the replica comes to be complete. → ReplicaPhase."""


@wire_type("node.replica_phase")
class ReplicaPhase(msgspec.Struct, frozen=True):
    node: str
    phase: str
    ratio: float
    tenure: int
