"""Durable writes of a cell: at most one under way, what is persisted meanwhile is folded into the next.

What waits for a write (a reply, a message to self) is released when the write that covers it is durable, in the order
of the persists. A handler's persists are staged until it returns: one that raises leaves nothing half-written.

The cell keeps the state that is durable, as the actor passed it: it is what a write that definitely failed leads back
to, without asking the store.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from node.actors.actor import Failed, Failure
from node.actors.cell import UNREAD, Cell
from node.actors.kernel import Kernel
from node.actors.mailbox import Mail, Origin
from node.core import limits
from node.core.errors import LocalProtocolError, OperatingError
from node.store.port import Answer, Conflict, DeleteState, Fact, Fenced, StoreFailed, WriteState, Written


@dataclass(slots=True)
class Staged:
    """One call of persist: the state, it and the facts encoded, and what waits for them. Without a body it only waits;
    a delete's is empty."""

    body: bytes | None
    facts: tuple[Fact, ...]
    mail: Mail | None
    reply: msgspec.Struct | None
    then: object | None
    trace: str
    state: msgspec.Struct | None = None
    deletes: bool = False


@dataclass(slots=True)
class Batch:
    """What one write covers: the newest state, or that it is deleted, all facts, all that waits."""

    state: msgspec.Struct | None = None
    body: bytes = b""
    deletes: bool = False
    facts: list[Fact] = field(default_factory=list)
    waiting: list[Staged] = field(default_factory=list)


@dataclass(slots=True)
class Writer:
    """A cell's writes; dropped when both are empty."""

    under_way: Batch
    next: Batch | None = None

    @property
    def owes(self) -> bool:
        """A reply waits for one of the writes."""
        batches = (self.under_way,) if self.next is None else (self.under_way, self.next)
        return any(item.reply is not None for batch in batches for item in batch.waiting)


class Persistence:
    """Writes of all cells. `on_lost(cell, answer)`: a write was refused or failed, the actor's memory is ahead of the
    store; `on_settled(cell)`: nothing is under way any more."""

    def __init__(
        self, kernel: Kernel, on_lost: Callable[[Cell, Answer], None], on_settled: Callable[[Cell], None]
    ) -> None:
        self._kernel = kernel
        self._on_lost = on_lost
        self._on_settled = on_settled

    def commit(self, cell: Cell, staged: Sequence[Staged]) -> None:
        """The handler returned: its persists go into the next write, and what only waits goes with the newest."""
        kernel = self._kernel
        bodies = sum(item.body is not None for item in staged)
        batch = Batch()
        if cell.writer is not None:
            batch = cell.writer.next or (batch if bodies else cell.writer.under_way)
        if cell.writer is not None and bodies:
            kernel.count("persists_folded", bodies)
            cell.writer.next = batch
        for item in staged:
            if item.reply is not None and (item.mail is None or not kernel.promise(item.mail)):
                item.reply = None
            if item.body is not None:
                batch.state, batch.body, batch.deletes = item.state, item.body, item.deletes
            batch.facts.extend(item.facts)
            batch.waiting.append(item)
        if cell.writer is None:
            cell.writer = Writer(batch)
            self._submit(cell, batch)

    def _submit(self, cell: Cell, batch: Batch) -> None:
        kernel = self._kernel
        ref, shard, revision, facts = cell.ref, cell.shard, cell.revision, tuple(batch.facts)
        request: WriteState | DeleteState
        if batch.deletes:
            request = DeleteState(ref.kind, ref.id, shard.number, shard.epoch, revision, facts)
        else:
            request = WriteState(ref.kind, ref.id, shard.number, shard.epoch, revision, batch.body, facts)
        kernel.count("writes")
        kernel.ports.submit(request, lambda answer: kernel.later(self._answered, cell, answer))

    def _answered(self, cell: Cell, answer: Answer) -> None:
        writer = cell.writer
        if writer is None:
            return
        if not isinstance(answer, Written):
            self._lost(cell, writer, answer)
            return
        batch = writer.under_way
        cell.revision = 0 if batch.deletes else answer.revision  # who comes after a delete reads what is there
        if cell.durable is not UNREAD:
            cell.durable = batch.state
        if writer.next is not None:
            writer.under_way, writer.next = writer.next, None
            self._submit(cell, writer.under_way)
        else:
            cell.writer = None
        kernel = self._kernel
        for item in batch.waiting:
            if item.reply is not None and item.mail is not None:
                kernel.send_answer(item.mail, item.reply)
            if item.then is not None:
                kernel.post(cell, Mail(Origin.THEN, item.then, kernel.me, trace=item.trace))
        if cell.writer is None:
            self._on_settled(cell)

    def _lost(self, cell: Cell, writer: Writer, answer: Answer) -> None:
        kernel = self._kernel
        kernel.count(f"writes_{type(answer).__name__.lower()}")
        cell.writer = None
        failed = _failed(answer)
        for number, batch in enumerate((writer.under_way, writer.next)):
            if batch is None:
                continue
            # The second batch never left this node, whatever became of the first.
            outcome = failed if number == 0 else Failed(Failure.STOPPED, failed.detail)
            for item in batch.waiting:
                if item.reply is not None and item.mail is not None:
                    kernel.send_answer(item.mail, outcome)
                if item.then is not None:
                    kernel.dead.count("write_lost", type(item.then).__name__)
        self._on_lost(cell, answer)


def stage(
    kernel: Kernel,
    cell: Cell,
    state: msgspec.Struct,
    facts: Sequence[msgspec.Struct],
    mail: Mail | None,
    reply: msgspec.Struct | None,
    then: object | None,
    trace: str,
) -> Staged:
    """Checks and encodes at once: what is written is what was passed, whatever the handler does then. Raises
    LocalProtocolError for a state that is not the type's, OperatingError for one that is too large."""
    if type(state) is not cell.type.durable:
        raise LocalProtocolError(f"{cell.type.kind!r} persists {cell.type.durable}, not {type(state)}")
    if reply is not None:
        kernel.check(reply)
    body = kernel.ports.codec.encode_record(state)
    if len(body) > limits.record_bytes_max:
        raise OperatingError("E-RECORD-TOO-LARGE", f"{cell.ref} has a state of {len(body)} bytes")
    return Staged(body, _encoded(kernel, facts), mail, reply, then, trace, state)


def stage_delete(
    kernel: Kernel,
    cell: Cell,
    facts: Sequence[msgspec.Struct],
    mail: Mail | None,
    reply: msgspec.Struct | None,
    trace: str,
) -> Staged:
    """As `stage`, for the end of the state. Raises LocalProtocolError for a type that keeps nothing."""
    if cell.type.durable is None:
        raise LocalProtocolError(f"{cell.type.kind!r} keeps no state that could be deleted")
    if reply is not None:
        kernel.check(reply)
    return Staged(b"", _encoded(kernel, facts), mail, reply, None, trace, deletes=True)


def _encoded(kernel: Kernel, facts: Sequence[msgspec.Struct]) -> tuple[Fact, ...]:
    codec = kernel.ports.codec
    return tuple(Fact(kernel.registry.of(fact).name, codec.encode_record(fact)) for fact in facts)


def _failed(answer: Answer) -> Failed:
    match answer:
        case Fenced():
            return Failed(Failure.STOPPED, "fenced")
        case Conflict():
            return Failed(Failure.STOPPED, "conflict")
        case StoreFailed(code, _, definite=True):
            return Failed(Failure.STOPPED, code)
        case StoreFailed(code, _, _):
            return Failed(Failure.FAILED, code)
        case _:
            return Failed(Failure.FAILED, f"unexpected answer {type(answer).__name__}")
