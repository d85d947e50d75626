"""What an entity is to the runtime: a plain object with synchronous handlers (R1), and a declaration of its type.

A handler changes its own state and asks the context for effects; whatever an effect yields comes back as a message.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import msgspec

from node.core import limits
from node.core.clock import Moment
from node.core.ids import EntityRef, Ref
from node.core.rng import Rng


class Overflow(enum.Enum):
    """What a full mailbox does with one message more. The sender of an ask is told MailboxFull either way."""

    REJECT = "reject"
    DROP_OLDEST = "drop_oldest"


class Directive(enum.Enum):
    """What becomes of an entity whose handler raised."""

    RESTART = "restart"  # from the store, after a back-off; the message is delivered again, up to `deliveries_max`
    RESUME = "resume"  # its memory is kept; the message is a dead letter
    STOP = "stop"  # it ends and its message is a dead letter; the next message, or one that waits, starts it anew
    ESCALATE = "escalate"  # to the operator: quarantined at once


Decider = Callable[[Exception], Directive]


def always_restart(_error: Exception) -> Directive:
    """The decider of types that declare none."""
    return Directive.RESTART


class Failure(enum.StrEnum):
    """Why an ask has no answer."""

    TIMEOUT = "timeout"  # indefinite: it may have happened
    REJECTED = "rejected"  # definite, with the receiver's reason in `detail`
    NO_HOME = "no_home"  # definite: no owner known within the buffer's deadline
    MAILBOX_FULL = "mailbox_full"  # definite
    PEER_BUSY = "peer_busy"  # definite
    UNREACHABLE = "unreachable"  # definite: no way to the node
    STOPPED = "stopped"  # definite: the receiver stopped before it took the message; retry
    SATURATED = "saturated"  # definite: the executor's queue is full
    FAILED = "failed"  # indefinite: the handler or the work raised


@dataclass(frozen=True, slots=True)
class Failed:
    """The outcome of an ask or a piped call that has no value."""

    failure: Failure
    detail: str = ""

    @property
    def definite(self) -> bool:
        """It did not happen and will not; a retry is free."""
        return self.failure not in (Failure.TIMEOUT, Failure.FAILED)


# What arrives for an ask: the registered reply, or why there is none. For a piped call: its return value, or Failed.
Outcome = Any
# Turns an outcome into the message that the actor's `receive` gets. It must not touch the actor's state.
Adapter = Callable[[Outcome], object]


@dataclass(frozen=True, slots=True)
class ReplyTo:
    """The right to answer one ask later; answering twice is counted and dropped."""

    token: int


class Context(Protocol):
    """The effects a handler may ask for. Valid only inside a handler of the cell that it belongs to."""

    @property
    def ref(self) -> EntityRef: ...

    @property
    def rng(self) -> Rng: ...

    def now_ns(self) -> int:
        """Monotonic nanoseconds at the start of this message's turn."""
        ...

    def wall_ms(self) -> int: ...

    def moment(self) -> Moment:
        """This turn's by both clocks: what is only remembered for a while in memory is so by the monotonic one."""
        ...

    def tell(self, to: Ref, message: msgspec.Struct) -> None:
        """Send without expecting anything. What can't be sent is a dead letter, counted with its reason."""
        ...

    def ask(self, to: Ref, message: msgspec.Struct, timeout_ms: int, then: Adapter) -> None:
        """Send and get the outcome, exactly once, as the message `then(outcome)`."""
        ...

    def reply(self, message: msgspec.Struct) -> None:
        """Answer the ask being handled, at once. Of a tell: nothing happens."""
        ...

    def reply_durable(self, message: msgspec.Struct) -> None:
        """Answer the ask being handled once all that was persisted before is durable; at once when it is.

        For answers that say that something holds already: memory may be ahead of the store, and what it says may yet
        be refused there (I2). If the write fails, the answer is the one that `persist` gives then.
        """
        ...

    def reject(self, reason: str) -> None:
        """Answer the ask being handled with Failed(REJECTED, reason); what nobody waits for becomes a dead letter."""
        ...

    def reply_later(self) -> ReplyTo:
        """Keep the right to answer the ask being handled beyond this message."""
        ...

    def answer(self, to: ReplyTo, message: msgspec.Struct) -> None:
        """Answer an ask kept with `reply_later`."""
        ...

    def answer_reject(self, to: ReplyTo, reason: str) -> None:
        """Reject an ask kept with `reply_later`."""
        ...

    def persist(
        self,
        state: msgspec.Struct,
        *,
        facts: Sequence[msgspec.Struct] = (),
        reply: msgspec.Struct | None = None,
        then: object | None = None,
    ) -> None:
        """Make `state` durable together with the facts it implies.

        The handler goes on; later messages are handled while the write is under way, and persists made meanwhile
        are folded into the next write (the newest state, all facts). `reply` answers the ask being handled once the
        write that covers it is durable, `then` comes back as a message at the same moment; `state` is kept as it is
        and not to be changed any more. If the write is refused (fenced, conflict) or fails, what waited for it is
        answered FAILED or STOPPED. A `Reversible` entity whose write definitely did not happen goes back to what is
        durable and lives on; any other stops and starts again, if this node still owns it: from what is durable when
        that is known, else from the store.
        """
        ...

    def delete(self, *, facts: Sequence[msgspec.Struct] = (), reply: msgspec.Struct | None = None) -> None:
        """Delete the durable state, with the facts that this implies, and end the entity with this handler.

        Its timers and subscriptions go, kept replies fail, what its asks and pipes still bring is dropped. It is not
        remembered any more: it starts again only when a message comes, without a state, and not before the delete is
        durable; `reply` leaves then. If the delete is refused or fails, the entity starts again from the store.
        """
        ...

    def pipe(self, executor: str, fn: Callable[..., Any], *args: Any, then: Adapter) -> None:
        """Run blocking work on a named, bounded executor; its outcome comes back as `then(outcome)`."""
        ...

    def after(self, key: str, delay_ms: int, message: object) -> None:
        """A single-shot timer; the same key replaces the former one."""
        ...

    def every(self, key: str, period_ms: int, message: object, *, first_ms: int | None = None) -> None:
        """A periodic timer; `first_ms` spreads the phase."""
        ...

    def cancel(self, key: str) -> None: ...

    def publish(self, topic: str, event: msgspec.Struct) -> None:
        """Publish to the topic's subscribers on every node of the cluster; best effort, never blocks."""
        ...

    def subscribe(self, topic: str) -> None:
        """Events of the topic come to this cell as messages until it stops; a Gap where some were lost."""
        ...

    def snapshot(self, topic: str) -> tuple[msgspec.Struct, ...]:
        """The events that make up the topic's present state, oldest first: where to start from, and what to read
        again after a Gap."""
        ...

    def passivate(self) -> None:
        """Stop when the mailbox is empty and state is flushed; the next message starts the entity again."""
        ...


class Actor(Protocol):
    """One entity's behaviour. Instances are created by the type's factory with the entity's id."""

    def start(self, ctx: Context, state: Any) -> None:
        """Called once before any message, with the decoded durable state, or None where there is none."""
        ...

    def receive(self, ctx: Context, message: Any) -> None:
        """Handle one message. An exception is a failure of this cell alone (supervision decides)."""
        ...


@runtime_checkable
class Reversible(Actor, Protocol):
    """An actor that outlives a failed write: what it holds besides its state is worth more than a new start."""

    def roll_back(self, ctx: Context, state: Any) -> None:
        """A write definitely failed, and with it all that was persisted since `state` (as passed to `persist` or
        `start`): go on from that. Whatever waited for those writes has been answered, replies that were kept too; no
        `then` of them will come, though one of an earlier write may still. Timers and subscriptions stay. It persists
        nothing."""
        ...


@dataclass(frozen=True, slots=True)
class EntityType:
    """How the runtime treats the entities of one kind.

    `durable`: the class of the state record, None for entities that keep nothing. `remember`: started with their
    shard, without traffic. `idle_ms`: passivated after it, or before when the node holds more than it should; 0 for
    never. `background`: messages that are no use of the entity, so that what a replay or a crawl touches is not kept
    awake by it; they may be the entity's own (a timer's). `decider` says what a failure means; more than
    `restarts_max` restarts within `restart_window_ms` quarantine the entity.
    """

    kind: str
    factory: Callable[[str], Actor]
    durable: type[msgspec.Struct] | None = None
    remember: bool = False
    idle_ms: int = 0
    mailbox_max: int = limits.mailbox_messages_max
    overflow: Overflow = Overflow.REJECT
    background: frozenset[type] = frozenset()
    decider: Decider = always_restart
    restarts_max: int = limits.restarts_max
    restart_window_ms: int = limits.restart_window_ms
