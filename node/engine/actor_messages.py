"""What nodes tell each other about their actors, for operators: entities, quarantine, dead letters, mailboxes, turns.

Payloads are left out; a dead letter's is given when it is asked for by name.
"""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("node.entities_get")
class GetEntities(msgspec.Struct, frozen=True):
    """The first `limit` of those of a kind and in a state, empty for all, behind `after` (a kind and an id), in the
    order of both."""

    kind: str = ""
    state: str = ""
    limit: int = 200
    after: tuple[str, str] = ("", "")


@wire_type("node.entity_get")
class GetEntity(msgspec.Struct, frozen=True):
    kind: str
    id: str


@wire_type("node.entity_row")
class EntityRow(msgspec.Struct, frozen=True):
    """One entity in memory. `state` is a phase; `used_at_ms` is wall time; `last_error` is of the last failure that
    still counts, `cause_type` and `cause_bytes` say over which message a quarantined one failed."""

    kind: str
    id: str
    shard: int
    epoch: int
    state: str
    mailbox: int = 0
    asks_open: int = 0
    revision: int = 0
    used_at_ms: int = 0
    failures: int = 0
    last_error: str = ""
    failed_at_ms: int = 0
    cause_type: str = ""
    cause_bytes: int = 0


@wire_type("node.entity_page")
class EntityPage(msgspec.Struct, frozen=True):
    """`total`: how many there are, also those that did not fit; `left`: how many behind these."""

    node: str
    rows: tuple[EntityRow, ...]
    total: int
    left: int = 0


@wire_type("node.entity_do")
class EntityCommand(msgspec.Struct, frozen=True):
    """`verb`: restart, passivate or release. Answered by NodeDone, or rejected with the reason."""

    verb: str
    kind: str
    id: str


@wire_type("node.dead_letters_get")
class GetDeadLetters(msgspec.Struct, frozen=True):
    """The newest `limit` of a reason and type; empty for all. `number`: only that one, with its payload."""

    reason: str = ""
    message_type: str = ""
    limit: int = 200
    number: int = 0


@wire_type("node.dead_letter")
class DeadLetterRow(msgspec.Struct, frozen=True):
    """`replayable` is false for what was an entity's own (a timer's message): it can only be discarded."""

    number: int
    at_ms: int
    reason: str
    to: str
    message_type: str
    message_bytes: int
    sender: str
    deliveries: int
    error: str
    trace: str
    replayable: bool
    payload: str = ""


@wire_type("node.dead_letter_page")
class DeadLetterPage(msgspec.Struct, frozen=True):
    """Numbers mean something together with the incarnation: a restart counts from 1 again."""

    node: str
    incarnation: int
    rows: tuple[DeadLetterRow, ...]
    total: int


@wire_type("node.dead_letters_settle")
class SettleDeadLetters(msgspec.Struct, frozen=True):
    """Take letters from the queue: send each again, or (`replay` false) forget them. Answered by Settled."""

    incarnation: int
    numbers: tuple[int, ...]
    replay: bool


@wire_type("node.dead_letters_settled")
class Settled(msgspec.Struct, frozen=True):
    """How many were taken; the others were taken before, fell out of the ring, or can't be sent again."""

    done: int


@wire_type("node.mailboxes_get")
class GetMailboxes(msgspec.Struct, frozen=True):
    limit: int = 100


@wire_type("node.slow_handler")
class SlowRow(msgspec.Struct, frozen=True):
    kind: str
    message_type: str
    count: int
    longest_ms: int
    last_id: str
    last_at_ms: int


@wire_type("node.mailbox_page")
class MailboxPage(msgspec.Struct, frozen=True):
    """The fullest mailboxes first. `limits`: what fits, by kind."""

    node: str
    rows: tuple[EntityRow, ...]
    total: int
    waiting: int
    run_queue: int
    handled: int
    overflowed: int
    slow: tuple[SlowRow, ...]
    limits: dict[str, int]


@wire_type("node.flight_get")
class GetFlight(msgspec.Struct, frozen=True):
    limit: int = 200


@wire_type("node.flight_turn")
class FlightTurn(msgspec.Struct, frozen=True):
    """One cell's share of a turn: when it began, how long it took, over how many messages; the last one's type."""

    at_ms: int
    took_us: int
    entity: str
    message_type: str
    messages: int
    ok: bool


@wire_type("node.flight_page")
class FlightPage(msgspec.Struct, frozen=True):
    node: str
    turns: tuple[FlightTurn, ...]
