"""A cell's life: load, start, fail, wait, restart, quarantine, passivate, stop. Handlers run in `dispatcher`; here
only `Actor.start` does. What a failure leads to is `supervisor`'s.

| phase | mail | leaves it by |
|---|---|---|
| LOADING | waits | state read → `start` → RUNNING; read failed → BACKOFF |
| RUNNING | runs | handler raised → BACKOFF or QUARANTINED; write lost, deleted → BACKOFF; quiet and leaving → GONE |
| BACKOFF | waits | delay over, or deleted, and no write under way → LOADING; to end, and none waits → GONE |
| QUARANTINED | refused | released → BACKOFF, at once LOADING |
| STOPPING | bounces; own mail runs while a reply is owed | nothing under way, no kept reply can come → GONE |

A `Reversible` actor whose write definitely failed goes back to what is durable and stays RUNNING.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from node.actors.actor import EntityType, Failed, Failure, Reversible
from node.actors.cell import UNREAD, Cell, Phase, Shard
from node.actors.context import CellContext
from node.actors.kernel import Kernel
from node.actors.mailbox import Mail, travels
from node.actors.persist import Persistence
from node.actors.residents import Residents
from node.actors.supervisor import Supervisor
from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.core.hashing import digest8
from node.core.ids import EntityRef
from node.store.port import Absent, Answer, Fenced, ReadState, Record, StoreFailed


class Lifecycle:
    """Brings cells to life and to their end."""

    def __init__(self, kernel: Kernel, residents_max: int) -> None:
        self._kernel = kernel
        self._tokens = 0
        self.persistence = Persistence(kernel, self._write_lost, self.settle)
        self.supervisor = Supervisor(kernel, self)
        self.residents = Residents(kernel, residents_max, self.leave)

    def next_token(self) -> int:
        self._tokens += 1
        return self._tokens

    # ---- finding and starting

    def locate(self, to: EntityRef) -> Cell | None:
        """The entity's cell, started if need be; None when it is not for this node to run it now."""
        kernel = self._kernel
        cell = kernel.cells.get(to)
        if cell is not None:
            return None if cell.phase is Phase.STOPPING else cell
        shard = kernel.shards.get(to.shard)
        entity_type = kernel.types.get(to.kind)
        if shard is None or shard.stopping or entity_type is None:
            return None
        return self.begin(shard, entity_type, to)

    def begin(self, shard: Shard, entity_type: EntityType, ref: EntityRef) -> Cell:
        """A new cell, loading."""
        cell = Cell(ref, entity_type, shard, self._kernel.clock.mono_ns())
        if entity_type.idle_ms:
            self.residents.admit(cell)
        self._kernel.cells[ref] = cell
        shard.cells[cell] = None
        self.load(cell)
        return cell

    def load(self, cell: Cell) -> None:
        """Read its state, unless what is durable is known for sure, then start it."""
        kernel = self._kernel
        cell.phase = Phase.LOADING
        if cell.type.durable is None:
            kernel.later(self._start, cell, None, 0)
            return
        if cell.durable is not UNREAD:
            kernel.later(self._start, cell, cell.durable, cell.revision)
            return
        request = ReadState(cell.ref.kind, cell.ref.id)
        kernel.ports.submit(request, lambda answer: kernel.later(self._loaded, cell, answer))

    def _loaded(self, cell: Cell, answer: Answer) -> None:
        if cell.phase is not Phase.LOADING:
            return  # stopped while it was read
        if isinstance(answer, Absent):
            self._start(cell, None, answer.revision)
        elif isinstance(answer, Record):
            try:
                state = self._kernel.ports.codec.decode_record(answer.body)
            except RemoteProtocolError as error:
                self.supervisor.failed(cell, error, None)
                return
            if type(state) is cell.type.durable:
                self._start(cell, state, answer.revision)
            else:
                self.supervisor.failed(cell, TypeError(f"the record of {cell.ref} holds {type(state).__name__}"), None)
        else:
            self._kernel.count("loads_failed")
            self.supervisor.back_off(cell)

    def _start(self, cell: Cell, state: Any, revision: int) -> None:
        if cell.phase is not Phase.LOADING:
            return
        kernel = self._kernel
        cell.revision, cell.durable = revision, state
        cell.leaving = False
        now_ns = kernel.clock.mono_ns()
        context = CellContext(kernel, self, cell, now_ns)

        def start() -> None:
            actor = cell.type.factory(cell.ref.id)
            actor.start(context, state)
            cell.actor = actor
            if context.staged:
                self.persistence.commit(cell, context.staged)

        if not self._ran(cell, context, start):
            return
        kernel.count("cells_started")
        if context.ended:
            self.deleted(cell)
            return
        cell.used_ns = cell.filed_ns = now_ns
        if cell.phase is Phase.LOADING:
            cell.phase = Phase.RUNNING
        kernel.schedule(cell)
        self.settle(cell)

    def _ran(self, cell: Cell, context: CellContext, handler: Callable[[], None]) -> bool:
        """Run a handler that no message leads to; one that raised is a failure of its cell (False)."""
        kernel = self._kernel
        kernel.current = cell
        fault: Exception | None = None
        try:
            handler()
        except Exception as error:
            fault = error
        finally:
            context.close()
            kernel.current = None
        if fault is not None:
            self.supervisor.failed(cell, fault, None)
        return fault is None

    # ---- writes that were refused

    def _write_lost(self, cell: Cell, answer: Answer) -> None:
        kernel = self._kernel
        shard = cell.shard
        if isinstance(answer, Fenced) and not shard.fenced:
            shard.fenced = True
            kernel.later_outside(kernel.ports.fenced, shard.number, shard.epoch, answer.found)
        if cell.phase is Phase.RUNNING and isinstance(answer, StoreFailed) and answer.definite:
            self._go_back(cell)
        elif cell.phase is Phase.RUNNING:
            self.discard(cell, None)
            self.supervisor.back_off(cell)
        elif cell.phase is Phase.BACKOFF and cell.extras is not None and cell.extras.deleting:
            cell.extras.ending = cell.extras.deleting = False  # it is still there, and may be a remembered one
            self.supervisor.back_off(cell)
        else:
            if cell.phase is Phase.STOPPING:
                self.discard(cell, None)
            self.settle(cell)

    def _go_back(self, cell: Cell) -> None:
        """Nothing of the write happened, so what was durable still is: nobody has to be asked. An actor that can't
        turn back itself starts again from it, after a while."""
        kernel, actor, durable = self._kernel, cell.actor, cell.durable
        if not isinstance(actor, Reversible):
            self.discard(cell, None)
            cell.durable = durable
            self.supervisor.back_off(cell)
            return
        kernel.count("rolled_back")
        self.fail_kept(cell, None)
        context = CellContext(kernel, self, cell, kernel.clock.mono_ns())

        def roll_back() -> None:
            actor.roll_back(context, durable)
            if context.staged:
                raise LocalProtocolError(f"{cell.ref} persists while it goes back to what is durable")

        if self._ran(cell, context, roll_back):
            self.settle(cell)

    # ---- ending

    def deleted(self, cell: Cell) -> None:
        """Its handler deleted its state. Mail of others that waits starts it anew, once that is durable."""
        kernel = self._kernel
        kernel.count("deleted")
        self.discard(cell, None)
        waiting, cell.mailbox = cell.mailbox or (), None
        for item in waiting:
            if not travels(item):
                kernel.dead.count("own_deleted", item.origin.value)
            elif cell.mailbox is None:
                cell.mailbox = deque((item,))
            else:
                cell.mailbox.append(item)
        if cell.phase is Phase.STOPPING:
            self.settle(cell)
            return
        cell.phase = Phase.BACKOFF
        extras = cell.extra()
        extras.ending = extras.deleting = True
        self.supervisor.settled(cell)

    def leave(self, cell: Cell) -> bool:
        """Passivate it, at once when it is quiet (True), else as soon as it is. Mail that comes first is handled
        first."""
        cell.leaving = True
        self.settle(cell)
        return cell.phase is Phase.GONE

    def settle(self, cell: Cell) -> None:
        """Something ended: is it the time for what waits for quiet?"""
        if cell is self._kernel.current:
            return
        phase = cell.phase
        if phase is Phase.STOPPING:
            if cell.writer is None and (cell.actor is None or not (cell.mailbox or cell.finishing)):
                self.remove(cell)
        elif phase is Phase.BACKOFF:
            self.supervisor.settled(cell)
        elif phase is Phase.RUNNING and cell.leaving and cell.quiet:
            self._kernel.count("passivated")
            self.remove(cell)

    def remove(self, cell: Cell) -> None:
        """The cell is gone; the next message makes a new one."""
        kernel = self._kernel
        self.discard(cell, None)
        cell.phase = Phase.GONE
        for item in cell.mailbox or ():
            kernel.bury("stopped", cell.ref, item)
        cell.mailbox = None
        kernel.quarantine.pop(cell.ref, None)
        if cell.type.idle_ms:
            self.residents.gone(cell)
        del kernel.cells[cell.ref]
        shard = cell.shard
        del shard.cells[cell]
        if shard.stopping and cell.revision:
            left = f"{cell.ref.kind}|{cell.ref.id}|{cell.revision}"
            shard.digest ^= int.from_bytes(digest8(left), "big")
        if shard.stopping and not shard.cells:
            self.shard_ended(shard)

    def shard_ended(self, shard: Shard) -> None:
        """The last cell of a stopping shard is gone. Until its owner is told, mail for it still bounces."""
        if shard.replies_end is not None:
            self._kernel.timers.cancel(shard.replies_end)
        self._kernel.later(self._end_shard, shard)

    def _end_shard(self, shard: Shard) -> None:
        del self._kernel.shards[shard.number]
        for on_stopped in shard.on_stopped:
            self._kernel.call_outside(on_stopped, shard.tally())

    def discard(self, cell: Cell, but: Mail | None) -> None:
        """Drop the actor and all that is its own; kept asks are told, except `but`, which will be delivered again."""
        kernel = self._kernel
        cell.actor = None
        cell.durable = UNREAD  # memory is not to be trusted with it
        extras = cell.extras
        if extras is None:
            return
        if extras.retry is not None:
            kernel.timers.cancel(extras.retry)
        for timer in extras.timers.values():
            kernel.timers.cancel(timer)
        extras.timers.clear()
        for subscription in extras.subscriptions:
            subscription.close()
        extras.subscriptions.clear()
        self.fail_kept(cell, but)

    def fail_kept(self, cell: Cell, but: Mail | None) -> None:
        """Its kept replies will not come, which their askers are told; `but` is left for its next delivery."""
        kernel = self._kernel
        if cell.extras is None or not cell.extras.kept:
            return
        kept = tuple(cell.extras.kept.values())
        cell.extras.kept.clear()
        for mail in kept:
            if mail is not but:
                kernel.count("kept_failed")
                kernel.fail(mail, Failed(Failure.FAILED, "the entity stopped or turned back before it answered"))
