"""PostgreSQL as a store when the server, the network or another node misbehaves: rows G1 to G10 of the catalogue."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import pytest
from postgres_clock import new_schema, run_sql

from node.core import faultpoints
from node.core.clock import SystemClock
from node.core.errors import OperatingError
from node.store import port
from node.store.postgres import PostgresOptions, PostgresStore
from node.store.postgres_schema import MIGRATIONS, migrate
from scripts.postgres_server import PostgresServer

ROW = port.ShardRow(7, "n1", 1, 1, port.ShardState.RUNNING)
Open = Callable[..., PostgresStore]


@pytest.fixture
def schema() -> str:
    return new_schema()


@pytest.fixture
def opened() -> Iterator[list[PostgresStore]]:
    stores: list[PostgresStore] = []
    yield stores
    for store in stores:
        store.close()


@pytest.fixture
def open_store(opened: list[PostgresStore], schema: str) -> Open:
    """A store of one schema for all of the test; `server` is where."""

    def open_(server: PostgresServer, **how: object) -> PostgresStore:
        options = {"dsn": server.dsn, "schema": schema, "deadline_ms": 10_000} | how
        opened.append(PostgresStore(PostgresOptions(**options), SystemClock()))  # type: ignore[arg-type]
        return opened[-1]

    return open_


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    faultpoints.arm(None)


def own(store: PostgresStore) -> None:
    """Shard 7 is n1's under epoch 1."""
    store.apply([port.AcquireLease("c", "n1@1", 60_000)])
    assert store.apply([port.WritePlacement("c", "n1@1", 1, 0, (ROW,))]) == [port.PlacementWritten(1)]


def write(revision: int, body: bytes = b"b", id_: str = "x") -> port.WriteState:
    return port.WriteState("site", id_, 7, 1, revision, body, (port.Fact("t.f", body),))


def failed(answers: list[port.Answer]) -> tuple[str, bool]:
    (answer,) = answers
    assert isinstance(answer, port.StoreFailed), answer
    return answer.code, answer.definite


def at(point: str, act: Callable[[], None]) -> None:
    """Does `act` once, when the store reaches `point`."""
    left = [act]

    def hook(reached: str) -> None:
        if reached == point and left:
            left.pop()()

    faultpoints.arm(hook)


def test_g1_a_server_that_is_down_refuses_definitely_and_is_used_as_soon_as_it_is_up(
    own_postgres: PostgresServer, open_store: Open
) -> None:
    own_postgres.stop("fast")
    store = open_store(own_postgres)
    assert failed(store.apply([port.ReadPlacement()])) == ("E-STORE-UNREACHABLE", True)
    own_postgres.start()
    own(store)
    own_postgres.stop("fast")
    assert failed(store.apply([write(0)])) == ("E-STORE-UNREACHABLE", True)
    own_postgres.start()
    assert store.apply([write(0)]) == [port.Written(1, 1)]


@pytest.mark.parametrize(
    ("point", "answer", "kept"),
    [
        ("store.before_begin", None, False),
        ("store.before_commit", None, False),
        ("store.after_commit", port.Written(1, 1), True),
    ],
)
def test_g2_a_crash_of_the_server_loses_nothing_that_was_answered(
    own_postgres: PostgresServer, open_store: Open, point: str, answer: port.Answer | None, kept: bool
) -> None:
    store = open_store(own_postgres)
    own(store)
    at(point, own_postgres.stop)
    answers = store.apply([write(0)])
    if answer is None:
        code, definite = failed(answers)
        # The commit was sent into a connection that nobody serves any more: that is open, whatever the truth is.
        assert (code, definite) == ("E-STORE-UNREACHABLE", point == "store.before_begin")
    else:
        assert answers == [answer]
    own_postgres.start()
    (found,) = store.apply([port.ReadState("site", "x")])
    assert isinstance(found, port.Record) is kept
    assert store.apply([write(1 if kept else 0)]) == [port.Written(2 if kept else 1, 2 if kept else 1)]


def test_g3_a_frozen_server_costs_one_deadline_and_no_more(own_postgres: PostgresServer, open_store: Open) -> None:
    store = open_store(own_postgres, deadline_ms=500)
    own(store)
    at("store.before_commit", own_postgres.freeze)
    begun = time.monotonic()
    assert failed(store.apply([write(0)])) == ("E-STORE-TIMEOUT", False)
    assert failed(store.apply([write(0)])) == ("E-STORE-TIMEOUT", True), "it was never sent"
    assert failed(store.apply([port.AcquireLease("c", "n1@1", 60_000)])) == ("E-STORE-TIMEOUT", True)
    # Three deadlines of 0.5 s. asyncpg waits for a frozen server to confirm a cancellation: for ever.
    assert time.monotonic() - begun < 60
    own_postgres.thaw()
    answers = _until(lambda: store.apply([port.ReadState("site", "x")]), lambda got: not _is_failure(got))
    revision = getattr(answers[0], "revision", 0)
    assert isinstance(store.apply([write(revision)])[0], port.Written)


def test_g4_a_database_that_forgot_what_it_had_acknowledged_is_written_to_no_more(
    postgres: PostgresServer, open_store: Open, schema: str
) -> None:
    store = open_store(postgres)
    own(store)
    assert store.apply([write(0), write(1)]) == [port.Written(1, 1), port.Written(2, 2)]
    run_sql(postgres.dsn, f"UPDATE {schema}.counters SET value = 1 WHERE name = 'facts'", "SELECT 1")
    assert failed(store.apply([write(2)])) == ("E-STORE-WENT-BACK", True)
    assert failed(store.apply([port.NextIncarnation("n")])) == ("E-STORE-WENT-BACK", True)
    (record,) = store.apply([port.ReadState("site", "x")])
    assert isinstance(record, port.Record), "it is still read"


def test_g4_is_noticed_when_a_new_server_answers(postgres: PostgresServer, open_store: Open, schema: str) -> None:
    store = open_store(postgres)
    own(store)
    run_sql(postgres.dsn, f"UPDATE {schema}.counters SET value = 0 WHERE name = 'placement'", "SELECT 1")
    _cut_idle(postgres)
    assert failed(store.apply([write(0)])) == ("E-STORE-WENT-BACK", True)


def test_g5_what_the_server_refuses_is_said_by_name(
    postgres: PostgresServer, open_store: Open, schema: str, request: pytest.FixtureRequest
) -> None:
    store = open_store(postgres, deadline_ms=1_000)
    own(store)
    run_sql(
        postgres.dsn,
        f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = current_setting('promo.refusal'); END $$",
        f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.states FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()",
        "SELECT 1",
    )
    request.addfinalizer(lambda: run_sql(postgres.dsn, "ALTER DATABASE postgres RESET promo.refusal", "SELECT 1"))
    for state, code in (("25006", "E-STORE-READ-ONLY"), ("53100", "E-STORE-FULL"), ("57014", "E-STORE-TIMEOUT")):
        run_sql(postgres.dsn, f"ALTER DATABASE postgres SET promo.refusal = '{state}'", "SELECT 1")
        _cut_idle(postgres)
        assert failed(store.apply([write(0)])) == (code, True)
    run_sql(postgres.dsn, f"DROP TRIGGER refuse ON {schema}.states", "SELECT 1")
    assert store.apply([write(0)]) == [port.Written(1, 1)]


def test_g5_a_deadlock_is_tried_again_and_neither_side_sees_it(
    postgres: PostgresServer, open_store: Open, schema: str
) -> None:
    """Another client, of no discipline, holds b and wants a; we hold a and want b."""
    store = open_store(postgres)
    own(store)
    store.apply([write(0, id_="a"), write(0, id_="b")])
    lock = f"SELECT 1 FROM {schema}.states WHERE id = $1 FOR UPDATE"
    answers: list[port.Answer] = []

    async def other() -> None:
        connection = await asyncpg.connect(postgres.dsn)
        async with connection.transaction():
            await connection.execute("SET LOCAL deadlock_timeout = '10s'")  # ours is the one that finds it
            await connection.fetch(lock, "b")
            ours = asyncio.create_task(asyncio.to_thread(store.apply, [write(1, id_="a"), write(1, id_="b")]))
            waits = "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            await asyncio.to_thread(_until, lambda: run_sql(postgres.dsn, waits), lambda found: found[0][0] > 0)
            await connection.fetch(lock, "a")
        answers.extend(await ours)
        connection.terminate()

    asyncio.run(other())
    assert answers == [port.Written(2, 3), port.Written(2, 4)]


def test_g5_two_who_make_one_entity_at_once_are_told_apart(postgres: PostgresServer, open_store: Open) -> None:
    first, second = open_store(postgres), open_store(postgres)
    own(first)
    late: list[port.Answer] = []
    thread = threading.Thread(target=lambda: late.extend(second.apply([write(0)])))

    def compete() -> None:
        thread.start()
        waits = "SELECT count(*)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        _until(lambda: run_sql(postgres.dsn, waits), lambda found: found[0][0] > 0)

    at("store.before_commit", compete)
    assert first.apply([write(0)]) == [port.Written(1, 1)]
    thread.join(30)
    assert late == [port.Conflict(1)]


def test_g6_leases_are_renewed_while_every_write_waits(postgres: PostgresServer, open_store: Open, schema: str) -> None:
    store = open_store(postgres, pool_size=3)
    own(store)
    store.apply([write(0)])
    waiting: list[list[port.Answer]] = []
    with _held(postgres, f"SELECT 1 FROM {schema}.states FOR UPDATE"):
        threads = [threading.Thread(target=lambda: waiting.append(store.apply([write(1)]))) for _ in range(4)]
        for each in threads:
            each.start()
        assert store.apply([port.AcquireLease("c", "n1@1", 60_000)]) == [port.LeaseGranted(1, 60_000)]
        assert waiting == []
    for each in threads:
        each.join(30)
    assert sorted(waiting, key=repr) == [[port.Conflict(2)]] * 3 + [[port.Written(2, 2)]]


def test_g7_a_full_pool_is_waited_for_no_longer_than_the_deadline(
    postgres: PostgresServer, open_store: Open, schema: str
) -> None:
    store = open_store(postgres, pool_size=2, deadline_ms=600)
    own(store)
    store.apply([write(0)])
    with _held(postgres, f"SELECT 1 FROM {schema}.states FOR UPDATE"):
        answers: list[port.Answer] = []
        threads = [threading.Thread(target=lambda: answers.extend(store.apply([write(1)]))) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(30)
    assert {failed([answer])[1] for answer in answers} == {True}
    assert len(answers) == 3


def test_g7_a_connection_killed_while_idle_is_replaced_unnoticed(postgres: PostgresServer, open_store: Open) -> None:
    store = open_store(postgres)
    own(store)
    _cut_idle(postgres)
    assert store.apply([write(0)]) == [port.Written(1, 1)]


def test_g7_without_prepared_statements_nothing_stays_on_a_connection(
    postgres: PostgresServer, open_store: Open, schema: str
) -> None:
    """What pgbouncer in transaction mode needs: between two transactions the server knows nothing of us."""
    counts = {}
    for prepared in (True, False):
        store = open_store(postgres, prepared_statements=prepared, name=f"p-{prepared}-{schema}")
        if prepared:
            own(store)
        for id_ in "ab":
            assert isinstance(store.apply([write(0, id_=f"{id_}{prepared}")])[0], port.Written)
        (connection,) = store._idle[False]
        fetch = connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%counters%'")
        counts[prepared] = asyncio.run_coroutine_threadsafe(fetch, store._loop).result()
    assert counts[True] > 0
    assert counts[False] == 0


def test_g8_many_nodes_make_one_schema(postgres: PostgresServer, open_store: Open) -> None:
    stores = [open_store(postgres) for _ in range(6)]
    gate = threading.Barrier(len(stores))
    answers: list[port.Answer] = []

    def begin(store: PostgresStore) -> None:
        gate.wait()
        answers.extend(store.apply([port.NextIncarnation("n")]))

    threads = [threading.Thread(target=begin, args=(store,)) for store in stores]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert sorted(answers, key=repr) == [port.Incarnation(number) for number in range(1, 7)]


def test_g8_a_newer_schema_is_refused_with_both_numbers(
    postgres: PostgresServer, open_store: Open, schema: str
) -> None:
    own(open_store(postgres))
    newer = len(MIGRATIONS) + 2
    run_sql(postgres.dsn, f"INSERT INTO {schema}.migrations (version) VALUES ({newer})", "SELECT 1")
    (answer,) = open_store(postgres).apply([port.NextIncarnation("n")])
    assert isinstance(answer, port.StoreFailed)
    assert (answer.code, answer.definite) == ("E-NEWER-FORMAT", True)
    assert str(newer) in answer.message
    assert str(len(MIGRATIONS)) in answer.message


def test_g8_a_migration_that_fails_midway_leaves_the_schema_as_it_was(
    postgres: PostgresServer, open_store: Open, schema: str
) -> None:
    own(open_store(postgres))

    async def upgrade(*more: str) -> int:
        connection = await asyncpg.connect(postgres.dsn)
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL search_path TO {schema}")
                return await migrate(connection, schema, (*MIGRATIONS, *more))
        finally:
            connection.terminate()

    with pytest.raises(asyncpg.PostgresError):
        asyncio.run(upgrade("CREATE TABLE halfway (n integer)", "CREATE TABLE halfway (n integer)"))
    assert run_sql(postgres.dsn, f"SELECT to_regclass('{schema}.halfway')::text")[0][0] is None
    assert open_store(postgres).apply([write(0)]) == [port.Written(1, 1)], "the old release goes on"
    assert asyncio.run(upgrade("CREATE TABLE halfway (n integer)")) == 1
    assert asyncio.run(upgrade("CREATE TABLE halfway (n integer)")) == 0


def test_g9_a_write_whose_answer_was_lost_is_a_conflict_when_it_comes_again(
    postgres: PostgresServer, open_store: Open
) -> None:
    store = open_store(postgres)
    own(store)

    def lose() -> None:
        raise ConnectionResetError("the answer")

    at("store.after_commit", lose)
    assert failed(store.apply([write(0)])) == ("E-STORE-UNREACHABLE", False)
    assert store.apply([write(0)]) == [port.Conflict(1)]
    page = store.apply([port.ReadFacts()])[0]
    assert isinstance(page, port.FactPage)
    assert len(page.facts) == 1, "once"


def test_facts_of_many_writers_are_dense_and_in_commit_order(postgres: PostgresServer, open_store: Open) -> None:
    """Three nodes append at once; a reader that follows the log never sees a gap that is filled later."""
    stores = [open_store(postgres) for _ in range(3)]
    own(stores[0])
    reader = open_store(postgres)
    seen: list[int] = []

    def append(store: PostgresStore, name: str) -> None:
        for revision in range(30):
            if revision % 5 == 4:
                store.apply([write(99, id_=name)])
            store.apply([write(revision, id_=name)])

    threads = [threading.Thread(target=append, args=(store, f"e{n}")) for n, store in enumerate(stores)]
    for each in threads:
        each.start()
    while len(seen) < 90:
        (page,) = reader.apply([port.ReadFacts(after=len(seen))])
        assert isinstance(page, port.FactPage)
        seen += [fact.offset for fact in page.facts]
        assert seen == list(range(1, len(seen) + 1))
    for each in threads:
        each.join(30)


def test_two_nodes_that_write_the_same_names_in_opposite_order_never_wait_for_each_other(
    postgres: PostgresServer, open_store: Open
) -> None:
    stores = [open_store(postgres), open_store(postgres)]
    own(stores[0])
    names = [f"e{number}" for number in range(20)]
    stores[0].apply([write(0, id_=name) for name in names])
    before = _deadlocks(postgres)
    wins: list[int] = []

    def churn(store: PostgresStore, order: list[str]) -> None:
        for revision in range(1, 16):
            wins.append(sum(isinstance(a, port.Written) for a in store.apply([write(revision, id_=n) for n in order])))

    threads = [threading.Thread(target=churn, args=args) for args in zip(stores, (names, names[::-1]), strict=True)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sum(wins) == 15 * len(names), "each revision was written once"
    assert _deadlocks(postgres) == before


def test_a_schema_that_is_no_name_is_refused() -> None:
    with pytest.raises(OperatingError, match="not a name"):
        PostgresStore(PostgresOptions(schema='x"; DROP'), SystemClock())


@contextlib.contextmanager
def _held(server: PostgresServer, lock: str) -> Iterator[None]:
    """Another client holds what `lock` locks."""
    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(asyncpg.connect(server.dsn))
    transaction = connection.transaction()
    loop.run_until_complete(transaction.start())
    loop.run_until_complete(connection.fetch(lock))
    try:
        yield
    finally:
        loop.run_until_complete(transaction.rollback())
        connection.terminate()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def _cut_idle(server: PostgresServer) -> None:
    run_sql(
        server.dsn,
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
    )


def _deadlocks(server: PostgresServer) -> int:
    return run_sql(server.dsn, "SELECT sum(deadlocks)::int FROM pg_stat_database")[0][0]


def _is_failure(answers: list[port.Answer]) -> bool:
    return isinstance(answers[0], port.StoreFailed)


def _until(look: Callable[[], Any], holds: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + 30
    while not holds(found := look()):
        assert time.monotonic() < deadline, found
    return found
