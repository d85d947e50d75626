"""One transaction of the state store on PostgreSQL: each request of a batch answered against what it sees.

First everything that the batch will decide on is locked and read; then the requests are answered in their order by
the same pure rules as in every other adapter, on that working set; then the changes are written, set by set. A refused
request never becomes a statement, so it can't disturb its neighbours.

**Locks** are taken in one order by everybody, so that no two transactions wait for each other: leases by name, the
placement's version, placement rows by shard (shared for the fence of a state, exclusive for a change of the
placement), incarnations by node, states by name, consumers by name, and last the fact counter.

**Facts** take dense offsets in commit order because the counter is a row: whoever raises it holds it until its
transaction is committed and visible, and one that is rolled back gives its numbers back. A sequence would do neither.

**Leases** are measured by the database's clock, read after the lease is locked. It is a wall clock: should it be set
back, a lease lasts longer; should it jump ahead, one ends early, and its term, checked here, keeps its holder out.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from node.core.hashing import SHARD_COUNT
from node.store import lease as leases
from node.store import port
from node.store import postgres_projections as projections
from node.store import postgres_reads as reads
from node.store import postgres_writes as writes
from node.store.fencing import state_refusal
from node.store.keys import body_of, request_refusal, wrong_shard
from node.store.placement import placement_refusal
from node.store.postgres_errors import StoreWentBack
from node.store.postgres_schema import Connection


class Marks(msgspec.Struct):
    """The most that this process has seen the database know; anything less, later, means that it lost something.

    What a transaction finds is compared with the marks as they were before it began: others go on raising them.
    """

    facts: int = 0
    placement: int = 0

    def check(self, name: str, found: int) -> int:
        """`found`, unless more was known: raises StoreWentBack."""
        known: int = getattr(self, name)
        if found < known:
            raise StoreWentBack(f"{name} stands at", found, known)
        return found

    def copy(self) -> Marks:
        return Marks(self.facts, self.placement)

    def raise_to(self, seen: Marks) -> None:
        """What a committed transaction has seen."""
        self.facts, self.placement = max(self.facts, seen.facts), max(self.placement, seen.placement)


class _State(msgspec.Struct):
    """A state as the transaction will leave it; `body` is None while it is only read."""

    shard: int
    found: int
    revision: int
    epoch: int = 0
    body: bytes | None = None
    deleted: bool = False


class PgTxn:
    """The work of one transaction, which its caller begins after making this, and commits; then `seen` is known."""

    def __init__(self, connection: Connection, marks: Marks, wall_ms: int) -> None:
        self._sql = connection
        self._marks = marks
        self.seen = marks.copy()
        self._wall_ms = wall_ms
        self._answers: list[port.Answer | None] = []
        self._now = leases.StoreTime(0)
        self._shard_count = SHARD_COUNT
        self._version = 0
        self._rows: dict[int, port.ShardRow] = {}
        self._changed_rows: dict[int, port.ShardRow] = {}
        self._changed_book: dict[str, bytes] = {}
        self._leases: dict[str, leases.StoredLease] = {}
        self._changed_leases: dict[str, leases.StoredLease] = {}
        self._numbers: dict[str, int] = {}
        self._changed_numbers: dict[str, int] = {}
        self._states: dict[tuple[str, str], _State] = {}
        self._facts: list[tuple[str, str, str, bytes]] = []
        self._numbered: list[int] = []  # answers whose last offset still counts from the facts waiting above

    async def answer(self, batch: Sequence[port.Request]) -> list[port.Answer]:
        """The answers, in the order of the requests, everything written that they say."""
        refusals = [request_refusal(request) for request in batch]
        sound = [request for request, refusal in zip(batch, refusals, strict=True) if refusal is None]
        await self._lock(sound)
        self._answers = list(refusals)
        index = 0
        while index < len(batch):
            request = batch[index]
            if self._answers[index] is not None:
                index += 1
            elif isinstance(request, port.ReadState):
                index = await self._read_states(batch, index)
            else:
                self._answers[index] = self._decide(request, index) or await self._read(request)
                index += 1
        await self._flush()
        return [answer for answer in self._answers if answer is not None]

    # ---- locks, in the order the module's head names

    async def _lock(self, batch: Sequence[port.Request]) -> None:
        placements = [request for request in batch if isinstance(request, port.WritePlacement)]
        asked = [request for request in batch if isinstance(request, port.AcquireLease | port.ReleaseLease)]
        names = {request.name for request in asked} | {request.lease for request in placements}
        if names:
            await self._lock_leases(sorted(names))
        if placements:
            await self._lock_placement(sorted({row.shard for request in placements for row in request.rows}))
        wanted = [request for request in batch if isinstance(request, port.StateChange)]
        shards = {request.shard for request in wanted} - self._rows.keys()
        if shards:
            self._rows.update(await reads.lock_rows(self._sql, sorted(shards), alone=False))
        nodes = sorted({request.node for request in batch if isinstance(request, port.NextIncarnation)})
        if nodes:
            self._numbers = await reads.lock_incarnations(self._sql, nodes)
        consumers = sorted({request.name for request in batch if isinstance(request, port.AdvanceConsumer)})
        if wanted:
            await self._lock_states(sorted({(request.kind, request.id) for request in wanted}))

        if consumers:
            await projections.lock_consumers(self._sql, consumers)

    async def _lock_leases(self, names: list[str]) -> None:
        self._leases = await reads.lock_leases(self._sql, names)
        self._now = leases.StoreTime(await reads.clock_ns(self._sql))

    async def _lock_placement(self, shards: list[int]) -> None:
        self._version = self._marks.check("placement", await reads.lock_version(self._sql))
        self._shard_count = await reads.shard_count(self._sql)
        known = [shard for shard in shards if 0 <= shard < self._shard_count]
        self._rows.update((shard, port.ShardRow(shard)) for shard in known)
        self._rows.update(await reads.lock_rows(self._sql, known, alone=True))

    async def _lock_states(self, names: list[tuple[str, str]]) -> None:
        found = await reads.lock_states(self._sql, names)
        self._states = {name: _State(shard, revision, revision) for name, (shard, revision) in found.items()}

    # ---- decisions on the working set

    def _decide(self, request: port.Request, index: int) -> port.Answer | None:
        """The answer to a request that is decided on the working set; None for another."""
        match request:
            case port.WriteState() | port.DeleteState():
                return self._change_state(request, index)
            case port.AcquireLease():
                stored, answer = leases.acquire(self._leases.get(request.name), request, self._now)
                if stored is not None:
                    self._leases[request.name] = self._changed_leases[request.name] = stored
                return answer
            case port.ReleaseLease():
                released = leases.release(self._leases.get(request.name), request)
                if released is not None:
                    self._leases[request.name] = self._changed_leases[request.name] = released
                return port.Done()
            case port.NextIncarnation(node=node):
                number = self._changed_numbers.get(node, self._numbers.get(node, 0)) + 1
                self._changed_numbers[node] = number
                return port.Incarnation(number)
            case port.WritePlacement():
                return self._write_placement(request)
            case port.VerifyRecords():
                return port.Verified(0, (), b"")  # the server has checksums of its own pages
            case _:
                return None

    def _row(self, shard: int) -> port.ShardRow:
        return self._rows.get(shard) or port.ShardRow(shard)

    def _change_state(self, request: port.StateChange, index: int) -> port.Answer:
        name = (request.kind, request.id)
        state = self._states.get(name)
        if state is not None and state.shard != request.shard:
            return wrong_shard(request, state.shard)
        refusal = state_refusal(request, self._row(request.shard).epoch, state.revision if state else 0)
        if refusal is not None:
            return refusal
        if state is None:
            state = self._states[name] = _State(request.shard, 0, 0)
        state.revision, state.epoch, state.body = state.revision + 1, request.epoch, body_of(request)
        state.deleted = isinstance(request, port.DeleteState)
        self._facts += ((*name, fact.type, fact.body) for fact in request.facts)
        if not request.facts:
            return port.Written(state.revision)
        self._numbered.append(index)
        return port.Written(state.revision, len(self._facts))

    def _write_placement(self, request: port.WritePlacement) -> port.Answer:
        refusal = placement_refusal(
            request, self._version, self._row, self._leases.get(request.lease), self._now, self._shard_count
        )
        if refusal is not None:
            return refusal
        for row in request.rows:
            self._rows[row.shard] = self._changed_rows[row.shard] = row
        self._changed_book.update((entry.key, entry.body) for entry in request.book)
        self._version += bool(request.rows)
        self.seen.placement = self._version
        return port.PlacementWritten(self._version)

    # ---- what is not decided on the working set, behind what the batch has changed so far

    async def _read(self, request: port.Request) -> port.Answer:
        await self._flush()
        match request:
            case port.Initialise(identity=wanted):
                identity = await reads.initialise(self._sql, wanted)
                self._shard_count = identity.shard_count
                return identity
            case port.ListStates():
                return await reads.list_states(self._sql, request)
            case port.ReadFacts():
                return await reads.read_facts(self._sql, request)
            case port.ReadConsumer():
                return await projections.read_consumer(self._sql, request)
            case port.ListProjection():
                return await projections.list_projection(self._sql, request)
            case port.AdvanceConsumer():
                return await projections.advance(self._sql, request)
            case _:
                placement = await reads.read_placement(self._sql)
                self.seen.placement = self._marks.check("placement", placement.version)
                return placement

    async def _read_states(self, batch: Sequence[port.Request], start: int) -> int:
        """Answers the reads that follow one another from `start` by one statement; returns the index behind them."""
        await self._flush()
        wanted: list[tuple[str, str]] = []
        for index in range(start, len(batch)):
            request = batch[index]
            if self._answers[index] is not None or not isinstance(request, port.ReadState):
                break
            wanted.append((request.kind, request.id))
        found = await reads.read_states(self._sql, wanted)
        for index, name in enumerate(wanted, start):
            self._answers[index] = found.get(name) or port.Absent()
        return start + len(wanted)

    async def _flush(self) -> None:
        """Writes what the answers so far say; the fact counter last, as it is held until the commit."""
        if self._changed_leases:
            await writes.write_leases(self._sql, self._changed_leases)
            self._changed_leases.clear()
        if self._changed_rows:
            await writes.write_placement(self._sql, self._version, self._changed_rows)
            self._changed_rows.clear()
        if self._changed_book:
            await writes.write_book(self._sql, self._changed_book)
            self._changed_book.clear()
        if self._changed_numbers:
            await writes.write_incarnations(self._sql, self._changed_numbers)
            self._numbers.update(self._changed_numbers)
            self._changed_numbers.clear()
        await self._flush_states()
        if self._facts:
            await self._flush_facts()

    async def _flush_states(self) -> None:
        changed = [(name, state) for name, state in sorted(self._states.items()) if state.body is not None]
        new = [
            (*name, made.shard, made.revision, made.epoch, made.body, made.deleted)
            for name, made in changed
            if not made.found
        ]
        known = [
            (*name, state.revision, state.epoch, state.body, state.deleted) for name, state in changed if state.found
        ]
        if new:
            await writes.insert_states(self._sql, new)
        if known:
            await writes.update_states(self._sql, known)
        for _, state in changed:
            state.found, state.body = state.revision, None

    async def _flush_facts(self) -> None:
        last = await writes.append_facts(self._sql, self._wall_ms, self._facts)
        before = self._marks.check("facts", last - len(self._facts))
        self.seen.facts = last
        for index in self._numbered:
            answer = self._answers[index]
            if isinstance(answer, port.Written):
                self._answers[index] = msgspec.structs.replace(answer, last_offset=before + answer.last_offset)
        self._facts.clear()
        self._numbered.clear()
