"""What nodes tell each other for who looks for a fault: their view of the cluster, what stands still, logs, events."""

from __future__ import annotations

import msgspec

from node.core.ids import NodeId
from node.engine.events import NodeEvent
from node.wire.registry import wire_type


@wire_type("node.view_get")
class GetView(msgspec.Struct, frozen=True):
    """The cluster as the node sees it; answered with a `ViewReport`."""


@wire_type("node.member_seen")
class MemberSeen(msgspec.Struct, frozen=True):
    """`up_number` orders the members by age; `observers` report it unreachable, for `unreachable_ms` so far."""

    node: NodeId
    status: str
    reachable: bool
    address: str
    roles: tuple[str, ...]
    version: str
    up_number: int
    observers: tuple[str, ...] = ()
    unreachable_ms: int = 0


@wire_type("node.view_report")
class ViewReport(msgspec.Struct, frozen=True):
    """`indirect`: pairs that can't see each other although this node sees both. `coordinating`: the term in which the
    node coordinates shards itself, 0 when it does not."""

    node: NodeId
    leader: str
    converged: bool
    blocked_by: tuple[str, ...]
    digest: str
    placement_version: int
    coordinating: int
    members: tuple[MemberSeen, ...]
    indirect: tuple[tuple[str, str], ...] = ()


@wire_type("node.stuck_get")
class GetStuck(msgspec.Struct, frozen=True):
    """What has not moved for `after_ms`; answered with a `StuckReport`."""

    after_ms: int


@wire_type("node.stuck_row")
class StuckRow(msgspec.Struct, frozen=True):
    """`what` stands still: mailbox, loading, waiting, stopping, backoff, buffer, executor, store or handler."""

    what: str
    object: str
    for_ms: int
    detail: str


@wire_type("node.stuck_report")
class StuckReport(msgspec.Struct, frozen=True):
    """The longest first, at most `actor_rows_max`; `total`: how many there are."""

    node: str
    rows: tuple[StuckRow, ...]
    total: int


@wire_type("node.logs_get")
class GetLogs(msgspec.Struct, frozen=True):
    """The newest `limit` lines after number `after` and wall time `since_ms`, at least of `level` (as in `logging`),
    whose text holds `text`. `incarnation` other than the node's own: `after` is of an earlier start, and void."""

    after: int = 0
    incarnation: int = 0
    since_ms: int = 0
    level: int = 0
    text: str = ""
    limit: int = 200


@wire_type("node.log_line")
class LogLine(msgspec.Struct, frozen=True):
    """Redacted, and cut at `log_line_chars_max`."""

    number: int
    at_ms: int
    level: str
    logger: str
    text: str


@wire_type("node.log_page")
class LogPage(msgspec.Struct, frozen=True):
    """Oldest first. `last` is the newest number there is; `lost` lines after the one asked for are kept no more."""

    node: str
    incarnation: int
    rows: tuple[LogLine, ...]
    last: int
    lost: int = 0


@wire_type("node.log_level_set")
class SetLogLevel(msgspec.Struct, frozen=True):
    """For `for_s`, then as it was; an empty level takes it back at once. Answered by NodeDone, or rejected."""

    logger: str
    level: str
    for_s: int


@wire_type("node.log_levels_get")
class GetLogLevels(msgspec.Struct, frozen=True):
    """Answered with `LogLevels`."""


@wire_type("node.log_level")
class LogLevel(msgspec.Struct, frozen=True):
    """`left_s`: until it is as before; 0 for one that was not set for a time."""

    logger: str
    level: str
    left_s: int = 0


@wire_type("node.log_levels")
class LogLevels(msgspec.Struct, frozen=True):
    node: str
    rows: tuple[LogLevel, ...]


@wire_type("node.events_get")
class GetEvents(msgspec.Struct, frozen=True):
    """Those of the node's own after number `after` of this incarnation; answered with an `EventPage`."""

    after: int = 0
    incarnation: int = 0


@wire_type("node.event_page")
class EventPage(msgspec.Struct, frozen=True):
    """Oldest first, the newest is number `last`; `lost` after the one asked for are kept no more."""

    node: str
    incarnation: int
    events: tuple[NodeEvent, ...]
    last: int
    lost: int = 0
