"""`python -m node.wiring.storekeeper`: what a command does with a state store beside its nodes.

One order as JSON on standard input; lines of JSON on standard output: progress, and last a result or a failure. It is a
process of its own, since a damaged file can kill whoever reads it, and as a snapshot of the store must end with its
reader, whatever becomes of the command that wanted it. It works on the store itself, not through a node: a backup is
wanted most when no node runs, and gigabytes have no business on the loop of a node that serves.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import msgspec

from node.core import limits
from node.core.clock import SECOND, SystemClock
from node.core.errors import OperatingError
from node.core.fault_signals import arm_from_environment
from node.store import backup_postgres, look_lmdb, look_postgres
from node.store.compaction import compact
from node.store.postgres import PostgresOptions
from node.wiring.archive_check import check
from node.wiring.backing_up import back_up
from node.wiring.orders import (
    Backup,
    Check,
    Compact,
    Compacted,
    Failure,
    Leases,
    LeasesFound,
    Order,
    Progress,
    Reply,
    Restore,
    Status,
    StatusFound,
    Survey,
)
from node.wiring.restoring import restore, survey
from node.wiring.store_place import Found, find

T = TypeVar("T")
_ORDERS: msgspec.json.Decoder[Order] = msgspec.json.Decoder(Order)


class Progresses:
    """Says how far it is, not too often."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._next_ns = self._clock.mono_ns() + int(limits.backup_say_s * SECOND)

    def __call__(self, text: str) -> None:
        now_ns = self._clock.mono_ns()
        if now_ns >= self._next_ns:
            self._next_ns = now_ns + int(limits.backup_say_s * SECOND)
            _write(Progress(text))


def carry_out(order: Order, say: Progresses) -> Reply:
    """Raises OperatingError."""
    match order:
        case Backup(place, to):
            return back_up(find(place), Path(to), say)
        case Check(archive, scratch):
            return check(Path(archive), Path(scratch) if scratch else None, say)
        case Survey(archive, place):
            return survey(find(place), Path(archive) if archive else None, say)
        case Restore(archive, place, replace):
            return restore(find(place), Path(archive), replace=replace, say=say)
        case Compact(place):
            return _compact(find(place))
        case Status(place):
            return _status(find(place))
        case Leases(place):
            return _leases(find(place))


def _compact(found: Found) -> Compacted:
    if found.path is None:
        raise OperatingError(
            "E-NO-COMPACTION",
            "PostgreSQL gives back by itself what is freed, by its autovacuum",
            hint="VACUUM FULL, in a pause of the cluster, shrinks the files of its tables",
        )
    return Compacted(str(found.path), *compact(found.path))


def _status(found: Found) -> StatusFound:
    if found.postgres is not None:
        return StatusFound(asyncio.run(_asked(found.postgres, look_postgres.look_postgres)))
    return StatusFound(look_lmdb.look_lmdb(_path(found)))


def _leases(found: Found) -> LeasesFound:
    if found.postgres is not None:
        return LeasesFound(tuple(asyncio.run(_asked(found.postgres, look_postgres.leases_postgres))))
    return LeasesFound(tuple(look_lmdb.leases_lmdb(_path(found))))


def _path(found: Found) -> Path:
    if found.path is None:
        raise OperatingError("E-CONFIG", "store.path: kind 'lmdb' needs a path")
    return found.path


async def _asked(options: PostgresOptions, ask: Callable[[Any, str], Awaitable[T]]) -> T:
    """The answer of a question to a schema."""
    async with backup_postgres.connected(options) as connection:
        return await ask(connection, options.schema)


def _write(reply: Reply) -> None:
    sys.stdout.write(msgspec.json.encode(reply).decode() + "\n")
    sys.stdout.flush()


def _told_to_end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def main() -> int:
    """Carries out the order on standard input; the status is for those who look at nothing else."""
    signal.signal(signal.SIGTERM, _told_to_end)
    try:
        arm_from_environment()
        order = _ORDERS.decode(sys.stdin.buffer.read())
        _write(carry_out(order, Progresses()))
    except OperatingError as error:
        _write(Failure(error.code, error.message, error.hint))
        return 1
    except msgspec.DecodeError as error:
        _write(Failure("E-USAGE", f"the order can't be read: {error}"))
        return 2
    return 0


if __name__ == "__main__":
    # At once: a look at a store that somebody blocks leaves a thread behind that waits for its turn.
    os._exit(main())
