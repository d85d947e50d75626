"""What a replicator tells operators: plain facts, without values. Milliseconds are wall time, names are nodes."""

from __future__ import annotations

from typing import NamedTuple

from node.core.errors import BadInput
from node.gossip.version import Version


class MapStatus(NamedTuple):
    """One map for an operator: `bytes` of keys and values, `digest` as 32 hex digits."""

    map: int
    keys: int
    bytes: int
    tombstones: int
    digest: str


class VersionSeen(NamedTuple):
    """One version of a key that this replica held: `bytes` of its value, `at_ms` when it came here, `source` from whom
    (this node's own name for its own writes, "" where that is not known). `at_ms` 0: it is held since before anything
    is remembered of its key, in the file that the replica opened with as a rule. `discarded`: from then on it was *not*
    held any more, since a take-over found that its source lacks it. `mended`: an operator's repair put it here."""

    version: Version
    tombstone: bool
    bytes: int
    expires_at_ms: int
    at_ms: int
    source: str
    discarded: bool = False
    mended: bool = False


class HeldAt(NamedTuple):
    """A replica has a removal on its disk since `durable_ms`, by the clock of who asked it."""

    node: str
    tenure: int
    durable_ms: int


class Certificate(NamedTuple):
    """What is known of one removal. `asked_ms` is when it was asked for and `asked_by` by whom ("" for the key's owner
    itself); `held` are the replicas that have it on disk, `needed` of which are a majority; `majority_ms` is when that
    was reached, 0 before. `last_serve_ms`: when what it removed was served here last, 0 when it wasn't since the start.
    """

    key: str
    version: Version
    asked_ms: int
    asked_by: str
    roster_version: int
    needed: int
    held: tuple[HeldAt, ...]
    majority_ms: int
    last_serve_ms: int


class PendingRemoval(NamedTuple):
    """A removal that no majority has on disk yet: `held_by` have it, `awaited` don't, as far as is known; `refused`
    names who answered and why that doesn't count. `next_ms` is how long until they are asked again."""

    key: str
    version: Version
    asked_ms: int
    asked_by: str
    attempts: int
    needed: int
    held_by: tuple[str, ...]
    awaited: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]
    next_ms: int


class TombstoneAge(NamedTuple):
    """One removal that is still remembered; `age_ms` by its writer's clock, never below 0. `caretaker` collects the
    acknowledgements for it; `awaited` are the replicas of the roster that it has none of, known at the caretaker
    only."""

    key: str
    version: Version
    age_ms: int
    caretaker: str = ""
    awaited: tuple[str, ...] = ()


class Holdback(NamedTuple):
    """A replica that lacks something of this node's, the oldest of it written at `since_ms` (0: not known)."""

    node: str
    entries: int
    since_ms: int
    why: str


class Watermark(NamedTuple):
    """Everything this node accepted before `stable_ms` is on every replica of the roster; 0: not known yet. The stable
    time of a cluster is the least of its nodes'. `held_back_by`: who keeps it from being now, the oldest first."""

    stable_ms: int
    held_back_by: tuple[Holdback, ...]


class Streaming(NamedTuple):
    """How a replica that was not complete comes to be. `phase`: awaiting (nobody to take over from can be reached,
    `awaited` names who could), streaming, joining (complete, not on the roster yet), complete. `leaves_done` of
    `leaves_total` differing leaves are worked through; `ratio` never falls while one process runs, whatever is cut."""

    phase: str
    peer: str
    awaited: tuple[str, ...]
    leaves_done: int
    leaves_total: int
    entries: int
    bytes: int
    discarded: int
    ratio: float


class WriteToken(NamedTuple):
    """Names one write, so that others can wait until a replica has it or something newer: see
    `Replicator.seen`. Its text is `epoch.hlc.origin.key`."""

    key: str
    version: Version

    def __str__(self) -> str:
        version = self.version
        return f"{version.epoch}.{version.hlc}.{version.origin}.{self.key}"


def parse_token(text: str) -> WriteToken:
    """The token of that text; raises BadInput."""
    epoch, hlc, origin, key = (*text.split(".", 3), "", "", "")[:4]
    if not (epoch.isascii() and epoch.isdigit() and hlc.isascii() and hlc.isdigit() and origin and key):
        raise BadInput("token", f"{text[:80]!r} is not EPOCH.HLC.NODE.KEY as a write returns it")
    return WriteToken(key, Version(int(epoch), int(hlc), origin))
