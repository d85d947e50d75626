"""The state store in memory: the reference that every adapter is compared with, and the simulator's store.

Nothing survives the object; one object may be shared by many simulated nodes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from itertools import islice

import msgspec

from node.core.clock import Clock
from node.core.hashing import SHARD_COUNT
from node.store import lease as leases
from node.store import port
from node.store.fencing import advance_refusal, state_refusal
from node.store.keys import page_full, request_refusal, wrong_shard
from node.store.placement import placement_refusal
from node.store.projection import ProjectionRow


class MemoryStore:
    """`StateStore` over dictionaries; `boot` names the boot of the machine that its lease times belong to."""

    def __init__(self, clock: Clock, boot: str = "memory") -> None:
        self._clock = clock
        self._boot = boot
        self._identity: port.Identity | None = None
        self._incarnations: dict[str, int] = {}
        self._states: dict[tuple[str, str], tuple[int, port.Record]] = {}
        self._names: list[tuple[str, str]] = []  # the keys of _states, sorted
        self._tombstones: dict[tuple[str, str], tuple[int, int]] = {}  # shard and revision
        self._names_of: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)  # the same by shard
        self._facts: list[port.StoredFact] = []
        self._leases: dict[str, leases.StoredLease] = {}
        self._version = 0
        self._rows: dict[int, port.ShardRow] = {}
        self._book: dict[str, bytes] = {}
        self._consumers: dict[str, int] = {}
        self._projections: dict[str, dict[str, bytes]] = {}

    def apply(self, batch: Sequence[port.Request]) -> list[port.Answer]:
        """See `StateStore.apply`."""
        return [request_refusal(request) or self._answer(request) for request in batch]

    def close(self) -> None:
        """Nothing is held open."""

    def _answer(self, request: port.Request) -> port.Answer:
        match request:
            case port.Initialise():
                self._identity = self._identity or request.identity
                return self._identity
            case port.NextIncarnation():
                number = self._incarnations.get(request.node, 0) + 1
                self._incarnations[request.node] = number
                return port.Incarnation(number)
            case port.ReadState():
                name = (request.kind, request.id)
                found = self._states.get(name)
                return port.Absent(self._tombstones.get(name, (0, 0))[1]) if found is None else found[1]
            case port.WriteState() | port.DeleteState():
                return self._change_state(request)
            case port.ListStates():
                return self._list_states(request)
            case port.ReadFacts():
                return self._read_facts(request)
            case port.AcquireLease():
                stored, answer = leases.acquire(self._leases.get(request.name), request, self._now())
                if stored is not None:
                    self._leases[request.name] = stored
                return answer
            case port.ReleaseLease():
                released = leases.release(self._leases.get(request.name), request)
                if released is not None:
                    self._leases[request.name] = released
                return port.Done()
            case port.ReadPlacement():
                table = tuple(self._row(shard) for shard in range(self._shard_count()))
                return port.Placement(self._version, table, self._book_entries())
            case port.WritePlacement():
                return self._write_placement(request)
            case port.ReadConsumer() | port.ListProjection() | port.AdvanceConsumer() | port.VerifyRecords() as request:
                return self._aside(request)

    def _now(self) -> leases.StoreTime:
        return leases.StoreTime(self._clock.mono_ns(), self._boot)

    def _shard_count(self) -> int:
        return self._identity.shard_count if self._identity else SHARD_COUNT

    def _row(self, shard: int) -> port.ShardRow:
        return self._rows.get(shard) or port.ShardRow(shard)

    def _book_entries(self) -> tuple[port.BookEntry, ...]:
        """In order of the keys' bytes, which is the order of their letters."""
        return tuple(port.BookEntry(key, self._book[key]) for key in sorted(self._book))

    def _change_state(self, request: port.StateChange) -> port.Answer:
        name = (request.kind, request.id)
        shard, found = self._states.get(name, (request.shard, None))
        revision = found.revision if found else 0
        if found is None and name in self._tombstones:
            shard, revision = self._tombstones[name]
        if shard != request.shard:
            return wrong_shard(request, shard)
        refusal = state_refusal(request, self._row(request.shard).epoch, revision)
        if refusal is not None:
            return refusal
        if isinstance(request, port.DeleteState):
            if found is not None:
                del self._states[name]
                for names in (self._names, self._names_of[shard]):
                    del names[bisect_left(names, name)]
            self._tombstones[name] = (shard, revision + 1)
        else:
            if found is None:
                insort(self._names, name)
                insort(self._names_of[shard], name)
                self._tombstones.pop(name, None)
            self._states[name] = (shard, port.Record(*name, revision + 1, request.epoch, request.body))
        at_ms = self._clock.wall_ms()
        for fact in request.facts:
            self._facts.append(port.StoredFact(len(self._facts) + 1, *name, at_ms, fact.type, fact.body))
        return port.Written(revision + 1, len(self._facts) if request.facts else 0)

    def _list_states(self, request: port.ListStates) -> port.StatePage:
        names = self._names if request.shard is None else self._names_of[request.shard]
        start = bisect_right(names, request.after) if request.after else 0
        records: list[port.Record] = []
        size = 0
        for name in islice(names, start, None):
            if name[0] not in request.kinds:
                continue
            _, record = self._states[name]
            if page_full(len(records), size, request.limit):
                return port.StatePage(tuple(records), more=True)
            records.append(record if request.bodies else msgspec.structs.replace(record, body=b""))
            size += len(records[-1].body)
        return port.StatePage(tuple(records), more=False)

    def _read_facts(self, request: port.ReadFacts) -> port.FactPage:
        facts: list[port.StoredFact] = []
        size = 0
        for fact in self._facts[max(request.after, 0) :]:
            if page_full(len(facts), size, request.limit):
                return port.FactPage(tuple(facts), more=True)
            facts.append(fact)
            size += len(fact.body)
        return port.FactPage(tuple(facts), more=False)

    def _write_placement(self, request: port.WritePlacement) -> port.Answer:
        lease = self._leases.get(request.lease)
        refusal = placement_refusal(request, self._version, self._row, lease, self._now(), self._shard_count())
        if refusal is not None:
            return refusal
        self._version += bool(request.rows)
        self._rows.update((row.shard, row) for row in request.rows)
        for entry in request.book:
            if entry.body:
                self._book[entry.key] = entry.body
            else:
                self._book.pop(entry.key, None)
        return port.PlacementWritten(self._version)

    def _aside(
        self, request: port.ReadConsumer | port.ListProjection | port.AdvanceConsumer | port.VerifyRecords
    ) -> port.Answer:
        """What no entity asks for: consumers of the log, and the scrub."""
        match request:
            case port.ReadConsumer(name=name, keys=keys):
                kept = self._projections.get(name, {})
                rows = tuple(ProjectionRow(key, kept[key]) for key in sorted(set(keys)) if key in kept)
                return port.Consumer(self._consumers.get(name, 0), rows)
            case port.ListProjection():
                return self._list_projection(request)
            case port.AdvanceConsumer():
                return self._advance(request)
            case port.VerifyRecords():
                return port.Verified(0, (), b"")

    def _list_projection(self, request: port.ListProjection) -> port.ProjectionPage:
        kept = self._projections.get(request.name, {})
        rows: list[ProjectionRow] = []
        size = 0
        offset = self._consumers.get(request.name, 0)
        for key in sorted(key for key in kept if key > request.after):
            if page_full(len(rows), size, request.limit):
                return port.ProjectionPage(offset, tuple(rows), more=True)
            rows.append(ProjectionRow(key, kept[key]))
            size += len(kept[key])
        return port.ProjectionPage(offset, tuple(rows), more=False)

    def _advance(self, request: port.AdvanceConsumer) -> port.Answer:
        refusal = advance_refusal(request, self._consumers.get(request.name, 0), len(self._facts))
        if refusal is not None:
            return refusal
        kept = self._projections.setdefault(request.name, {})
        for row in request.rows:
            if row.body:
                kept[row.key] = row.body
            else:
                kept.pop(row.key, None)
        self._consumers[request.name] = request.offset
        return port.Advanced(request.offset)
