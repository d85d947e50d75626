"""What every adapter of the state store must do; each test runs against all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgres_clock import ClockedPostgres

from node.core import limits
from node.core.clock import MS, ManualClock
from node.core.hashing import SHARD_COUNT
from node.store import port
from node.store.lanes import PROBES
from node.store.lmdb import LmdbStore
from node.store.memory import MemoryStore
from node.store.projection import ProjectionRow

IDENTITY = port.Identity("c-1", "main", SHARD_COUNT, 32, "xxh64/0")
Ask = Callable[[port.Request], port.Answer]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(mono_ns=10_000 * MS)


@pytest.fixture(params=["memory", "lmdb", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[port.StateStore]:
    made: port.StateStore
    if request.param == "memory":
        made = MemoryStore(clock)
    elif request.param == "lmdb":
        made = LmdbStore(tmp_path / "store", clock, map_bytes=1 << 20)
    else:
        made = ClockedPostgres(request.getfixturevalue("postgres").dsn, clock)
    yield made
    made.close()


@pytest.fixture
def ask(store: port.StateStore) -> Ask:
    return lambda request: store.apply([request])[0]


def coordinate(ask: Ask, *rows: port.ShardRow, version: int = 0, book: tuple[port.BookEntry, ...] = ()) -> port.Answer:
    lease = ask(port.AcquireLease("coordinator", "n1@1", 60_000))
    assert isinstance(lease, port.LeaseGranted)
    return ask(port.WritePlacement("coordinator", "n1@1", lease.term, version, rows, book))


def table(ask: Ask) -> port.Placement:
    found = ask(port.ReadPlacement())
    assert isinstance(found, port.Placement)
    return found


def own(ask: Ask, shard: int, epoch: int, *, version: int = 0) -> None:
    row = port.ShardRow(shard, "n1", 1, epoch, port.ShardState.RUNNING)
    assert coordinate(ask, row, version=version) == port.PlacementWritten(version + 1)


def write(
    id_: str,
    *,
    shard: int = 7,
    epoch: int = 1,
    revision: int = 0,
    body: bytes = b"b",
    facts: int = 0,
    kind: str = "site",
) -> port.WriteState:
    made = tuple(port.Fact("test.fact", f"{id_}-{n}".encode()) for n in range(facts))
    return port.WriteState(kind, id_, shard, epoch, revision, body, made)


def test_the_first_identity_stays_in_force(ask: Ask) -> None:
    assert ask(port.Initialise(IDENTITY)) == IDENTITY
    other = port.Identity("c-2", "other", SHARD_COUNT, 32, "xxh64/0")
    assert ask(port.Initialise(other)) == IDENTITY


def test_incarnations_count_up_by_name(ask: Ask) -> None:
    assert [ask(port.NextIncarnation(node)) for node in ("a", "b", "a", "a")] == [
        port.Incarnation(number) for number in (1, 1, 2, 3)
    ]


def test_a_state_reads_as_written_and_its_revision_counts(ask: Ask) -> None:
    own(ask, 7, 1)
    assert ask(port.ReadState("site", "x")) == port.Absent()
    assert ask(write("x", body=b"one")) == port.Written(1)
    assert ask(write("x", body=b"", revision=1)) == port.Written(2)
    assert ask(port.ReadState("site", "x")) == port.Record("site", "x", 2, 1, b"")
    assert ask(port.ReadState("page", "x")) == port.Absent()


@pytest.mark.parametrize("based_on", [0, 2, 99])
def test_a_write_on_another_revision_conflicts_and_changes_nothing(ask: Ask, based_on: int) -> None:
    own(ask, 7, 1)
    ask(write("x", body=b"kept"))
    assert ask(write("x", revision=based_on, body=b"lost", facts=1)) == port.Conflict(1)
    assert ask(port.ReadState("site", "x")) == port.Record("site", "x", 1, 1, b"kept")
    assert ask(port.ReadFacts()) == port.FactPage((), more=False)


def test_a_write_under_another_epoch_is_fenced_before_its_revision_is_looked_at(ask: Ask) -> None:
    own(ask, 7, 4)
    for epoch in (0, 3, 5):
        assert ask(write("x", epoch=epoch, revision=9)) == port.Fenced(4)
    assert ask(write("x", epoch=4)) == port.Written(1)
    own(ask, 7, 5, version=1)
    assert ask(write("x", epoch=4, revision=1)) == port.Fenced(5)
    assert ask(write("x", epoch=5, revision=1)) == port.Written(2)


def test_nobody_writes_to_a_shard_that_was_never_allocated(ask: Ask) -> None:
    assert ask(write("x", epoch=0)) == port.Fenced(0)
    assert ask(port.ReadState("site", "x")) == port.Absent()


def test_naming_another_shard_does_not_walk_around_the_fence(ask: Ask) -> None:
    own(ask, 7, 1)
    own(ask, 8, 1, version=1)
    ask(write("x"))
    answer = ask(write("x", shard=8, revision=1))
    assert isinstance(answer, port.StoreFailed)
    assert (answer.code, answer.definite) == ("E-WRONG-SHARD", True)


def delete(id_: str, revision: int, *, epoch: int = 1, shard: int = 7, facts: int = 0) -> port.DeleteState:
    made = tuple(port.Fact("test.fact", f"{id_}-{n}".encode()) for n in range(facts))
    return port.DeleteState("site", id_, shard, epoch, revision, made)


def test_p72_a_deleted_state_is_neither_read_nor_listed_and_its_facts_are_appended(
    store: port.StateStore, ask: Ask
) -> None:
    own(ask, 7, 1)
    store.apply([write("x"), write("y")])
    assert ask(delete("x", 1, facts=1)) == port.Written(2, 1)
    assert ask(port.ReadState("site", "x")) == port.Absent(2)
    left = port.StatePage((port.Record("site", "y", 1, 1, b"b"),), more=False)
    assert ask(port.ListStates(("site",))) == ask(port.ListStates(("site",), shard=7)) == left
    facts = ask(port.ReadFacts())
    assert isinstance(facts, port.FactPage)
    assert [fact.body for fact in facts.facts] == [b"x-0"]


def test_p72_no_late_write_brings_a_deleted_state_back(store: port.StateStore, ask: Ask) -> None:
    own(ask, 7, 1)
    store.apply([write("x"), write("x", revision=1), delete("x", 2)])
    for based_on in (0, 1, 2):
        assert ask(write("x", revision=based_on, facts=1)) == port.Conflict(3)
        assert ask(delete("x", based_on, facts=1)) == port.Conflict(3)
    own(ask, 7, 2, version=1)
    assert ask(write("x", revision=3)) == port.Fenced(2), "a former owner that had deleted it itself"
    answer = ask(write("x", revision=3, shard=8))
    assert isinstance(answer, port.StoreFailed)
    assert answer.code == "E-WRONG-SHARD"
    assert ask(port.ReadState("site", "x")) == port.Absent(3)
    assert ask(port.ReadFacts()) == port.FactPage((), more=False)


def test_a_new_state_is_written_on_top_of_a_tombstone_and_may_be_deleted_again(
    store: port.StateStore, ask: Ask
) -> None:
    own(ask, 7, 1)
    again = write("x", revision=2, body=b"new")
    assert store.apply([write("x"), delete("x", 1), again, port.ReadState("site", "x")]) == [
        port.Written(1),
        port.Written(2),
        port.Written(3),
        port.Record("site", "x", 3, 1, b"new"),
    ]
    listed = ask(port.ListStates(("site",), shard=7))
    assert isinstance(listed, port.StatePage)
    assert [record.id for record in listed.records] == ["x"]
    assert ask(delete("x", 3)) == port.Written(4)
    assert ask(port.ReadState("site", "x")) == port.Absent(4)


def test_a_delete_is_fenced_and_conflicts_as_a_write_does_and_then_changes_nothing(ask: Ask) -> None:
    own(ask, 7, 4)
    ask(write("x", epoch=4))
    assert ask(delete("x", 1, epoch=3)) == port.Fenced(4)
    assert ask(delete("x", 0, epoch=4, facts=1)) == port.Conflict(1)
    assert ask(port.ReadState("site", "x")) == port.Record("site", "x", 1, 4, b"b")
    assert ask(port.ReadFacts()) == port.FactPage((), more=False)


def test_facts_take_dense_offsets_in_commit_order(store: port.StateStore, ask: Ask, clock: ManualClock) -> None:
    own(ask, 7, 1)
    answers = store.apply([write("a", facts=2), write("b", epoch=9, facts=5), write("c"), write("d", facts=1)])
    assert answers == [port.Written(1, 2), port.Fenced(1), port.Written(1, 0), port.Written(1, 3)]
    page = ask(port.ReadFacts())
    assert isinstance(page, port.FactPage)
    assert [(fact.offset, fact.id, fact.body) for fact in page.facts] == [
        (1, "a", b"a-0"),
        (2, "a", b"a-1"),
        (3, "d", b"d-0"),
    ]
    assert {(fact.kind, fact.type, fact.at_ms) for fact in page.facts} == {("site", "test.fact", clock.wall_ms())}
    second = ask(port.ReadFacts(after=1, limit=1))
    assert second == port.FactPage(page.facts[1:2], more=True)
    assert ask(port.ReadFacts(after=2, limit=1)) == port.FactPage(page.facts[2:], more=False)


def test_a_refused_request_does_not_disturb_its_neighbours(store: port.StateStore, ask: Ask) -> None:
    own(ask, 7, 1)
    assert store.apply([write("x"), write("x"), write("x", revision=1), port.ReadState("site", "x")]) == [
        port.Written(1),
        port.Conflict(1),
        port.Written(2),
        port.Record("site", "x", 2, 1, b"b"),
    ]


def test_listings_are_in_order_and_in_pages(store: port.StateStore, ask: Ask) -> None:
    own(ask, 7, 1)
    own(ask, 8, 1, version=1)
    names = [("page", "b"), ("page", "é"), ("page-view", "a"), ("site", "a"), ("site", "a|b"), ("site", "z")]
    for number, (kind, id_) in enumerate(reversed(names)):
        store.apply([write(id_, kind=kind, shard=7 + number % 2)])

    def listed(**how: object) -> list[tuple[str, str]]:
        after, found = None, []
        while True:
            page = ask(port.ListStates(("site", "page", "page-view"), after=after, limit=2, **how))  # type: ignore[arg-type]
            assert isinstance(page, port.StatePage)
            found += [(record.kind, record.id) for record in page.records]
            if not page.more:
                return found
            assert len(page.records) == 2
            after = found[-1]

    assert listed() == names
    assert listed(shard=8) == names[4::-2][::-1]
    assert listed(shard=9) == []
    only = ask(port.ListStates(("page",), bodies=False))
    assert only == port.StatePage(
        (port.Record("page", "b", 1, 1, b""), port.Record("page", "é", 1, 1, b"")), more=False
    )
    assert ask(port.ListStates(("site",), after=("page", "x"), limit=1)) == port.StatePage(
        (port.Record("site", "a", 1, 1, b"b"),), more=True
    )
    assert ask(port.ListStates(("page",), after=("site", "a"))) == port.StatePage((), more=False)


def test_a_lease_is_renewed_refused_and_granted_anew(ask: Ask, clock: ManualClock) -> None:
    assert ask(port.AcquireLease("l", "a", 1_000)) == port.LeaseGranted(1, 1_000)
    clock.advance_ns(600 * MS)
    assert ask(port.AcquireLease("l", "b", 1_000)) == port.LeaseHeld("a", 1, 400)
    assert ask(port.AcquireLease("l", "a", 1_000)) == port.LeaseGranted(1, 1_000)
    clock.advance_ns(1_000 * MS - 1)
    assert ask(port.AcquireLease("l", "b", 1_000)) == port.LeaseHeld("a", 1, 1)
    clock.advance_ns(1)
    assert ask(port.AcquireLease("l", "b", 1_000)) == port.LeaseGranted(2, 1_000)
    assert ask(port.AcquireLease("other", "a", 1_000)) == port.LeaseGranted(1, 1_000)


def test_a_lease_that_expired_comes_back_under_a_new_term(ask: Ask, clock: ManualClock) -> None:
    ask(port.AcquireLease("l", "a", 1_000))
    clock.advance_ns(1_000 * MS)
    assert ask(port.AcquireLease("l", "a", 1_000)) == port.LeaseGranted(2, 1_000)


def test_only_its_holder_releases_a_lease(ask: Ask) -> None:
    ask(port.AcquireLease("l", "a", 1_000))
    for holder, term in (("b", 1), ("a", 2)):
        assert ask(port.ReleaseLease("l", holder, term)) == port.Done()
        assert isinstance(ask(port.AcquireLease("l", "c", 1_000)), port.LeaseHeld)
    ask(port.ReleaseLease("l", "a", 1))
    assert ask(port.AcquireLease("l", "c", 1_000)) == port.LeaseGranted(2, 1_000)


def test_the_placement_table_starts_unallocated(ask: Ask) -> None:
    table = ask(port.ReadPlacement())
    assert table == port.Placement(0, tuple(port.ShardRow(shard) for shard in range(SHARD_COUNT)))


def test_placement_is_written_by_the_term_in_force_only(ask: Ask, clock: ManualClock) -> None:
    row = port.ShardRow(3, "n1", 1, 1, port.ShardState.RUNNING)
    assert ask(port.WritePlacement("coordinator", "n1@1", 0, 0, (row,))) == port.Fenced(0)
    ask(port.AcquireLease("coordinator", "n1@1", 1_000))
    for holder, term in (("n2@1", 1), ("n1@1", 2)):
        assert ask(port.WritePlacement("coordinator", holder, term, 0, (row,))) == port.Fenced(1)
    assert ask(port.WritePlacement("coordinator", "n1@1", 1, 0, (row,))) == port.PlacementWritten(1)
    clock.advance_ns(1_000 * MS)
    assert ask(port.WritePlacement("coordinator", "n1@1", 1, 1, (row,))) == port.Fenced(1)
    table = ask(port.ReadPlacement())
    assert isinstance(table, port.Placement)
    assert (table.version, table.rows[3], len(table.rows)) == (1, row, SHARD_COUNT)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (port.ShardRow(7, "n1", 1, 4, port.ShardState.RUNNING), "the epoch goes back"),
        (port.ShardRow(7, "n2", 1, 5, port.ShardState.RUNNING), "another node shares the epoch"),
        (port.ShardRow(7, "n1", 2, 5, port.ShardState.RUNNING), "another start of the node shares the epoch"),
    ],
)
def test_a_row_that_would_break_the_fence_refuses_the_whole_change(ask: Ask, row: port.ShardRow, why: str) -> None:
    own(ask, 7, 5)
    good = port.ShardRow(8, "n1", 1, 1, port.ShardState.RUNNING)
    assert coordinate(ask, good, row, version=1) == port.Conflict(1), why
    table = ask(port.ReadPlacement())
    assert isinstance(table, port.Placement)
    assert (table.version, table.rows[7].epoch, table.rows[8].epoch) == (1, 5, 0)


def test_a_shard_may_be_given_up_and_marked_without_a_new_epoch(ask: Ask) -> None:
    own(ask, 7, 5)
    moving = port.ShardRow(7, "n1", 1, 5, port.ShardState.MOVING)
    assert coordinate(ask, moving, version=1) == port.PlacementWritten(2)
    assert coordinate(ask, port.ShardRow(7, "", 0, 5), version=2) == port.PlacementWritten(3)
    taken = port.ShardRow(7, "n2", 1, 5, port.ShardState.RUNNING)
    assert coordinate(ask, taken, version=3) == port.Conflict(3)


def test_placement_of_another_version_conflicts(ask: Ask) -> None:
    own(ask, 7, 1)
    row = port.ShardRow(8, "n1", 1, 1, port.ShardState.RUNNING)
    assert coordinate(ask, row, version=0) == port.Conflict(1)
    assert coordinate(ask, row, version=2) == port.Conflict(1)


def test_the_coordinators_book_is_written_with_the_rows_or_not_at_all(ask: Ask) -> None:
    own(ask, 7, 5)
    good, bad = port.ShardRow(8, "n1", 1, 1, port.ShardState.RUNNING), port.ShardRow(7, "n2", 1, 5)
    book = (port.BookEntry("plan/ü", b"\0x"), port.BookEntry("pin", b"1"))
    assert coordinate(ask, bad, version=1, book=book) == port.Conflict(1)
    assert table(ask).book == ()
    assert coordinate(ask, good, version=1, book=book) == port.PlacementWritten(2)
    assert table(ask).book == (book[1], book[0]), "in order of keys"
    # Without rows nothing has moved: plans made against this version stay good.
    gone = (port.BookEntry("pin", b""), port.BookEntry("never", b""), port.BookEntry("plan/ü", b"2"))
    assert coordinate(ask, version=2, book=gone) == port.PlacementWritten(2)
    assert (table(ask).version, table(ask).book) == (2, (port.BookEntry("plan/ü", b"2"),))
    assert coordinate(ask, version=1, book=gone) == port.Conflict(2)


@pytest.mark.parametrize("shards", [(3, 3), (SHARD_COUNT,), (-1,)])
def test_rows_that_no_table_has_are_refused(ask: Ask, shards: tuple[int, ...]) -> None:
    answer = coordinate(ask, *(port.ShardRow(shard, "n1", 1, 1) for shard in shards))
    assert isinstance(answer, port.StoreFailed)
    assert (answer.code, answer.definite) == ("E-BAD-PLACEMENT", True)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (write(""), "E-BAD-KEY"),
        (write("x" * (limits.store_name_bytes_max + 1)), "E-BAD-KEY"),
        (write("a\0b"), "E-BAD-KEY"),
        (write("\ud800"), "E-BAD-KEY"),
        (write("x", shard=-1), "E-BAD-KEY"),
        (write("x", body=bytes(limits.record_bytes_max + 1)), "E-RECORD-TOO-LARGE"),
        (port.ReadState("site", ""), "E-BAD-KEY"),
        (port.ListStates(("",)), "E-BAD-KEY"),
        (port.AcquireLease("l", "", 1), "E-BAD-KEY"),
        (port.NextIncarnation(""), "E-BAD-KEY"),
        (write("x" * limits.store_name_bytes_max, kind="k" * (limits.store_kind_bytes_max + 1)), "E-BAD-KEY"),
        (port.ListProjection("", "x"), "E-BAD-KEY"),
        (port.AdvanceConsumer("p", 0, 0, (ProjectionRow("", b"x"),)), "E-BAD-KEY"),
        (
            port.AdvanceConsumer("p", 0, 0, (ProjectionRow("k", bytes(limits.record_bytes_max + 1)),)),
            "E-RECORD-TOO-LARGE",
        ),
        (port.WritePlacement("l", "n1@1", 1, 0, (), (port.BookEntry("", b"x"),)), "E-BAD-KEY"),
        (
            port.WritePlacement("l", "n1@1", 1, 0, (), (port.BookEntry("x", bytes(limits.record_bytes_max + 1)),)),
            "E-RECORD-TOO-LARGE",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_d20_what_no_adapter_can_hold_is_refused_by_all(
    store: port.StateStore, ask: Ask, request_: port.Request, code: str
) -> None:
    own(ask, 7, 1)
    refused, kept = store.apply([request_, write("neighbour")])
    assert isinstance(refused, port.StoreFailed)
    assert (refused.code, refused.definite) == (code, True)
    assert kept == port.Written(1)


def test_d20_the_longest_name_and_the_largest_record_are_held(ask: Ask) -> None:
    own(ask, 7, 1)
    id_, body = "é" * (limits.store_name_bytes_max // 2), bytes(limits.record_bytes_max)
    kind = "k" * limits.store_kind_bytes_max
    assert ask(write(id_, kind=kind, body=body)) == port.Written(1)
    assert ask(port.ReadState(kind, id_)) == port.Record(kind, id_, 1, 1, body)
    listed = ask(port.ListStates((kind,), shard=7, bodies=False))
    assert listed == port.StatePage((port.Record(kind, id_, 1, 1, b""),), more=False)


def test_a_page_ends_before_its_bodies_fill_memory(ask: Ask) -> None:
    own(ask, 7, 1)
    body = bytes(limits.record_bytes_max)
    for id_ in "abcdef":
        ask(write(id_, body=body))
    page = ask(port.ListStates(("site",)))
    assert isinstance(page, port.StatePage)
    assert page.more
    assert sum(len(record.body) for record in page.records) == limits.store_page_bytes_max


def rows_of(**bodies: bytes) -> tuple[ProjectionRow, ...]:
    return tuple(ProjectionRow(key, body) for key, body in bodies.items())


def test_g10_a_consumer_moves_with_its_rows_or_not_at_all(store: port.StateStore, ask: Ask) -> None:
    own(ask, 7, 1)
    ask(write("x", facts=5))
    assert ask(port.ReadConsumer("p", ("a",))) == port.Consumer(0, ())
    assert ask(port.AdvanceConsumer("p", 0, 2, rows_of(a=b"1", b=b"2"))) == port.Advanced(2)
    for expected in (0, 1, 3):
        assert ask(port.AdvanceConsumer("p", expected, 5, rows_of(a=b"twice"))) == port.Conflict(2)
    assert ask(port.ReadConsumer("p", ("b", "a", "none", "a"))) == port.Consumer(2, rows_of(a=b"1", b=b"2"))
    assert ask(port.ReadConsumer("q", ("a",))) == port.Consumer(0, ()), "another consumer has rows of its own"
    first = port.AdvanceConsumer("p", 2, 4, rows_of(b=b"", c=b"3"))
    second = port.AdvanceConsumer("p", 2, 5, rows_of(a=b""))
    assert store.apply([first, second, port.ReadConsumer("p", ("a", "b", "c"))]) == [
        port.Advanced(4),
        port.Conflict(4),
        port.Consumer(4, rows_of(a=b"1", c=b"3")),
    ]


def test_the_probe_of_a_lane_is_answered_each_time_and_that_of_the_writes_is_written(ask: Ask) -> None:
    for _ in range(2):
        answers = [ask(probe) for probe in PROBES.values()]
        assert not any(isinstance(answer, port.StoreFailed) for answer in answers), answers
    written = ask(port.ListProjection("probe"))
    assert isinstance(written, port.ProjectionPage)
    assert [row.key for row in written.rows] == ["written"]


def test_a_consumer_is_never_ahead_of_the_log_nor_goes_back(ask: Ask) -> None:
    own(ask, 7, 1)
    ask(write("x", facts=3))
    ask(port.AdvanceConsumer("p", 0, 2))
    for offset in (1, 4):
        answer = ask(port.AdvanceConsumer("p", 2, offset, rows_of(a=b"1")))
        assert isinstance(answer, port.StoreFailed)
        assert (answer.code, answer.definite) == ("E-BAD-OFFSET", True)
    assert ask(port.ReadConsumer("p", ("a",))) == port.Consumer(2, ())


def test_rows_of_a_consumer_are_listed_in_pages(ask: Ask) -> None:
    own(ask, 7, 1)
    ask(write("x", facts=1))
    keys = ("a", "a b", "b", "z", "é")
    for name in ("p", "p2"):
        ask(port.AdvanceConsumer(name, 0, 1, tuple(ProjectionRow(key, key.encode()) for key in reversed(keys))))
    first = ask(port.ListProjection("p", limit=3))
    assert first == port.ProjectionPage(1, tuple(ProjectionRow(key, key.encode()) for key in keys[:3]), more=True)
    rest = ask(port.ListProjection("p", after="b", limit=3))
    assert rest == port.ProjectionPage(1, tuple(ProjectionRow(key, key.encode()) for key in keys[3:]), more=False)
    assert ask(port.ListProjection("other")) == port.ProjectionPage(0, (), more=False)
