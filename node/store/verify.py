"""`python -m node.store.verify DIRECTORY`: reads every record of an embedded store and names those that are damaged.

A process of its own, since a damaged file can kill whoever reads it; who starts it reads one JSON line for each page
and takes a death without a last line for what it is. It never makes a store where there is none.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from node.core import limits
from node.core.clock import SystemClock
from node.core.errors import OperatingError
from node.store import datafile
from node.store.lmdb import LmdbStore
from node.store.scrub import Verified, VerifyRecords


class Progress(msgspec.Struct, frozen=True):
    """One line: what was found so far; `error` says why it could not go on, `done` that it went to the end."""

    checked: int = 0
    damaged: tuple[str, ...] = ()
    done: bool = False
    error: str = ""


def scan(path: Path) -> Progress:
    """Checks everything, and says how far it is."""
    missing = datafile.missing_data(path)
    if missing:
        return Progress(error=missing)
    checked, after = 0, b""
    damaged: tuple[str, ...] = ()
    try:
        store = LmdbStore(path, SystemClock())
    except OperatingError as error:
        return Progress(error=error.message)
    try:
        while True:
            (answer,) = store.apply([VerifyRecords(after, limits.store_page_records_max)])
            if not isinstance(answer, Verified):
                return Progress(checked, damaged, error=str(answer))
            checked += answer.checked
            damaged += answer.damaged
            after = answer.after
            if not after:
                return Progress(checked, damaged, done=True)
            _say(Progress(checked, damaged))
    finally:
        store.close()


def _say(progress: Progress) -> None:
    sys.stdout.write(msgspec.json.encode(progress).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _say(scan(Path(sys.argv[1])))
