"""What a node answers about its actors, and what it does to them when an operator asks, under `/node`."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from node.actors.actor import Failure
from node.actors.cellview import CellView
from node.actors.deadletters import DeadLetter
from node.core import limits
from node.core.clock import MS, US
from node.core.errors import BadInput
from node.core.ids import SINGLETON_ID, EntityRef
from node.engine.actor_messages import (
    DeadLetterPage,
    DeadLetterRow,
    EntityCommand,
    EntityPage,
    EntityRow,
    FlightPage,
    FlightTurn,
    GetDeadLetters,
    GetEntities,
    GetEntity,
    GetFlight,
    GetMailboxes,
    MailboxPage,
    Settled,
    SettleDeadLetters,
    SlowRow,
)
from node.engine.messages import FaultReport, NodeDone
from node.singleton.demand_liveness import DemandLiveness
from node.wire.envelope import Envelope
from node.wire.registry import REGISTRY

if TYPE_CHECKING:
    from node.engine.engine import Engine


class ActorService:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        engine.services |= {
            GetEntities: self._entities_wanted,
            GetEntity: self._entity_wanted,
            EntityCommand: self._commanded,
            GetDeadLetters: self._letters_wanted,
            SettleDeadLetters: self._settle_wanted,
            GetMailboxes: self._mailboxes_wanted,
            GetFlight: self._flight_wanted,
        }

    def faults(self) -> tuple[FaultReport, ...]:
        """What an operator has to look at: entities that nobody else can start again, and bidders that are silent."""
        quarantined = tuple(
            FaultReport(
                "E-QUARANTINED", f"{ref.kind}/{ref.id}", f"failed {fault.failures} times: {fault.error}", fault.at_ms
            )
            for ref, fault in self._engine.system.quarantined().items()
        )
        return (*quarantined, *self._silent_bidders())

    def _silent_bidders(self) -> Iterator[FaultReport]:
        """Told by the node that watches them. Whose node can't be reached, or whose shard nobody has, is silent for a
        reason that is a fault of its own."""
        watching = self._engine.system.cell(EntityRef("demand-liveness", SINGLETON_ID))
        if watching is None or not isinstance(watching.actor, DemandLiveness):
            return
        clock = self._engine.world.clock
        silent = watching.actor.watch.silent(clock.mono_ns() // MS)
        homes = {row.shard: row.node for row in self._engine.sharding.region.homes()} if silent else {}
        for bidder, age_ms in silent.items():
            category, _, stripe = bidder.rpartition("|")
            shard = EntityRef("category-bidder", bidder).shard
            if not homes.get(shard) or not self._engine.view.reachable(homes[shard]):
                continue
            text = (
                f"stripe {stripe} of category {category} does not answer: its sites hear nothing new of the campaigns "
                f"there; shard {shard} is with {homes[shard]}"
            )
            yield FaultReport("E-BIDDER-SILENT", f"category-bidder/{bidder}", text, clock.wall_ms() - age_ms)

    # ---- entities

    def entities(self, wanted: GetEntities) -> EntityPage:
        system = self._engine.system
        found = [ref for ref in system.refs() if wanted.kind in ("", ref.kind)]
        if wanted.state:
            views = map(system.cell, found)
            found = [view.ref for view in views if view is not None and view.phase.value == wanted.state]
        behind = [ref for ref in found if ref > wanted.after]
        first = heapq.nsmallest(min(wanted.limit, limits.actor_rows_max), behind)
        rows = tuple(self._rows([view for view in map(system.cell, first) if view is not None]))
        return EntityPage(self._engine.me.name, rows, len(found), len(behind) - len(rows))

    def _rows(self, views: list[CellView]) -> Iterator[EntityRow]:
        clock, quarantine = self._engine.world.clock, self._engine.system.quarantined()
        now_ns, now_ms = clock.mono_ns(), clock.wall_ms()
        for view in views:
            fault = quarantine.get(view.ref)
            yield EntityRow(
                view.ref.kind,
                view.ref.id,
                view.ref.shard,
                view.epoch,
                view.phase.value,
                view.depth,
                view.asks_open,
                view.revision,
                now_ms - (now_ns - view.used_ns) // MS,
                fault.failures if fault else view.failures,
                fault.error if fault else "",
                fault.at_ms if fault else 0,
                fault.message_type if fault else "",
                fault.message_bytes if fault else 0,
            )

    def _entities_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetEntities):
            self._engine.reply(envelope, self.entities(envelope.message))

    def _entity_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, GetEntity):
            view = self._engine.system.cell(EntityRef(message.kind, message.id))
            rows = tuple(self._rows([view])) if view is not None else ()
            self._engine.reply(envelope, EntityPage(self._engine.me.name, rows, len(rows)))

    def _commanded(self, envelope: Envelope) -> None:
        message = envelope.message
        if not isinstance(message, EntityCommand):
            return
        engine, ref = self._engine, EntityRef(message.kind, message.id)
        try:
            changed = self.command(message.verb, ref)
        except BadInput as error:
            engine.system.refuse(envelope, Failure.REJECTED, f"conflict: {error.message}")
            return
        if changed:
            engine.emit(f"entity.{message.verb}", f"{ref.kind}/{ref.id}", f"by {envelope.sender.name}'s operator")
        engine.reply(envelope, NodeDone(changed))

    def command(self, verb: str, ref: EntityRef) -> bool:
        """Whether it changed something; raises BadInput for what can't be done."""
        system = self._engine.system
        match verb:
            case "restart":
                return system.restart(ref)
            case "passivate":
                return system.passivate(ref)
            case "release":
                system.release(ref)
                return True
            case _:
                raise BadInput("verb", f"{verb!r} can't be done to an entity")

    # ---- dead letters

    def letters(self, wanted: GetDeadLetters) -> DeadLetterPage:
        me = self._engine.me
        found = [
            letter
            for letter in self._engine.system.dead_letters
            if wanted.number in (0, letter.number)
            and wanted.reason in ("", letter.reason)
            and wanted.message_type in ("", letter.type)
        ]
        limit = min(wanted.limit, limits.actor_rows_max)
        rows = tuple(self._letter(letter, payload=bool(wanted.number)) for letter in found[::-1][:limit])
        return DeadLetterPage(me.name, me.incarnation, rows, len(found))

    def _letter(self, letter: DeadLetter, *, payload: bool) -> DeadLetterRow:
        text = ""
        if payload and letter.message is not None:
            text = msgspec.json.encode(letter.message).decode()[: limits.dead_letter_payload_chars_max]
        return DeadLetterRow(
            letter.number,
            letter.at_ms,
            letter.reason,
            str(letter.to),
            letter.type,
            self._engine.system.size_of(letter.message),
            str(letter.sender),
            letter.deliveries,
            letter.error,
            letter.trace,
            letter.message is not None,
            text,
        )

    def _letters_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetDeadLetters):
            self._engine.reply(envelope, self.letters(envelope.message))

    def _settle_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, SettleDeadLetters):
            self._engine.reply(envelope, Settled(self.settle(message)))

    def settle(self, message: SettleDeadLetters) -> int:
        """How many letters were taken. Each is taken once at most, however often and by whomever it is asked."""
        system = self._engine.system
        if message.incarnation != self._engine.me.incarnation:
            return 0  # letters of an earlier start are gone, and these numbers mean others now
        act = system.replay_dead_letter if message.replay else system.discard_dead_letter
        done = 0
        for number in message.numbers:
            try:
                act(number)
            except BadInput:
                continue
            done += 1
        return done

    # ---- what it is busy with

    def mailboxes(self, wanted: GetMailboxes) -> MailboxPage:
        system = self._engine.system
        views = sorted((view for view in system.cells() if view.depth), key=lambda view: (-view.depth, view.ref))
        stats = system.stats()
        limit = min(wanted.limit, limits.actor_rows_max)
        return MailboxPage(
            self._engine.me.name,
            tuple(self._rows(views[:limit])),
            len(views),
            sum(view.depth for view in views),
            stats["run_queue"],
            stats["handled"],
            stats.get("overflow", 0),
            tuple(
                SlowRow(slow.kind, slow.message_type, slow.count, slow.longest_ms, slow.last_id, slow.last_at_ms)
                for slow in system.slow_handlers()
            ),
            system.mailbox_limits(),
        )

    def _mailboxes_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetMailboxes):
            self._engine.reply(envelope, self.mailboxes(envelope.message))

    def flight(self, wanted: GetFlight) -> FlightPage:
        clock = self._engine.world.clock
        now_ns, now_ms = clock.mono_ns(), clock.wall_ms()
        count = max(0, min(wanted.limit, limits.actor_rows_max))
        turns = self._engine.system.flight()
        return FlightPage(
            self._engine.me.name,
            tuple(
                FlightTurn(
                    now_ms - (now_ns - began) // MS,
                    (ended - began) // US,
                    str(ref),
                    REGISTRY.name_of(message_type),
                    ran,
                    ok,
                )
                for began, ended, ref, message_type, ran, ok in turns[len(turns) - min(count, len(turns)) :]
            ),
        )

    def _flight_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetFlight):
            self._engine.reply(envelope, self.flight(envelope.message))
