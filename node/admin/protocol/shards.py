"""Shards and where they live."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.shard_list_get")
class GetShards(msgspec.Struct, frozen=True, kw_only=True):
    node: str | None = None


@wire_type("admin.shard_row")
class ShardItem(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    node: str | None
    epoch: int
    state: str
    entities: int
    pinned: bool
    why: str = ""


@wire_type("admin.shard_list")
class ShardList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[ShardItem, ...]


@wire_type("admin.shard_where_get")
class GetShardOf(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    id: str


@wire_type("admin.shard_place")
class ShardPlace(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    node: str | None
    epoch: int
