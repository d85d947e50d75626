"""What every adapter of the replica's port must do; each test runs against all of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from node.core.clock import ManualClock
from node.core.errors import OperatingError
from node.core.hashing import LEAF_COUNT, MAP_COUNT, leaf_of, map_of
from node.store.replica_layout import FORMAT
from node.store.replica_memory import MemoryReplica
from node.store.replica_open import open_replica
from node.store.replica_port import MapCount, ReplicaBatch, ReplicaEntry, ReplicaIdentity, ReplicaStore

IDENTITY = ReplicaIdentity("c-1", "n1", tenure=4, format=FORMAT)
EMPTY = ReplicaBatch((), (), {}, 0, {})


@dataclasses.dataclass
class Subject:
    """A replica that can be closed and opened again, where the adapter keeps anything."""

    replica: ReplicaStore
    reopen: Callable[[], ReplicaStore]

    def before_and_after(self) -> Iterator[ReplicaStore]:
        yield self.replica
        yield self.reopen()


@pytest.fixture(params=["memory", "lmdb"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Subject]:
    def open_again() -> ReplicaStore:
        if request.param == "memory":
            return made.replica
        made.replica.close()
        made.replica = open_lmdb(tmp_path)
        return made.replica

    made = Subject(MemoryReplica(IDENTITY) if request.param == "memory" else open_lmdb(tmp_path), open_again)
    yield made
    made.replica.close()


def open_lmdb(path: Path) -> ReplicaStore:
    return open_replica(path, ManualClock(), cluster_id="c-1", node="n1", tenure=4, map_bytes_max=1 << 26)[0]


def entry(key: str, value: bytes = b"v", **fields: object) -> ReplicaEntry:
    made = ReplicaEntry(key, epoch=3, hlc=5 << 16, origin="n2", expires_at_ms=9, tombstone=False, value=value)
    return msgspec.structs.replace(made, **fields)


def get(replica: ReplicaStore, key: str) -> ReplicaEntry | None:
    return replica.get(map_of(key), leaf_of(key), key)


def put(replica: ReplicaStore, *entries: ReplicaEntry) -> None:
    replica.commit(msgspec.structs.replace(EMPTY, puts=entries))


@pytest.mark.parametrize(
    ("starts", "tenure"), [((7,), 4), ((7, 8, 9), 4), ((7, 9), 0), ((7, 9, 10), 0), ((7, 3, 4), 4)]
)
def test_a_file_that_missed_a_start_of_its_node_is_an_older_copy_and_of_no_stay_d17(
    subject: Subject, starts: tuple[int, ...], tenure: int
) -> None:
    replica = subject.replica
    for start in starts:
        replica = subject.reopen()
        replica.begin(start)
    for held in (replica, subject.reopen()):
        assert (held.identity.incarnation, held.identity.tenure) == (starts[-1], tenure)
    subject.replica.commit(msgspec.structs.replace(EMPTY, tenure=6))
    assert subject.reopen().identity == msgspec.structs.replace(IDENTITY, tenure=6, incarnation=starts[-1])


def test_a_new_replica_holds_nothing(subject: Subject) -> None:
    replica = subject.replica
    assert (replica.identity, replica.hlc_mark()) == (IDENTITY, 0)
    assert replica.digests() == [[0] * LEAF_COUNT] * MAP_COUNT
    assert replica.counts() == [MapCount()] * MAP_COUNT
    assert get(replica, "a.example|top") is None
    assert list(replica.scan(0, 0)) == list(replica.scan_all("", 10)) == []


def test_entries_read_as_committed(subject: Subject) -> None:
    entries = [
        entry("a.example|top", b"\0" * 5_000),
        entry("a.example|side", b"", tombstone=True, expires_at_ms=0),
        entry("ü.example|ö", b"x", origin="", epoch=2**63, hlc=2**64 - 1, expires_at_ms=2**48),
    ]
    put(subject.replica, *entries)
    for replica in subject.before_and_after():
        assert [get(replica, one.key) for one in entries] == entries
        assert get(replica, "a.example|to") is None


def test_puts_replace_and_drops_forget(subject: Subject) -> None:
    put(subject.replica, entry("k|1", b"old"), entry("k|2"), entry("k|3"))
    subject.replica.commit(msgspec.structs.replace(EMPTY, puts=(entry("k|1", b"new"),), drops=("k|2", "k|never")))
    for replica in subject.before_and_after():
        assert [get(replica, f"k|{n}") for n in (1, 2, 3)] == [entry("k|1", b"new"), None, entry("k|3")]


def test_a_key_that_is_dropped_and_put_at_once_is_there(subject: Subject) -> None:
    put(subject.replica, entry("k|1", b"old"))
    subject.replica.commit(msgspec.structs.replace(EMPTY, puts=(entry("k|1", b"new"),), drops=("k|1",)))
    assert get(subject.replica, "k|1") == entry("k|1", b"new")


def test_a_leaf_is_scanned_in_key_order_and_without_its_neighbours(subject: Subject) -> None:
    by_leaf: dict[tuple[int, int], list[ReplicaEntry]] = {}
    entries = [entry(f"s{n}.example|top") for n in range(9_000)]
    for one in entries:
        by_leaf.setdefault((map_of(one.key), leaf_of(one.key)), []).append(one)
    put(subject.replica, *entries)
    most = sorted(by_leaf, key=lambda place: -len(by_leaf[place]))[:20]
    for place in [*most, (0, 0), (0, 255), (31, 0), (31, 255)]:
        assert list(subject.replica.scan(*place)) == sorted(by_leaf.get(place, []), key=lambda one: one.key)
    assert len(by_leaf[most[0]]) > 3


def test_everything_is_scanned_in_pages_by_map_and_leaf(subject: Subject) -> None:
    entries = [entry(f"s{n}.example|top", tombstone=n % 7 == 0) for n in range(500)]
    put(subject.replica, *entries)
    found: list[ReplicaEntry] = []
    while page := subject.replica.scan_all(found[-1].key if found else "", 64):
        assert len(page) <= 64
        found += page
    assert found == sorted(entries, key=lambda one: (map_of(one.key), leaf_of(one.key), one.key))
    gone = subject.replica.scan_all("never.example|put", 500)
    assert 0 < len(gone) < 500, "a page begins behind a key that is not there either"


def test_digests_counts_and_the_mark_are_kept_with_the_data(subject: Subject) -> None:
    digests = {(0, 0): 2**128 - 1, (0, 63): 1, (0, 64): 2, (31, 255): 3}
    counts = {0: MapCount(1, 2, 3), 31: MapCount(4, 5, 6)}
    subject.replica.commit(ReplicaBatch((), (), digests, 77, counts))
    subject.replica.commit(ReplicaBatch((), (), {(0, 63): 0, (5, 5): 9}, 76, {31: MapCount(7, 8, 9)}))
    for replica in subject.before_and_after():
        found = {
            (map_, leaf): digest
            for map_, row in enumerate(replica.digests())
            for leaf, digest in enumerate(row)
            if digest
        }
        assert found == {(0, 0): 2**128 - 1, (0, 64): 2, (31, 255): 3, (5, 5): 9}
        assert {n: count for n, count in enumerate(replica.counts()) if count.keys} == {
            0: MapCount(1, 2, 3),
            31: MapCount(7, 8, 9),
        }
        assert replica.hlc_mark() == 77


def test_answers_are_copies(subject: Subject) -> None:
    subject.replica.digests()[3][3] = 1
    subject.replica.counts()[3] = MapCount(9, 9, 9)
    assert (subject.replica.digests()[3][3], subject.replica.counts()[3]) == (0, MapCount())


@pytest.mark.parametrize(
    "bad",
    [
        entry(""),
        entry("x" * 510),
        entry("\ud800"),
        entry("k|1", origin="o" * 256),
        entry("k|1", hlc=-1),
        entry("k|1", epoch=2**64),
        entry("k|1", expires_at_ms=-1),
    ],
    ids=repr,
)
def test_a_batch_with_an_entry_that_no_disk_can_hold_changes_nothing(subject: Subject, bad: ReplicaEntry) -> None:
    batch = ReplicaBatch((entry("k|2"), bad), (), {(1, 1): 1}, 5, {1: MapCount(1, 1, 1)})
    with pytest.raises(OperatingError) as caught:
        subject.replica.commit(batch)
    assert (caught.value.code, caught.value.definite) == ("E-BAD-INPUT", True)
    replica = subject.replica
    assert (get(replica, "k|2"), replica.digests()[1][1], replica.hlc_mark()) == (None, 0, 0)
    assert replica.counts()[1] == MapCount()


KEYS = st.sampled_from([f"s{n}|{slot}" for n in range(6) for slot in ("a", "ä")])
ENTRIES = st.builds(
    ReplicaEntry,
    KEYS,
    st.integers(0, 9),
    st.integers(0, 9),
    st.just("n"),
    st.sampled_from([0, 8, 9, 20]),
    st.booleans(),
    st.binary(max_size=9),
)
BATCHES = st.builds(
    ReplicaBatch,
    puts=st.lists(ENTRIES, max_size=8).map(tuple),
    drops=st.lists(KEYS, max_size=4).map(tuple),
    digests=st.dictionaries(st.tuples(st.integers(0, 31), st.integers(0, 255)), st.integers(0, 2**128 - 1), max_size=5),
    hlc_mark=st.integers(0, 99),
    counts=st.dictionaries(st.integers(0, 31), st.builds(MapCount, st.integers(0, 9)), max_size=3),
)


@settings(max_examples=25, deadline=None)
@given(batches=st.lists(BATCHES | st.none(), min_size=1, max_size=8))
def test_the_file_holds_what_the_reference_holds(
    tmp_path_factory: pytest.TempPathFactory, batches: list[ReplicaBatch | None]
) -> None:
    path = tmp_path_factory.mktemp("replica")
    reference, on_disk = MemoryReplica(IDENTITY), open_lmdb(path)
    try:
        for batch in batches:
            if batch is None:  # reopen
                on_disk.close()
                on_disk = open_lmdb(path)
                continue
            for replica in (reference, on_disk):
                replica.commit(batch)
            assert list(on_disk.scan_all("", 99)) == list(reference.scan_all("", 99))
            assert_same_index(on_disk, reference)
            assert (on_disk.digests(), on_disk.counts()) == (reference.digests(), reference.counts())
            assert on_disk.hlc_mark() == reference.hlc_mark()
    finally:
        on_disk.close()


def assert_same_index(on_disk: ReplicaStore, reference: ReplicaStore) -> None:
    assert list(on_disk.sites()) == list(reference.sites())
    for site in reference.sites():
        assert list(on_disk.keys_of_site(site)) == list(reference.keys_of_site(site))
    for before_ms in (0, 9, 10, 1 << 62):
        assert sorted(on_disk.due(before_ms, 99)) == sorted(reference.due(before_ms, 99))
    assert sorted(e.key for e in on_disk.tombstones(99)) == sorted(e.key for e in reference.tombstones(99))


def test_keys_are_found_by_site_expiry_and_age_of_their_tombstones(subject: Subject) -> None:
    put(
        subject.replica,
        entry("a.example|top", expires_at_ms=500),
        entry("a.example|side", expires_at_ms=0),
        entry("a.example.org|top", expires_at_ms=300),
        entry("b.example|top", expires_at_ms=400),
        entry("b.example|gone", b"", tombstone=True, expires_at_ms=0, hlc=9),
        entry("c.example|gone", b"", tombstone=True, expires_at_ms=0, hlc=7),
    )
    for replica in subject.before_and_after():
        assert sorted(replica.sites()) == ["a.example", "a.example.org", "b.example"]
        assert list(replica.keys_of_site("a.example")) == ["a.example|side", "a.example|top"]
        assert list(replica.keys_of_site("c.example")) == list(replica.keys_of_site("nowhere")) == []
        assert list(replica.due(300, 9)) == []
        assert list(replica.due(501, 9)) == ["a.example.org|top", "b.example|top", "a.example|top"]
        assert list(replica.due(501, 2)) == ["a.example.org|top", "b.example|top"]
        assert [e.key for e in replica.tombstones(9)] == ["c.example|gone", "b.example|gone"]
        assert [e.key for e in replica.tombstones(1)] == ["c.example|gone"]


def test_an_index_follows_what_replaces_and_drops_an_entry(subject: Subject) -> None:
    put(subject.replica, entry("a.example|top", expires_at_ms=500), entry("b.example|top", expires_at_ms=600))
    put(subject.replica, entry("a.example|top", expires_at_ms=900))
    assert list(subject.replica.due(700, 9)) == ["b.example|top"]
    put(subject.replica, entry("b.example|top", b"", tombstone=True, expires_at_ms=0))
    subject.replica.commit(msgspec.structs.replace(EMPTY, drops=("a.example|top",)))
    for replica in subject.before_and_after():
        assert (list(replica.due(1_000, 9)), list(replica.sites())) == ([], [])
        assert [e.key for e in replica.tombstones(9)] == ["b.example|top"]
    put(subject.replica, entry("b.example|top", expires_at_ms=600))
    assert list(subject.replica.tombstones(9)) == []
    assert list(subject.replica.sites()) == ["b.example"]
