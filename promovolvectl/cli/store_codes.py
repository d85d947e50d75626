"""Codes of commands that work on the state store itself."""

from __future__ import annotations

from typing import Final

from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import ErrorCode

_ENTRIES: Final[tuple[tuple[str, ExitStatus, str, str], ...]] = (
    (
        "E-EXISTS",
        ExitStatus.CONFLICT,
        "A backup is never written over a file that is there.",
        "Name another file, or a folder, where it gets a name of its own.",
    ),
    (
        "E-STORE-LIVE",
        ExitStatus.REFUSED,
        "The state store is in use, so its file or schema can't be exchanged.",
        "Stop the nodes: 'promovolvectl down', or 'cluster shutdown' for nodes of several machines.",
    ),
    (
        "E-STORE-NOT-EMPTY",
        ExitStatus.REFUSED,
        "A restore found a store where it was to make one.",
        "--force existing-store puts that one aside, under another name, when the cluster's name is given.",
    ),
    (
        "E-STORE-REPLACED",
        ExitStatus.CONFLICT,
        "The store's file is being restored or compacted at this moment.",
        "Start again when that command has ended.",
    ),
    (
        "E-STORE-COPIED",
        ExitStatus.LOCAL_FILE,
        "The state store's file is a copy of another, or older than it was here.",
        "Start the cluster that it belongs to. To go on from this one, so that nobody from before can write: "
        "'up --as-new', or elsewhere 'store backup', then 'store restore --force existing-store'.",
    ),
    (
        "E-BACKUP-DAMAGED",
        ExitStatus.LOCAL_FILE,
        "The file is no whole backup: cut, changed, or something else.",
        "Nothing was restored. Use another backup; 'store verify ARCHIVE' tells of each whether it is whole.",
    ),
    (
        "E-BACKUP-LATE",
        ExitStatus.FAILED,
        "A backup took so long that the store had to keep too much for it.",
        "Write to a faster disk, or at a quieter time. Nothing is left of it.",
    ),
    (
        "E-NO-COMPACTION",
        ExitStatus.REFUSED,
        "PostgreSQL gives back by itself what is freed.",
        "VACUUM FULL, in a pause of the cluster, shrinks the files of its tables.",
    ),
)
STORE_CODES: Final = tuple(
    ErrorCode(code=code, exit=int(exit_), meaning=meaning, help=help_) for code, exit_, meaning, help_ in _ENTRIES
)
