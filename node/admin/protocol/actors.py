"""Entities in memory, quarantine, dead letters, mailboxes and the flight recorder."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.entity_list_get")
class GetEntities(msgspec.Struct, frozen=True, kw_only=True):
    """Of one node, one type, one state; empty for all. At most `limit` of each node, behind `after`, as `TYPE/ID`."""

    node: str = ""
    kind: str = ""
    state: str = ""
    limit: int = 200
    after: str = ""


@wire_type("admin.entity_item")
class EntityItem(msgspec.Struct, frozen=True, kw_only=True):
    """One entity in memory; `state` is loading, running, backoff, quarantined or stopping."""

    kind: str = msgspec.field(name="type")
    id: str
    shard: int
    node: str
    state: str
    mailbox: int
    last_used: str
    failures: int = 0
    epoch: int = 0


@wire_type("admin.entity_list")
class EntityList(msgspec.Struct, frozen=True, kw_only=True):
    """By type and id. `total`: how many there are; more than `items` when a node had more than the limit, and then
    `next` is what to ask for `after`."""

    items: tuple[EntityItem, ...]
    total: int
    next: str = ""


@wire_type("admin.entity_get")
class GetEntity(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    id: str


@wire_type("admin.entity_show")
class EntityShow(msgspec.Struct, frozen=True, kw_only=True):
    """One entity, in memory or not (`state` passivated: only its record is there). `revision` is the one in memory,
    `durable_revision` the store's; both 0 where there is none."""

    kind: str = msgspec.field(name="type")
    id: str
    shard: int
    node: str | None
    epoch: int
    state: str
    mailbox: int = 0
    asks_open: int = 0
    revision: int = 0
    durable_revision: int = 0
    durable_epoch: int = 0
    last_used: str | None = None
    failures: int = 0
    last_error: str = ""
    failed_at: str | None = None
    message_type: str = ""
    message_bytes: int = 0


@wire_type("admin.quarantine_get")
class GetQuarantine(msgspec.Struct, frozen=True, kw_only=True):
    """Of one node and type; empty for all. With `id`: that one, else refused as not quarantined."""

    node: str = ""
    kind: str = ""
    id: str = ""


@wire_type("admin.quarantine_item")
class QuarantineItem(msgspec.Struct, frozen=True, kw_only=True):
    """An entity that failed too often: its last error, and the message over which it failed, without its content."""

    kind: str = msgspec.field(name="type")
    id: str
    shard: int
    node: str
    since: str
    error: str
    message_type: str
    message_bytes: int
    failures: int


@wire_type("admin.quarantine_list")
class QuarantineList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[QuarantineItem, ...]


@wire_type("admin.stage_entity")
class StageEntity(msgspec.Struct, frozen=True, kw_only=True):
    """`verb`: restart, passivate or release. Answered by a Plan."""

    verb: str
    kind: str
    id: str


@wire_type("admin.dead_letter_list_get")
class GetDeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """The newest of one node, reason, type; empty for all. At most `limit` of each node."""

    node: str = ""
    reason: str = ""
    message_type: str = ""
    limit: int = 200


@wire_type("admin.dead_letter_get")
class GetDeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """`payload`: with the message's content, which may be long."""

    id: str
    payload: bool = False


@wire_type("admin.dead_letter_show")
class DeadLetterShow(msgspec.Struct, frozen=True, kw_only=True):
    """A message that nobody handled. `replayable` is false for what was an entity's own, such as a timer's."""

    id: str
    at: str
    node: str
    reason: str
    to: str
    message_type: str = msgspec.field(name="type")
    message_bytes: int
    sender: str = msgspec.field(name="from")
    deliveries: int
    error: str
    trace: str
    replayable: bool
    payload: str | None = None


@wire_type("admin.dead_letter_list")
class DeadLetterList(msgspec.Struct, frozen=True, kw_only=True):
    """`total`: how many are kept; more than `items` when a node had more than the limit."""

    items: tuple[DeadLetterShow, ...]
    total: int


@wire_type("admin.stage_dead_letters")
class StageDeadLetters(msgspec.Struct, frozen=True, kw_only=True):
    """`verb`: replay or discard. Answered by a Plan."""

    verb: str
    ids: tuple[str, ...]


@wire_type("admin.mailboxes_get")
class GetMailboxes(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    limit: int = 100


@wire_type("admin.mailbox_item")
class MailboxItem(msgspec.Struct, frozen=True, kw_only=True):
    kind: str = msgspec.field(name="type")
    id: str
    shard: int
    state: str
    messages: int
    messages_max: int


@wire_type("admin.slow_handler")
class SlowHandler(msgspec.Struct, frozen=True, kw_only=True):
    """Handlers of one type of entity that took too long over one type of message."""

    kind: str = msgspec.field(name="type")
    message_type: str
    count: int
    longest_ms: int
    last_id: str
    last_at: str


@wire_type("admin.mailboxes")
class NodeMailboxes(msgspec.Struct, frozen=True, kw_only=True):
    """What waits on one node, the fullest mailbox first, and what was slow."""

    node: str
    items: tuple[MailboxItem, ...]
    total: int
    waiting_count: int
    run_queue: int
    handled_count: int
    overflowed_count: int
    slow: tuple[SlowHandler, ...] = ()


@wire_type("admin.flight_get")
class GetFlight(msgspec.Struct, frozen=True, kw_only=True):
    node: str
    limit: int = 200


@wire_type("admin.flight_turn")
class FlightItem(msgspec.Struct, frozen=True, kw_only=True):
    """One cell's share of a turn: how long it took over how many messages, the last one's type, whether all went
    well."""

    at: str
    took_us: int
    entity: str
    message_type: str
    messages: int
    ok: bool


@wire_type("admin.flight")
class NodeFlight(msgspec.Struct, frozen=True, kw_only=True):
    """The newest turns of one node, oldest first."""

    node: str
    items: tuple[FlightItem, ...]
