"""The last-writer-wins rule for entries, and when an entry counts as gone by itself.

Merging takes the greater version, for values and tombstones alike: commutative, associative, idempotent. Two entries
of one version are one write; should a fault ever make them differ, the rest of the entry decides, so that every
replica still decides alike.

Expiry, in three steps by the reader's own wall clock:

- *live* before `expires_at_ms`;
- *expired* from then on: reads as absent, still merged, digested and moved, so that an older write that comes late
  goes on losing to it;
- *lapsed* from `expired_keep_ms` after that: every replica forgets it by itself, takes no lapsed entry in, and leaves
  lapsed entries out of what it compares (`node.gossip.antientropy`). A tombstone never expires.
"""

from __future__ import annotations

from node.core import limits
from node.store.replica_port import ReplicaEntry

_INT64_MAX = (1 << 63) - 1
_UINT64_MAX = (1 << 64) - 1
# What an entry's fixed fields take on the wire and in a batch, so that sizes are bounded without encoding twice.
ENTRY_OVERHEAD_BYTES = 48


def _rank(entry: ReplicaEntry) -> tuple[int, int, str, bool, int, bytes]:
    return (entry.epoch, entry.hlc, entry.origin, entry.tombstone, entry.expires_at_ms, entry.value)


def supersedes(new: ReplicaEntry, old: ReplicaEntry | None) -> bool:
    """Whether `new` takes the place of `old` (None: nothing is there)."""
    return old is None or _rank(new) > _rank(old)


def merge(left: ReplicaEntry, right: ReplicaEntry) -> ReplicaEntry:
    """The one of two entries of a key that stays."""
    return right if supersedes(right, left) else left


def expired(entry: ReplicaEntry, wall_ms: int) -> bool:
    """Whether the entry reads as absent because its time is over."""
    return 0 < entry.expires_at_ms <= wall_ms and not entry.tombstone


def lapsed_at(expires_at_ms: int, tombstone: bool, keep_ms: int, wall_ms: int) -> bool:
    """Whether an entry with these fields is to be forgotten by every replica."""
    return 0 < expires_at_ms <= wall_ms - keep_ms and not tombstone


def size_of(entry: ReplicaEntry) -> int:
    """Bytes an entry counts for in batches and bounds; keys are ASCII by the key grammar."""
    return len(entry.key) + len(entry.value) + ENTRY_OVERHEAD_BYTES


def defect_of(entry: ReplicaEntry) -> str:
    """Why an entry that came from outside can't be one of ours, "" when it can."""
    if not 0 < len(entry.key.encode()) <= limits.replica_key_bytes_max:
        return "key"
    if not 0 <= entry.epoch <= _INT64_MAX or not 0 < entry.hlc <= _UINT64_MAX or not entry.origin:
        return "version"
    if not 0 <= entry.expires_at_ms <= _INT64_MAX:
        return "expiry"
    if len(entry.value) > limits.view_bytes_max or (entry.tombstone and entry.value):
        return "value"
    return ""
