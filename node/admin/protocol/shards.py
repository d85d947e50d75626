"""Shards and where they live."""

from __future__ import annotations

import msgspec

from node.admin.protocol.cluster import Counter
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
    """`look`: also whether there is such an entity, which takes its node and the store; where none is, the answer
    warns."""

    kind: str
    id: str
    look: bool = False


@wire_type("admin.shard_place")
class ShardPlace(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    node: str | None
    epoch: int


@wire_type("admin.shard_show_get")
class GetShard(msgspec.Struct, frozen=True, kw_only=True):
    shard: int


@wire_type("admin.shard_receipt")
class ShardReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a shard's messages at the owner that it left: arrived = handled + returned + dropped. Of what then
    waited for the next owner, `forwarded` went on and `refused` waited too long. `digest` is over the states of the
    entities that were stopped."""

    arrived: int
    handled: int
    returned: int
    dropped: int
    forwarded: int
    refused: int
    entities_stopped: int
    digest: str


@wire_type("admin.shard_ownership")
class ShardOwnership(msgspec.Struct, frozen=True, kw_only=True):
    """`receipt` accounts for the move that brought the shard to this owner; null when nobody was there to give one."""

    node: str
    incarnation: int
    epoch: int
    cause: str
    at: str
    receipt: ShardReceipt | None = None


@wire_type("admin.shard_history")
class ShardHistory(msgspec.Struct, frozen=True, kw_only=True):
    """Oldest first, the newest sixteen."""

    shard: int
    items: tuple[ShardOwnership, ...]


@wire_type("admin.shard_history_get")
class GetShardHistory(msgspec.Struct, frozen=True, kw_only=True):
    shard: int


@wire_type("admin.shard_show")
class ShardShow(msgspec.Struct, frozen=True, kw_only=True):
    """One shard in depth. `move` says in words how far a hand-off is, `pin` where it belongs, empty when it may be
    anywhere; `buffered` messages wait for it, the oldest for `oldest_ms`."""

    shard: int
    node: str | None
    epoch: int
    state: str
    entities: int
    pin: str = ""
    move: str = ""
    why: str = ""
    buffered: int = 0
    oldest_ms: int = 0
    kinds: tuple[Counter, ...] = ()
    history: tuple[ShardOwnership, ...] = ()


@wire_type("admin.shard_map_get")
class GetShardMap(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.shard_map_row")
class ShardMapRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node's part. `share` is what its capacity would give it."""

    node: str
    shards: int
    share: int
    moving: int
    pinned: int
    cordoned: bool
    draining: bool
    numbers: tuple[int, ...]


@wire_type("admin.shard_pin")
class ShardPin(msgspec.Struct, frozen=True, kw_only=True):
    shard: int
    node: str
    pending: bool
    reason: str
    at: str


@wire_type("admin.shard_map")
class ShardMap(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything is. `why_not_rebalancing` says what keeps the load from being evened out by itself, `balance`
    how many moves would even it out and when that is done without anybody's doing; empty when it is even."""

    version: int
    term: int
    epoch_max: int
    items: tuple[ShardMapRow, ...]
    pins: tuple[ShardPin, ...]
    unallocated: tuple[int, ...]
    why_not_placing: str
    why_not_rebalancing: tuple[str, ...]
    balance: str = ""


@wire_type("admin.shard_check_get")
class GetShardCheck(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.shard_fault")
class ShardFault(msgspec.Struct, frozen=True, kw_only=True):
    """`kind`: orphan, duplicate, stale-epoch, stuck-handoff, wrong-role, unallocated or imbalance. `shard` is -1 where
    the fault is no single shard's; `repair` says what mends it."""

    kind: str
    shard: int
    detail: str
    repair: str


@wire_type("admin.shard_check")
class ShardCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Four views compared: placement table, coordinator, regions, live entities. `unchecked` names what could not be
    looked at, so that `ok` is never said of it. `balance`: how even the load is, where uneven load is no fault since it
    passes by itself; null when nobody coordinates who would know."""

    ok: bool
    faults: tuple[ShardFault, ...]
    unchecked: tuple[str, ...] = ()
    balance: str | None = None


@wire_type("admin.cluster_check_get")
class CheckCluster(msgspec.Struct, frozen=True, kw_only=True):
    """`messages`: compare the nodes' ledgers, too; takes two looks some seconds apart."""

    messages: bool = False


@wire_type("admin.check_row")
class CheckRow(msgspec.Struct, frozen=True, kw_only=True):
    """`result`: ok or fail."""

    check: str
    result: str
    detail: str


@wire_type("admin.cluster_check")
class ClusterCheck(msgspec.Struct, frozen=True, kw_only=True):
    """`unchecked` names what could not be looked at."""

    ok: bool
    checks: tuple[CheckRow, ...]
    unchecked: tuple[str, ...] = ()
