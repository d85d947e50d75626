"""What a node answers about its replica of the ServeIndex, and what an operator has it mend or write, under `/node`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from node.actors.actor import Failure
from node.ads.keys import split_serve_key
from node.ads.view import ServeView
from node.core import limits
from node.core.errors import BadInput, RemoteProtocolError
from node.core.hashing import shard_of
from node.engine import topology
from node.engine.index_messages import (
    CondemnIndex,
    GetIndexLeaves,
    GetIndexRows,
    GetIndexStatus,
    HoldbackRow,
    IndexLeaves,
    IndexLoaded,
    IndexMended,
    IndexRow,
    IndexRows,
    IndexStatus,
    KeptRow,
    LeafRow,
    Load,
    LoadIndex,
    Mend,
    MendIndex,
    OpeningRow,
    PeerLagRow,
)
from node.engine.messages import GetReplicaEntry, NodeDone, ReplicaEntryReport
from node.gossip.inspector import content_of, place_of
from node.gossip.latency import LatencyCounts
from node.gossip.version import Version
from node.store.replica_keys import site_of
from node.store.replica_port import ReplicaEntry
from node.wire.codec import CODEC
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.engine.engine import Engine


class IndexService:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._replicator = engine.replication.machine
        engine.services |= {
            GetReplicaEntry: self._entry_wanted,
            GetIndexLeaves: self._leaves_wanted,
            GetIndexRows: self._rows_wanted,
            GetIndexStatus: self._status_wanted,
            MendIndex: self._mend_wanted,
            LoadIndex: self._load_wanted,
            CondemnIndex: self._condemn_wanted,
        }

    # ---- reading

    def entry(self, key: str) -> ReplicaEntryReport:
        """One key of this node's replica, and who may write it by this node's table."""
        engine = self._engine
        home = engine.sharding.region.homes()[shard_of(site_of(key))]
        entry = self._replicator.entry(key)
        if entry is None:
            damaged = key in self._replicator.inspector.damaged(place_of(key), place_of(key) + 1)
            return ReplicaEntryReport(engine.me.name, False, damaged=damaged, owner=home.node, epoch_now=home.epoch)
        return ReplicaEntryReport(
            engine.me.name,
            not entry.tombstone,
            entry.epoch,
            entry.hlc,
            entry.origin,
            entry.expires_at_ms,
            entry.tombstone,
            entry.value,
            owner=home.node,
            epoch_now=home.epoch,
        )

    def leaves(self, wanted: GetIndexLeaves) -> IndexLeaves:
        end = min(wanted.end, wanted.place + limits.index_page_leaves)
        wall_ms = self._engine.world.clock.wall_ms()
        inspector = self._replicator.inspector
        found = inspector.leaves(wanted.place, end, limits.index_looked_entries, wall_ms)
        following = found[-1].place + 1 if found else wanted.end
        return IndexLeaves(
            self._engine.me.name,
            tuple(LeafRow(*look) for look in found),
            following,
            inspector.damaged(wanted.place, following),
        )

    def rows(self, wanted: GetIndexRows) -> IndexRows:
        limit = min(wanted.limit or limits.index_page_rows, limits.index_page_rows)
        if wanted.site:
            return self._rows_of_site(wanted, limit)
        if wanted.keys:
            return self._rows_of_keys(wanted)
        return self._rows_in_order(wanted, limit)

    def _rows_of_site(self, wanted: GetIndexRows, limit: int) -> IndexRows:
        found = self._replicator.keys_of_site(wanted.site)
        behind = [key for key in found if key > wanted.after]
        page = behind[:limit]
        held = (self._replicator.entry(key) for key in page)
        rows = tuple(_row(entry, values=wanted.values) for entry in held if entry is not None)
        more = len(behind) > limit
        after = page[-1] if page else wanted.after
        return IndexRows(self._engine.me.name, rows, more, 0, after, len(found), self._replicator.ready)

    def _rows_of_keys(self, wanted: GetIndexRows) -> IndexRows:
        keys = wanted.keys[: limits.index_page_rows]
        rows: list[IndexRow] = []
        size = 0
        done = 0
        for key in keys:
            entry = self._replicator.entry(key)
            if entry is not None:
                size += len(entry.value) if wanted.values else 0
                if rows and size > limits.index_page_bytes:
                    break
                rows.append(_row(entry, values=wanted.values))
            done += 1
        damaged = self._replicator.inspector.damaged
        hidden = [key for key in keys[:done] if key in damaged(place_of(key), place_of(key) + 1)]
        return IndexRows(self._engine.me.name, tuple(rows), done < len(wanted.keys), total=done, damaged=tuple(hidden))

    def _rows_in_order(self, wanted: GetIndexRows, limit: int) -> IndexRows:
        wall_ms = self._engine.world.clock.wall_ms()
        inspector = self._replicator.inspector
        rows: list[IndexRow] = []
        size = 0
        place, after, more = wanted.place, wanted.after, False
        for at, entry in islice(inspector.entries(place, wanted.end, after, wall_ms), limit + 1):
            size += len(entry.value) if wanted.values else 0
            if len(rows) == limit or (rows and size > limits.index_page_bytes):
                more = True
                break
            rows.append(_row(entry, values=wanted.values))
            place, after = at, entry.key
        damaged = inspector.damaged(wanted.place, place + 1 if more else wanted.end)
        return IndexRows(self._engine.me.name, tuple(rows), more, place, after, damaged=damaged)

    def status(self) -> IndexStatus:
        engine, machine = self._engine, self._replicator
        clock = engine.world.clock
        reachable = topology.peers(engine.view)
        maps = machine.map_status()
        oldest = machine.questions.tombstones(1, clock.wall_ms())
        watermark = machine.watermark(clock.mono_ns(), clock.wall_ms())
        opening, kept = engine.world.opening, engine.world.kept()
        return IndexStatus(
            engine.me.name,
            engine.replication.ready,
            machine.synchronising,
            tuple(found.digest for found in maps),
            tuple((found.keys, found.bytes, found.tombstones) for found in maps),
            tuple(
                PeerLagRow(peer, lag.entries, lag.ms, peer in reachable)
                for peer, lag in sorted(machine.lag(clock.mono_ns()).items())
            ),
            engine.replication.unwritten(),
            len(engine.world.replica.damaged),
            oldest[0].age_ms if oldest else 0,
            any(fault.code == "E-REPLICA-DEGRADED" for fault in engine.faults.all()),
            machine.counters(),
            machine.questions.pending_removal_count(),
            watermark.stable_ms,
            tuple(HoldbackRow(*one) for one in watermark.held_back_by[: limits.members_max]),
            OpeningRow(opening.how, opening.reason, opening.path, engine.world.opened_ms) if opening else None,
            tuple(KeptRow(*one) for one in kept[: limits.index_kept_files_max]),
            len(kept),
        )

    def visible(self) -> LatencyCounts:
        """How long this node's writes took to be on other replicas."""
        return self._replicator.visible()

    # ---- changing

    def mend(self, order: MendIndex) -> IndexMended:
        engine = self._engine
        clock = engine.world.clock
        mends = [(_entry(mend.row), _instead(mend)) for mend in order.mends]
        mended, effects = self._replicator.mended(mends, clock.mono_ns(), clock.wall_ms())
        engine.replication.carry_out(effects)
        rebuilt, effects = self._replicator.rebuilt(order.rebuild, order.drop, clock.mono_ns())
        engine.replication.carry_out(effects)
        return IndexMended(engine.me.name, mended, rebuilt)

    def load(self, order: LoadIndex) -> IndexLoaded:
        written = stale = refused = 0
        for item in order.loads:
            held = self._replicator.entry(item.key)
            found = (held.epoch, held.hlc, held.origin) if held is not None else (0, 0, "")
            if held is not None and held.value == item.value:
                written += 1  # by this very order, whose answer was late
            elif found != (item.epoch, item.hlc, item.origin):
                stale += 1
            elif self._written(item):
                written += 1
            else:
                refused += 1
        token = self._replicator.token
        return IndexLoaded(self._engine.me.name, written, stale, refused, str(token) if written and token else "")

    def _written(self, item: Load) -> bool:
        index = self._engine.index
        try:
            site, _ = split_serve_key(item.key)
            view = CODEC.decode(item.value)
        except (BadInput, RemoteProtocolError):
            return False
        before = index.puts_refused
        if isinstance(view, ServeView):
            index.put(site, item.key, view)
        return isinstance(view, ServeView) and index.puts_refused == before

    # ---- services

    def _entry_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetReplicaEntry):
            self._engine.reply(envelope, self.entry(envelope.message.key))

    def _leaves_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetIndexLeaves):
            self._engine.reply(envelope, self.leaves(envelope.message))

    def _rows_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetIndexRows):
            self._engine.reply(envelope, self.rows(envelope.message))

    def _status_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetIndexStatus):
            self._engine.reply(envelope, self.status())

    def _mend_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, MendIndex):
            self._engine.reply(envelope, self.mend(envelope.message))

    def _load_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, LoadIndex):
            self._engine.reply(envelope, self.load(envelope.message))

    def _condemn_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if not isinstance(message, CondemnIndex):
            return
        engine = self._engine
        try:
            engine.world.replica.condemn(message.reason)
        except OSError as error:
            engine.system.refuse(envelope, Failure.REJECTED, f"its folder can't be written: {error}")
            return
        engine.faults.put("E-REPLICA-CONDEMNED", "replica", f"set aside at the next start: {message.reason}")
        engine.emit("replica.condemned", engine.me.name, message.reason)
        engine.reply(envelope, NodeDone())


def _row(entry: ReplicaEntry, *, values: bool) -> IndexRow:
    return IndexRow(
        entry.key,
        entry.epoch,
        entry.hlc,
        entry.origin,
        entry.expires_at_ms,
        entry.tombstone,
        len(entry.value),
        content_of(entry),
        entry.value if values else b"",
    )


def _entry(row: IndexRow) -> ReplicaEntry:
    return ReplicaEntry(row.key, row.epoch, row.hlc, row.origin, row.expires_at_ms, row.tombstone, row.value)


def _instead(mend: Mend) -> tuple[Version, bytes] | None:
    return (Version(mend.epoch, mend.hlc, mend.origin), mend.content) if mend.content else None
