"""A cuckoo filter: a Bloom filter that can also forget (Fan, Andersen, Kaminsky and Mitzenmacher, 2014).

Each key leaves a fingerprint of 16 bits in one of two buckets of four. What gives way in a full one is decided by the
fingerprint itself and not by chance, so that equal calls give equal filters.
"""

from __future__ import annotations

import xxhash

from node.core.errors import BadInput

SLOTS = 4
FINGERPRINT_BYTES = 2
KICKS_MAX = 500


class Cuckoo:
    """At least `capacity` keys, in a power of two of buckets; deleting what was never added may forget another key."""

    def __init__(self, capacity: int) -> None:
        buckets = 1
        while buckets * SLOTS * 0.95 < capacity:
            buckets *= 2
        self._buckets: list[list[int]] = [[] for _ in range(buckets)]
        self.count = 0

    def add(self, key: str) -> bool:
        """Remember a key; False when there is no room for it, and then nothing has changed."""
        fingerprint, first, second = self._places(key)
        for index in (first, second):
            if len(self._buckets[index]) < SLOTS:
                self._buckets[index].append(fingerprint)
                self.count += 1
                return True
        path: list[tuple[int, int]] = []
        index, moving = first, fingerprint
        for kick in range(KICKS_MAX):
            slot = (moving + kick) % SLOTS
            path.append((index, slot))
            self._buckets[index][slot], moving = moving, self._buckets[index][slot]
            index = self._other(index, moving)
            if len(self._buckets[index]) < SLOTS:
                self._buckets[index].append(moving)
                self.count += 1
                return True
        for place, slot in reversed(path):
            self._buckets[place][slot], moving = moving, self._buckets[place][slot]
        return False

    def __contains__(self, key: str) -> bool:
        fingerprint, first, second = self._places(key)
        return fingerprint in self._buckets[first] or fingerprint in self._buckets[second]

    def discard(self, key: str) -> bool:
        """Forget a key; False when it is not there."""
        fingerprint, first, second = self._places(key)
        for index in (first, second):
            if fingerprint in self._buckets[index]:
                self._buckets[index].remove(fingerprint)
                self.count -= 1
                return True
        return False

    def to_bytes(self) -> bytes:
        """Every slot's fingerprint, 0 for an empty one, little-endian."""
        slots = (slot for bucket in self._buckets for slot in (*bucket, *(0,) * (SLOTS - len(bucket))))
        return b"".join(slot.to_bytes(FINGERPRINT_BYTES, "little") for slot in slots)

    @classmethod
    def from_bytes(cls, octets: bytes) -> Cuckoo:
        """Raises BadInput naming `filter` for what is not one."""
        bucket_bytes = SLOTS * FINGERPRINT_BYTES
        buckets, rest = divmod(len(octets), bucket_bytes)
        if rest or buckets == 0 or buckets & (buckets - 1):
            raise BadInput("filter", f"{len(octets)} bytes are not a filter")
        found = cls(0)
        found._buckets = [
            [
                slot
                for at in range(start, start + bucket_bytes, FINGERPRINT_BYTES)
                if (slot := int.from_bytes(octets[at : at + FINGERPRINT_BYTES], "little"))
            ]
            for start in range(0, len(octets), bucket_bytes)
        ]
        found.count = sum(map(len, found._buckets))
        return found

    def _places(self, key: str) -> tuple[int, int, int]:
        whole = xxhash.xxh64_intdigest(key.encode("utf-8"), 0)
        fingerprint = whole >> 48 or 1
        first = whole % len(self._buckets)
        return fingerprint, first, self._other(first, fingerprint)

    def _other(self, index: int, fingerprint: int) -> int:
        # Its own inverse: from either bucket the fingerprint alone leads to the other.
        mixed = xxhash.xxh64_intdigest(fingerprint.to_bytes(FINGERPRINT_BYTES, "little"), 0)
        return (index ^ mixed) % len(self._buckets)
