"""What goes into the replicator and what comes out of it, and the settings it is given."""

from __future__ import annotations

from dataclasses import dataclass

from node.core import limits
from node.core.clock import MS, SECOND
from node.gossip.replica_messages import ReplicaMessage
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replica_views import Certificate
from node.gossip.version import Version
from node.store.replica_port import ReplicaBatch


@dataclass(frozen=True, slots=True)
class ReplicationSettings:
    """Intervals in nanoseconds, times to live in milliseconds of wall time.

    `antientropy_ns` trades idle traffic (half a kilobyte a round) against how long a lost delta stays lost.
    `expired_keep_ms` must exceed the clock difference that is tolerated, or a replica with a fast clock forgets what a
    slow one still serves; every node of a cluster needs the same. `tombstone_min_age_ms` must exceed any delay of a
    message. `stream_bytes_per_s` is what a replica that is not complete fetches at most.
    """

    delta_batch_ns: int = limits.delta_batch_ms * MS
    delta_resend_ns: int = 500 * MS
    commit_ns: int = limits.replica_commit_ms * MS
    commit_entries: int = limits.replica_commit_entries
    commit_retry_ns_max: int = 5 * SECOND
    antientropy_ns: int = 2 * SECOND
    catchup_ns: int = 100 * MS
    dialogue_timeout_ns: int = 2 * SECOND
    expired_keep_ms: int = limits.hlc_ahead_ms_max
    collect_pause_ns: int = 10 * MS
    housekeeping_ns: int = SECOND
    clock_fault_ns: int = 30 * SECOND
    removal_retry_ns: int = limits.removal_retry_ms * MS
    removal_retry_ns_max: int = limits.removal_retry_ms_max * MS
    tombstone_min_age_ms: int = limits.tombstone_min_age_ms
    settle_ns: int = 10 * SECOND
    join_retry_ns: int = SECOND
    stream_bytes_per_s: int = limits.stream_bytes_per_s

    @property
    def fresh_ns(self) -> int:
        """For how long a roster, or a comparison, counts as one of the present (see `node.gossip.settling`)."""
        return self.tombstone_min_age_ms * MS // 4

    @property
    def known_ns(self) -> int:
        """For how long the whole roster must have had a tombstone before it is settled, whatever its age."""
        return 3 * self.fresh_ns

    @property
    def settle_pause_ns(self) -> int:
        """How often tombstones are looked through."""
        return min(self.settle_ns, self.fresh_ns)

    @property
    def roster_say_ns(self) -> int:
        """How often the roster is told although it has not changed, so that it counts as the present one."""
        return min(30 * SECOND, self.fresh_ns // 4)


# ---- events


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: due when `next_wake_ns()` says so; more often does no harm."""


@dataclass(frozen=True, slots=True)
class Received:
    """A message arrived from a node whose name the transport has checked."""

    sender: str
    message: ReplicaMessage


@dataclass(frozen=True, slots=True)
class PeersChanged:
    """All other members that can be reached now, by name. The first of these says whether there is anyone to wait
    for."""

    peers: frozenset[str]


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit with that token ended; `error` is for a person."""

    token: int
    ok: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class Damaged:
    """The store found these keys' entries damaged and keeps them from sight: they are to come from a peer. What is
    missing in these `leaves`, by map and number, is not even known by name: they are to be read whole."""

    keys: frozenset[str]
    leaves: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class RosterKnown:
    """The replica roster as the state store has it now; nothing else is done before the first of these."""

    roster: ReplicaRoster


Event = Tick | Received | PeersChanged | Committed | Damaged | RosterKnown


# ---- effects


@dataclass(frozen=True, slots=True)
class Send:
    """Give a message to the transport; it may be lost."""

    node: str
    message: ReplicaMessage


@dataclass(frozen=True, slots=True)
class Commit:
    """Run `store.commit(batch)` in a worker thread, then step `Committed` with the token. There is never a second
    one before that."""

    token: int
    batch: ReplicaBatch


@dataclass(frozen=True, slots=True)
class Applied:
    """These keys changed, by whoever's write: drop what was derived from them."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A named fault began, or its text changed; `subject` is what it concerns: a peer's name, or "replica"."""

    code: str
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class FaultCleared:
    """The fault of that code and subject is over."""

    code: str
    subject: str


@dataclass(frozen=True, slots=True)
class RemovalOutcome:
    """What became of a removal of this node: "removed" (a majority has it on disk), "pending" (not after five attempts;
    it is asked for until it has), "cancelled" (by a later put of this node), "superseded" (by another owner's write).
    A pending one is heard of once more."""

    key: str
    version: Version
    outcome: str
    certificate: Certificate


@dataclass(frozen=True, slots=True)
class JoinRoster:
    """The replica is complete, and under `tenure` on its own disk: have the coordinator put it on the roster. Repeated
    until a roster says so."""

    tenure: int


Effect = Send | Commit | Applied | Fault | FaultCleared | RemovalOutcome | JoinRoster
