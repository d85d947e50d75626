"""I4 as a rule over replicas: whether they agree. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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
