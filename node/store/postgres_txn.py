"""One transaction of the state store on PostgreSQL: each request of a batch answered against what it sees.

First everything that the batch will decide on is locked and read; then the requests are answered in their order by
the same pure rules as in every other adapter, on that working set; then the changes are written, set by set. A refused
request never becomes a statement, so it can't disturb its neighbours.

**Locks** are taken in one order by everybody, so that no two transactions wait for each other: leases by name, the
placement's version, placement rows by shard (shared for the fence of a state, exclusive for a change of the
placement), incarnations by node, states by name, and last the fact counter.

**Facts** take dense offsets in commit order because the counter is a row: whoever raises it holds it until its
transaction is committed and visible, and one that is rolled back gives its numbers back. A sequence would do neither.

**Leases** are measured by the database's clock, read after the lease is locked. It is a wall clock: should it be set
back, a lease lasts longer; should it jump ahead, one ends early, and its term, checked here, keeps its holder out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from node.core.hashing import SHARD_COUNT
from node.store import lease as leases
from node.store import port
from node.store import postgres_reads as reads
from node.store.fencing import state_refusal
from node.store.keys import request_refusal, wrong_shard
from node.store.placement import placement_refusal
from node.store.postgres_errors import StoreWentBack
from node.store.postgres_schema import Connection

_LOCK_LEASES: Final = (
    "SELECT name, holder, term, granted_at_ns, ttl_ms FROM leases WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE"
)
_MAKE_LEASES: Final = "INSERT INTO leases SELECT n, '', 0, 0, 0 FROM unnest($1::text[]) AS n ON CONFLICT DO NOTHING"
_LOCK_INCARNATIONS: Final = (
    "SELECT node, number FROM incarnations WHERE node = ANY($1::text[]) ORDER BY node FOR UPDATE"
)
_MAKE_INCARNATIONS: Final = "INSERT INTO incarnations SELECT n, 0 FROM unnest($1::text[]) AS n ON CONFLICT DO NOTHING"


class Marks(msgspec.Struct):
    """The most that this process has seen the database know; anything less, later, means that it lost something."""

    facts: int = 0
    placement: int = 0

    def check(self, name: str, found: int) -> int:
        """`found`, unless more was known: raises StoreWentBack."""
        known: int = getattr(self, name)
        if found < known:
            raise StoreWentBack(f"{name} stands at", found, known)
        return found

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


class PgTxn:
    """The work of one transaction, which its caller begins and commits; `marks` may be raised to `seen` then."""

    def __init__(self, connection: Connection, marks: Marks, wall_ms: int) -> None:
        self._sql = connection
        self._marks = marks
        self.seen = Marks(marks.facts, marks.placement)
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
        writes = [request for request in batch if isinstance(request, port.WriteState)]
        shards = {request.shard for request in writes} - self._rows.keys()
        if shards:
            rows = await self._sql.fetch(
                "SELECT shard, node, incarnation, epoch, state, pinned FROM placement"
                " WHERE shard = ANY($1::integer[]) ORDER BY shard FOR SHARE",
                sorted(shards),
            )
            self._rows.update((row[0], reads.shard_row(row)) for row in rows)
        nodes = sorted({request.node for request in batch if isinstance(request, port.NextIncarnation)})
        if nodes:
            rows = await self._locked(_LOCK_INCARNATIONS, _MAKE_INCARNATIONS, nodes)
            self._numbers.update((row[0], row[1]) for row in rows)
        if writes:
            await self._lock_states(sorted({(request.kind, request.id) for request in writes}))

    async def _lock_leases(self, names: list[str]) -> None:
        rows = await self._locked(_LOCK_LEASES, _MAKE_LEASES, names)
        self._leases.update((row[0], leases.StoredLease(row[1], row[2], row[3], row[4])) for row in rows)
        self._now = leases.StoreTime((await self._sql.fetch("SELECT clock_ns()"))[0][0])

    async def _locked(self, select: str, make: str, names: list[str]) -> list[Any]:
        """The rows of `names`, locked; the missing ones are made first, so that of two who find none one waits."""
        rows = await self._sql.fetch(select, names)
        if len(rows) == len(names):
            return rows
        await self._sql.fetch(make, names)
        return await self._sql.fetch(select, names)

    async def _lock_placement(self, shards: list[int]) -> None:
        found = await self._sql.fetch("SELECT value FROM counters WHERE name = 'placement' FOR UPDATE")
        self._version = self._marks.check("placement", found[0][0])
        self._shard_count = await reads.shard_count(self._sql)
        known = [shard for shard in shards if 0 <= shard < self._shard_count]
        rows = await self._sql.fetch(
            "SELECT shard, node, incarnation, epoch, state, pinned FROM placement"
            " WHERE shard = ANY($1::integer[]) ORDER BY shard FOR UPDATE",
            known,
        )
        self._rows.update((shard, port.ShardRow(shard)) for shard in known)
        self._rows.update((row[0], reads.shard_row(row)) for row in rows)

    async def _lock_states(self, names: list[tuple[str, str]]) -> None:
        rows = await self._sql.fetch(
            "SELECT s.kind, s.id, s.shard, s.revision FROM states s"
            " JOIN unnest($1::text[], $2::text[]) AS w (kind, id) ON s.kind = w.kind AND s.id = w.id"
            " ORDER BY s.kind, s.id FOR UPDATE OF s",
            [kind for kind, _ in names],
            [id_ for _, id_ in names],
        )
        self._states.update(((row[0], row[1]), _State(row[2], row[3], row[3])) for row in rows)

    # ---- decisions on the working set

    def _decide(self, request: port.Request, index: int) -> port.Answer | None:
        """The answer to a request that changes something; None for one that reads."""
        match request:
            case port.WriteState():
                return self._write_state(request, index)
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
            case _:
                return None

    def _row(self, shard: int) -> port.ShardRow:
        return self._rows.get(shard) or port.ShardRow(shard)

    def _write_state(self, request: port.WriteState, index: int) -> port.Answer:
        name = (request.kind, request.id)
        state = self._states.get(name)
        if state is not None and state.shard != request.shard:
            return wrong_shard(request, state.shard)
        refusal = state_refusal(request, self._row(request.shard).epoch, state.revision if state else 0)
        if refusal is not None:
            return refusal
        if state is None:
            state = self._states[name] = _State(request.shard, 0, 0)
        state.revision, state.epoch, state.body = state.revision + 1, request.epoch, request.body
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

    # ---- reads, behind what the batch has changed so far

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

    # ---- changes

    async def _flush(self) -> None:
        """Writes what the answers so far say; the fact counter last, as it is held until the commit."""
        if self._changed_leases:
            rows = [(name, *msgspec.structs.astuple(held)[:4]) for name, held in sorted(self._changed_leases.items())]
            await self._sql.fetch(
                "UPDATE leases l SET holder = w.holder, term = w.term, granted_at_ns = w.at, ttl_ms = w.ttl FROM"
                " unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])"
                " AS w (name, holder, term, at, ttl) WHERE l.name = w.name",
                *_columns(rows),
            )
            self._changed_leases.clear()
        if self._changed_rows:
            await self._flush_placement()
        if self._changed_book:
            await self._flush_book()
        if self._changed_numbers:
            await self._sql.fetch(
                "UPDATE incarnations i SET number = w.number FROM unnest($1::text[], $2::bigint[])"
                " AS w (node, number) WHERE i.node = w.node",
                *_columns(sorted(self._changed_numbers.items())),
            )
            self._numbers.update(self._changed_numbers)
            self._changed_numbers.clear()
        await self._flush_states()
        if self._facts:
            await self._flush_facts()

    async def _flush_placement(self) -> None:
        rows = [
            (row.shard, row.node, row.incarnation, row.epoch, row.state.value, row.pinned)
            for _, row in sorted(self._changed_rows.items())
        ]
        await self._sql.fetch(
            "INSERT INTO placement (shard, node, incarnation, epoch, state, pinned) SELECT * FROM"
            " unnest($1::integer[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::boolean[])"
            " ON CONFLICT (shard) DO UPDATE SET node = excluded.node, incarnation = excluded.incarnation,"
            " epoch = excluded.epoch, state = excluded.state, pinned = excluded.pinned",
            *_columns(rows),
        )
        self._changed_rows.clear()
        await self._sql.fetch("UPDATE counters SET value = $1 WHERE name = 'placement'", self._version)

    async def _flush_book(self) -> None:
        kept = [(key, body) for key, body in sorted(self._changed_book.items()) if body]
        gone = [key for key, body in self._changed_book.items() if not body]
        if kept:
            await self._sql.fetch(
                "INSERT INTO book SELECT * FROM unnest($1::text[], $2::bytea[])"
                " ON CONFLICT (key) DO UPDATE SET body = excluded.body",
                *_columns(kept),
            )
        if gone:
            await self._sql.fetch("DELETE FROM book WHERE key = ANY($1::text[])", gone)
        self._changed_book.clear()

    async def _flush_states(self) -> None:
        changed = [(name, state) for name, state in sorted(self._states.items()) if state.body is not None]
        new = [(*name, made.shard, made.revision, made.epoch, made.body) for name, made in changed if not made.found]
        known = [(*name, state.revision, state.epoch, state.body) for name, state in changed if state.found]
        if new:  # somebody who made one since it was looked for is met as a duplicate key, and all is tried again
            await self._sql.fetch(
                "INSERT INTO states (kind, id, shard, revision, epoch, body) SELECT * FROM"
                " unnest($1::text[], $2::text[], $3::integer[], $4::bigint[], $5::bigint[], $6::bytea[])",
                *_columns(new),
            )
        if known:
            await self._sql.fetch(
                "UPDATE states s SET revision = w.revision, epoch = w.epoch, body = w.body FROM"
                " unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bytea[])"
                " AS w (kind, id, revision, epoch, body) WHERE s.kind = w.kind AND s.id = w.id",
                *_columns(known),
            )
        for _, state in changed:
            state.found, state.body = state.revision, None

    async def _flush_facts(self) -> None:
        rows = await self._sql.fetch(
            "WITH taken AS (UPDATE counters SET value = value + $1 WHERE name = 'facts' RETURNING value),"
            " added AS (INSERT INTO facts (fact_offset, kind, id, at_ms, type, body)"
            " SELECT taken.value - $1 + f.number, f.kind, f.id, $2, f.type, f.body FROM taken,"
            " unnest($3::text[], $4::text[], $5::text[], $6::bytea[])"
            " WITH ORDINALITY AS f (kind, id, type, body, number))"
            " SELECT value FROM taken",
            len(self._facts),
            self._wall_ms,
            *_columns(self._facts),
        )
        last = rows[0][0]
        before = self._marks.check("facts", last - len(self._facts))
        self.seen.facts = last
        for index in self._numbered:
            answer = self._answers[index]
            if isinstance(answer, port.Written):
                self._answers[index] = msgspec.structs.replace(answer, last_offset=before + answer.last_offset)
        self._facts.clear()
        self._numbered.clear()


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]
