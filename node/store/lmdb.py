"""The state store on LMDB: one environment that all node processes of a host share.

What its driver owes: `apply` blocks (for the write lock, and for the disk), so it is called from a worker thread, one
call at a time; the driver's watchdog reads `waiting_since_ns` and names the fault `store blocked by another process`
once it is older than `limits.store_wait_ms_max`. No handle crosses a fork.

A process that is stopped inside a write transaction blocks every writer of the file, so what can be encoded is encoded
before the transaction begins. `writemap` is never used: a full disk would kill the process.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import lmdb

from node.core import limits
from node.core.check import invariant
from node.core.clock import MS, Clock
from node.core.errors import OperatingError
from node.core.faultpoints import reach
from node.store import datafile, port, whereabouts
from node.store.lanes import READS
from node.store.lease import StoreTime
from node.store.lmdb_layout import FORMAT, FORMAT_KEY, IDENTITY_KEY, Prepared, prepare
from node.store.lmdb_txn import StoreTxn
from node.store.occupancy import Occupancy
from node.store.record import RecordDamaged, seal, unseal

IDENTITY_NOTE: Final = "identity.json"
# What LMDB raises when the file itself is at fault, not the disk, the system or the moment.
STRUCTURE_ERRORS: Final = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
    lmdb.IncompatibleError,
)
_ATTEMPTS_MAX: Final = 16  # one for each doubling of the map, and a few for what other processes do meanwhile


class LmdbStore:
    """`StateStore` in a directory.

    `map_bytes` and `map_bytes_max` bound the memory map; `boot` names this boot of the machine (its lease times mean
    nothing in another). `lasting`: the folder is somebody's for good, so a file is refused that is not the one of
    before. Raises OperatingError: `E-STORE-PATH`, `E-STORE-DAMAGED`,
    `E-STORE-REPLACED`, `E-STORE-COPIED`, `E-NEWER-FORMAT`, `E-NO-BOOT-ID`.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        *,
        boot: str | None = None,
        map_bytes: int = limits.store_map_bytes,
        map_bytes_max: int = limits.store_map_bytes_max,
        lasting: bool = False,
    ) -> None:
        self._path = path
        self._clock = clock
        self._boot = datafile.boot_id() if boot is None else boot
        self._map_bytes_max = map_bytes_max
        self._pid = os.getpid()
        self._map_bytes = map_bytes
        self._poisoned = False
        self._closed = False
        self.waiting_since_ns: int | None = None
        datafile.prepare_dir(path)
        self._occupancy = Occupancy(path, alone=False)
        try:
            self._env = open_file(path, map_bytes)
            if lasting:
                self._check_place()
        except BaseException:
            self._occupancy.close()
            raise
        self._lasting = lasting
        self._noted_ns = clock.mono_ns()
        self._settled = False
        self._opened_at = self._env.info()["last_txnid"]

    def apply(self, batch: Sequence[port.Request]) -> list[port.Answer]:
        """See `StateStore.apply`. Whatever the disk does is answered as `StoreFailed`; raises only when used in a
        forked child or after `close`."""
        invariant(os.getpid() == self._pid, "store-fork", opened_by=self._pid, used_by=os.getpid())
        invariant(not self._closed, "store-closed", path=str(self._path))
        wall_ms = self._clock.wall_ms()
        prepared = [prepare(request, wall_ms) for request in batch]
        write = not all(isinstance(request, READS) for request in batch)
        try:
            if self._poisoned:
                self._reopen()
            answers = self._attempt(prepared, write=write)
            self._note_identity(batch, answers)
            if self._lasting and write:
                self._keep_place()
        except _CommitFailedError as failure:
            return self._failed(batch, "E-STORE-DISK", str(failure), definite=failure.definite)
        except STRUCTURE_ERRORS as error:
            return self._failed(batch, "E-STORE-DAMAGED", str(error), definite=True)
        except lmdb.MapFullError:
            message = f"{self._path} has reached its limit of {self._map_bytes_max} bytes"
            return self._failed(batch, "E-STORE-FULL", message, definite=True)
        except lmdb.Error as error:
            self._poisoned = self._poisoned or isinstance(error, lmdb.PanicError)
            return self._failed(batch, "E-STORE-DISK", str(error), definite=True)
        except OperatingError as error:
            return self._failed(batch, error.code, error.message, definite=error.definite)
        return answers

    def close(self) -> None:
        """Lets the file go. In a forked child nothing is touched: the handles are the parent's."""
        if os.getpid() == self._pid:
            if self._settled and not (self._closed or self._poisoned):
                whereabouts.remember(self._env, self._path)
            self._env.close()
            if not self._closed:
                self._occupancy.close()
            self._closed = True

    def _check_place(self) -> None:
        """Refuses a file that is not the one of before."""
        try:
            whereabouts.check(self._env, self._path)
        except OperatingError:
            self._env.close()
            raise
        except (lmdb.Error, OSError, RecordDamaged) as error:
            self._env.close()
            raise OperatingError("E-STORE-DISK", f"{self._path}: {error}", hint="check the disk's room") from error

    def _keep_place(self) -> None:
        """After a batch. Only a file in which something was written is made to name itself: one that was refused for
        what it holds stays as it is. That it could not be is no failure of the batch; the next one tries again."""
        now_ns = self._clock.mono_ns()
        if not self._settled:
            if self._env.info()["last_txnid"] > self._opened_at:
                with contextlib.suppress(lmdb.Error, OSError):
                    whereabouts.settle(self._env, self._path)
                    self._settled = True
            return
        if now_ns - self._noted_ns >= limits.store_noted_ms * MS:
            self._noted_ns = now_ns
            whereabouts.remember(self._env, self._path)

    def map_bytes(self) -> tuple[int, int]:
        """Bytes of the map in use, and the limit it may grow to."""
        info, stat = self._env.info(), self._env.stat()
        return (info["last_pgno"] + 1) * stat["psize"], self._map_bytes_max

    def _attempt(self, prepared: list[Prepared], *, write: bool) -> list[port.Answer]:
        """Runs the batch in one transaction, again whenever only the map's size or dead readers stood in its way."""
        for _ in range(_ATTEMPTS_MAX):
            try:
                return self._transact(prepared, write=write)
            except lmdb.MapResizedError:
                self._env.set_mapsize(0)  # another process has grown the file: take its size over
            except lmdb.MapFullError:
                if not self._grow():
                    raise
            except lmdb.ReadersFullError:
                if not self._env.reader_check():
                    raise
        raise OperatingError("E-STORE-BUSY", f"{self._path}: its map changed {_ATTEMPTS_MAX} times during one batch")

    def _transact(self, prepared: list[Prepared], *, write: bool) -> list[port.Answer]:
        if write:
            reach("store.before_begin")
            self.waiting_since_ns = self._clock.mono_ns()
        try:
            txn = self._env.begin(write=write)
        finally:
            self.waiting_since_ns = None
        try:
            # The store's time is read under the write lock: read before it, it could lie before another's grant.
            now = StoreTime(self._clock.mono_ns(), self._boot)
            work = StoreTxn(_Table(txn), now)
            answers = [work.answer(item) for item in prepared]
            if write:
                reach("store.in_transaction")
        except BaseException:
            txn.abort()
            raise
        if not write:
            txn.abort()
            return answers
        reach("store.before_commit")
        try:
            txn.commit()
        except (lmdb.MapFullError, lmdb.MapResizedError):
            raise
        except lmdb.Error as error:
            raise _CommitFailedError(error, definite=self._still_sound()) from error
        keep_length(self._env, self._path)
        reach("store.after_commit")
        return answers

    def _still_sound(self) -> bool:
        """Whether a commit that failed left no trace: LMDB condemns the environment when its last step, the write of
        the header, failed, and only then may the transaction have happened."""
        try:
            self._env.begin().abort()
        except lmdb.Error:
            self._poisoned = True
            return False
        return True

    def _grow(self) -> bool:
        """Doubles the map; False at its limit."""
        size = self._env.info()["map_size"]
        if size >= self._map_bytes_max:
            return False
        self._map_bytes = min(size * 2, self._map_bytes_max)
        self._env.set_mapsize(self._map_bytes)
        return True

    def _reopen(self) -> None:
        self._env.close()
        self._env = open_file(self._path, self._map_bytes)
        self._poisoned = False

    def _note_identity(self, batch: Sequence[port.Request], answers: list[port.Answer]) -> None:
        """Remembers beside the file whose it is, after the file does: an empty file beside the note is damage."""
        for index, request in enumerate(batch):
            identity = answers[index]
            if isinstance(request, port.Initialise) and isinstance(identity, port.Identity):
                try:
                    if datafile.read_note(self._path, IDENTITY_NOTE, port.Identity) != identity:
                        datafile.write_note(self._path, IDENTITY_NOTE, identity)
                except OSError as error:
                    answers[index] = port.StoreFailed("E-STORE-DISK", f"{self._path}: {error}", definite=False)

    @staticmethod
    def _failed(batch: Sequence[port.Request], code: str, message: str, *, definite: bool) -> list[port.Answer]:
        return [port.StoreFailed(code, message, definite or isinstance(request, READS)) for request in batch]


def header(env: lmdb.Environment) -> datafile.Header:
    """What the file's header says of its length; reads the header page only."""
    return datafile.Header(env.info()["last_pgno"], env.stat()["psize"])


def keep_length(env: lmdb.Environment, path: Path) -> None:
    """After a commit: lengthens a file that it left shorter than its header says, which would look truncated."""
    # A failure changes nothing of the commit, and the next open walks the file.
    with contextlib.suppress(OSError, lmdb.Error):
        if datafile.is_short(path, header(env)):
            with env.begin(write=True):
                datafile.lengthen(path, header(env))


class _Table:
    """`Table` over a transaction."""

    def __init__(self, txn: lmdb.Transaction[bytes]) -> None:
        self._txn = txn

    def get(self, key: bytes) -> bytes | None:
        return self._txn.get(key)

    def put(self, key: bytes, value: bytes) -> None:
        self._txn.put(key, value)

    def delete(self, key: bytes) -> None:
        self._txn.delete(key)

    def append(self, key: bytes, value: bytes) -> None:
        if not self._txn.put(key, value, append=True):
            raise RecordDamaged(key, "a record that should be new is there already")

    def items_from(self, key: bytes) -> Iterator[tuple[bytes, bytes]]:
        with self._txn.cursor() as cursor:
            if cursor.set_range(key):
                yield from cursor.iternext()


class _CommitFailedError(Exception):
    """A commit that the disk refused; `definite` when nothing of it can come back."""

    def __init__(self, error: lmdb.Error, *, definite: bool) -> None:
        super().__init__(f"commit: {error}")
        self.definite = definite


def open_file(path: Path, map_bytes: int) -> lmdb.Environment:
    """Opens the file, in a folder that is there, after it has passed every check that needs no reading of its data."""
    known = datafile.read_note(path, IDENTITY_NOTE, port.Identity)
    missing = datafile.missing_data(path)
    if known is not None and missing:
        raise _damaged(missing)
    try:
        env = lmdb.open(str(path), map_size=map_bytes, max_readers=limits.store_readers_max, mode=0o600, writemap=False)
    except STRUCTURE_ERRORS as error:
        raise _damaged(f"{path / datafile.DATA_NAME}: {error}") from error
    except lmdb.Error as error:
        raise OperatingError("E-STORE-PATH", f"{path}: {error}", hint="check its owner, mode and disk") from error
    try:
        _examine(env, path, known)
    except (*STRUCTURE_ERRORS, RecordDamaged) as error:
        env.close()
        raise _damaged(f"{path / datafile.DATA_NAME}: {error}") from error
    except lmdb.Error as error:
        env.close()
        raise OperatingError("E-STORE-DISK", f"{path}: {error}", hint="check the disk's room and health") from error
    except BaseException:
        env.close()
        raise
    return env


def _examine(env: lmdb.Environment, path: Path, known: port.Identity | None) -> None:
    """Checks the file and its format record, which is made with it. The write lock is needed for a new file only, so
    that a process which is stopped while it holds the lock doesn't stop a start."""
    truncated = datafile.truncation(path, lambda: header(env), lambda: env.begin(write=True))
    if truncated:
        raise _damaged(truncated)
    env.reader_check()
    found, identity, entries = _first_records(env)
    if entries == 0 and known is None:
        with env.begin(write=True) as txn:
            # Another process may have been first; what it wrote is the same. Judged by what a reader sees: the file's
            # own count shows a commit before readers do, and a start in between would find no format record.
            txn.put(FORMAT_KEY, seal(FORMAT_KEY, b"", revision=FORMAT), overwrite=False)
        found, identity, _ = _first_records(env)
    if found is None:
        raise _damaged(f"{path / datafile.DATA_NAME} has no format record")
    form = unseal(FORMAT_KEY, found).revision
    if form > FORMAT:
        message = f"{path} has format {form}, this release reads {FORMAT}"
        raise OperatingError("E-NEWER-FORMAT", message, hint="run the release that wrote it, or a later one")
    if known is not None and identity is None:
        raise _damaged(f"{path / datafile.DATA_NAME} has no identity record, but {IDENTITY_NOTE} is beside it")


def _first_records(env: lmdb.Environment) -> tuple[bytes | None, bytes | None, int]:
    """The format record, the identity record, and how many records a reader sees."""
    try:
        txn = env.begin()
    except lmdb.MapResizedError:
        env.set_mapsize(0)  # another process has grown the file since
        txn = env.begin()
    with txn:
        return txn.get(FORMAT_KEY), txn.get(IDENTITY_KEY), txn.stat()["entries"]


def _damaged(message: str) -> OperatingError:
    return OperatingError(
        "E-STORE-DAMAGED", message, hint="keep the directory as it is and restore: promovolvectl store restore ARCHIVE"
    )
