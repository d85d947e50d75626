"""Whether an embedded store's file is the one that was used here before, or a copy of it that somebody has put there.

A copy looks sound: it has the cluster's identity, and every checksum fits. Opened in the original's place it takes back
what was acknowledged since; beside it, two clusters believe that they are one. So the file names itself, by its inode,
in a record inside, which a copy carries away with it; and a note beside it says how far its transactions had come,
which a file that went back does not reach. Both are missing from a new file, from one that was restored or compacted,
and from one of an earlier release: these are taken for what they are.

A file system that is put back as a whole takes the note with it, and a copy of the last seconds looks like the file
itself: neither is noticed here.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import lmdb
import msgspec

from node.core.errors import OperatingError
from node.store import datafile
from node.store.record import seal, unseal

PLACE_KEY: Final = b"Mplace"
NOTE: Final = "place.json"
_HINT: Final = (
    "start the cluster that it belongs to; to go on from this one instead, so that nobody from before can write: "
    "promovolvectl up --as-new, or elsewhere store backup, then store restore --force existing-store"
)


class Place(msgspec.Struct, frozen=True):
    """What the record inside says: the file's own inode."""

    inode: int


class Reached(msgspec.Struct, frozen=True):
    """What the note beside it says: the last transaction that is known of the file of that inode."""

    inode: int
    transaction: int


def why_not(found: int, inside: Place | None, beside: Reached | None, transaction: int) -> str:
    """What is wrong with a file of the inode `found` whose last transaction is that; empty when nothing is. Pure."""
    if inside is not None and inside.inode != found:
        return "is a copy: it says of itself that it is another file"
    if beside is not None and beside.inode != found:
        return "is not the file that was used here before"
    if beside is not None and transaction < beside.transaction:
        return f"is older than it was: it ends with transaction {transaction}, and was at {beside.transaction}"
    return ""


def check(env: lmdb.Environment, path: Path) -> None:
    """Raises OperatingError `E-STORE-COPIED` for another file than that of before."""
    with env.begin() as txn:
        record = txn.get(PLACE_KEY)
    inside = None if record is None else msgspec.msgpack.decode(unseal(PLACE_KEY, record).body, type=Place)
    wrong = why_not(_inode(path), inside, datafile.read_note(path, NOTE, Reached), env.info()["last_txnid"])
    if wrong:
        raise OperatingError("E-STORE-COPIED", f"{path / datafile.DATA_NAME} {wrong}", hint=_HINT)


def settle(env: lmdb.Environment, path: Path) -> None:
    """Has the file name itself, once; takes the write lock for that. Raises lmdb.Error and OSError."""
    with env.begin() as txn:
        known = txn.get(PLACE_KEY) is not None
    if not known:
        with env.begin(write=True) as txn:
            body = msgspec.msgpack.encode(Place(_inode(path)))
            txn.put(PLACE_KEY, seal(PLACE_KEY, body), overwrite=False)
    remember(env, path)


def remember(env: lmdb.Environment, path: Path) -> None:
    """Notes how far the file has come. A disk that does not take the note costs its warning, not the store."""
    with contextlib.suppress(OSError, OperatingError):
        now = Reached(_inode(path), env.info()["last_txnid"])
        before = datafile.read_note(path, NOTE, Reached)
        if before is None or before.inode != now.inode or before.transaction < now.transaction:
            datafile.write_note(path, NOTE, now)


def unname(file: Path) -> int:
    """Takes its name out of a file that nobody uses, so that it is taken for what it is where it is opened next; how
    many records that were. Raises lmdb.Error."""
    env = lmdb.open(str(file), subdir=False, lock=False)
    try:
        with env.begin(write=True) as txn:
            named = txn.delete(PLACE_KEY)
        env.sync(True)
    finally:
        env.close()
    return int(named)


def forget(path: Path) -> None:
    """Before the file is exchanged by one of our own commands. Raises OSError."""
    (path / NOTE).unlink(missing_ok=True)
    datafile.sync_dir(path)


def _inode(path: Path) -> int:
    return (path / datafile.DATA_NAME).stat().st_ino
