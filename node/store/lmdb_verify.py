"""Whether records of the embedded store are what was written, a few at a time in the order of their keys."""

from __future__ import annotations

from node.store import port
from node.store.lmdb_layout import INDEX, SHARD, Table
from node.store.record import RecordDamaged, RecordTooNew, unseal


def verify_records(records: Table, request: port.VerifyRecords) -> port.Verified:
    """See `VerifyRecords`."""
    checked = 0
    damaged: list[str] = []
    last = b""
    for key, value in records.items_from(request.after + b"\0" if request.after else b"\0"):
        if checked >= max(request.limit, 1):
            return port.Verified(checked, tuple(damaged), last)
        checked += 1
        last = key
        if not _sound(records, key, value):
            damaged.append(key.decode(errors="backslashreplace").replace("\0", ":"))
    return port.Verified(checked, tuple(damaged), b"")


def _sound(records: Table, key: bytes, value: bytes) -> bool:
    """Whether a record is what was written under its key; an entry of the index, whether its state is there."""
    if key[:1] == INDEX:
        return not value and records.get(b"S" + key[1 + SHARD.size :]) is not None
    try:
        unseal(key, value)
    except RecordDamaged:
        return False
    except RecordTooNew:
        return True
    return True
