"""What the parts of the runtime share: the cells, the queues, the way out, and the few operations on them.

Nothing here runs a handler. Whatever comes in from outside lands in `inbox` (calls of the runtime's own, which go
first) or in a mailbox, and is handled in the dispatcher's turn.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from node.actors.actor import EntityType, Failed, Failure, Overflow
from node.actors.ask import Ask, Asks, to_wire
from node.actors.bus import Bus
from node.actors.cell import Cell, Phase, Shard
from node.actors.deadletters import DeadLetters
from node.actors.flight import SlowHandlers, Turn
from node.actors.mailbox import Mail, Mailbox, Origin, take_oldest, travels
from node.actors.ports import Ports
from node.actors.supervision import Fault
from node.actors.timers import Timers
from node.core import limits
from node.core.clock import Clock
from node.core.errors import LocalProtocolError
from node.core.ids import EntityRef, NodeId, Ref, ServiceRef
from node.core.rng import Rng
from node.wire.envelope import Envelope, Kind

ASK_PATH = "/ask"  # where replies to a node's asks arrive
_log = logging.getLogger(__name__)


class Kernel:
    """Shared state of one node's runtime."""

    def __init__(self, me: NodeId, clock: Clock, rng: Rng, types: Sequence[EntityType], ports: Ports) -> None:
        self.me = me
        self.clock = clock
        self.rng = rng
        self.ports = ports
        self.registry = ports.codec.registry
        self.types = {entity_type.kind: entity_type for entity_type in types}
        self.cells: dict[EntityRef, Cell] = {}
        self.shards: dict[int, Shard] = {}
        self.queue: deque[Cell] = deque()
        self.spare: deque[Mailbox] = deque(maxlen=limits.mailboxes_spare_max)  # empty, for who gets mail next
        self.inbox: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.known: set[type] = set()
        self.current: Cell | None = None
        self.handling: object | None = None  # the message that `current` is at
        self.flight: deque[Turn] = deque(maxlen=limits.flight_turns_kept)
        self.slow = SlowHandlers()
        self.counters: dict[str, int] = {}
        self.dead = DeadLetters()
        self.quarantine: dict[EntityRef, Fault] = {}
        self.bus = Bus()
        self.timers = Timers(self.wake)
        self.asks = Asks(me, self.timers, self._outcome)
        self.in_turn = False
        self._woken = False
        for entity_type in types:
            if entity_type.durable is not None and not self.registry.knows(entity_type.durable):
                raise LocalProtocolError(f"the durable state of {entity_type.kind!r} is not in the wire registry")

    # ---- work

    def wake(self) -> None:
        if not self.in_turn and not self._woken:
            self._woken = True
            self.ports.wake()

    def begin_turn(self) -> None:
        self.in_turn = True
        self._woken = False

    def later(self, fn: Callable[..., None], *args: Any) -> None:
        """Call `fn` in the dispatcher's turn, before any mail."""
        self.inbox.append((fn, args))
        self.wake()

    def later_outside(self, fn: Callable[..., object], *args: Any) -> None:
        """Call code that is not the runtime's; its failure is its own, counted and logged."""
        self.later(self.call_outside, fn, *args)

    def schedule(self, cell: Cell) -> None:
        """Into the run queue, if it has mail that may run now."""
        if not cell.scheduled and cell.mailbox and cell.actor is not None and cell is not self.current:
            cell.scheduled = True
            self.queue.append(cell)
            self.wake()

    def count(self, name: str, by: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + by

    # ---- mail

    def check(self, message: object) -> None:
        """Raises LocalProtocolError unless the message may cross a process boundary (R3)."""
        if type(message) not in self.known:
            self.registry.of(message)
            self.known.add(type(message))

    def offer(self, cell: Cell, item: Any) -> None:
        """Queue mail from outside the cell, within the mailbox's bound."""
        mailbox = cell.mailbox
        cell.shard.arrived += 1
        if cell.phase is Phase.QUARANTINED:
            self.drop(cell, item, Failed(Failure.REJECTED, "quarantined"))
            return
        if mailbox is None:
            cell.mailbox = self._mailbox(item)
        elif len(mailbox) < cell.room:
            mailbox.append(item)
        else:
            self._overflow(cell, item)
        if not cell.scheduled:
            self.schedule(cell)

    def rouse(self, cell: Cell, message: object) -> bool:
        """Queue a bare message at a running cell that has no mail; False when it is not one, or runs now."""
        if cell.mailbox is not None or cell.actor is None or not cell.room or cell is self.current:
            return False
        cell.shard.arrived += 1
        spare = self.spare
        cell.mailbox = mailbox = spare.pop() if spare else deque()
        mailbox.append(message)
        cell.scheduled = True
        self.queue.append(cell)
        if not self.in_turn and not self._woken:
            self._woken = True
            self.ports.wake()
        return True

    def _mailbox(self, item: Any) -> Mailbox:
        mailbox = self.spare.pop() if self.spare else deque()
        mailbox.append(item)
        return mailbox

    def post(self, cell: Cell, mail: Mail) -> None:
        """Queue mail of the cell's own. What must arrive is bounded where it starts (open asks, executors' queues,
        handled messages), so the mailbox's bound does not apply to it; timers are coalesced, events buffered."""
        if cell.phase is not Phase.RUNNING and not self._takes_own(cell, mail):
            self.dead.count(f"own_{cell.phase.value}", mail.origin.value)
            return
        if cell.mailbox is None:
            cell.mailbox = self._mailbox(mail)
        else:
            cell.mailbox.append(mail)
        self.schedule(cell)

    def _takes_own(self, cell: Cell, mail: Mail) -> bool:
        """Whether a cell that does not run takes mail of its own; what was begun by one that ended starts nobody."""
        if cell.phase is Phase.BACKOFF:
            return cell.extras is None or not cell.extras.ending
        return cell.phase is Phase.LOADING or (cell.phase is Phase.STOPPING and self.runs_stopping(cell, mail))

    def runs_stopping(self, cell: Cell, item: Any) -> bool:
        """Whether a stopping cell still runs this mail: what its writes released always, what its own asks, pipes and
        timers bring while it owes a reply (the handler that runs now may still be about to keep one)."""
        if type(item) is not Mail:
            return False
        if item.origin is Origin.OUTCOME or item.origin is Origin.TIMER:
            return cell.actor is not None and (cell.owes or cell is self.current)
        return item.origin is Origin.THEN

    def envelope_of(self, to: EntityRef, item: Any) -> Envelope:
        """The envelope of mail that travels."""
        if type(item) is not Mail:
            return Envelope(Kind.TELL, to, self.me, item)
        kind = Kind.ASK if item.origin is Origin.ASK else Kind.TELL
        return Envelope(
            kind, to, item.sender, item.message, item.correlation, item.deadline_ns, item.trace, item.deliveries
        )

    def _overflow(self, cell: Cell, item: Any) -> None:
        self.count("overflow")
        victim = item
        if cell.type.overflow is Overflow.DROP_OLDEST and cell.mailbox is not None:
            oldest = take_oldest(cell.mailbox)
            if oldest is not None:
                cell.mailbox.append(item)
                victim = oldest
        self.drop(cell, victim, Failed(Failure.MAILBOX_FULL))

    # ---- what is not handled, and answers

    def refuse(self, to: Ref, item: Any, failed: Failed, error: str = "") -> None:
        """Mail that will not be handled: an ask is told why, a tell is a dead letter (so is an ask that failed)."""
        if type(item) is not Mail:
            self.bury(failed.failure.value, to, item)
            return
        if item.origin is Origin.ASK and not error:
            self.dead.count(failed.failure.value, self.name_of(item.message))
        else:
            self.bury(failed.failure.value, to, item, error or failed.detail)
        self.fail(item, failed)

    def drop(self, cell: Cell, item: Any, failed: Failed, error: str = "") -> None:
        """Refuse mail that had arrived at a cell."""
        if travels(item):
            cell.shard.drop(item)
        self.refuse(cell.ref, item, failed, error)

    def bury(self, reason: str, to: Ref, item: Any, error: str = "") -> None:
        """Make mail a dead letter."""
        mail = item if type(item) is Mail else Mail(Origin.TELL, item, self.me)
        self.dead.add(
            self.clock.wall_ms(),
            reason,
            to,
            self.name_of(mail.message),
            mail.sender,
            mail.message if travels(mail) else None,
            deliveries=mail.deliveries,
            error=error,
            trace=mail.trace,
        )

    def unhandled(self, to: EntityRef, mail: Mail | None, why: str) -> None:
        """What is handled now was refused, and nobody waits to be told so: it must not vanish (I9)."""
        self.bury(f"unhandled_by_{to.kind}", to, self.handling if mail is None else mail, why)

    def name_of(self, message: object) -> str:
        """The wire name of a message, or its class's name."""
        return self.registry.name_of(type(message))

    def size_of(self, message: object) -> int:
        """How many bytes a message has on the wire; 0 for one of an entity's own."""
        known = isinstance(message, msgspec.Struct) and self.registry.knows(type(message))
        return len(self.ports.codec.encode(message)) if known else 0

    def answer(self, mail: Mail, message: msgspec.Struct) -> None:
        """Reply to an ask; to a tell nothing happens, a second answer is counted."""
        if self._may_answer(mail):
            self.send_answer(mail, message)

    def fail(self, mail: Mail, failed: Failed) -> None:
        """Tell an asker why there is no answer."""
        if self._may_answer(mail):
            self.send_answer(mail, failed)

    def promise(self, mail: Mail) -> bool:
        """Takes the one right to answer, for later; False when it is not there."""
        return self._may_answer(mail)

    def send_answer(self, mail: Mail, outcome: msgspec.Struct | Failed) -> None:
        """Sends an answer whose right was taken before."""
        if mail.sender == self.me:
            self.asks.resolve(mail.correlation, outcome)
            return
        to = ServiceRef(mail.sender.name, ASK_PATH)
        if isinstance(outcome, Failed):
            reply = Envelope(Kind.REJECT, to, self.me, to_wire(outcome), mail.correlation, 0, mail.trace)
        else:
            reply = Envelope(Kind.REPLY, to, self.me, outcome, mail.correlation, 0, mail.trace)
        self.ports.route(reply)

    def _may_answer(self, mail: Mail) -> bool:
        if mail.origin is not Origin.ASK:
            return False
        if mail.answered:
            self.count("answered_twice")
            return False
        mail.answered = True
        return True

    def _outcome(self, ask: Ask, outcome: object) -> None:
        cell = ask.cell
        if cell is None:
            self.later_outside(ask.then, outcome)
            return
        cell.open -= 1
        self.post(cell, Mail(Origin.OUTCOME, outcome, self.me, trace=ask.trace, adapter=ask.then))

    def call_outside(self, fn: Callable[..., object], *args: Any) -> None:
        """Call code that is not the runtime's now; only from the inbox."""
        try:
            fn(*args)
        except Exception:
            self.count("callback_failed")
            _log.exception("a callback from the actor runtime failed")
