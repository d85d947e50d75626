"""Whether the store answers this node, as the would-be coordinator knows it from its own requests.

A coordinator that alone is cut off from the store would keep everybody from having one: its lease ends, but it stays
the oldest. So it says that it is cut off, and the next in age coordinates until it is not.
"""

from __future__ import annotations


class Reach:
    """`lost`: nothing was answered for `patience_ns`; over when all was for as long, so that a link that flaps does not
    carry the role to and fro. Time in which this process stood still counts for neither."""

    def __init__(self, patience_ns: int) -> None:
        self.lost = False
        self._patience_ns = patience_ns
        self._asked_ns: int | None = None  # the first request since the last good answer
        self._well_ns: int | None = None  # the first good answer since the last bad one
        self._seen_ns = 0

    def asked(self, now_ns: int) -> None:
        if self._asked_ns is None:
            self._asked_ns = now_ns

    def answered(self, well: bool, now_ns: int) -> None:
        """`well`: the store said something; otherwise it could not be asked."""
        if not well:
            self._well_ns = None
            return
        self._asked_ns = None
        if self._well_ns is None:
            self._well_ns = now_ns

    def found(self) -> None:
        """It surely is there: who was given the lease coordinates, whatever was before."""
        self.lost = False

    def pass_time(self, now_ns: int) -> None:
        stood_still = now_ns - self._seen_ns > self._patience_ns // 2
        self._seen_ns = now_ns
        if stood_still:
            self._asked_ns = None if self._asked_ns is None else now_ns
            self._well_ns = None if self._well_ns is None else now_ns
        elif self._asked_ns is not None and now_ns - self._asked_ns >= self._patience_ns:
            self.lost = True
        elif self.lost and self._well_ns is not None and now_ns - self._well_ns >= self._patience_ns:
            self.lost = False
