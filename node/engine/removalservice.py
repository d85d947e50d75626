"""What a node answers about removals, and a removal that an operator asks for, under `/node`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from node.actors.actor import Failure
from node.core import limits
from node.core.errors import BadInput
from node.engine.removal_messages import (
    CertificateRow,
    GetKeyHistory,
    GetRemovals,
    GetReplicaPhase,
    GetSeen,
    HeldRow,
    KeyHistory,
    KeyRemoved,
    PendingRow,
    Removals,
    RemoveKey,
    ReplicaPhase,
    Seen,
    SeenRow,
    TombstoneRow,
    VersionRow,
)
from node.gossip.replica_io import RemovalOutcome
from node.gossip.replica_views import Certificate, VersionSeen, WriteToken, parse_token
from node.gossip.version import version_of
from node.store.replica_keys import site_of
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine


class RemovalService:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._replicator = engine.replication.machine
        engine.services |= {
            GetKeyHistory: self._history_wanted,
            GetRemovals: self._removals_wanted,
            RemoveKey: self._remove_wanted,
            GetSeen: self._seen_wanted,
            GetReplicaPhase: self._phase_wanted,
        }

    # ---- reading

    def history(self, key: str) -> KeyHistory:
        certificate = self._replicator.questions.certificate(key)
        seen = tuple(map(_seen, self._replicator.questions.history(key)))
        return KeyHistory(self._engine.me.name, seen, _certificate(certificate) if certificate else None)

    def removals(self, limit: int) -> Removals:
        clock, machine = self._engine.world.clock, self._replicator
        now_ns, wall_ms = clock.mono_ns(), clock.wall_ms()
        limit = min(max(limit, 0), limits.index_removals_max)
        return Removals(
            self._engine.me.name,
            tuple(
                PendingRow(
                    one.key,
                    VersionRow(*one.version),
                    one.asked_ms,
                    one.asked_by,
                    one.attempts,
                    one.needed,
                    one.held_by,
                    one.awaited,
                    one.refused,
                    one.next_ms,
                )
                for one in machine.questions.pending_removals(limit, now_ns)
            ),
            machine.questions.pending_removal_count(),
            tuple(
                TombstoneRow(one.key, VersionRow(*one.version), one.age_ms, one.caretaker, one.awaited)
                for one in machine.questions.tombstones(limit, wall_ms)
            ),
            sum(status.tombstones for status in machine.map_status()),
            machine.questions.why_not_settling(now_ns),
            self._engine.config.replication.tombstone_min_age_ms,
        )

    # ---- removing

    def _remove_wanted(self, envelope: Envelope) -> None:
        order = envelope.message
        if not isinstance(order, RemoveKey):
            return
        engine = self._engine
        me = engine.me.name
        held = self._replicator.entry(order.key)
        if (
            held is None
            or held.tombstone
            or version_of(held)
            != (
                order.version.epoch,
                order.version.hlc,
                order.version.origin,
            )
        ):
            engine.reply(envelope, KeyRemoved(me, "stale"))
            return
        version = engine.index.remove_for(site_of(order.key), order.key, order.by)
        if version is None:
            engine.reply(envelope, KeyRemoved(me, "refused"))
            return
        token = str(WriteToken(order.key, version))

        def done(news: RemovalOutcome) -> None:
            engine.reply(envelope, KeyRemoved(me, news.outcome, token, _certificate(news.certificate)))

        engine.replication.on_removal(order.key, version, done)

    # ---- services

    def _history_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetKeyHistory):
            self._engine.reply(envelope, self.history(envelope.message.key))

    def _removals_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetRemovals):
            self._engine.reply(envelope, self.removals(envelope.message.limit))

    def _seen_wanted(self, envelope: Envelope) -> None:
        if not isinstance(envelope.message, GetSeen):
            return
        try:
            token = parse_token(envelope.message.token)
        except BadInput as error:
            self._engine.system.refuse(envelope, Failure.REJECTED, error.message)
            return
        self._engine.reply(envelope, Seen(self._engine.me.name, self._replicator.seen(token)))

    def _phase_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetReplicaPhase):
            streaming = self._replicator.questions.streaming()
            reply = ReplicaPhase(self._engine.me.name, streaming.phase, streaming.ratio, self._replicator.tenure)
            self._engine.reply(envelope, reply)


def _seen(one: VersionSeen) -> SeenRow:
    version = VersionRow(*one.version)
    return SeenRow(
        version, one.tombstone, one.bytes, one.expires_at_ms, one.at_ms, one.source, one.discarded, one.mended
    )


def _certificate(found: Certificate) -> CertificateRow:
    return CertificateRow(
        found.key,
        VersionRow(*found.version),
        found.asked_ms,
        found.asked_by,
        found.roster_version,
        found.needed,
        tuple(HeldRow(*held) for held in found.held),
        found.majority_ms,
        found.last_serve_ms,
    )
