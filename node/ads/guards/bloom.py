"""A Bloom filter: whether a key was added, with a known share of wrong yeses and no wrong noes.

Sized as `m = -n ln p / ln 2 ^ 2` bits, in whole 64-bit words, with `k = m / n ln 2` probes. Probes are derived from two
halves of one 128-bit hash (Kirsch and Mitzenmacher, 2006), so a key is hashed once.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np
import xxhash

WORD_BITS = 64


class BloomSize(msgspec.Struct, frozen=True):
    bits: int
    probes: int

    @property
    def octets(self) -> int:
        return self.bits // 8


def size_for(expected: int, false_share: float) -> BloomSize:
    """For `expected` keys with at most `false_share`, in (0, 1), of wrong yeses."""
    exact = -expected * math.log(false_share) / math.log(2) ** 2
    bits = math.ceil(exact / WORD_BITS) * WORD_BITS
    return BloomSize(bits, max(1, round(bits / expected * math.log(2))))


class Bloom:
    """A filter of a fixed size; `octets` is all there is to keep of it."""

    def __init__(self, size: BloomSize, octets: bytes = b"") -> None:
        self.size = size
        self._bits = np.zeros(size.octets, np.uint8)
        known = np.frombuffer(octets[: size.octets], np.uint8)
        self._bits[: len(known)] = known

    @property
    def octets(self) -> bytes:
        return self._bits.tobytes()

    def add(self, key: str) -> bool:
        """Remember a key; False if it was there, or looks as if it was."""
        places = self._places(key)
        new = False
        for place in places:
            octet, bit = place >> 3, 1 << (place & 7)
            new = new or not self._bits[octet] & bit
            self._bits[octet] |= bit
        return new

    def __contains__(self, key: str) -> bool:
        return all(self._bits[place >> 3] & (1 << (place & 7)) for place in self._places(key))

    def clear(self) -> None:
        self._bits[:] = 0

    def estimated_count(self) -> float:
        """How many keys were added, from the share of bits that are set."""
        set_bits = int(np.bitwise_count(self._bits).sum())
        if set_bits >= self.size.bits:
            return math.inf
        return -self.size.bits / self.size.probes * math.log(1 - set_bits / self.size.bits)

    def _places(self, key: str) -> list[int]:
        whole = xxhash.xxh3_128_intdigest(key.encode("utf-8"))
        first, step = whole & (2**64 - 1), (whole >> 64) | 1
        return [(first + probe * step) % self.size.bits for probe in range(self.size.probes)]
