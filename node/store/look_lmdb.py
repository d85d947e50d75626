"""`store_look` for the embedded store, beside the processes that use it."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path

import lmdb
import msgspec

from node.core import limits
from node.core.clock import MS, SystemClock
from node.store import datafile, port
from node.store.archive import Manifest
from node.store.backup_lmdb import counter_in, family, identity_in, occupied, reading
from node.store.lease import StoredLease, StoreTime, left_ns
from node.store.lmdb import open_file
from node.store.lmdb_layout import FACTS_KEY, VERSION_KEY
from node.store.occupancy import users
from node.store.store_look import BACKUP_NOTE, HeldLease, LastBackup, Look, Session


def look_lmdb(path: Path) -> Look:
    """Raises OperatingError. Afterwards the process has to end, as by `os._exit`: a writer whose turn does not come
    can't be called back."""
    with occupied(path), contextlib.ExitStack() as open_:
        env = open_file(path, limits.store_map_bytes)
        clock = SystemClock()
        with reading(env) as txn:
            identity = identity_in(txn)
            facts, version = counter_in(txn, FACTS_KEY), counter_in(txn, VERSION_KEY)
        info, page = env.info(), env.stat()["psize"]
        began_ns = clock.mono_ns()
        free = _writer_gets_its_turn(env)
        waited_ms = round((clock.mono_ns() - began_ns) / MS, 3)
        sessions = _sessions(path, env, info["last_txnid"])
        if free:
            open_.callback(env.close)
        return Look(
            kind="lmdb",
            place=str(path),
            cluster_id=identity.cluster_id,
            cluster_name=identity.cluster_name,
            used_bytes=(info["last_pgno"] + 1) * page,
            limit_bytes=limits.store_map_bytes_max,
            file_bytes=(path / datafile.DATA_NAME).stat().st_size,
            facts=facts,
            placement_version=version,
            sessions=sessions,
            writer_waits_ms=waited_ms,
            writer_blocked=not free,
            last_backup=datafile.read_note(path, BACKUP_NOTE, LastBackup),
        )


def whose(path: Path) -> tuple[port.Identity, int]:
    """Whose store it is, and how many facts it has. Raises OperatingError."""
    with occupied(path):
        env = open_file(path, limits.store_map_bytes)
        try:
            with reading(env) as txn:
                return identity_in(txn), counter_in(txn, FACTS_KEY)
        finally:
            env.close()


def leases_lmdb(path: Path) -> list[HeldLease]:
    """All that were ever held. Raises OperatingError."""
    with occupied(path):
        env = open_file(path, limits.store_map_bytes)
        try:
            with reading(env) as txn:
                now = StoreTime(SystemClock().mono_ns(), datafile.boot_id())
                found = []
                for key, record in family(txn, b"L"):
                    lease = msgspec.msgpack.decode(record.body, type=StoredLease)
                    left_ms = -(-left_ns(lease, now) // MS)
                    found.append(HeldLease(key[1:].decode(), lease.holder, lease.term, left_ms))
                return found
        finally:
            env.close()


def note_backup(path: Path, archive: Path, manifest: Manifest) -> None:
    """Raises OSError."""
    datafile.write_note(path, BACKUP_NOTE, LastBackup(str(archive), manifest.taken_at_ms, manifest.last_offset))


def _writer_gets_its_turn(env: lmdb.Environment) -> bool:
    """Whether a writer that asks now has the file's lock soon."""
    had = threading.Event()

    def write_nothing() -> None:
        env.begin(write=True).abort()
        had.set()

    threading.Thread(target=write_nothing, daemon=True).start()
    return had.wait(limits.store_look_s_max)


def _sessions(path: Path, env: lmdb.Environment, last_commit: int) -> tuple[Session, ...]:
    """Who has the file open, and what of it is read: by LMDB's own table, a heading and then lines of process, thread
    and snapshot (or a dash)."""
    found = dict.fromkeys(users(path), -1)
    for line in env.readers().splitlines():
        words = line.split()
        if len(words) == 3 and words[0].isdecimal() and words[2].isdecimal() and int(words[0]) != os.getpid():
            pid, behind = int(words[0]), last_commit - int(words[2])
            found[pid] = max(behind, found.get(pid, -1))
    return tuple(Session(_name(pid), pid, reads_since_commits=behind) for pid, behind in sorted(found.items()))


def _name(pid: int) -> str:
    """What a process calls itself; empty when it is gone."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return ""
    return words.decode(errors="replace").strip()[:80]
