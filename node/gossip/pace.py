"""How fast a replica that is not complete fetches: a rate, kept by waiting after each answer."""

from __future__ import annotations

from node.core.clock import SECOND


class Pace:
    """Of bytes per second; what was not used is not saved up."""

    def __init__(self, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._free_ns = 0

    def took(self, size: int, now_ns: int) -> None:
        """So many bytes came."""
        self._free_ns = max(self._free_ns, now_ns) + size * SECOND // self._bytes_per_s

    def free(self, now_ns: int) -> bool:
        return now_ns >= self._free_ns

    @property
    def free_ns(self) -> int:
        return self._free_ns
