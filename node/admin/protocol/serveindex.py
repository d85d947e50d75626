"""The ServeIndex: maps and entries on every replica."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.serveindex_maps_get")
class GetMaps(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.map_replica")
class MapReplica(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    digest: str
    keys: int
    lag_ms: int


@wire_type("admin.map_row")
class MapItem(msgspec.Struct, frozen=True, kw_only=True):
    map: str
    keys: int
    bytes: int
    tombstones: int
    agree: bool
    replicas: tuple[MapReplica, ...]


@wire_type("admin.serveindex_maps")
class ServeIndexMaps(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[MapItem, ...]


@wire_type("admin.serveindex_entry_get")
class GetEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`local`: as the asked node's own replica has it, whatever others have."""

    key: str
    local: bool = False


@wire_type("admin.version")
class EntryVersion(msgspec.Struct, frozen=True, kw_only=True):
    """Compared in this order: a later epoch wins whatever the clock says."""

    epoch: int
    hlc: int
    origin: str


@wire_type("admin.entry_candidate")
class EntryCandidate(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    campaign: str
    advertiser: str
    category: str
    cpm: str


@wire_type("admin.entry_replica")
class EntryReplica(msgspec.Struct, frozen=True, kw_only=True):
    """One node's view of a key. `state`: live, expired, removed, absent or damaged; `digest` stands for what it holds.
    `wrote_at` is by the writer's clock. `wins`: by what those that answered hold, this is what all of them will hold,
    and what a repair puts (`winning`). `owner` and `epoch_now`: who may write the key, as this node knows it. `number`
    is what a registry's name stands at; None for a site's slot, and where the number was taken back."""

    node: str
    present: bool
    version: EntryVersion | None
    expires_at: str | None
    candidates: tuple[EntryCandidate, ...]
    state: str = ""
    wins: bool = False
    wrote_at: str | None = None
    age_ms: int | None = None
    bytes: int = 0
    digest: str = ""
    owner: str | None = None
    epoch_now: int = 0
    number: int | None = None


@wire_type("admin.serveindex_entry")
class ServeIndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    """`agree`: all that answered hold the same. `winner`: the version that all of them will hold."""

    key: str
    map: str
    shard: int
    owner: str | None
    replicas: tuple[EntryReplica, ...]
    agree: bool = True
    winner: EntryVersion | None = None


@wire_type("admin.serveindex_keys_get")
class GetKeys(msgspec.Struct, frozen=True, kw_only=True):
    """A site's keys behind the key `after`, a page of at most `limit`; as `node` has them, the asked one if empty."""

    site: str
    after: str = ""
    limit: int = 0
    node: str = ""


@wire_type("admin.serveindex_key")
class KeyItem(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    map: str
    bytes: int
    version: EntryVersion
    expires_at: str | None
    expired: bool = False


@wire_type("admin.serveindex_keys")
class ServeIndexKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`next`: the `after` of the next page, empty at the end; `total`: how many keys there are."""

    items: tuple[KeyItem, ...]
    node: str
    total: int
    next: str = ""


@wire_type("admin.serveindex_largest_get")
class GetLargest(msgspec.Struct, frozen=True, kw_only=True):
    """The keys with the largest values; as `node` has them, the asked one if empty."""

    limit: int = 20
    node: str = ""


@wire_type("admin.serveindex_largest")
class ServeIndexLargest(msgspec.Struct, frozen=True, kw_only=True):
    """The largest first; `total`: how many entries were looked at."""

    items: tuple[KeyItem, ...]
    node: str
    total: int


@wire_type("admin.serveindex_place_get")
class GetKeyPlace(msgspec.Struct, frozen=True, kw_only=True):
    key: str


@wire_type("admin.serveindex_place")
class ServeIndexPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a key belongs, whether or not it is there: its map and leaf, its site's shard and that shard's owner."""

    key: str
    map: str
    leaf: int
    shard: int
    owner: str | None
    epoch: int


@wire_type("admin.serveindex_lag_get")
class GetLag(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.serveindex_lag_row")
class LagItem(msgspec.Struct, frozen=True, kw_only=True):
    """What `from` wrote and `to` has not acknowledged, and for how long the oldest of it has waited. Null is what a
    silent node does not tell: as `from` all of it, as `to` how far behind it is and whether it can be reached."""

    from_node: str = msgspec.field(name="from")
    to: str
    entries: int | None
    lag_ms: int | None
    reachable: bool | None


@wire_type("admin.serveindex_lag")
class ServeIndexLag(msgspec.Struct, frozen=True, kw_only=True):
    """`max_lag_ms`: of the rows where it is known."""

    items: tuple[LagItem, ...]
    max_lag_ms: int


@wire_type("admin.serveindex_status_get")
class GetIndexStatus(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.serveindex_replica")
class ReplicaItem(msgspec.Struct, frozen=True, kw_only=True):
    """One node's replica. `uncommitted` changes are not on disk yet; `damaged` entries wait to be fetched again.
    `opened`: how this start of its node found its file: `reused`, `fresh` (there was none), `set_aside` as damaged,
    `migrated` from an older format, or `older_copy`; with why, when, and where the former file is kept. `kept_files`:
    how many starts have set one aside."""

    node: str
    ready: bool
    synchronised_ratio: float
    keys: int
    bytes: int
    tombstones: int
    uncommitted: int
    damaged: int
    max_lag_ms: int
    commits_count: int
    degraded: bool
    opened: str = ""
    opened_why: str = ""
    opened_at: str | None = None
    opened_kept: str = ""
    kept_files: int = 0


@wire_type("admin.serveindex_kept_file")
class KeptReplicaFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a replica that was set aside, on its node's host: never used again, and there until somebody runs
    `remove`."""

    node: str
    path: str
    bytes: int
    at: str | None
    remove: str


@wire_type("admin.serveindex_map_status")
class MapStatusItem(msgspec.Struct, frozen=True, kw_only=True):
    """`leaves_different`: of the map's 256 leaves, those that not all replicas hold alike. `lag_node` is furthest
    behind others' writes."""

    map: str
    keys: int
    agree: bool
    leaves_different: int
    tombstones: int
    bytes: int


@wire_type("admin.serveindex_holdback")
class Holdback(msgspec.Struct, frozen=True, kw_only=True):
    """`node` lacks something that `writer` wrote, the oldest of it since `since` (null: not known)."""

    node: str
    writer: str
    entries: int
    since: str | None
    why: str


@wire_type("admin.serveindex_status")
class ServeIndexStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The ServeIndex on one page, a row for each map. Everything that was accepted before `stable_at` is on every
    replica of the roster; null when some node has not said so, or does not answer now. `held_back_by`: who keeps it
    from being now. `coverage_ratio` is null while some site does not tell of its slots. `kept`: the newest files that
    each replica's starts have set aside."""

    items: tuple[MapStatusItem, ...]
    replicas: tuple[ReplicaItem, ...]
    maps_equal: int
    keys: int
    tombstones: int
    oldest_tombstone_ms: int
    pending_removals: int
    max_lag_ms: int
    coverage_ratio: float | None
    stable_at: str | None = None
    held_back_by: tuple[Holdback, ...] = ()
    kept: tuple[KeptReplicaFile, ...] = ()
