"""Carries out what supervision decides: redelivery, back-off, quarantine, release, and an operator's restart.

Restarts of one cell never overlap: it has one phase, one end of a back-off, and a start waits for the write under way.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING

from node.actors.actor import Directive, Failed, Failure
from node.actors.cell import UNREAD, Cell, Phase
from node.actors.kernel import Kernel
from node.actors.mailbox import Mail, Origin
from node.actors.supervision import Failures, Fault, backoff_ns, describe
from node.actors.timers import Call
from node.core import limits

if TYPE_CHECKING:
    from node.actors.lifecycle import Lifecycle

_log = logging.getLogger(__name__)


class Supervisor:
    """What happens to cells that failed, and to those that an operator restarts."""

    def __init__(self, kernel: Kernel, lifecycle: Lifecycle) -> None:
        self._kernel = kernel
        self._lifecycle = lifecycle

    def failed(self, cell: Cell, error: Exception, mail: Mail | None) -> None:
        """The handler raised over `mail`, or the start did (None)."""
        kernel = self._kernel
        kernel.count("failures")
        _log.warning("%s failed", cell.ref, exc_info=error)
        directive = self._decided(cell, error)
        if directive is Directive.RESUME and mail is not None and cell.phase is Phase.RUNNING:
            self._resume(cell, mail, error)
            return
        self._lifecycle.discard(cell, mail)  # the actor's memory is void
        if directive is Directive.STOP:
            self._end(cell, mail, error)
            return
        if mail is not None:
            self._redeliver(cell, mail, error)
        if cell.phase is Phase.STOPPING:
            self._lifecycle.settle(cell)
            return
        extras = cell.extra()
        extras.failures = extras.failures or Failures()
        entity_type = cell.type
        many = extras.failures.note(kernel.clock.mono_ns(), entity_type.restarts_max, entity_type.restart_window_ms)
        if many or directive is Directive.ESCALATE:
            self._quarantine(cell, error, mail)
        else:
            self._wait(cell, len(extras.failures))

    def back_off(self, cell: Cell) -> None:
        """The store failed it: it waits, and is not blamed."""
        extras = cell.extra()
        extras.store_failures = extras.store_failures or Failures()
        extras.store_failures.note(self._kernel.clock.mono_ns(), limits.restarts_max, limits.restart_window_ms)
        self._wait(cell, len(extras.store_failures), limits.store_backoff_ms_max)

    def release(self, cell: Cell) -> None:
        """Start a quarantined entity again, with a clean record."""
        self._kernel.count("released")
        del self._kernel.quarantine[cell.ref]
        cell.extra().failures = None
        cell.room = cell.type.mailbox_max
        cell.used_ns = cell.filed_ns = self._kernel.clock.mono_ns()
        self._restart_now(cell)
        if cell.type.idle_ms:
            self._lifecycle.residents.admit(cell)

    def restart(self, cell: Cell) -> bool:
        """An operator's wish: a running or waiting entity starts again from the store, and its mail waits for it.
        False when it is starting anyway."""
        if cell.phase is Phase.LOADING:
            return False
        if cell.phase is Phase.RUNNING:
            self._lifecycle.discard(cell, None)
        cell.durable = UNREAD
        self._restart_now(cell)
        return True

    def settled(self, cell: Cell) -> None:
        """A waiting cell's write was answered."""
        extras = cell.extras
        if extras is None or cell.writer is not None:
            return
        if extras.ending and not cell.mailbox:
            self._lifecycle.remove(cell)
        elif extras.restart_due or extras.ending:
            extras.restart_due = extras.ending = extras.deleting = False
            self._start_again(cell)

    # ---- what a failure does

    def _decided(self, cell: Cell, error: Exception) -> Directive:
        try:
            return cell.type.decider(error)
        except Exception:
            self._kernel.count("decider_failed")
            _log.exception("the decider of %s failed", cell.type.kind)
            return Directive.RESTART

    def _resume(self, cell: Cell, mail: Mail, error: Exception) -> None:
        kernel = self._kernel
        kernel.count("resumed")
        mail.deliveries += 1
        if cell.extras is not None:
            kept = cell.extras.kept
            for token in [token for token, held in kept.items() if held is mail]:
                del kept[token]
        kernel.drop(cell, mail, Failed(Failure.FAILED, describe(error)), describe(error))
        if not cell.mailbox:
            cell.mailbox = None
        kernel.schedule(cell)
        self._lifecycle.settle(cell)

    def _end(self, cell: Cell, mail: Mail | None, error: Exception) -> None:
        kernel = self._kernel
        kernel.count("stopped_failing")
        if mail is not None:
            mail.deliveries += 1
            kernel.drop(cell, mail, Failed(Failure.FAILED, describe(error)), describe(error))
        else:  # what waits would only start it again, for ever
            self._refuse_waiting(cell, Failed(Failure.STOPPED, describe(error)))
        if cell.phase is Phase.STOPPING:
            self._lifecycle.settle(cell)
            return
        cell.phase = Phase.BACKOFF
        extras = cell.extra()
        extras.failures = None
        extras.ending = True
        self.settled(cell)

    def _redeliver(self, cell: Cell, mail: Mail, error: Exception) -> None:
        mail.deliveries += 1
        once = mail.origin is Origin.TIMER or cell.phase is Phase.STOPPING
        if once or mail.deliveries >= limits.deliveries_max:
            self._kernel.drop(cell, mail, Failed(Failure.FAILED, describe(error)), describe(error))
        elif cell.mailbox is None:
            cell.mailbox = deque((mail,))
        else:
            cell.mailbox.appendleft(mail)

    def _quarantine(self, cell: Cell, error: Exception, mail: Mail | None) -> None:
        kernel = self._kernel
        kernel.count("quarantined")
        noted = cell.extra().failures
        failures = len(noted) if noted else 0
        name, size = ("", 0) if mail is None else (kernel.name_of(mail.message), kernel.size_of(mail.message))
        kernel.quarantine[cell.ref] = Fault(kernel.clock.wall_ms(), describe(error), name, size, failures)
        cell.phase = Phase.QUARANTINED
        cell.room = 0
        if cell.type.idle_ms:
            self._lifecycle.residents.park(cell)
        if mail is not None and cell.mailbox and cell.mailbox[0] is mail:
            cell.mailbox.popleft()
            kernel.drop(cell, mail, Failed(Failure.FAILED, describe(error)), describe(error))
        self._refuse_waiting(cell, Failed(Failure.REJECTED, "quarantined"))

    def _refuse_waiting(self, cell: Cell, failed: Failed) -> None:
        mailbox, cell.mailbox = cell.mailbox, None
        for item in mailbox or ():
            self._kernel.drop(cell, item, failed)

    # ---- starting again

    def _wait(self, cell: Cell, failures: int, max_ms: int = limits.restart_backoff_ms_max) -> None:
        kernel = self._kernel
        cell.phase = Phase.BACKOFF
        extras = cell.extra()
        extras.retry = Call(lambda _: self._restart_now(cell))
        kernel.timers.add(kernel.clock.mono_ns() + backoff_ns(failures, kernel.rng, max_ms), extras.retry)

    def _restart_now(self, cell: Cell) -> None:
        extras = cell.extra()
        if extras.retry is not None:
            self._kernel.timers.cancel(extras.retry)  # one that fires is not live any more
            extras.retry = None
        cell.phase = Phase.BACKOFF
        if cell.writer is None:
            self._start_again(cell)
        else:
            extras.restart_due = True  # requests of one entity follow one another

    def _start_again(self, cell: Cell) -> None:
        self._kernel.count("restarts")
        self._lifecycle.load(cell)
