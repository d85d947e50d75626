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
    key: str


@wire_type("admin.version")
class EntryVersion(msgspec.Struct, frozen=True, kw_only=True):
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
    node: str
    present: bool
    version: EntryVersion | None
    expires_at: str | None
    candidates: tuple[EntryCandidate, ...]


@wire_type("admin.serveindex_entry")
class ServeIndexEntry(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    map: str
    shard: int
    owner: str | None
    replicas: tuple[EntryReplica, ...]
