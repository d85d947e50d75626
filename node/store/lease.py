"""Leases at the store: who holds one, decided from the stored lease and the store's clock alone.

A term is never reused: it grows by one whenever a lease that was free or had expired is granted, so that it can fence.
"""

from __future__ import annotations

import msgspec

from node.core.clock import MS
from node.store.port import AcquireLease, LeaseGranted, LeaseHeld, ReleaseLease


class StoredLease(msgspec.Struct, frozen=True):
    """A lease as stored. `holder` is empty once released; `granted_at_ns` is the store's monotonic time under the
    boot `boot`: monotonic time means nothing after a restart of the machine, so a lease of another boot has expired."""

    holder: str
    term: int
    granted_at_ns: int
    ttl_ms: int
    boot: str = ""


class StoreTime(msgspec.Struct, frozen=True):
    """The store's time at one instant: monotonic nanoseconds within one boot of its machine."""

    now_ns: int
    boot: str = ""


def left_ns(lease: StoredLease | None, at: StoreTime) -> int:
    """Nanoseconds until the lease ends; 0 when nobody holds it."""
    if lease is None or not lease.holder or lease.boot != at.boot:
        return 0
    return max(lease.granted_at_ns + lease.ttl_ms * MS - at.now_ns, 0)


def acquire(
    lease: StoredLease | None, request: AcquireLease, at: StoreTime
) -> tuple[StoredLease | None, LeaseGranted | LeaseHeld]:
    """What to store (None: nothing changes) and what to answer."""
    left = left_ns(lease, at)
    if lease is not None and left > 0 and lease.holder != request.holder:
        return None, LeaseHeld(holder=lease.holder, term=lease.term, left_ms=-(-left // MS))
    last_term = lease.term if lease is not None else 0
    term = last_term if left > 0 else last_term + 1
    granted = StoredLease(request.holder, term, at.now_ns, request.ttl_ms, at.boot)
    return granted, LeaseGranted(term=term, ttl_ms=request.ttl_ms)


def release(lease: StoredLease | None, request: ReleaseLease) -> StoredLease | None:
    """The lease without a holder, to be stored; None when it is not the asker's under that term."""
    if lease is None or lease.holder != request.holder or lease.term != request.term:
        return None
    return msgspec.structs.replace(lease, holder="", ttl_ms=0)
