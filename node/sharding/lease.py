"""The holder's side of a lease in the state store: when to ask, and until when to trust the answer.

The store measures a lease from when it grants it; the holder counts its own safe time from *before* it asked, so that
it always ends first. Even so a lease excludes nobody by itself: what its holder writes carries its term (I1).
"""

from __future__ import annotations

from node.core.clock import MS
from node.store.port import AcquireLease, ReleaseLease


class Lease:
    """One lease as its would-be holder sees it. `term` is 0 while it isn't held."""

    def __init__(self, name: str, holder: str, ttl_ms: int) -> None:
        self.name = name
        self.holder = holder
        self.ttl_ms = ttl_ms
        self.term = 0
        self.safe_end_ns = 0
        self.held_by = ""
        self._asked_ns: int | None = None
        self._next_ns = 0

    @property
    def held(self) -> bool:
        return self.term > 0

    def due(self, now_ns: int) -> bool:
        """Whether to ask now: one request at a time."""
        return self._asked_ns is None and now_ns >= self._next_ns

    def ask(self, now_ns: int) -> AcquireLease:
        self._asked_ns = now_ns
        return AcquireLease(self.name, self.holder, self.ttl_ms)

    def granted(self, term: int, ttl_ms: int) -> bool:
        """Take the answer; whether the lease is held under a term that it was not held under before."""
        asked_ns = self._asked_ns if self._asked_ns is not None else 0
        self._asked_ns = None
        self._next_ns = asked_ns + self.ttl_ms * MS // 3
        self.safe_end_ns = asked_ns + ttl_ms * MS
        self.held_by = self.holder
        fresh, self.term = term != self.term, term
        return fresh

    def refused(self, holder: str, retry_ms: int, now_ns: int) -> None:
        """Somebody else holds it; ask again when it may have ended."""
        self._asked_ns = None
        self.term = 0
        self.held_by = holder
        self._next_ns = now_ns + retry_ms * MS

    def failed(self, now_ns: int) -> None:
        """The store could not answer: what was held goes on until its safe end."""
        self._asked_ns = None
        self._next_ns = now_ns + self.ttl_ms * MS // 10

    def expired(self, now_ns: int) -> bool:
        return self.held and now_ns >= self.safe_end_ns

    def drop(self) -> ReleaseLease:
        """Stop holding it; the request tells the store, where that still helps."""
        request = ReleaseLease(self.name, self.holder, self.term)
        self.term = 0
        return request
