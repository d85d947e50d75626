"""The port of a node's durable ServeIndex replica: what the replicator asks of the file under it.

A replica is read from the event loop (`get`, `scan` and the others: bounded, synchronous) and written by `commit`
alone, which the driver calls from a worker thread, one at a time; reads go on meanwhile and see the state before or
after a commit, never half of one. `node.store.replica_memory` is the reference that an adapter is compared with.

An entry that fails its checksum is quarantined and counted by the adapter and reads as absent; it is never returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec


class ReplicaEntry(msgspec.Struct, frozen=True):
    """One key as a replica holds it. `(epoch, hlc, origin)` is its version, `origin` the writing node's name.

    `expires_at_ms` is wall time, 0 for never. A tombstone has an empty value and says that the key was removed.
    """

    key: str
    epoch: int
    hlc: int
    origin: str
    expires_at_ms: int
    tombstone: bool
    value: bytes


class ReplicaIdentity(msgspec.Struct, frozen=True):
    """Whose replica a file is; compared at every open. `tenure` counts the node's stays on the roster, 0
    before the first. `incarnation`: the node's start that had the file last, 0 when that is not known."""

    cluster_id: str
    node: str
    tenure: int
    format: int = 1
    incarnation: int = 0


def begun(found: ReplicaIdentity, incarnation: int) -> ReplicaIdentity:
    """What a file is once that start of its node has it. One that has missed a start is an older copy: whatever was
    acknowledged since is not in it, so its stay on the roster is over (tenure 0), although the roster knows no other.
    A copy made since the last start can't be told from the file itself (`replica_mark`)."""
    tenure = 0 if missed_a_start(found.incarnation, incarnation) else found.tenure
    return msgspec.structs.replace(found, incarnation=incarnation, tenure=tenure)


def missed_a_start(last: int, this: int) -> bool:
    """Whether a file that start `last` of its node had open (0: none had) was not there for one before `this`."""
    return 0 < last < this - 1


class MapCount(msgspec.Struct, frozen=True):
    """What one map holds: `keys` that carry a value, their size with the keys' own in bytes, and `tombstones`. Not
    `sure`: damage was found in it, and it is to be counted anew, after another start of the node, too."""

    keys: int = 0
    bytes: int = 0
    tombstones: int = 0
    sure: bool = True


class ReplicaBatch(msgspec.Struct, frozen=True):
    """What one commit makes durable, all of it or nothing.

    `puts` replace, `drops` forget keys without a trace; `digests` are the new leaf digests by `(map, leaf)`, `counts`
    the new counts by map; both absolute, so that repeating a batch changes nothing. `hlc_mark` only grows. `tenure`:
    the replica becomes one of that stay on the roster; 0 leaves it what it is.
    """

    puts: tuple[ReplicaEntry, ...]
    drops: tuple[str, ...]
    digests: Mapping[tuple[int, int], int]
    hlc_mark: int
    counts: Mapping[int, MapCount]
    tenure: int = 0


class ReplicaStore(Protocol):
    """A node's replica on disk."""

    @property
    def identity(self) -> ReplicaIdentity:
        """Whose replica this is."""
        ...

    def begin(self, incarnation: int) -> None:
        """This start of the node has the replica from now on: `identity` becomes what `begun` says. Asked once, before
        anything is committed. Raises OperatingError when the disk did not take it: the next commit brings it."""
        ...

    @property
    def damaged(self) -> frozenset[str]:
        """Keys whose entries failed their checksum since the open and were not written again: to be fetched."""
        ...

    def take_found(self) -> frozenset[str]:
        """Keys whose entries were found damaged, also where they have been written again since: what an operator is
        told of. Each finding is said once."""
        ...

    def take_suspects(self) -> frozenset[tuple[int, int]]:
        """Leaves, by map and number, that may hold other entries than their digests say: to be read whole, so that what
        is missing there is missed. Each is said once."""
        ...

    def hlc_mark(self) -> int:
        """The greatest clock mark committed, 0 for a new replica."""
        ...

    def get(self, map: int, leaf: int, key: str) -> ReplicaEntry | None:  # noqa: A002 - the domain's word
        """The committed entry of a key, tombstones and expired ones too; None when there is none."""
        ...

    def scan(self, map: int, leaf: int) -> Sequence[ReplicaEntry]:  # noqa: A002 - the domain's word
        """All committed entries of one leaf, in key order."""
        ...

    def scan_all(self, after: str, limit: int) -> Sequence[ReplicaEntry]:
        """At most `limit` committed entries behind the key `after` in the order of (map, leaf, key); "" is the
        beginning. Empty at the end."""
        ...

    def keys_of_site(self, site: str) -> Sequence[str]:
        """The committed keys of a site that carry a value, expired ones too, in order."""
        ...

    def sites(self) -> Sequence[str]:
        """The sites that have such keys."""
        ...

    def due(self, before_ms: int, limit: int) -> Sequence[str]:
        """At most `limit` committed keys that expire before `before_ms`, the earliest first."""
        ...

    def tombstones(self, limit: int, since_hlc: int = 0) -> Sequence[ReplicaEntry]:
        """At most `limit` committed tombstones of that clock and later, those with the lowest clock first."""
        ...

    def digests(self) -> list[list[int]]:
        """The committed leaf digests: 32 maps of 256 leaves."""
        ...

    def counts(self) -> list[MapCount]:
        """The committed counts of the 32 maps."""
        ...

    def commit(self, batch: ReplicaBatch) -> None:
        """Makes a batch durable; raises OperatingError when it could not."""
        ...

    def condemn(self, reason: str) -> None:
        """Makes the next open begin anew, for a file that a check found damaged; raises OSError."""
        ...

    def close(self) -> None:
        """Lets the file go; nothing may be asked afterwards."""
        ...
