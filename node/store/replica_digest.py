"""An entry's fingerprint, and a leaf's digest from scratch.

Below the replicator because whoever checks a file needs them too; `node.gossip.digest` keeps the running sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import xxhash

from node.store.replica_port import ReplicaEntry

DIGEST_MASK: Final = (1 << 128) - 1


def fingerprint(key: str, epoch: int, hlc: int, origin: str) -> int:
    """128 bits of a key and its version. The fixed-width middle keeps the two texts apart."""
    data = key.encode() + epoch.to_bytes(8, "big") + hlc.to_bytes(8, "big") + len(key).to_bytes(2, "big")
    return int(xxhash.xxh3_128_intdigest(data + origin.encode(), 0))


def fingerprint_of(entry: ReplicaEntry) -> int:
    return fingerprint(entry.key, entry.epoch, entry.hlc, entry.origin)


def digest_of(entries: Iterable[ReplicaEntry]) -> int:
    """A leaf's digest from scratch: what the incremental one must equal."""
    return sum(map(fingerprint_of, entries)) & DIGEST_MASK
