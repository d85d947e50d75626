"""The run queue: which cell handles mail next, and for how long.

A turn ends after `dispatcher_slice_ns` or `dispatcher_steps_max` steps, so that sockets, timers and heartbeats are
never starved; within it a cell handles at most `dispatcher_throughput_messages`. The runtime's own calls (answers of
the store, outcomes, stops) go before any mail.
"""

from __future__ import annotations

from typing import Any, Final

from node.actors.bus import Subscription
from node.actors.cell import Cell, Phase
from node.actors.context import CellContext, CellTimer
from node.actors.kernel import Kernel
from node.actors.lifecycle import Lifecycle
from node.actors.mailbox import Mail, Origin, travels
from node.core import limits
from node.core.clock import MS

_SKIP: Final = object()
_RUNNING: Final = Phase.RUNNING  # an enumeration's member costs a look-up of its own
_RUNS: Final = tuple(range(1, limits.dispatcher_throughput_messages + 1))  # made once: it is gone through for each run
_SLOW_NS: Final = limits.handler_slow_ms * MS


class Dispatcher:
    """Runs handlers, and only here."""

    def __init__(self, kernel: Kernel, lifecycle: Lifecycle) -> None:
        self._kernel = kernel
        self._lifecycle = lifecycle
        self.handled = 0

    def turn(self, now_ns: int) -> bool:
        """Timers that are due, then calls and cells; True when more work waits."""
        kernel = self._kernel
        inbox, queue, mono_ns = kernel.inbox, kernel.queue, kernel.clock.mono_ns
        kernel.begin_turn()
        try:
            kernel.timers.fire_due(now_ns)
            now_ns = mono_ns()
            until_ns = now_ns + limits.dispatcher_slice_ns
            for _ in range(limits.dispatcher_steps_max):
                if inbox:
                    fn, args = inbox.popleft()
                    fn(*args)
                    now_ns = mono_ns()
                elif queue:
                    now_ns = self._run(queue.popleft(), now_ns, until_ns)
                else:
                    break
                if now_ns >= until_ns:
                    break
        finally:
            kernel.in_turn = False
        return bool(inbox or queue)

    def _run(self, cell: Cell, now: int, until_ns: int) -> int:
        """One cell's share of the turn, from `now` on; returns the time at its end."""
        kernel = self._kernel
        cell.scheduled = False
        mailbox, actor = cell.mailbox, cell.actor
        began = now
        if not mailbox or actor is None:
            return now
        popleft, receive, mono_ns = mailbox.popleft, actor.receive, kernel.clock.mono_ns
        background = cell.type.background
        used = not background
        context = CellContext(kernel, self._lifecycle, cell, now)
        kernel.current = cell
        ran = 0
        item: Any = None
        message: Any = None
        fault: Exception | None = None
        try:
            for ran in _RUNS:  # noqa: B007 - read after the loop
                item = popleft()
                if type(item) is Mail:
                    message = self._open(cell, context, item, now)
                else:
                    message = item
                    if context.mail is not None:
                        context.enter(None)
                if message is not _SKIP:
                    kernel.handling = message
                    receive(context, message)
                    if context.staged:
                        self._lifecycle.persistence.commit(cell, context.staged)
                        context.staged = None
                        if context.ended:
                            until_ns = now  # what waits is for who comes after it
                    used = used or type(message) not in background
                before, now = now, mono_ns()
                if now - before > _SLOW_NS:
                    self._slow(cell, message, now - before)
                if not mailbox or now >= until_ns:
                    break
                context.now = now
        except Exception as error:
            fault = error
            now = mono_ns()
        context.cell, context.bare = None, ()  # closed, without a call: this is paid for each run
        kernel.current = kernel.handling = None
        handled = ran - context.uncounted
        cell.shard.handled += handled if fault is None or not travels(item) else handled - 1
        self.handled += handled
        if used:
            cell.used_ns = now
        kernel.flight.append((began, now, cell.ref, type(message), ran, fault is None))
        if fault is not None:
            self._failed(cell, fault, item)
        elif mailbox or cell.leaving or context.ended or cell.phase is not _RUNNING:
            self._rest(cell, context)
        else:
            cell.mailbox = None
            kernel.spare.append(mailbox)
        return now

    def _failed(self, cell: Cell, fault: Exception, item: Any) -> None:
        mail = item if type(item) is Mail else Mail(Origin.TELL, item, self._kernel.me)
        self._lifecycle.supervisor.failed(cell, fault, mail)

    def _slow(self, cell: Cell, message: Any, took_ns: int) -> None:
        """A handler held up everything else on this node: counted, and named by type and message."""
        kernel = self._kernel
        name = kernel.name_of(message) if message is not _SKIP else "-"
        kernel.slow.note(cell.ref, name, took_ns, kernel.clock.wall_ms())

    def _rest(self, cell: Cell, context: CellContext) -> None:
        """After a run: back into the queue, or to rest without a mailbox, or to its end."""
        if context.ended:
            self._lifecycle.deleted(cell)
            return
        mailbox = cell.mailbox
        if mailbox:
            self._kernel.schedule(cell)
        else:
            cell.mailbox = None
            if mailbox is not None:
                self._kernel.spare.append(mailbox)
        if cell.leaving or cell.phase is not _RUNNING:
            self._lifecycle.settle(cell)

    def _open(self, cell: Cell, context: CellContext, mail: Mail, now_ns: int) -> Any:
        """The message in a mail, _SKIP when it is not to be handled any more."""
        kernel = self._kernel
        context.enter(mail)
        message = mail.message
        if mail.deadline_ns and now_ns >= mail.deadline_ns:
            kernel.dead.count("late", kernel.name_of(message))
            cell.shard.drop(mail)
            context.uncounted += 1
            return _SKIP
        if mail.origin is Origin.TELL or mail.origin is Origin.ASK:
            return message
        context.uncounted += 1
        if mail.adapter is not None:
            return mail.adapter(message)
        if mail.origin is Origin.TIMER:
            return self._of_timer(cell, mail, message)
        if mail.origin is Origin.NOTICE:
            return self._of_notice(cell, mail, message)
        return message

    def _of_timer(self, cell: Cell, mail: Mail, timer: CellTimer) -> Any:
        timer.queued = False
        if not timer.live:
            return _SKIP  # cancelled or replaced after it fired
        if not timer.period_ns and cell.extras is not None:
            timer.live = False
            cell.extras.timers.pop(timer.key, None)
        mail.message = timer.message  # what an operator sees if it fails
        return timer.message

    def _of_notice(self, cell: Cell, mail: Mail, subscription: Subscription) -> Any:
        event = subscription.take()
        if event is None:
            return _SKIP  # closed since
        if len(subscription):
            self._kernel.post(cell, Mail(Origin.NOTICE, subscription, self._kernel.me))
        mail.origin, mail.message = Origin.EVENT, event
        return event
