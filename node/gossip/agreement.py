"""I4 as rules over replicas: whether they agree, and whether a peer has what it acknowledged. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from node.gossip.version import Version
from node.store.replica_port import ReplicaEntry


@dataclass(frozen=True, slots=True)
class Replica:
    """One node's replica: its map digests, and its entries by key, tombstones too."""

    node: str
    digests: tuple[int, ...]
    entries: Mapping[str, ReplicaEntry]


def replica_faults(replicas: Sequence[Replica]) -> Iterator[str]:
    """Each difference in words: unequal digests, or equal digests over unequal contents."""
    for other in replicas[1:]:
        first = replicas[0]
        differing = [n for n, (a, b) in enumerate(zip(first.digests, other.digests, strict=True)) if a != b]
        if differing:
            yield f"{first.node} and {other.node} differ in maps {differing[:8]}"
            continue
        for key in sorted(first.entries.keys() | other.entries.keys()):
            if first.entries.get(key) != other.entries.get(key):
                yield f"{first.node} and {other.node} have equal digests and differ at {key!r}"


def acknowledged_and_absent(
    origin: str, written: Mapping[str, Version], peer: str, held: Mapping[str, Version]
) -> Iterator[str]:
    """`written`: what a node wrote and its peer has acknowledged. Each key that the peer holds older, or not at all."""
    for key, version in sorted(written.items()):
        found = held.get(key)
        if found is None or found < version:
            yield f"{peer} acknowledged {key!r} of {origin} under {version} and holds {found or 'nothing'}"
