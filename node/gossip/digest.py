"""Digests: what two replicas compare before they compare anything larger.

A leaf's digest is the sum modulo 2^128 of its entries' fingerprints (`node.store.replica_digest`); a map's digest is
the same sum over its leaves. A sum is updated at constant cost with each write, whatever the order of writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from node.core.hashing import LEAF_COUNT, MAP_COUNT
from node.store.replica_digest import DIGEST_MASK

DIGEST_BYTES: Final = 16
_MASK: Final = DIGEST_MASK


def added(digest: int, print_128: int) -> int:
    return (digest + print_128) & _MASK


def removed(digest: int, print_128: int) -> int:
    return (digest - print_128) & _MASK


def pack(digests: Sequence[int]) -> bytes:
    """Digests side by side, 16 bytes each: CBOR has no integers of that width that the wire rules allow."""
    return b"".join(d.to_bytes(DIGEST_BYTES, "big") for d in digests)


def unpack(data: bytes, count: int) -> list[int] | None:
    """The digests that `pack` made, None when the length is not that of `count` digests."""
    if len(data) != count * DIGEST_BYTES:
        return None
    return [int.from_bytes(data[at : at + DIGEST_BYTES], "big") for at in range(0, len(data), DIGEST_BYTES)]


class DigestTable:
    """The leaf and map digests of one replica, kept up to date entry by entry."""

    def __init__(self, leaves: Sequence[Sequence[int]]) -> None:
        self._leaves = [list(row) for row in leaves]
        if len(self._leaves) != MAP_COUNT or any(len(row) != LEAF_COUNT for row in self._leaves):
            raise ValueError(f"a digest table has {MAP_COUNT} maps of {LEAF_COUNT} leaves")
        self._maps = [sum(row) & _MASK for row in self._leaves]

    def add(self, map_: int, leaf: int, print_128: int) -> None:
        self._leaves[map_][leaf] = added(self._leaves[map_][leaf], print_128)
        self._maps[map_] = added(self._maps[map_], print_128)

    def remove(self, map_: int, leaf: int, print_128: int) -> None:
        self._leaves[map_][leaf] = removed(self._leaves[map_][leaf], print_128)
        self._maps[map_] = removed(self._maps[map_], print_128)

    def put(self, map_: int, leaf: int, digest: int) -> None:
        """Replaces a leaf's digest: only to repair one that its entries contradict."""
        self._maps[map_] = added(removed(self._maps[map_], self._leaves[map_][leaf]), digest)
        self._leaves[map_][leaf] = digest

    def leaf(self, map_: int, leaf: int) -> int:
        return self._leaves[map_][leaf]

    def leaves(self, map_: int) -> list[int]:
        return list(self._leaves[map_])

    def maps(self) -> list[int]:
        return list(self._maps)
