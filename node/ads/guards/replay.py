"""Whether a signed url was used before: two Bloom filters that take turns, so that old urls are forgotten whole.

A bucket is a minute longer than a token is valid: as long as a url can be used after it was made. Two buckets are
looked at, so a use is remembered for one bucket at least and for two at most. A wrong yes refuses one beacon in ten
thousand; within a bucket's length a wrong no there is not.
"""

from __future__ import annotations

from node.ads.guards.bloom import Bloom, size_for

VALIDITY_MINUTES = 3
PARTITIONS = 64
EXPECTED = 100_000
FALSE_SHARE = 1e-4
MINUTE_MS = 60_000

_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


def fnv1a64(text: str) -> int:
    """FNV-1a of the UTF-8 bytes: what names a url's partition, the same in every process and version."""
    value = _FNV_OFFSET
    for octet in text.encode("utf-8"):
        value = (value ^ octet) * _FNV_PRIME & 0xFFFFFFFFFFFFFFFF
    return value


def partition_of(text: str, partitions: int = PARTITIONS) -> int:
    """Both halves of the hash take part, so that its weak low bits alone do not decide."""
    value = fnv1a64(text)
    return ((value & 0xFFFFFFFF) ^ (value >> 32)) % partitions


def bucket_minutes(validity_minutes: int) -> int:
    return validity_minutes + 1


def coverage_minutes(validity_minutes: int) -> int:
    """For how long a use is remembered at most, if it was the first of its bucket: two buckets."""
    return 2 * bucket_minutes(validity_minutes)


def bucket_of(now_ms: int, bucket_ms: int) -> int:
    return now_ms // bucket_ms


class ReplayGuard:
    """One partition. Time only goes forward: an earlier instant counts as the newest one seen."""

    def __init__(self, *, validity_minutes: int = VALIDITY_MINUTES, expected: int = EXPECTED) -> None:
        self._bucket_ms = bucket_minutes(validity_minutes) * MINUTE_MS
        size = size_for(expected, FALSE_SHARE)
        self._current, self._previous = Bloom(size), Bloom(size)
        self._bucket: int | None = None

    def first_use(self, nonce: str, now_ms: int) -> bool:
        """True the first time; False when it was used, or looks as if it was."""
        self._rotate(bucket_of(now_ms, self._bucket_ms))
        if nonce in self._previous:
            return False
        return self._current.add(nonce)

    def used(self, nonce: str, now_ms: int) -> bool:
        """Whether it was used, or looks as if it was; asking is no use of it."""
        self._rotate(bucket_of(now_ms, self._bucket_ms))
        return nonce in self._previous or nonce in self._current

    def _rotate(self, bucket: int) -> None:
        if self._bucket is None or bucket > self._bucket:
            passed = 2 if self._bucket is None else bucket - self._bucket
            self._bucket = bucket
            self._current, self._previous = self._previous, self._current
            self._current.clear()
            if passed > 1:
                self._previous.clear()
