"""What may be ordered of `storekeeper`, and what it answers. Commands read these as JSON, so names are fixed."""

from __future__ import annotations

import msgspec

from node.store.archive import Manifest
from node.store.store_look import HeldLease, Look


class Place(msgspec.Struct, frozen=True):
    """Where a store is: `path`, the folder of an embedded one, with the roster's file beside it or none; or
    `settings`, a node's file of settings, which says both."""

    path: str = ""
    roster: str = ""
    settings: str = ""


class Status(msgspec.Struct, frozen=True, tag="status"):
    place: Place


class Leases(msgspec.Struct, frozen=True, tag="leases"):
    place: Place


class Backup(msgspec.Struct, frozen=True, tag="backup"):
    """`to`: a folder, or a file that is not there yet."""

    place: Place
    to: str


class Check(msgspec.Struct, frozen=True, tag="check"):
    """`scratch`: where to restore it; the system's folder for temporary files when empty."""

    archive: str
    scratch: str = ""


class Survey(msgspec.Struct, frozen=True, tag="survey"):
    """What a restore, or with an empty `archive` a compaction, would meet."""

    archive: str
    place: Place


class Restore(msgspec.Struct, frozen=True, tag="restore"):
    """`replace`: what is there may be put aside."""

    archive: str
    place: Place
    replace: bool = False


class Compact(msgspec.Struct, frozen=True, tag="compact"):
    place: Place


Order = Status | Leases | Backup | Check | Survey | Restore | Compact


class Progress(msgspec.Struct, frozen=True, tag="progress"):
    text: str


class LeasesFound(msgspec.Struct, frozen=True, tag="leases"):
    items: tuple[HeldLease, ...]


class StatusFound(msgspec.Struct, frozen=True, tag="status"):
    look: Look


class BackedUp(msgspec.Struct, frozen=True, tag="backup"):
    archive: str
    bytes: int
    manifest: Manifest
    elapsed_s: float


class Checked(msgspec.Struct, frozen=True, tag="check"):
    """`problems` in words; `manifest` is None for a file that can't be read to its end."""

    archive: str
    manifest: Manifest | None
    records: int
    problems: tuple[str, ...]
    elapsed_s: float = 0.0


class Surveyed(msgspec.Struct, frozen=True, tag="survey"):
    """`users`: who uses the target now. `there`: the name of the cluster whose store is there, with `facts` in its log;
    empty when nothing is."""

    place: str
    manifest: Manifest | None = None
    users: tuple[str, ...] = ()
    there: str = ""
    facts: int = 0


class Restored(msgspec.Struct, frozen=True, tag="restore"):
    """`kept`: where that is which was there before."""

    place: str
    manifest: Manifest
    kept: str = ""
    elapsed_s: float = 0.0


class Compacted(msgspec.Struct, frozen=True, tag="compact"):
    place: str
    bytes_before: int
    bytes_after: int


class Failure(msgspec.Struct, frozen=True, tag="failure"):
    """An OperatingError in its parts."""

    code: str
    message: str
    hint: str = ""


Reply = Progress | LeasesFound | StatusFound | BackedUp | Checked | Surveyed | Restored | Compacted | Failure
