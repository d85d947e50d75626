"""One entity's place in the runtime. An idle cell is this slotted object and nothing else: what it needs only at
times (mailbox, writer, timers, kept replies, failures) is made when needed."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from node.actors.actor import Actor, EntityType
from node.actors.mailbox import Mail, Mailbox, Origin
from node.actors.supervision import Failures
from node.core.ids import EntityRef

if TYPE_CHECKING:
    from node.actors.bus import Subscription
    from node.actors.context import CellTimer
    from node.actors.persist import Writer
    from node.actors.timers import Call


UNREAD: Final = object()  # of a state that the store has to be asked for


class Phase(enum.Enum):
    """A cell's life. Mail waits in LOADING and BACKOFF, is refused in QUARANTINED, bounces in STOPPING, where
    only mail of the cell's own still runs, while it owes replies."""

    LOADING = "loading"
    RUNNING = "running"
    BACKOFF = "backoff"
    QUARANTINED = "quarantined"
    STOPPING = "stopping"
    GONE = "gone"


class ShardTally(NamedTuple):
    """What became of the mail of one shard from its start to its stop: arrived = handled + bounced + dropped.
    `lost` are the dropped tells: who asked was told why not, or had stopped waiting. `entities` were stopped with it;
    `digest` is over the names and revisions of the durable ones, in any order."""

    handled: int
    bounced: int
    dropped: int
    entities: int
    digest: int = 0
    arrived: int = 0
    lost: int = 0


@dataclass(slots=True, eq=False)
class Shard:
    """A shard that this node owns under `epoch`. `cells` is ordered by their start. Mail is what came from outside a
    cell; `dropped` is every refusal, overflow and message that was given up or late, each counted by reason too."""

    number: int
    epoch: int
    cells: dict[Cell, None] = field(default_factory=dict)
    stopping: bool = False
    replies_end: Call | None = None  # set while it stops: when replies that are still kept fail
    fenced: bool = False
    handled: int = 0
    bounced: int = 0
    dropped: int = 0
    entities: int = 0
    digest: int = 0
    arrived: int = 0
    lost: int = 0
    on_stopped: list[Callable[[ShardTally], None]] = field(default_factory=list)

    def tally(self) -> ShardTally:
        return ShardTally(self.handled, self.bounced, self.dropped, self.entities, self.digest, self.arrived, self.lost)

    def drop(self, item: Any) -> None:
        """Counts mail from outside that this shard will not handle."""
        self.dropped += 1
        self.lost += type(item) is not Mail or item.origin is not Origin.ASK


class Extras:
    """What a cell has only at times. `retry`: the end of its back-off. `restart_due`: it starts again once its write
    is answered. `ending`: it does so only if mail waits; `deleting`: because its state goes."""

    __slots__ = (
        "deleting",
        "ending",
        "failures",
        "kept",
        "restart_due",
        "retry",
        "store_failures",
        "subscriptions",
        "timers",
    )

    def __init__(self) -> None:
        self.failures: Failures | None = None
        self.store_failures: Failures | None = None
        self.kept: dict[int, Mail] = {}
        self.subscriptions: list[Subscription] = []
        self.timers: dict[str, CellTimer] = {}
        self.retry: Call | None = None
        self.restart_due = False
        self.ending = False
        self.deleting = False


class Cell:
    """`used_ns`: when it was last used; `filed_ns`: what that was when `Residents` last looked at it. `open` counts
    asks and piped calls without outcome; `leaving` is set when the cell is to passivate; `room` is how much mail may
    wait while it is simply queued, 0 in a phase that does something else with mail; `durable` is the state that stands
    in the store under `revision` (None: none does), UNREAD when that is not known."""

    __slots__ = (
        "actor",
        "durable",
        "extras",
        "filed_ns",
        "leaving",
        "mailbox",
        "open",
        "phase",
        "ref",
        "revision",
        "room",
        "scheduled",
        "shard",
        "type",
        "used_ns",
        "writer",
    )

    def __init__(self, ref: EntityRef, entity_type: EntityType, shard: Shard, now_ns: int) -> None:
        self.ref = ref
        self.type = entity_type
        self.shard = shard
        self.phase = Phase.LOADING
        self.actor: Actor | None = None
        self.mailbox: Mailbox | None = None
        self.writer: Writer | None = None
        self.extras: Extras | None = None
        self.scheduled = False
        self.leaving = False
        self.open = 0
        self.revision = 0
        self.durable: Any = UNREAD
        self.room = entity_type.mailbox_max
        self.used_ns = now_ns
        self.filed_ns = now_ns

    def extra(self) -> Extras:
        """The extras, made if need be."""
        if self.extras is None:
            self.extras = Extras()
        return self.extras

    @property
    def depth(self) -> int:
        return 0 if self.mailbox is None else len(self.mailbox)

    @property
    def owes(self) -> bool:
        """An ask that it handled has no answer yet: it kept the reply, or a write holds it."""
        return bool(self.extras and self.extras.kept) or (self.writer is not None and self.writer.owes)

    @property
    def finishing(self) -> bool:
        """It kept a reply, and something of its own that may lead to the answer is still to come."""
        extras = self.extras
        return extras is not None and bool(extras.kept) and bool(self.open or extras.timers)

    @property
    def quiet(self) -> bool:
        """Nothing waits, is being written, is awaited or is owed: it may passivate."""
        extras = self.extras
        return not self.mailbox and self.writer is None and not self.open and not (extras and extras.kept)

    @property
    def at_rest(self) -> bool:
        """Quiet, without a timer too: nobody would miss it if it were stopped unasked."""
        extras = self.extras
        return self.phase is Phase.RUNNING and self.quiet and not (extras and extras.timers)
