"""How a replica's file was opened, and which files were set aside beside it: for the log, for events, for operators."""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from node.store.datafile import DATA_NAME
from node.store.replica_port import missed_a_start

_ASIDE: Final = re.compile(r"\.((?:damaged|format-\d+)-(\d{4}-\d\d-\d\dT\d{6})(\d{3})Z(?:-\d+)?)$")


class Opening(msgspec.Struct, frozen=True):
    """How an open went: `fresh` (there was nothing), `reused`, or `set_aside` with the reason and the file's new
    path, `migrated` with the old file's new path, `older_copy` with how that is known. A replica that is `fresh` or
    `set_aside` is empty and is streamed from a peer; an older copy takes over what its peers have."""

    how: Literal["fresh", "reused", "set_aside", "migrated", "older_copy"]
    reason: str = ""
    path: str = ""

    @property
    def usual(self) -> bool:
        """Whether nothing was wrong with what was found."""
        return self.how in ("fresh", "reused")

    def words(self) -> str:
        """The same for people."""
        match self.how:
            case "fresh":
                return "there was no file: it is made, and streamed from a peer"
            case "reused":
                return "its file is used as it was left"
            case "set_aside":
                kept = f"it is kept as {self.path}" if self.path else "nothing of it is left"
                return f"its file is damaged and was set aside: {self.reason}; {kept}; it is streamed from a peer"
            case "migrated":
                return f"its file was brought to this release's format: {self.reason}; the old one is {self.path}"
            case "older_copy":
                return f"an older copy, which takes over what its peers have before it counts: {self.reason}"


def after_begin(opening: Opening, last_start: int, this_start: int) -> Opening:
    """How the open went, once it is known which start of the node this is: a file that missed one is an older copy,
    whatever else tells that it is."""
    if not missed_a_start(last_start, this_start):
        return opening
    text = f"its file was last opened by start {last_start}, and there were starts up to {this_start - 1}"
    if opening.how == "older_copy":
        text = f"{opening.reason}; {text}"
    return msgspec.structs.replace(opening, how="older_copy", reason=text)


class KeptFile(NamedTuple):
    """What one start has put aside in a replica's folder: the data file's `path`, or that of a note where there was no
    data, the `bytes` of all of it, since when, and the shell's command that removes it."""

    path: str
    bytes: int
    at_ms: int
    remove: str


def kept_files(folder: Path) -> tuple[KeptFile, ...]:
    """What was set aside there, the newest first; nothing where the folder can't be read."""
    try:
        return kept_of((file, file.stat().st_size) for file in folder.iterdir() if _ASIDE.search(file.name))
    except OSError:
        return ()


def kept_of(files: Iterable[tuple[Path, int]]) -> tuple[KeptFile, ...]:
    """By the names that `replica_file.dated` gives: a data file and its notes share their ends."""
    groups: defaultdict[str, list[tuple[Path, int]]] = defaultdict(list)
    times: dict[str, int] = {}
    for file, size in files:
        found = _ASIDE.search(file.name)
        if found:
            groups[found[1]].append((file, size))
            times[found[1]] = _wall_ms(found[2], int(found[3]))
    kept = []
    for end, members in groups.items():
        first = min((file for file, _ in members), key=lambda file: (not file.name.startswith(DATA_NAME), file.name))
        remove = f"rm {shlex.quote(str(first.parent))}/*.{end}"
        kept.append(KeptFile(str(first), sum(size for _, size in members), times[end], remove))
    return tuple(sorted(kept, key=lambda one: (-one.at_ms, one.path)))


def _wall_ms(stamp: str, millis: int) -> int:
    try:
        return int(datetime.strptime(f"{stamp}+0000", "%Y-%m-%dT%H%M%S%z").timestamp()) * 1_000 + millis
    except ValueError:  # somebody else's name
        return 0
