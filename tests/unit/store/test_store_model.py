"""Every store answers as the reference does, whatever is asked in whatever order, across reopening."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from postgres_clock import ClockedPostgres, new_schema, run_sql

from node.core.clock import MS, ManualClock
from node.store import port
from node.store.lmdb import LmdbStore
from node.store.memory import MemoryStore
from node.store.projection import ProjectionRow
from scripts.postgres_server import PostgresServer

KINDS = st.sampled_from(["page", "site", "site-x"])
IDS = st.sampled_from(["a", "b", "a|b", "ü"])
SHARDS = st.integers(0, 3)
SMALL = st.integers(0, 3)
NODES = st.sampled_from(["n1", "n2"])
HOLDERS = st.sampled_from(["n1@1", "n2@1"])
FACTS = st.lists(st.builds(port.Fact, st.just("t.f"), st.binary(max_size=3)), max_size=3).map(tuple)
ROWS = st.lists(
    st.builds(
        port.ShardRow,
        shard=st.integers(-1, 4),
        node=st.sampled_from(["", "n1", "n2"]),
        incarnation=st.integers(1, 2),
        epoch=SMALL,
        state=st.sampled_from(port.ShardState),
    ),
    max_size=3,
).map(tuple)
BOOK = st.lists(st.builds(port.BookEntry, IDS, st.binary(max_size=3)), max_size=3).map(tuple)
CONSUMERS = st.sampled_from(["p", "p2"])
PROJECTED = st.lists(st.builds(ProjectionRow, IDS, st.binary(max_size=3)), max_size=3).map(tuple)
REQUESTS = st.one_of(
    st.builds(port.NextIncarnation, NODES),
    st.builds(port.ReadState, KINDS, IDS),
    st.builds(port.WriteState, KINDS, IDS, st.just(1), SMALL, SMALL, st.binary(max_size=5), FACTS),
    st.builds(port.WriteState, KINDS, IDS, SHARDS, SMALL, SMALL, st.binary(max_size=5), FACTS),
    st.builds(port.DeleteState, KINDS, IDS, st.just(1), SMALL, SMALL, FACTS),
    st.builds(
        port.ListStates,
        st.lists(KINDS, max_size=3).map(tuple),
        st.none() | SHARDS,
        st.none() | st.tuples(KINDS, IDS),
        st.integers(1, 3),
        st.booleans(),
    ),
    st.builds(port.ReadFacts, SMALL, st.integers(1, 3)),
    st.builds(port.AcquireLease, st.just("c"), HOLDERS, st.sampled_from([50, 100])),
    st.builds(port.ReleaseLease, st.just("c"), HOLDERS, SMALL),
    st.builds(port.ReadPlacement),
    st.builds(port.ReadConsumer, CONSUMERS, st.lists(IDS, max_size=2).map(tuple)),
    st.builds(port.ListProjection, CONSUMERS, st.just("") | IDS, st.integers(1, 3)),
    st.builds(port.AdvanceConsumer, CONSUMERS, SMALL, SMALL, PROJECTED),
    st.builds(port.WritePlacement, st.just("c"), HOLDERS, SMALL, SMALL, ROWS, BOOK),
)
IDENTITY = port.Identity("c", "n", shard_count=4, map_count=32, hash_version="x")


class StoreModel(RuleBasedStateMachine):
    """The machine; each adapter says how it is opened, again and again on the same data."""

    @initialize()
    def make(self) -> None:
        self.clock = ManualClock()
        self.reference = MemoryStore(self.clock)
        self.store = self.open()
        self.version = 0
        self.both([port.Initialise(IDENTITY)])

    def open(self) -> port.StateStore:
        raise AssertionError("the adapter's machine says how")

    def both(self, batch: list[port.Request]) -> list[port.Answer]:
        expected = self.reference.apply(batch)
        assert self.store.apply(batch) == expected
        return expected

    @rule(batch=st.lists(REQUESTS, min_size=1, max_size=6))
    def ask(self, batch: list[port.Request]) -> None:
        self.both(batch)

    @rule(shard=SHARDS, node=NODES)
    def allocate(self, shard: int, node: str) -> None:
        """The way that succeeds, so that writes get behind the fence."""
        (lease, table) = self.both([port.AcquireLease("c", "n1@1", 100), port.ReadPlacement()])
        if isinstance(lease, port.LeaseGranted) and isinstance(table, port.Placement):
            row = port.ShardRow(shard, node, 1, min(table.rows[shard].epoch + 1, 3), port.ShardState.RUNNING)
            book = (port.BookEntry(node, bytes(shard)),)
            self.both([port.WritePlacement("c", "n1@1", lease.term, table.version, (row,), book)])

    @rule(kind=KINDS, id_=IDS, shard=SHARDS, facts=FACTS, body=st.binary(max_size=5))
    def write_as_owner(self, kind: str, id_: str, shard: int, facts: tuple[port.Fact, ...], body: bytes) -> None:
        epoch, revision = self.stands_at(kind, id_, shard)
        self.both([port.WriteState(kind, id_, shard, epoch, revision, body, facts)])

    @rule(kind=KINDS, id_=IDS, shard=SHARDS, facts=FACTS)
    def delete_as_owner(self, kind: str, id_: str, shard: int, facts: tuple[port.Fact, ...]) -> None:
        epoch, revision = self.stands_at(kind, id_, shard)
        self.both([port.DeleteState(kind, id_, shard, epoch, revision, facts)])

    def stands_at(self, kind: str, id_: str, shard: int) -> tuple[int, int]:
        """The shard's epoch and the entity's revision."""
        (table, found) = self.both([port.ReadPlacement(), port.ReadState(kind, id_)])
        assert isinstance(table, port.Placement)
        assert isinstance(found, port.Record | port.Absent)
        return table.rows[shard].epoch, found.revision

    @rule(name=CONSUMERS, by=SMALL, rows=PROJECTED)
    def advance(self, name: str, by: int, rows: tuple[ProjectionRow, ...]) -> None:
        """The way that succeeds, as long as there are facts."""
        (consumer,) = self.both([port.ReadConsumer(name)])
        assert isinstance(consumer, port.Consumer)
        self.both([port.AdvanceConsumer(name, consumer.offset, consumer.offset + by, rows)])

    @rule(ms=st.sampled_from([1, 49, 100]))
    def wait(self, ms: int) -> None:
        self.clock.advance_ns(ms * MS)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.open()

    @invariant()
    def same_everywhere(self) -> None:
        kinds = ("page", "site", "site-x")
        self.both([port.ReadPlacement(), port.ReadFacts(0, 5_000), port.ListStates(kinds)])
        self.both([port.ListProjection("p"), port.ListProjection("p2")])
        self.both([port.ListStates(kinds, shard, None, 500, bodies=False) for shard in range(4)])

    def teardown(self) -> None:
        self.store.close()


class LmdbModel(StoreModel):
    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())

    def open(self) -> port.StateStore:
        return LmdbStore(self.path, self.clock, map_bytes=1 << 20)

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.path)


class PostgresModel(StoreModel):
    def __init__(self, dsn: str) -> None:
        super().__init__()
        self.dsn = dsn
        self.schema = new_schema()

    def open(self) -> port.StateStore:
        return ClockedPostgres(self.dsn, self.clock, self.schema)

    def teardown(self) -> None:
        super().teardown()
        run_sql(self.dsn, "SET client_min_messages = error", f"DROP SCHEMA {self.schema} CASCADE", "SELECT 1")


def how(examples: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


def test_lmdb_answers_as_the_reference() -> None:
    run_state_machine_as_test(LmdbModel, settings=how(50))


def test_postgres_answers_as_the_reference(postgres: PostgresServer) -> None:
    run_state_machine_as_test(lambda: PostgresModel(postgres.dsn), settings=how(20))
