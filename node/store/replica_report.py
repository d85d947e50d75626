"""What a check of a whole replica file says: lines of progress, and one report at the end.

`Problem.kind` is one of

- `damaged`: an entry is not what was written (its checksum, or its place, is wrong);
- `digest`: a leaf's digest contradicts its entries, all of which are sound: one was added, changed or taken away by
  something that is not this program;
- `count`: a map's counts contradict its entries, all of which are sound;
- `index`: an entry is not listed by site, by expiry or among the tombstones;
- `structure`: the file itself can't be read to its end, or holds what belongs nowhere.
"""

from __future__ import annotations

from typing import Literal

import msgspec

ProblemKind = Literal["damaged", "digest", "count", "index", "structure"]


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong; `map` and `leaf` are -1 where none can be named, `key` empty likewise."""

    kind: ProblemKind
    text: str
    map: int = -1
    key: str = ""
    leaf: int = -1


class MapFindings(msgspec.Struct, frozen=True):
    """One map: its sound `entries` that carry a value, their `bytes` with the keys', `tombstones`, how many entries
    are `damaged`, its `digest` as its sound entries make it, and `content`, which differs between two replicas of equal
    digests if a value was changed and sealed again by hand; both as 32 hex digits."""

    map: int
    entries: int
    bytes: int
    tombstones: int
    damaged: int
    digest: str
    content: str


class VerifyProgress(msgspec.Struct, frozen=True, tag="progress"):
    """How far a check is: `checked` of `total` entries, with so many `problems` so far."""

    checked: int
    total: int
    problems: int


class ReplicaReport(msgspec.Struct, frozen=True, tag="report"):
    """What a check found. `complete`: it read the whole file; `problems` are at most `limits.verify_problems_max` of
    `problems_found`. `file_bytes` is the file's size, `live_bytes` what its entries and records take."""

    path: str
    complete: bool
    problems: tuple[Problem, ...] = ()
    problems_found: int = 0
    cluster_id: str = ""
    node: str = ""
    tenure: int = 0
    format: int = 0
    file_bytes: int = 0
    live_bytes: int = 0
    checked: int = 0
    maps: tuple[MapFindings, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether the whole file was read and nothing is wrong with it."""
        return self.complete and not self.problems_found


Line = VerifyProgress | ReplicaReport
