"""The cluster and its nodes."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.cluster_status_get")
class GetClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.node_row")
class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node as the cluster sees it. `http`: base URL when it has the api role and serves, else null. `observers`:
    who reports it unreachable. `public_key`: what a profile names to reach it; empty where the roster has no such
    node. `cordoned`: it keeps its shards and gets no more; null when nobody who coordinates says. What only the node
    itself knows, `pid` and `uptime_s`, `entities`, `max_lag_ms`, `rss_bytes` and `cpu_ratio`, is null while it does not
    answer."""

    name: str
    incarnation: int
    status: str
    reachable: bool
    roles: tuple[str, ...]
    address: str
    http: str | None = None
    admin: str = ""
    version: str = ""
    pid: int | None = None
    uptime_s: float | None = None
    shards: int = 0
    entities: int | None = None
    ready: bool = False
    why_not_ready: tuple[str, ...] = ()
    max_lag_ms: int | None = None
    rss_bytes: int | None = None
    cpu_ratio: float | None = None
    observers: tuple[str, ...] = ()
    public_key: str = ""
    cordoned: bool | None = None


@wire_type("admin.shard_totals")
class ShardTotals(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    allocated: int
    moving: int
    unallocated: int


@wire_type("admin.serveindex_totals")
class ServeIndexTotals(msgspec.Struct, frozen=True, kw_only=True):
    """`agree` is null where those replicas that answered are equal, and some did not answer."""

    maps: int
    keys: int
    agree: bool | None
    max_lag_ms: int
    tombstones: int
    pending_removals: int


@wire_type("admin.coverage_totals")
class CoverageTotals(msgspec.Struct, frozen=True, kw_only=True):
    """As those of `Coverage`; `unknown_sites` is null while the state store does not say which sites there are."""

    expected: int | None
    present: int | None
    ratio: float | None
    unknown_sites: int | None = 0


@wire_type("admin.fault")
class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    object: str
    message: str
    since: str


@wire_type("admin.absent_node")
class AbsentNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node of the roster that is no member. `went`: `drained` in good order, as it was told to; `not back` from a
    restart that told it to go; `removed` by the others; `never came`. `since`: when, empty where nobody remembers;
    `back`: the command that brings it back; `roles`: those of its last start, none where nobody remembers."""

    name: str
    went: str
    since: str = ""
    why: str = ""
    back: str = ""
    roles: tuple[str, ...] = ()


@wire_type("admin.cluster_status")
class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    converged: bool
    leader: str | None
    coordinator: str | None
    term: int
    nodes: tuple[NodeRow, ...]
    shards: ShardTotals
    serveindex: ServeIndexTotals
    coverage: CoverageTotals
    faults: tuple[FaultRow, ...] = ()
    requests_per_s: float = 0.0
    served_count: int = 0
    members_up: int = 0
    required: int = 0
    available: int = 0
    absent: tuple[AbsentNode, ...] = ()


@wire_type("admin.cluster_health_get")
class GetClusterHealth(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.health_reason")
class HealthReason(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    object: str
    text: str


@wire_type("admin.cluster_health")
class Health(msgspec.Struct, frozen=True, kw_only=True):
    state: str
    reasons: tuple[HealthReason, ...]


@wire_type("admin.node_list_get")
class GetNodes(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.node_list")
class NodeList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[NodeRow, ...]


@wire_type("admin.node_show_get")
class GetNode(msgspec.Struct, frozen=True, kw_only=True):
    node: str


@wire_type("admin.counter")
class Counter(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    count: int


@wire_type("admin.node_peer")
class NodePeer(msgspec.Struct, frozen=True, kw_only=True):
    """How a node's way to another stands. `why`: what the other objects to. `skew`: message types that only one of the
    two releases knows, each followed by who does. `counts`: messages both ways, and what was refused or dropped, by
    reason."""

    node: str
    link: str
    incarnation: int = 0
    why: str = ""
    waiting_control: int = 0
    waiting_data: int = 0
    skew: tuple[str, ...] = ()
    counts: tuple[Counter, ...] = ()


@wire_type("admin.node_show")
class NodeShow(msgspec.Struct, frozen=True, kw_only=True):
    """One node in depth: its row, its peers' lag, its counters of what was not handled (I9). `placed`: the shards that
    the placement table has on it, whether it answers or not; `drain`: the operation that drains it, empty if none."""

    node: NodeRow
    observers_against: tuple[str, ...] = ()
    why_not_joined: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    counters: tuple[Counter, ...] = ()
    entities_by_kind: tuple[Counter, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    peers: tuple[NodePeer, ...] = ()
    placed: tuple[int, ...] = ()
    drain: str = ""
