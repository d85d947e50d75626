"""A last-writer-wins map: a register for each key, a removal being a write of nothing.

A delta is a map of the keys that a write touched. A removed key stays as a tombstone; whoever knows that every replica
has it may leave it out of the map (`node.gossip.replicator` decides so for its entries).
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from node.gossip.crdt.lww_register import LwwRegister
from node.gossip.version import Version

_ABSENT = LwwRegister()


class LwwMap(msgspec.Struct, frozen=True):
    """`registers` is never changed in place."""

    registers: dict[str, LwwRegister] = {}

    def get(self, key: str) -> bytes | None:
        return self.registers.get(key, _ABSENT).value

    def keys(self) -> frozenset[str]:
        """Those that carry a value."""
        return frozenset(key for key, register in self.registers.items() if register.value is not None)

    def put(self, key: str, value: bytes, version: Version) -> LwwMap:
        """The delta of a write."""
        return LwwMap({key: LwwRegister(version, value)})

    def remove(self, key: str, version: Version) -> LwwMap:
        """The delta of a removal: it wins over older writes that this replica has not seen."""
        return LwwMap({key: LwwRegister(version)})

    def merge(self, other: LwwMap) -> LwwMap:
        """What both know: full states and deltas alike."""
        merged = dict(self.registers)
        for key, register in other.registers.items():
            merged[key] = merged.get(key, _ABSENT).merge(register)
        return LwwMap(merged)

    def without(self, keys: Iterable[str]) -> LwwMap:
        """Forgets keys that were removed. Every replica must have the removals, or a key comes back."""
        gone = {key for key in keys if self.get(key) is None}
        return LwwMap({key: register for key, register in self.registers.items() if key not in gone})
