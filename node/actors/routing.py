"""Sending: straight into a mailbox when the entity's shard runs here, through the port otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from node.actors.actor import Failed, Failure
from node.actors.cell import Cell
from node.actors.kernel import Kernel
from node.actors.mailbox import Mail, Origin
from node.core.clock import MS
from node.core.ids import EntityRef, Ref
from node.wire.envelope import Envelope, Kind

if TYPE_CHECKING:
    from node.actors.lifecycle import Lifecycle


def tell(kernel: Kernel, lifecycle: Lifecycle, to: Ref, message: msgspec.Struct, trace: str) -> None:
    """Raises LocalProtocolError for an unregistered message, also when it would stay on this node (R3)."""
    if type(message) not in kernel.known:
        kernel.check(message)
    cell = lifecycle.locate(to) if type(to) is EntityRef else None
    if cell is None:
        kernel.ports.route(Envelope(Kind.TELL, to, kernel.me, message, 0, 0, trace))
    elif trace:
        kernel.offer(cell, Mail(Origin.TELL, message, kernel.me, trace=trace))
    else:
        kernel.offer(cell, message)


def ask(
    kernel: Kernel,
    lifecycle: Lifecycle,
    to: Ref,
    message: msgspec.Struct,
    timeout_ms: int,
    asker: Cell | None,
    then: Callable[[Any], object],
    trace: str,
) -> None:
    """An ask of a cell, or of code outside when `asker` is None. Raises as `tell` does."""
    if type(message) not in kernel.known:
        kernel.check(message)
    if kernel.asks.full:
        kernel.count("asks_refused")
        no_answer(kernel, asker, then, Failed(Failure.SATURATED, "open asks"), trace)
        return
    now_ns, timeout_ns = kernel.clock.mono_ns(), timeout_ms * MS
    deadline_ns = now_ns + timeout_ns
    correlation = kernel.asks.open(asker, then, now_ns, timeout_ns, trace)
    if asker is not None:
        asker.open += 1
    cell = lifecycle.locate(to) if type(to) is EntityRef else None
    if cell is None:
        kernel.ports.route(Envelope(Kind.ASK, to, kernel.me, message, correlation, deadline_ns, trace))
    else:
        mail = Mail(Origin.ASK, message, kernel.me, correlation=correlation, deadline_ns=deadline_ns, trace=trace)
        kernel.offer(cell, mail)


def no_answer(kernel: Kernel, asker: Cell | None, then: Callable[[Any], object], outcome: object, trace: str) -> None:
    """The outcome of something that never got under way."""
    if asker is None:
        kernel.later_outside(then, outcome)
    else:
        kernel.post(asker, Mail(Origin.OUTCOME, outcome, kernel.me, trace=trace, adapter=then))


def mail_of(kernel: Kernel, envelope: Envelope) -> Any:
    """An envelope as what is queued."""
    if envelope.kind is Kind.TELL and not envelope.trace and not envelope.deliveries and envelope.sender == kernel.me:
        return envelope.message
    mail = Mail(
        Origin.ASK if envelope.kind is Kind.ASK else Origin.TELL,
        envelope.message,
        envelope.sender,
        correlation=envelope.correlation,
        deadline_ns=envelope.deadline_ns,
        trace=envelope.trace,
    )
    mail.deliveries = envelope.deliveries
    return mail
