"""The actor system of one node, sans-IO: what the engine, the region and the edges see of the runtime.

All of it is called from one thread. Handlers run only inside `turn`; everything else queues. What the driver owes is
in `node.actors.ports`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from node.actors import routing
from node.actors.actor import EntityType, Failed, Failure
from node.actors.ask import from_wire
from node.actors.bus import Bus
from node.actors.cell import Phase, ShardTally
from node.actors.cellview import CellView, view_of
from node.actors.deadletters import DeadLetters
from node.actors.dispatcher import Dispatcher
from node.actors.flight import AtWork, SlowHandler, Turn
from node.actors.kernel import Kernel
from node.actors.lifecycle import Lifecycle
from node.actors.ports import Ports
from node.actors.shards import Shards
from node.actors.supervision import Fault
from node.actors.unfinished import Unfinished, unfinished
from node.core import limits
from node.core.clock import Clock
from node.core.errors import BadInput
from node.core.ids import EntityRef, NodeId, Ref
from node.core.rng import Rng
from node.wire.envelope import Envelope, Kind


class ActorSystem:
    """Cells, mailboxes, asks, timers and the bus of one node."""

    def __init__(
        self,
        me: NodeId,
        clock: Clock,
        rng: Rng,
        types: Sequence[EntityType],
        ports: Ports,
        *,
        residents_max: int = limits.residents_max,
    ) -> None:
        """`residents_max`: passivatable entities kept in memory. Raises LocalProtocolError when a durable state's
        class is not in the wire registry."""
        self._kernel = Kernel(me, clock, rng, types, ports)
        self._lifecycle = Lifecycle(self._kernel, residents_max)
        self._shards = Shards(self._kernel, self._lifecycle)
        self._dispatcher = Dispatcher(self._kernel, self._lifecycle)

    # ---- driving

    def turn(self, now_ns: int) -> bool:
        """Fire due timers and run a slice of what waits; True when more waits."""
        return self._dispatcher.turn(now_ns)

    def next_wake_ns(self) -> int | None:
        """When the next timer is due, in monotonic nanoseconds; None when there is none."""
        return self._kernel.timers.next_ns()

    # ---- shards, decided by the region

    def shard_started(self, shard: int, epoch: int) -> None:
        """This node owns the shard and writes under `epoch`; remembered entities start, paced."""
        self._shards.started(shard, epoch)

    def shard_stopping(self, shard: int, on_stopped: Callable[[ShardTally], None]) -> None:
        """Waiting mail bounces at once, in order; current messages, kept replies and writes finish; then
        `on_stopped`, once, with what became of its mail. Of a shard that is not owned: `on_stopped` in the next
        turn."""
        self._shards.stopping(shard, on_stopped)

    def owned(self) -> dict[int, int]:
        """The shards that run here, with their epochs."""
        return {shard.number: shard.epoch for shard in self._kernel.shards.values() if not shard.stopping}

    # ---- messages

    def deliver(self, envelope: Envelope) -> None:
        """A tell or an ask for an entity of an owned shard, or an answer to an ask of this node. Of a stopping shard
        it bounces; of a shard that is not owned it is refused with STOPPED."""
        kernel = self._kernel
        if envelope.kind in (Kind.REPLY, Kind.REJECT):
            self.on_reply(envelope)
            return
        to = envelope.to
        if not isinstance(to, EntityRef):
            self.refuse(envelope, Failure.REJECTED, "not an entity")
            return
        cell = self._lifecycle.locate(to)
        if cell is not None:
            kernel.offer(cell, routing.mail_of(kernel, envelope))
            return
        shard = kernel.shards.get(to.shard)
        if shard is None:
            self.refuse(envelope, Failure.STOPPED, "not the owner")
        elif shard.stopping:
            kernel.count("bounced")
            kernel.ports.bounce(envelope)
        else:
            self.refuse(envelope, Failure.REJECTED, f"no entity type {to.kind!r}")

    def refuse(self, envelope: Envelope, failure: Failure, detail: str = "") -> None:
        """An envelope that could not be delivered or sent: an ask is answered, a tell is a dead letter, an answer is
        counted (its asker times out)."""
        kernel = self._kernel
        if envelope.kind in (Kind.REPLY, Kind.REJECT):
            kernel.dead.count(failure.value, "reply")
        else:
            kernel.refuse(envelope.to, routing.mail_of(kernel, envelope), Failed(failure, detail))

    def tell(self, to: Ref, message: msgspec.Struct, *, trace: str = "") -> None:
        """Send from outside any actor. Raises LocalProtocolError for an unregistered message."""
        kernel = self._kernel
        # The common cases without further calls; everything else is `routing.tell`'s.
        if not trace and type(to) is EntityRef and type(message) in kernel.known:
            cell = kernel.cells.get(to)
            if cell is not None:
                if cell.scheduled:
                    if cell.mailbox and len(cell.mailbox) < cell.room:
                        cell.shard.arrived += 1
                        cell.mailbox.append(message)
                        return
                elif kernel.rouse(cell, message):
                    return
        routing.tell(kernel, self._lifecycle, to, message, trace)

    def ask(
        self,
        to: Ref,
        message: msgspec.Struct,
        timeout_ms: int,
        on_outcome: Callable[[Any], object],
        *,
        trace: str = "",
    ) -> None:
        """Ask from outside any actor: `on_outcome` is called exactly once, in a turn, with the reply or Failed.
        Raises LocalProtocolError for an unregistered message."""
        routing.ask(self._kernel, self._lifecycle, to, message, timeout_ms, None, on_outcome, trace)

    def on_reply(self, envelope: Envelope) -> None:
        """An answer from another node; one that matches no open ask is counted."""
        outcome = envelope.message if envelope.kind is Kind.REPLY else from_wire(envelope.message)
        self._kernel.asks.resolve(envelope.correlation, outcome)

    # ---- bus

    @property
    def bus(self) -> Bus:
        """Topics of this node: `declare`, `subscribe`, `snapshot`."""
        return self._kernel.bus

    def publish(self, topic: str, event: msgspec.Struct) -> None:
        """To the subscribers on every node. Raises LocalProtocolError for an unregistered event or topic."""
        self._kernel.check(event)
        self._kernel.bus.publish(topic, event)
        self._kernel.ports.publish(topic, event)

    def publish_remote(self, topic: str, event: msgspec.Struct) -> None:
        """An event that another node published: to the subscribers here."""
        self._kernel.bus.publish_remote(topic, event)

    # ---- what an operator sees and does

    @property
    def dead_letters(self) -> DeadLetters:
        return self._kernel.dead

    def replay_dead_letter(self, number: int) -> None:
        """Take a dead letter from the ring and send it again, as a tell: whoever asked has been answered. Raises
        BadInput when it is not there any more, or was a message of the entity's own."""
        letter = self._kernel.dead.take(number, replayable=True)
        if letter is None:
            raise BadInput("dead_letter", f"{number} is not there or can't be sent again")
        self._kernel.count("dead_letters_replayed")
        self.tell(letter.to, letter.message, trace=letter.trace)

    def discard_dead_letter(self, number: int) -> None:
        """Forget a dead letter; the counters keep it. Raises BadInput when it is not there any more."""
        if self._kernel.dead.take(number) is None:
            raise BadInput("dead_letter", f"{number} is not there")
        self._kernel.count("dead_letters_discarded")

    def quarantined(self) -> dict[EntityRef, Fault]:
        """Entities that failed too often, with why."""
        return dict(self._kernel.quarantine)

    def release(self, ref: EntityRef) -> None:
        """Start a quarantined entity again. Raises BadInput when it is not quarantined here."""
        cell = self._kernel.cells.get(ref)
        if cell is None or cell.phase is not Phase.QUARANTINED:
            raise BadInput("entity", f"{ref} is not quarantined on this node")
        self._lifecycle.supervisor.release(cell)

    def restart(self, ref: EntityRef) -> bool:
        """Start an entity of an owned shard again from the store; its mail waits meanwhile. False when it is starting
        anyway. Raises BadInput when it can't be: quarantined, or not this node's to run now."""
        known = ref in self._kernel.cells
        cell = self._lifecycle.locate(ref)
        if cell is None:
            raise BadInput("entity", f"{ref} is not for this node to run now")
        if cell.phase is Phase.QUARANTINED:
            raise BadInput("entity", f"{ref} is quarantined: release it")
        return self._lifecycle.supervisor.restart(cell) if known else True

    def passivate(self, ref: EntityRef) -> bool:
        """Stop an entity once its mailbox is empty and its state is flushed; the next message starts it again. False
        when it is not in memory. Raises BadInput for one that is quarantined or was never declared passivatable."""
        cell = self._kernel.cells.get(ref)
        if cell is None or cell.phase is Phase.STOPPING:
            return False
        if cell.phase is Phase.QUARANTINED:
            raise BadInput("entity", f"{ref} is quarantined: release it")
        if not cell.type.idle_ms:
            raise BadInput("entity", f"entities of the type {ref.kind!r} are not made to be stopped")
        self._lifecycle.leave(cell)
        return True

    def at_work(self) -> AtWork | None:
        """The handler that runs now, for whoever looks from another thread; None between handlers."""
        kernel = self._kernel
        cell, message = kernel.current, kernel.handling
        if cell is None or message is None:
            return None
        return AtWork(cell.ref, type(message), message, kernel.flight[-1] if kernel.flight else None)

    def size_of(self, message: object) -> int:
        """A message's bytes on the wire; 0 for one of an entity's own."""
        return self._kernel.size_of(message)

    def passivates(self, kind: str) -> bool:
        """Whether entities of this kind may be stopped while nobody needs them."""
        entity_type = self._kernel.types.get(kind)
        return entity_type is not None and entity_type.idle_ms > 0

    def mailbox_limits(self) -> dict[str, int]:
        """How many messages may wait for one entity, by kind."""
        return {kind: entity_type.mailbox_max for kind, entity_type in self._kernel.types.items()}

    def flight(self) -> tuple[Turn, ...]:
        """The newest turns, oldest first."""
        return tuple(self._kernel.flight)

    def slow_handlers(self) -> tuple[SlowHandler, ...]:
        """Handlers that took longer than `handler_slow_ms`, the longest first."""
        return self._kernel.slow.all()

    def cells(self, *kinds: str) -> Iterator[CellView]:
        """All cells, or those of these kinds, in the order of their start; read only, and not kept beyond the call."""
        return (view_of(cell) for ref, cell in self._kernel.cells.items() if not kinds or ref.kind in kinds)

    def refs(self) -> Iterator[EntityRef]:
        """Of all cells, in the order of their start: for who looks at few of many."""
        return iter(self._kernel.cells)

    def cell(self, ref: EntityRef) -> CellView | None:
        """One cell; None when the entity is not in memory here."""
        cell = self._kernel.cells.get(ref)
        return None if cell is None else view_of(cell)

    def cells_by_kind(self) -> dict[str, int]:
        """How many cells there are of each kind."""
        found: dict[str, int] = {}
        for ref in self._kernel.cells:
            found[ref.kind] = found.get(ref.kind, 0) + 1
        return found

    def cells_by_shard(self) -> dict[int, int]:
        """How many cells each shard has that is here, those that stop among them."""
        return {number: len(shard.cells) for number, shard in self._kernel.shards.items()}

    def unfinished(self) -> Iterator[Unfinished]:
        """Cells with something under way, by name and with why; read only, and not kept beyond the call."""
        return unfinished(self._kernel)

    def askers(self) -> dict[EntityRef | None, int]:
        """Asks without outcome, by the entity that asked; None stands for code outside actors."""
        return self._kernel.asks.askers()

    def depths(self) -> dict[EntityRef, int]:
        """Messages waiting, of the cells that have any."""
        return {cell.ref: len(cell.mailbox) for cell in self._kernel.cells.values() if cell.mailbox}

    def stats(self) -> dict[str, int]:
        """Counters since the start, and how much there is of what now."""
        kernel = self._kernel
        return kernel.counters | {
            "handled": self._dispatcher.handled,
            "cells": len(kernel.cells),
            "shards": len(kernel.shards),
            **kernel.asks.counts(),
            "timers": len(kernel.timers),
            "run_queue": len(kernel.queue),
            "residents": self._lifecycle.residents.count,
            "slow_handlers": kernel.slow.count,
            "dead_letters": sum(kernel.dead.counters.values()),
            "bus_published": kernel.bus.published,
            "bus_lost": kernel.bus.lost,
            "bus_unknown": kernel.bus.unknown,
        }
