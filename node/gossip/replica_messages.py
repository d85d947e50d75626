"""What replicators say to each other, all on the data lane so that it never delays a heartbeat.

Records inside a message are written as arrays, since a batch holds thousands; new fields go to their end, with
defaults. Digests travel as bytes, 16 each: see `node.gossip.digest`. `round` numbers are the asker's own and come
back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from node.gossip.lww import size_of
from node.gossip.replica_roster import ReplicaRoster
from node.store.replica_port import ReplicaEntry
from node.wire.registry import Lane, wire_type


class WireEntry(msgspec.Struct, frozen=True, array_like=True):
    """A `ReplicaEntry` on the wire."""

    key: str
    epoch: int
    hlc: int
    origin: str
    expires_at_ms: int
    tombstone: bool
    value: bytes


class KeyVersion(msgspec.Struct, frozen=True, array_like=True):
    """A key and what decides about it, without its value."""

    key: str
    epoch: int
    hlc: int
    origin: str
    expires_at_ms: int
    tombstone: bool


class LeafVersions(msgspec.Struct, frozen=True, array_like=True):
    """All that a replica holds of one leaf, lapsed entries left out."""

    map: int
    leaf: int
    items: tuple[KeyVersion, ...]


class MapLeaves(msgspec.Struct, frozen=True, array_like=True):
    """One map's 256 leaf digests."""

    map: int
    digests: bytes


@wire_type("replica.delta", lane=Lane.DATA)
class Delta(msgspec.Struct, frozen=True):
    """Writes `first`, `first` + 1, … of the sender's stream. `since` is the number up to which the receiver needs
    nothing any more: acknowledged by it, or gone from the log and left to anti-entropy."""

    stream: int
    since: int
    first: int
    entries: tuple[WireEntry, ...]


@wire_type("replica.delta_ack", lane=Lane.DATA)
class DeltaAck(msgspec.Struct, frozen=True):
    """Everything of `stream` up to `upto` has arrived, and something behind `gap_to`: what lies between is asked for
    again. `gap_to` is 0 when there is no gap."""

    stream: int
    upto: int
    gap_to: int = 0


@wire_type("replica.digests", lane=Lane.DATA)
class Digests(msgspec.Struct, frozen=True):
    """Opens a comparison: the digests of 32 maps. → Leaves. `settled`: see `node.gossip.settling`; `roster`: the
    version of the replica roster that the sender knows."""

    round: int
    maps: bytes
    settled: tuple[tuple[str, int], ...] = ()
    roster: int = 0


@wire_type("replica.leaves", lane=Lane.DATA)
class Leaves(msgspec.Struct, frozen=True):
    """The leaf digests of the maps that differ, none when all agree. `ready`: the sender's own replica is complete.
    `tenure`: under which it counts; 0 when it doesn't. `settled` and `roster` as in Digests."""

    round: int
    ready: bool
    maps: tuple[MapLeaves, ...] = ()
    tenure: int = 0
    settled: tuple[tuple[str, int], ...] = ()
    roster: int = 0


@wire_type("replica.versions", lane=Lane.DATA)
class Versions(msgspec.Struct, frozen=True):
    """What the asker holds of leaves that differ. → Offer."""

    round: int
    leaves: tuple[LeafVersions, ...]


@wire_type("replica.offer", lane=Lane.DATA)
class Offer(msgspec.Struct, frozen=True):
    """What the asker lacks or holds older, of the first `done` leaves it named; it asks again for the others."""

    round: int
    done: int
    items: tuple[KeyVersion, ...] = ()


@wire_type("replica.want", lane=Lane.DATA)
class Want(msgspec.Struct, frozen=True):
    """Asks for entries. → Entries, with as many of them as one message may carry."""

    number: int
    keys: tuple[str, ...]


@wire_type("replica.entries", lane=Lane.DATA)
class Entries(msgspec.Struct, frozen=True):
    """Entries that were wanted; `gone` are keys that the sender doesn't hold any more."""

    number: int
    entries: tuple[WireEntry, ...]
    gone: tuple[str, ...] = ()


@wire_type("replica.confirm", lane=Lane.DATA)
class Confirm(msgspec.Struct, frozen=True):
    """Asks for these removals to be on the receiver's disk; what it lacks of them it takes in. → Confirmed, one or
    more, as they become durable. `roster`: the version of the roster that the sender knows."""

    number: int
    roster: int
    items: tuple[KeyVersion, ...]


@wire_type("replica.confirmed", lane=Lane.DATA)
class Confirmed(msgspec.Struct, frozen=True):
    """These removals, or something newer, are on the sender's disk. `tenure`: under which its replica counts, 0 when it
    doesn't. `refused`: what it does not take, with the reason."""

    number: int
    tenure: int
    items: tuple[KeyVersion, ...]
    refused: tuple[tuple[KeyVersion, str], ...] = ()


@wire_type("replica.roster_news", lane=Lane.DATA)
class RosterNews(msgspec.Struct, frozen=True):
    """The roster as the sender knows it; it was the present one `age_ms` ago."""

    roster: ReplicaRoster
    age_ms: int


ReplicaMessage = (
    Delta | DeltaAck | Digests | Leaves | Versions | Offer | Want | Entries | Confirm | Confirmed | RosterNews
)


def to_wire(entry: ReplicaEntry) -> WireEntry:
    return WireEntry(entry.key, entry.epoch, entry.hlc, entry.origin, entry.expires_at_ms, entry.tombstone, entry.value)


def from_wire(entry: WireEntry) -> ReplicaEntry:
    return ReplicaEntry(
        entry.key, entry.epoch, entry.hlc, entry.origin, entry.expires_at_ms, entry.tombstone, entry.value
    )


def key_version(entry: ReplicaEntry) -> KeyVersion:
    return KeyVersion(entry.key, entry.epoch, entry.hlc, entry.origin, entry.expires_at_ms, entry.tombstone)


def fitting(entries: Iterable[ReplicaEntry], bytes_max: int, records_max: int) -> Sequence[ReplicaEntry]:
    """As many of the entries, from the first, as one message may carry: at least one, if there is one."""
    taken: list[ReplicaEntry] = []
    size = 0
    for entry in entries:
        size += size_of(entry)
        if taken and (size > bytes_max or len(taken) >= records_max):
            break
        taken.append(entry)
    return taken
