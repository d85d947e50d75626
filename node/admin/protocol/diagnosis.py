"""For who looks for a fault: who sees whom, what stands still, rates, logs, events."""

from __future__ import annotations

import msgspec

from node.admin.protocol.cluster import FaultRow
from node.wire.registry import wire_type

# ---- membership


@wire_type("admin.members_get")
class GetMembers(msgspec.Struct, frozen=True, kw_only=True):
    """As `node` sees them; the node that is asked when empty."""

    node: str = ""


@wire_type("admin.member_item")
class MemberItem(msgspec.Struct, frozen=True, kw_only=True):
    """`up_number`: the order in which members became up, 0 for one that was not. `observers` report it unreachable,
    for `unreachable_ms` as who is asked knows it."""

    name: str
    incarnation: int
    status: str
    reachable: bool
    roles: tuple[str, ...]
    address: str
    version: str
    up_number: int
    observers: tuple[str, ...] = ()
    unreachable_ms: int = 0


@wire_type("admin.member_list")
class MemberList(msgspec.Struct, frozen=True, kw_only=True):
    """The membership by one node's view. `blocked_by` keep it from being converged; `indirect`: pairs that can't see
    each other although `seen_by` sees both."""

    seen_by: str
    leader: str | None
    converged: bool
    digest: str
    blocked_by: tuple[str, ...]
    indirect: tuple[tuple[str, str], ...]
    items: tuple[MemberItem, ...]


@wire_type("admin.views_get")
class GetViews(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.view_item")
class ViewItem(msgspec.Struct, frozen=True, kw_only=True):
    """One node's view. `differs`: it holds something else than most. `sees`: each member as it has it, in words.
    `coordinating`: the term in which it coordinates shards, 0 when it does not."""

    observer: str
    incarnation: int
    differs: bool
    leader: str | None
    converged: bool
    digest: str
    placement_version: int
    coordinating: int
    sees: tuple[str, ...]


@wire_type("admin.view_difference")
class ViewDifference(msgspec.Struct, frozen=True, kw_only=True):
    """`value` is what `observers` hold of `aspect` of `object`; most hold `others`."""

    object: str
    aspect: str
    value: str
    observers: tuple[str, ...]
    others: str


@wire_type("admin.cluster_views")
class ClusterViews(msgspec.Struct, frozen=True, kw_only=True):
    """What every node holds about every other, beside each other."""

    agree: bool
    items: tuple[ViewItem, ...]
    differences: tuple[ViewDifference, ...]


# ---- one node


@wire_type("admin.node_status_get")
class GetNodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    node: str


@wire_type("admin.node_status")
class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`answers` false: it did not within the deadline; then only what its peers know of it is told, and what it alone
    knows is null."""

    node: str
    incarnation: int
    status: str
    reachable: bool
    answers: bool
    ready: bool
    why_not_ready: tuple[str, ...]
    phases: tuple[str, ...]
    observers: tuple[str, ...]
    shards: int
    entities: int | None
    max_lag_ms: int | None
    uptime_s: float | None
    version: str
    pid: int | None
    faults: tuple[FaultRow, ...]


@wire_type("admin.stuck_get")
class GetStuck(msgspec.Struct, frozen=True, kw_only=True):
    """What has not moved for `after_ms`, on one node or, empty, on all."""

    node: str = ""
    after_ms: int = 0


@wire_type("admin.stuck_item")
class StuckItem(msgspec.Struct, frozen=True, kw_only=True):
    """`what`: mailbox, loading, waiting, stopping, backoff, buffer, executor, store, handler, or silent for a node that
    did not answer."""

    node: str
    what: str
    object: str
    for_ms: int
    detail: str


@wire_type("admin.stuck_list")
class StuckList(msgspec.Struct, frozen=True, kw_only=True):
    """The longest first. `total`: how many there are; more than `items` when a node had more than it may tell."""

    after_ms: int
    items: tuple[StuckItem, ...]
    total: int


@wire_type("admin.rates_get")
class GetRates(msgspec.Struct, frozen=True, kw_only=True):
    """Of one node or, empty, of all, over about `interval_ms`."""

    node: str = ""
    interval_ms: int = 500


@wire_type("admin.rate_item")
class RateItem(msgspec.Struct, frozen=True, kw_only=True):
    """A second, over `interval_ms`: page views, messages that entities handled, and writes of the replica;
    `unhandled_per_s`: what was dropped, refused or left as a dead letter."""

    node: str
    interval_ms: int
    requests_per_s: float
    messages_per_s: float
    writes_per_s: float
    unhandled_per_s: float
    cpu_ratio: float
    rss_bytes: int
    run_queue: int
    entities: int
    shards: int
    max_lag_ms: int


@wire_type("admin.rate_list")
class RateList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[RateItem, ...]


# ---- logs


@wire_type("admin.logs_get")
class GetLogs(msgspec.Struct, frozen=True, kw_only=True):
    """Of one node or, empty, of all: the newest `limit` of each. `cursor`: only what came after an earlier answer;
    `level` at least; `text`: only lines that hold it."""

    node: str = ""
    cursor: str = ""
    since_ms: int = 0
    level: str = ""
    text: str = ""
    limit: int = 200


@wire_type("admin.log_item")
class LogItem(msgspec.Struct, frozen=True, kw_only=True):
    """Redacted. `gap`: so many lines before this one are kept no more; then the rest is empty."""

    at: str
    node: str
    level: str
    logger: str
    text: str
    gap: int = 0


@wire_type("admin.log_list")
class LogList(msgspec.Struct, frozen=True, kw_only=True):
    """Oldest first. `cursor` asks for what comes after these, of whichever node."""

    items: tuple[LogItem, ...]
    cursor: str


@wire_type("admin.log_levels_get")
class GetLogLevels(msgspec.Struct, frozen=True, kw_only=True):
    node: str


@wire_type("admin.log_level_item")
class LogLevelItem(msgspec.Struct, frozen=True, kw_only=True):
    """`left_s`: until it is as before by itself; null for one that stays."""

    logger: str
    level: str
    left_s: int | None


@wire_type("admin.log_levels")
class LogLevels(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    items: tuple[LogLevelItem, ...]


@wire_type("admin.stage_log_level")
class StageLogLevel(msgspec.Struct, frozen=True, kw_only=True):
    """For `for_s`, then as it was; an empty level takes it back at once. Answered by a Plan."""

    node: str
    logger: str
    level: str
    for_s: int


# ---- events


@wire_type("admin.event_list_get")
class GetEventList(msgspec.Struct, frozen=True, kw_only=True):
    """What the nodes keep, oldest first. `cursor`: only what came after an earlier answer; `node`: only that node's;
    `topics`: patterns such as `shard.*`; `since_ms` is wall time."""

    cursor: str = ""
    node: str = ""
    topics: tuple[str, ...] = ()
    since_ms: int = 0


@wire_type("admin.event_item")
class EventItem(msgspec.Struct, frozen=True, kw_only=True):
    """`node` saw it. `gap`: so many of its events before this are kept no more; -1: it started anew, and what was
    before is gone with it."""

    at: str
    topic: str
    object: str
    text: str
    node: str
    gap: int = 0


@wire_type("admin.event_list")
class EventList(msgspec.Struct, frozen=True, kw_only=True):
    """Oldest first. `cursor` asks for what comes after these, of whichever node."""

    items: tuple[EventItem, ...]
    cursor: str


# ---- entities


@wire_type("admin.entity_history_get")
class GetEntityHistory(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    id: str


@wire_type("admin.entity_owner")
class EntityOwner(msgspec.Struct, frozen=True, kw_only=True):
    """Who owned the entity's shard from `at` on, under `epoch`; `until` is null for the owner of now. `last_writer`:
    what is durable now was written under this epoch."""

    node: str
    incarnation: int
    epoch: int
    cause: str
    at: str
    until: str | None
    last_writer: bool


@wire_type("admin.entity_history")
class EntityHistory(msgspec.Struct, frozen=True, kw_only=True):
    """The newest sixteen owners, oldest first. `fenced_count`: attempts to write under an epoch that was over, as the
    nodes' events have them. `durable_revision` is null for what was never stored."""

    kind: str = msgspec.field(name="type")
    id: str
    shard: int
    durable_revision: int | None
    durable_epoch: int | None
    fenced_count: int
    items: tuple[EntityOwner, ...]


@wire_type("admin.entity_place_get")
class GetEntityPlace(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    id: str


@wire_type("admin.entity_place")
class EntityPlace(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: a phase, passivated, or unknown when its node did not answer. `known`: there is such an entity, in
    memory or in the store; an id that nobody has used has a place all the same."""

    kind: str = msgspec.field(name="type")
    id: str
    shard: int
    node: str | None
    epoch: int
    state: str
    known: bool


# ---- repair


@wire_type("admin.stage_cluster_repair")
class StageClusterRepair(msgspec.Struct, frozen=True, kw_only=True):
    """One plan of all that can be mended now: shards, then the replicas. Answered by a Plan."""

    reason: str = ""


# ---- drills


@wire_type("admin.drills_get")
class GetDrills(msgspec.Struct, frozen=True, kw_only=True):
    """One drill or, empty, all."""

    drill: str = ""


@wire_type("admin.drill_run")
class DrillRun(msgspec.Struct, frozen=True, kw_only=True):
    """`outcome`: passed or failed; `node` carried it out."""

    at: str
    outcome: str
    node: str
    text: str


@wire_type("admin.drill_item")
class DrillItem(msgspec.Struct, frozen=True, kw_only=True):
    """`runs` are those that nodes remember, oldest first; `last` is the newest of them."""

    drill: str
    proves: str
    last: DrillRun | None
    runs: tuple[DrillRun, ...]


@wire_type("admin.drill_list")
class DrillList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[DrillItem, ...]


@wire_type("admin.stage_drill")
class StageDrill(msgspec.Struct, frozen=True, kw_only=True):
    """Rehearse a failure at a site that can take it. Answered by a Plan."""

    drill: str
    site: str
    reason: str = ""
