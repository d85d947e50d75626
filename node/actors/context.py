"""The effects that a handler may ask for; the contract is `node.actors.actor.Context`.

A context lives for one run of its cell and is closed after it: whoever keeps one and uses it later is told so.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from node.actors import routing
from node.actors.actor import Adapter, Failed, Failure, ReplyTo
from node.actors.cell import Cell
from node.actors.kernel import Kernel
from node.actors.mailbox import Mail, Origin
from node.actors.persist import Staged, stage, stage_delete
from node.core.clock import MS, Moment
from node.core.errors import LocalProtocolError
from node.core.ids import EntityRef, Ref
from node.core.rng import Rng

if TYPE_CHECKING:
    from node.actors.bus import Subscription
    from node.actors.lifecycle import Lifecycle


class CellTimer:
    """A keyed timer. `period_ns` 0: single-shot. At most one message of it waits in the mailbox."""

    __slots__ = ("_cell", "_due_ns", "_kernel", "key", "live", "message", "period_ns", "queued")

    def __init__(self, kernel: Kernel, cell: Cell, key: str, message: object, due_ns: int, period_ns: int) -> None:
        self.live = True
        self.queued = False
        self.key = key
        self.message = message
        self.period_ns = period_ns
        self._due_ns = due_ns
        self._kernel = kernel
        self._cell = cell
        kernel.timers.add(due_ns, self)

    def fire(self, now_ns: int) -> None:
        kernel = self._kernel
        if self.period_ns:
            missed = max(0, now_ns - self._due_ns) // self.period_ns  # not made up for; the phase stays
            self._due_ns += (missed + 1) * self.period_ns
            kernel.timers.add(self._due_ns, self)
        if self.queued:
            kernel.count("timers_coalesced")
            return
        self.queued = True
        kernel.post(self._cell, Mail(Origin.TIMER, self, kernel.me))


class CellContext:
    """One run's context. `mail` is the mail being handled, None for a bare tell; `staged` its persists; `uncounted`
    is how much of what ran was the cell's own, or was not handled; `ended`: it deleted itself. `bare` holds the
    message types that may be queued as they are: the known ones while the context is open and no trace has to travel
    along, else none."""

    __slots__ = (
        "_cells",
        "_kernel",
        "_lifecycle",
        "bare",
        "cell",
        "ended",
        "mail",
        "now",
        "staged",
        "trace",
        "uncounted",
    )

    def __init__(self, kernel: Kernel, lifecycle: Lifecycle, cell: Cell, now_ns: int) -> None:
        self._kernel = kernel
        self._lifecycle = lifecycle
        self.cell: Cell | None = cell
        self._cells = kernel.cells
        self.bare: Container[type] = kernel.known
        self.now = now_ns
        self.mail: Mail | None = None
        self.trace = ""
        self.uncounted = 0
        self.ended = False
        self.staged: list[Staged] | None = None

    def enter(self, mail: Mail | None) -> None:
        """The message that is handled next came with this."""
        self.mail = mail
        self.trace = "" if mail is None else mail.trace
        self.bare = () if self.trace else self._kernel.known

    def close(self) -> None:
        """The run is over: who kept the context may not use it. (The dispatcher does this in place.)"""
        self.cell, self.bare = None, ()

    @property
    def ref(self) -> EntityRef:
        return self._here().ref

    @property
    def rng(self) -> Rng:
        return self._kernel.rng

    def now_ns(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self._kernel.clock.wall_ms()

    def moment(self) -> Moment:
        return Moment(self._kernel.clock.wall_ms(), self.now // MS)

    def tell(self, to: Ref, message: msgspec.Struct) -> None:
        # The common cases without further calls; everything else is `routing.tell`'s.
        if type(message) in self.bare and type(to) is EntityRef:
            cell = self._cells.get(to)
            if cell is not None:
                if cell.scheduled:
                    mailbox = cell.mailbox
                    if mailbox is not None and len(mailbox) < cell.room:
                        cell.shard.arrived += 1
                        mailbox.append(message)
                        return
                elif self._kernel.rouse(cell, message):
                    return
        self._here()
        routing.tell(self._kernel, self._lifecycle, to, message, self.trace)

    def ask(self, to: Ref, message: msgspec.Struct, timeout_ms: int, then: Adapter) -> None:
        routing.ask(self._kernel, self._lifecycle, to, message, timeout_ms, self._here(), then, self.trace)

    def reply(self, message: msgspec.Struct) -> None:
        self._here()
        self._kernel.check(message)
        if self.mail is not None:
            self._kernel.answer(self.mail, message)

    def reply_durable(self, message: msgspec.Struct) -> None:
        if self._here().writer is None and not self.staged:
            self.reply(message)
            return
        self._kernel.check(message)
        self._stage(Staged(None, (), self.mail, message, None, self.trace))

    def reject(self, reason: str) -> None:
        cell = self._here()
        if self.mail is not None and self.mail.origin is Origin.ASK:
            self._kernel.fail(self.mail, Failed(Failure.REJECTED, reason))
        else:
            self._kernel.unhandled(cell.ref, self.mail, reason)

    def reply_later(self) -> ReplyTo:
        cell = self._here()
        token = self._lifecycle.next_token()
        if self.mail is not None and self.mail.origin is Origin.ASK:
            cell.extra().kept[token] = self.mail
        return ReplyTo(token)

    def answer(self, to: ReplyTo, message: msgspec.Struct) -> None:
        self._kernel.check(message)
        mail = self._kept(to)
        if mail is not None:
            self._kernel.answer(mail, message)

    def answer_reject(self, to: ReplyTo, reason: str) -> None:
        mail = self._kept(to)
        if mail is not None:
            self._kernel.fail(mail, Failed(Failure.REJECTED, reason))

    def persist(
        self,
        state: msgspec.Struct,
        *,
        facts: Sequence[msgspec.Struct] = (),
        reply: msgspec.Struct | None = None,
        then: object | None = None,
    ) -> None:
        cell = self._here()
        if self.ended:
            raise LocalProtocolError(f"{cell.ref} has deleted itself: only who comes after it may persist")
        self._stage(stage(self._kernel, cell, state, facts, self.mail, reply, then, self.trace))

    def delete(self, *, facts: Sequence[msgspec.Struct] = (), reply: msgspec.Struct | None = None) -> None:
        cell = self._here()
        self._stage(stage_delete(self._kernel, cell, facts, self.mail, reply, self.trace))
        self.ended = True

    def pipe(self, executor: str, fn: Callable[..., Any], *args: Any, then: Adapter) -> None:
        cell = self._here()
        kernel = self._kernel
        trace = self.trace

        def finished(value: object) -> None:
            cell.open -= 1
            kernel.post(cell, Mail(Origin.OUTCOME, value, kernel.me, trace=trace, adapter=then))

        if kernel.ports.execute(executor, fn, args, lambda value: kernel.later(finished, value)):
            cell.open += 1
        else:
            kernel.count(f"executor_saturated_{executor}")
            routing.no_answer(kernel, cell, then, Failed(Failure.SATURATED, executor), trace)

    def after(self, key: str, delay_ms: int, message: object) -> None:
        self._timer(key, delay_ms, message, 0)

    def every(self, key: str, period_ms: int, message: object, *, first_ms: int | None = None) -> None:
        if period_ms <= 0:
            raise LocalProtocolError(f"timer {key!r} has the period {period_ms} ms")
        self._timer(key, period_ms if first_ms is None else first_ms, message, period_ms * MS)

    def cancel(self, key: str) -> None:
        extras = self._here().extras
        timer = extras.timers.pop(key, None) if extras is not None else None
        if timer is not None:
            self._kernel.timers.cancel(timer)

    def publish(self, topic: str, event: msgspec.Struct) -> None:
        self._here()
        self._kernel.check(event)
        self._kernel.bus.publish(topic, event)
        self._kernel.ports.publish(topic, event)

    def subscribe(self, topic: str) -> None:
        cell = self._here()
        kernel = self._kernel
        held = cell.extra().subscriptions
        if any(subscription.topic == topic for subscription in held):
            return

        def ready(subscription: Subscription) -> None:
            kernel.post(cell, Mail(Origin.NOTICE, subscription, kernel.me))

        held.append(kernel.bus.subscribe(topic, ready))

    def snapshot(self, topic: str) -> tuple[msgspec.Struct, ...]:
        self._here()
        return self._kernel.bus.snapshot(topic)

    def passivate(self) -> None:
        self._here().leaving = True

    def _timer(self, key: str, delay_ms: int, message: object, period_ns: int) -> None:
        cell = self._here()
        self.cancel(key)
        due_ns = self.now + max(delay_ms, 0) * MS
        cell.extra().timers[key] = CellTimer(self._kernel, cell, key, message, due_ns, period_ns)

    def _stage(self, item: Staged) -> None:
        if self.staged is None:
            self.staged = [item]
        else:
            self.staged.append(item)

    def _kept(self, to: ReplyTo) -> Mail | None:
        extras = self._here().extras
        mail = extras.kept.pop(to.token, None) if extras is not None else None
        if mail is None:
            self._kernel.count("answered_unknown")
        return mail

    def _here(self) -> Cell:
        cell = self.cell
        if cell is None:
            raise LocalProtocolError("a context is valid only inside a handler of its own cell")
        return cell
