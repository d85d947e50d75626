"""One transaction of the embedded store: each request answered against what the transaction sees.

It is given an open transaction and touches nothing else; the adapter begins, commits and repeats.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from node.core.hashing import SHARD_COUNT
from node.store import lease as leases
from node.store import port
from node.store.fencing import advance_refusal, state_refusal
from node.store.keys import page_full, split_state_name, state_name, wrong_shard
from node.store.lmdb_layout import (
    BOOK,
    FACTS_KEY,
    IDENTITY_KEY,
    INDEX,
    OFFSET,
    SHARD,
    VERSION_KEY,
    Counter,
    FactRow,
    Prepared,
    Table,
    book_key,
    consumer_key,
    fact_key,
    index_key,
    projection_key,
    row_key,
    state_key,
    tombstone_key,
)
from node.store.lmdb_verify import verify_records
from node.store.placement import placement_refusal
from node.store.projection import ProjectionRow
from node.store.record import RecordDamaged, RecordTooNew, Sealed, seal, unseal

T = TypeVar("T", bound=msgspec.Struct)


class StoreTxn:
    """Answers requests within one transaction; `now` is the store's time for all of them."""

    def __init__(self, records: Table, now: leases.StoreTime) -> None:
        self._records = records
        self._now = now

    def answer(self, prepared: Prepared) -> port.Answer:
        """The answer to one request. A damaged record fails the request that met it, not its neighbours."""
        if prepared.refusal is not None:
            return prepared.refusal
        try:
            return self._answer(prepared)
        except (RecordDamaged, RecordTooNew) as error:
            return port.StoreFailed(error.code, error.message, definite=True)

    def _answer(self, prepared: Prepared) -> port.Answer:
        match prepared.request:
            case port.Initialise() as request:
                return self._initialise(request)
            case port.NextIncarnation(node=node):
                key = b"N" + node.encode()
                number = self._counter(key) + 1
                self._put(key, Counter(number))
                return port.Incarnation(number)
            case port.ReadState(kind=kind, id=id_):
                return self._record(state_name(kind, id_), bodies=True) or self._absent(kind, id_)
            case port.WriteState() | port.DeleteState() as request:
                return self._change_state(request, prepared)
            case port.ListStates() as request:
                return self._list_states(request)
            case port.ReadFacts() as request:
                return self._read_facts(request)
            case port.AcquireLease() as request:
                stored, answer = leases.acquire(self._lease(request.name), request, self._now)
                if stored is not None:
                    self._put(b"L" + request.name.encode(), stored)
                return answer
            case port.ReleaseLease() as request:
                released = leases.release(self._lease(request.name), request)
                if released is not None:
                    self._put(b"L" + request.name.encode(), released)
                return port.Done()
            case port.ReadPlacement():
                rows = tuple(self._row(shard) for shard in range(self._shard_count()))
                return port.Placement(self._counter(VERSION_KEY), rows, self._book())
            case port.WritePlacement() as request:
                return self._write_placement(request)
            case port.ReadConsumer() | port.ListProjection() | port.AdvanceConsumer() | port.VerifyRecords() as request:
                return self._aside(request)

    # ---- records

    def _unsealed(self, key: bytes) -> Sealed | None:
        value = self._records.get(key)
        return None if value is None else unseal(key, value)

    def _get(self, key: bytes, shape: type[T]) -> T | None:
        found = self._unsealed(key)
        return None if found is None else msgspec.msgpack.decode(found.body, type=shape)

    def _put(self, key: bytes, value: msgspec.Struct) -> None:
        self._records.put(key, seal(key, msgspec.msgpack.encode(value)))

    def _counter(self, key: bytes) -> int:
        found = self._get(key, Counter)
        return found.value if found else 0

    def _lease(self, name: str) -> leases.StoredLease | None:
        return self._get(b"L" + name.encode(), leases.StoredLease)

    def _row(self, shard: int) -> port.ShardRow:
        return self._get(row_key(shard), port.ShardRow) or port.ShardRow(shard)

    def _shard_count(self) -> int:
        identity = self._get(IDENTITY_KEY, port.Identity)
        return identity.shard_count if identity else SHARD_COUNT

    def _initialise(self, request: port.Initialise) -> port.Identity:
        found = self._get(IDENTITY_KEY, port.Identity)
        if found is None:
            self._put(IDENTITY_KEY, request.identity)
        return found or request.identity

    # ---- states

    def _record(self, name: bytes, *, bodies: bool) -> port.Record | None:
        found = self._unsealed(b"S" + name)
        if found is None:
            return None
        body = found.body[SHARD.size :] if bodies else b""
        return port.Record(*split_state_name(name), found.revision, found.epoch, body)

    def _absent(self, kind: str, id_: str) -> port.Absent:
        tombstone = self._unsealed(tombstone_key(kind, id_))
        return port.Absent(tombstone.revision if tombstone else 0)

    def _change_state(self, request: port.StateChange, prepared: Prepared) -> port.Answer:
        key, tombstone = state_key(request.kind, request.id), tombstone_key(request.kind, request.id)
        living = self._unsealed(key)
        found = living or self._unsealed(tombstone)
        if found is not None:
            (shard,) = SHARD.unpack_from(found.body)
            if shard != request.shard:
                return wrong_shard(request, shard)
        revision = found.revision if found else 0
        refusal = state_refusal(request, self._row(request.shard).epoch, revision)
        if refusal is not None:
            return refusal
        last_offset = self._append_facts(prepared.facts)
        kept = tombstone if isinstance(request, port.DeleteState) else key
        value = seal(kept, prepared.body, revision=revision + 1, epoch=request.epoch, summed=prepared.summed)
        self._records.put(kept, value)
        entry = index_key(request.shard, request.kind, request.id)
        if kept is tombstone:
            self._records.delete(key)
            self._records.delete(entry)
        elif living is None:
            self._records.delete(tombstone)
            self._records.put(entry, b"")
        return port.Written(revision + 1, last_offset)

    def _append_facts(self, facts: tuple[tuple[bytes, bytes], ...]) -> int:
        """The last offset taken, 0 when there was nothing to append."""
        if not facts:
            return 0
        offset = self._counter(FACTS_KEY)
        for body, summed in facts:
            offset += 1
            key = fact_key(offset)
            self._records.append(key, seal(key, body, summed=summed))
        self._put(FACTS_KEY, Counter(offset))
        return offset

    def _list_states(self, request: port.ListStates) -> port.StatePage:
        records: list[port.Record] = []
        size = 0
        for name in self._names(request):
            if page_full(len(records), size, request.limit):
                return port.StatePage(tuple(records), more=True)
            record = self._record(name, bodies=request.bodies)
            if record is None:
                raise RecordDamaged(b"S" + name, "the index names it, but it is not there")
            records.append(record)
            size += len(record.body)
        return port.StatePage(tuple(records), more=False)

    def _names(self, request: port.ListStates) -> Iterator[bytes]:
        """Names of the states asked for, in order, read from the index when it is one shard's."""
        family = b"S" if request.shard is None else INDEX + SHARD.pack(request.shard)
        after = None if request.after is None else state_name(*request.after)
        for kind in sorted(set(request.kinds)):
            prefix = state_name(kind, "")
            if after is not None and after > prefix and not after.startswith(prefix):
                continue
            for key, _ in self._records.items_from(family + max(after or b"", prefix)):
                if not key.startswith(family + prefix):
                    break
                name = key[len(family) :]
                if name != after:
                    yield name

    # ---- facts

    def _read_facts(self, request: port.ReadFacts) -> port.FactPage:
        facts: list[port.StoredFact] = []
        size = 0
        for key, value in self._records.items_from(fact_key(max(request.after, 0) + 1)):
            if page_full(len(facts), size, request.limit):
                return port.FactPage(tuple(facts), more=True)
            row = msgspec.msgpack.decode(unseal(key, value).body, type=FactRow)
            _, offset = OFFSET.unpack(key)
            facts.append(port.StoredFact(offset, row.kind, row.id, row.at_ms, row.type, row.body))
            size += len(row.body)
        return port.FactPage(tuple(facts), more=False)

    # ---- placement

    def _write_placement(self, request: port.WritePlacement) -> port.Answer:
        version = self._counter(VERSION_KEY)
        refusal = placement_refusal(
            request, version, self._row, self._lease(request.lease), self._now, self._shard_count()
        )
        if refusal is not None:
            return refusal
        for row in request.rows:
            self._put(row_key(row.shard), row)
        for entry in request.book:
            key = book_key(entry.key)
            if entry.body:
                self._records.put(key, seal(key, entry.body))
            else:
                self._records.delete(key)
        if request.rows:
            version += 1
            self._put(VERSION_KEY, Counter(version))
        return port.PlacementWritten(version)

    def _book(self) -> tuple[port.BookEntry, ...]:
        entries: list[port.BookEntry] = []
        for key, value in self._records.items_from(BOOK):
            if not key.startswith(BOOK):
                break
            entries.append(port.BookEntry(key[len(BOOK) :].decode(), unseal(key, value).body))
        return tuple(entries)

    # ---- projections

    def _aside(
        self, request: port.ReadConsumer | port.ListProjection | port.AdvanceConsumer | port.VerifyRecords
    ) -> port.Answer:
        """What no entity asks for: consumers of the log, and the scrub."""
        match request:
            case port.ReadConsumer():
                return self._read_consumer(request)
            case port.ListProjection():
                return self._list_projection(request)
            case port.AdvanceConsumer():
                return self._advance(request)
            case port.VerifyRecords():
                return verify_records(self._records, request)

    def _read_consumer(self, request: port.ReadConsumer) -> port.Consumer:
        rows: list[ProjectionRow] = []
        for key in sorted(set(request.keys)):
            found = self._unsealed(projection_key(request.name, key))
            if found is not None:
                rows.append(ProjectionRow(key, found.body))
        return port.Consumer(self._counter(consumer_key(request.name)), tuple(rows))

    def _list_projection(self, request: port.ListProjection) -> port.ProjectionPage:
        offset = self._counter(consumer_key(request.name))
        prefix, after = projection_key(request.name, ""), projection_key(request.name, request.after)
        rows: list[ProjectionRow] = []
        size = 0
        for key, value in self._records.items_from(after):
            if not key.startswith(prefix):
                break
            if key == after:
                continue
            if page_full(len(rows), size, request.limit):
                return port.ProjectionPage(offset, tuple(rows), more=True)
            rows.append(ProjectionRow(key[len(prefix) :].decode(), unseal(key, value).body))
            size += len(rows[-1].body)
        return port.ProjectionPage(offset, tuple(rows), more=False)

    def _advance(self, request: port.AdvanceConsumer) -> port.Answer:
        place = consumer_key(request.name)
        refusal = advance_refusal(request, self._counter(place), self._counter(FACTS_KEY))
        if refusal is not None:
            return refusal
        for row in request.rows:
            key = projection_key(request.name, row.key)
            if row.body:
                self._records.put(key, seal(key, row.body))
            else:
                self._records.delete(key)
        self._put(place, Counter(request.offset))
        return port.Advanced(request.offset)
