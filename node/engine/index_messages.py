"""What nodes tell each other about their replicas of the ServeIndex, for operators. See `node.gossip.inspector`.

Rows are written as arrays, since a page holds a thousand; new fields go to their end, with defaults.
"""

from __future__ import annotations

import msgspec

from node.gossip.inspector import PLACE_COUNT
from node.wire.registry import wire_type


class LeafRow(msgspec.Struct, frozen=True, array_like=True):
    """One leaf as its entries really are; `contradicted`: its digest says otherwise."""

    place: int
    entries: int
    content: bytes
    contradicted: bool


class IndexRow(msgspec.Struct, frozen=True, array_like=True):
    """One entry. `size`: its value's bytes; `content` stands for all but key and version; `value` only where it was
    asked for."""

    key: str
    epoch: int
    hlc: int
    origin: str
    expires_at_ms: int
    tombstone: bool
    size: int
    content: bytes
    value: bytes = b""


@wire_type("node.index_leaves_get")
class GetIndexLeaves(msgspec.Struct, frozen=True):
    """Look at the leaves from `place` on and below `end`, as many as one answer takes. → IndexLeaves."""

    place: int = 0
    end: int = PLACE_COUNT


@wire_type("node.index_leaves")
class IndexLeaves(msgspec.Struct, frozen=True):
    """`next`: where to go on, `end` when all was looked at. `damaged`: keys that are kept from sight there."""

    node: str
    leaves: tuple[LeafRow, ...]
    next: int
    damaged: tuple[str, ...] = ()


@wire_type("node.index_rows_get")
class GetIndexRows(msgspec.Struct, frozen=True):
    """Entries from behind the key `after` of `place` and below `end`, in order; or of one `site`; or of these `keys`.
    → IndexRows."""

    place: int = 0
    end: int = PLACE_COUNT
    after: str = ""
    site: str = ""
    keys: tuple[str, ...] = ()
    values: bool = False
    limit: int = 0


@wire_type("node.index_rows")
class IndexRows(msgspec.Struct, frozen=True):
    """`more`: go on behind the key `after` of `place`. `total`: of a site's keys, how many there are; `complete` is
    false while a node that has just started still learns which those are."""

    node: str
    rows: tuple[IndexRow, ...]
    more: bool = False
    place: int = 0
    after: str = ""
    total: int = 0
    complete: bool = True
    damaged: tuple[str, ...] = ()


class PeerLagRow(msgspec.Struct, frozen=True, array_like=True):
    """How far a peer is behind the node's writes, and whether it is in reach."""

    peer: str
    entries: int
    ms: int
    reachable: bool


class HoldbackRow(msgspec.Struct, frozen=True, array_like=True):
    """A replica that lacks something of the node's."""

    node: str
    entries: int
    since_ms: int
    why: str


class OpeningRow(msgspec.Struct, frozen=True, array_like=True):
    """How the replica's file was opened; see `node.store.replica_opening`."""

    how: str
    reason: str
    path: str
    at_ms: int


class KeptRow(msgspec.Struct, frozen=True, array_like=True):
    """A file that was set aside, and the command that removes it."""

    path: str
    bytes: int
    at_ms: int
    remove: str


@wire_type("node.index_status_get")
class GetIndexStatus(msgspec.Struct, frozen=True):
    pass


@wire_type("node.index_status")
class IndexStatus(msgspec.Struct, frozen=True):
    """One replica. `digests`: of the 32 maps, `counts`: keys, bytes and tombstones of each. `uncommitted`: changes that
    are not on disk; `degraded`: they can't get there. `stable_ms`:
    all that the node accepted before is on every replica of the roster; 0: not known. `kept`: the newest of
    `kept_total` that were set aside."""

    node: str
    ready: bool
    synchronised_ratio: float
    digests: tuple[str, ...]
    counts: tuple[tuple[int, int, int], ...]
    lag: tuple[PeerLagRow, ...]
    uncommitted: int
    damaged: int
    oldest_tombstone_ms: int
    degraded: bool
    counters: dict[str, int]
    pending_removals: int = 0
    stable_ms: int = 0
    held_back_by: tuple[HoldbackRow, ...] = ()
    opening: OpeningRow | None = None
    kept: tuple[KeptRow, ...] = ()
    kept_total: int = 0


class Mend(msgspec.Struct, frozen=True, array_like=True):
    """An entry to put where the replica holds exactly this version and content; `content` empty: where it holds
    nothing."""

    row: IndexRow
    epoch: int = 0
    hlc: int = 0
    origin: str = ""
    content: bytes = b""


@wire_type("node.index_mend")
class MendIndex(msgspec.Struct, frozen=True):
    """Put entries of other replicas in, forget damaged ones that no replica has sound, and put the digests of these
    leaves right. → IndexMended."""

    mends: tuple[Mend, ...] = ()
    rebuild: tuple[int, ...] = ()
    drop: tuple[str, ...] = ()


@wire_type("node.index_mended")
class IndexMended(msgspec.Struct, frozen=True):
    node: str
    mended: int
    rebuilt: int


class Load(msgspec.Struct, frozen=True, array_like=True):
    """A view for a key, to be written if the owner still holds this version of it; `hlc` 0: nothing."""

    key: str
    value: bytes
    epoch: int = 0
    hlc: int = 0
    origin: str = ""


@wire_type("node.index_load")
class LoadIndex(msgspec.Struct, frozen=True):
    """Asked of the owner of the keys' shards, who writes them under its own epoch. What it has written so before counts
    as written: whoever had no answer asks again. → IndexLoaded."""

    loads: tuple[Load, ...]


@wire_type("node.index_loaded")
class IndexLoaded(msgspec.Struct, frozen=True):
    """How many were written; `stale`: something else is held by now; `refused`: not this node's, or not a view.
    `token`: of the last that was written."""

    node: str
    written: int
    stale: int
    refused: int
    token: str = ""


@wire_type("node.index_verify")
class VerifyIndex(msgspec.Struct, frozen=True):
    """Check the whole file of the node's replica, or say how far that is (`start` false). → IndexVerified."""

    start: bool = True


class FileProblem(msgspec.Struct, frozen=True, array_like=True):
    """One thing that is wrong with a file; see `node.store.replica_report`."""

    kind: str
    text: str
    map: int
    key: str


@wire_type("node.index_verified")
class IndexVerified(msgspec.Struct, frozen=True):
    """`state`: none (no check was made since the start), running or done. `complete`: the file was read to its end;
    `problems` are the first of `problems_found`."""

    node: str
    state: str
    checked: int = 0
    total: int = 0
    problems_found: int = 0
    problems: tuple[FileProblem, ...] = ()
    complete: bool = False
    file_bytes: int = 0
    live_bytes: int = 0
    elapsed_ms: int = 0


@wire_type("node.index_condemn")
class CondemnIndex(msgspec.Struct, frozen=True):
    """The file can't be read to its end: set it aside at the node's next start, and stream the replica anew.
    → NodeDone."""

    reason: str
