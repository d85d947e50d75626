"""Makes the embedded store's file small again: a copy without free pages takes the file's place.

The old file is whole and in its place until the copy, whole and synced, takes its name (D21). What a crash leaves of a
copy is overwritten by the next try. LMDB can't exchange the file of those who have it open, so nobody may.
"""

from __future__ import annotations

import os
from pathlib import Path

import lmdb

from node.core import limits
from node.core.errors import OperatingError
from node.core.faultpoints import reach
from node.store import datafile, port, whereabouts
from node.store.backup_lmdb import NEW_NAME, identity_in, occupied, put_in_place
from node.store.lmdb import open_file


def compact(path: Path) -> tuple[int, int]:
    """Bytes of the file before and after. Raises OperatingError `E-STORE-LIVE`, `E-NOT-FOUND`, `E-STORE-DAMAGED`,
    `E-STORE-DISK`."""
    data, new = path / datafile.DATA_NAME, path / NEW_NAME
    with occupied(path, alone=True):
        before = data.stat().st_size
        try:
            identity, entries = _copy(path, new)
            reach("compact.copied")
            if (found := _entries(new)) != entries:
                words = f"{path}: {found} of {entries} records came over; the file is as it was"
                raise OperatingError("E-STORE-DAMAGED", words, hint="promovolvectl store verify")
            whereabouts.unname(new)
            put_in_place(path, new, identity, keep_as="")
            reach("compact.replaced")
        except (OSError, lmdb.Error) as error:
            new.unlink(missing_ok=True)
            raise OperatingError("E-STORE-DISK", f"{path}: {error}", hint="check the disk's room and health") from error
        return before, data.stat().st_size


def _copy(path: Path, new: Path) -> tuple[port.Identity, int]:
    """Copies what readers see, whole and synced; whose store it is, and how many records it has."""
    env = open_file(path, limits.store_map_bytes)
    try:
        with env.begin() as txn:
            identity, entries = identity_in(txn), txn.stat()["entries"]
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            env.copyfd(handle, compact=True)
            os.fsync(handle)
        finally:
            os.close(handle)
    finally:
        env.close()
    return identity, entries


def _entries(file: Path) -> int:
    """How many records a data file has."""
    env = lmdb.open(str(file), subdir=False, lock=False, readonly=True)
    try:
        return int(env.stat()["entries"])
    finally:
        env.close()
