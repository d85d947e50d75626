"""The ServeIndex: comparing replicas entry by entry, mending them, writing them out and reading them in."""

from __future__ import annotations

import msgspec

from node.admin.protocol.serveindex import EntryVersion
from node.wire.registry import wire_type


@wire_type("admin.serveindex_diff_get")
class GetDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Compare these nodes' replicas, all if none is named, over these maps, all if none is; only the keys behind
    `after`, which is the `next` of an earlier page."""

    nodes: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    after: str = ""


@wire_type("admin.serveindex_diff_view")
class DiffView(msgspec.Struct, frozen=True, kw_only=True):
    """What one replica holds of a key that differs. `state`: held, removed, absent or damaged."""

    node: str
    state: str
    version: EntryVersion | None
    bytes: int
    digest: str
    wins: bool


@wire_type("admin.serveindex_diff_row")
class DiffItem(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: missing (not everywhere), older (another version), content (one version, two contents) or damaged."""

    key: str
    map: str
    kind: str
    views: tuple[DiffView, ...]


@wire_type("admin.serveindex_diff_replica")
class DiffReplica(msgspec.Struct, frozen=True, kw_only=True):
    """`digests_wrong`: leaves whose digest its own entries contradict, so that comparing digests finds nothing."""

    node: str
    entries: int
    damaged: int
    digests_wrong: int


@wire_type("admin.serveindex_diff")
class ServeIndexDiff(msgspec.Struct, frozen=True, kw_only=True):
    """`total` keys differ, of which the first are named; `next` asks for those behind them, and is empty when there are
    none. Only what differs twice, some time apart, is counted: writes do not arrive everywhere at one moment."""

    equal: bool
    items: tuple[DiffItem, ...]
    total: int
    replicas: tuple[DiffReplica, ...]
    next: str = ""


@wire_type("admin.stage_serveindex_repair")
class StageIndexRepair(msgspec.Struct, frozen=True, kw_only=True):
    """Mend what a comparison finds now, on these nodes and over these maps, all if none is named. → Plan."""

    nodes: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    reason: str = ""


@wire_type("admin.serveindex_dump_get")
class GetDump(msgspec.Struct, frozen=True, kw_only=True):
    """One map's entries behind the key `after` of `place`, as `node` has them, the asked one if empty."""

    map: str
    node: str = ""
    place: int = 0
    after: str = ""


@wire_type("admin.serveindex_dump_row")
class DumpRow(msgspec.Struct, frozen=True, kw_only=True):
    """One entry, whole: `value` is the encoded view, empty for a removal."""

    key: str
    map: str
    version: EntryVersion
    expires_at: str | None
    removed: bool
    value: bytes


@wire_type("admin.serveindex_dump_page")
class DumpPage(msgspec.Struct, frozen=True, kw_only=True):
    """`more`: go on behind `after` of `place`."""

    node: str
    items: tuple[DumpRow, ...]
    more: bool
    place: int
    after: str


@wire_type("admin.serveindex_load_send")
class SendLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a load, in order; `load` is a name that the sender draws, `offset` how many rows went before."""

    load: str
    offset: int
    rows: tuple[DumpRow, ...]


@wire_type("admin.serveindex_load_taken")
class LoadTaken(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows are here."""

    rows_count: int


@wire_type("admin.stage_serveindex_load")
class StageLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Write the rows that were sent, where that changes something. → Plan."""

    load: str
    rows_count: int
    reason: str = ""


@wire_type("admin.serveindex_verify_start")
class StartVerify(msgspec.Struct, frozen=True, kw_only=True):
    """Have these nodes, all if none is named, check the whole files of their replicas. → ServeIndexVerify."""

    nodes: tuple[str, ...] = ()


@wire_type("admin.serveindex_verify_get")
class GetVerify(msgspec.Struct, frozen=True, kw_only=True):
    """How far those checks are, and what they found. → ServeIndexVerify."""

    nodes: tuple[str, ...] = ()


@wire_type("admin.serveindex_file_problem")
class FileProblem(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: damaged (an entry is not what was written), digest (a leaf's digest contradicts its sound entries), count
    (a map's counts do), index (an entry is not listed where it should be) or structure (the file can't be read to its
    end). `map` and `key` are empty where none can be named."""

    kind: str
    text: str
    map: str
    key: str


@wire_type("admin.serveindex_verify_row")
class VerifyItem(msgspec.Struct, frozen=True, kw_only=True):
    """One node's file. `state`: none, running or done; `sound`: it was read to its end and nothing is wrong with it.
    `problems` are the first of `problems_found`."""

    node: str
    state: str
    sound: bool
    checked: int
    total: int
    entries_per_s: float
    problems_found: int
    problems: tuple[FileProblem, ...]
    complete: bool
    file_bytes: int
    live_bytes: int
    elapsed_s: float


@wire_type("admin.serveindex_verify")
class ServeIndexVerify(msgspec.Struct, frozen=True, kw_only=True):
    """`sound`: all these files are; false as long as not all have been read."""

    sound: bool
    items: tuple[VerifyItem, ...]
