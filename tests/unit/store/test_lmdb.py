"""What the embedded store does when its file or its disk is not as it should be."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest

from node.core.clock import ManualClock
from node.core.errors import InvariantError, OperatingError
from node.store import lmdb as adapter
from node.store import lmdb_layout, port
from node.store.lmdb import LmdbStore
from node.store.verify import Progress

IDENTITY = port.Identity("c-1", "main", 256, 32, "xxh64/0")
ROW = port.ShardRow(7, "n1", 1, 1, port.ShardState.RUNNING)
Open = Callable[..., LmdbStore]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[Open]:
    made: list[LmdbStore] = []

    def open_(**how: Any) -> LmdbStore:
        made.append(LmdbStore(tmp_path / "store", ManualClock(), **how))
        return made[-1]

    yield open_
    for store in made:
        store.close()


def write(id_: str, body: bytes, *, revision: int = 0, facts: int = 0) -> port.WriteState:
    return port.WriteState("site", id_, 7, 1, revision, body, (port.Fact("t.f", b"x"),) * facts)


def owned(store: LmdbStore) -> LmdbStore:
    """Shard 7 is node n1's under epoch 1."""
    requests = [
        port.Initialise(IDENTITY),
        port.AcquireLease("c", "n1@1", 1_000),
        port.WritePlacement("c", "n1@1", 1, 0, (ROW,)),
    ]
    assert store.apply(requests)[2] == port.PlacementWritten(1)
    return store


def data_file(tmp_path: Path) -> Path:
    return tmp_path / "store" / "data.mdb"


def refused(open_store: Open, code: str, *words: str) -> None:
    with pytest.raises(OperatingError) as caught:
        open_store()
    assert caught.value.code == code
    for word in words:
        assert word in caught.value.message


def test_everything_is_there_after_reopening(open_store: Open) -> None:
    store = owned(open_store())
    store.apply([write("x", b"body", facts=2), port.NextIncarnation("n1")])
    store.close()
    asked = [port.ReadState("site", "x"), port.ReadFacts(), port.NextIncarnation("n1"), port.Initialise(IDENTITY)]
    record, facts, incarnation, identity = open_store().apply(asked)
    assert record == port.Record("site", "x", 1, 1, b"body")
    assert isinstance(facts, port.FactPage)
    assert len(facts.facts) == 2
    assert (incarnation, identity) == (port.Incarnation(2), IDENTITY)


def test_d3_the_map_grows_before_anything_is_refused(open_store: Open) -> None:
    store = owned(open_store(map_bytes=1 << 20))
    bodies = {f"s{n}": bytes([n]) * 1_000_000 for n in range(12)}
    assert store.apply([write(id_, body) for id_, body in bodies.items()]) == [port.Written(1)] * 12
    assert store.apply([port.ReadState("site", "s11")]) == [port.Record("site", "s11", 1, 1, bodies["s11"])]
    used, limit = store.map_bytes()
    assert 12_000_000 < used < limit


def test_d3_at_its_limit_the_map_refuses_writes_definitely_and_reads_on(open_store: Open) -> None:
    store = owned(open_store(map_bytes=1 << 20, map_bytes_max=2 << 20))
    assert store.apply([write("small", b"kept", facts=1)]) == [port.Written(1, 1)]
    answers = store.apply([write("small", b"lost", revision=1, facts=1), write("big", bytes(3_000_000))])
    assert [(a.code, a.definite) for a in answers if isinstance(a, port.StoreFailed)] == [("E-STORE-FULL", True)] * 2
    assert store.apply([port.ReadState("site", "small"), port.ReadState("site", "big")]) == [
        port.Record("site", "small", 1, 1, b"kept"),
        port.Absent(),
    ]
    assert store.apply([write("small", b"next", revision=1, facts=1)]) == [port.Written(2, 2)]


@contextmanager
def full_disk(bytes_max: int) -> Iterator[None]:
    """Files of this process can't grow beyond a size: the write fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_max, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_d2_a_full_disk_refuses_writes_definitely_and_recovers(open_store: Open, tmp_path: Path) -> None:
    store = owned(open_store())
    store.apply([write("x", b"kept")])
    with full_disk(data_file(tmp_path).stat().st_size):
        (failed,) = store.apply([write("x", bytes(500_000), revision=1)])
        assert isinstance(failed, port.StoreFailed)
        assert (failed.code, failed.definite) == ("E-STORE-DISK", True)
        assert store.apply([port.ReadState("site", "x")]) == [port.Record("site", "x", 1, 1, b"kept")]
    assert store.apply([write("x", bytes(500_000), revision=1)]) == [port.Written(2)]
    store.close()
    assert open_store().apply([port.ReadState("site", "x")]) == [port.Record("site", "x", 2, 1, bytes(500_000))]


class DyingEnv:
    """An environment whose next commit fails in its last step: LMDB condemns it then."""

    def __init__(self, env: lmdb.Environment) -> None:
        self.env = env
        self.condemned = False

    def begin(self, **how: Any) -> Any:
        if self.condemned:
            raise lmdb.PanicError("begin")
        return DyingTxn(self, self.env.begin(**how))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)


class DyingTxn:
    def __init__(self, owner: DyingEnv, txn: Any) -> None:
        self.owner, self.txn = owner, txn

    def commit(self) -> None:
        self.txn.abort()
        self.owner.condemned = True
        raise lmdb.DiskError("commit")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.txn, name)


def test_d10_a_commit_that_may_have_happened_is_indefinite_and_the_file_is_opened_anew(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = owned(open_store())
    monkeypatch.setattr(store, "_env", DyingEnv(store._env))
    monkeypatch.setattr(adapter, "_Table", lambda txn: TABLE(txn.txn))
    answers = store.apply([write("x", b"lost?"), port.ReadState("site", "x")])
    monkeypatch.setattr(adapter, "_Table", TABLE)
    assert [(a.code, a.definite) for a in answers if isinstance(a, port.StoreFailed)] == [
        ("E-STORE-DISK", False),
        ("E-STORE-DISK", True),
    ]
    assert store.apply([write("x", b"again")]) == [port.Written(1)]


TABLE = adapter._Table


@pytest.mark.parametrize("size", [0, 10, 5_000, "37 %"])
def test_d4_a_truncated_file_is_refused_before_it_is_read(open_store: Open, tmp_path: Path, size: int | str) -> None:
    store = owned(open_store())
    store.apply([write(f"s{n}", bytes(3_000)) for n in range(100)])
    store.close()
    file = data_file(tmp_path)
    with file.open("r+b") as handle:
        handle.truncate(file.stat().st_size * 37 // 100 if size == "37 %" else int(size))
    cut = file.read_bytes()
    refused(open_store, "E-STORE-DAMAGED", "data.mdb")
    assert file.read_bytes() == cut, "a damaged file is left as it is"


@pytest.mark.parametrize("size", [5_000, "37 %"])
def test_d4_a_truncated_file_is_refused_without_its_note_too(open_store: Open, tmp_path: Path, size: int | str) -> None:
    store = owned(open_store())
    store.apply([write(f"s{n}", bytes(3_000)) for n in range(100)])
    store.close()
    (tmp_path / "store" / adapter.IDENTITY_NOTE).unlink()
    file = data_file(tmp_path)
    with file.open("r+b") as handle:
        handle.truncate(file.stat().st_size * 37 // 100 if size == "37 %" else int(size))
    refused(open_store, "E-STORE-DAMAGED", "its header says")


def test_d5_a_missing_file_beside_a_known_identity_is_damage(open_store: Open, tmp_path: Path) -> None:
    owned(open_store()).close()
    data_file(tmp_path).unlink()
    refused(open_store, "E-STORE-DAMAGED", "is missing")
    assert not data_file(tmp_path).exists()


def test_d5_another_empty_database_in_its_place_is_damage(open_store: Open, tmp_path: Path) -> None:
    owned(open_store()).close()
    data_file(tmp_path).unlink()
    lmdb.open(str(tmp_path / "store"), max_dbs=2).close()
    refused(open_store, "E-STORE-DAMAGED", "no format record")


def test_a_store_without_its_identity_record_is_damage(open_store: Open, tmp_path: Path) -> None:
    owned(open_store()).close()
    with lmdb.open(str(tmp_path / "store"), max_dbs=2) as env, env.begin(write=True) as txn:
        txn.delete(lmdb_layout.IDENTITY_KEY)
    refused(open_store, "E-STORE-DAMAGED", "no identity record")


def test_a_store_without_its_format_record_is_damage(open_store: Open, tmp_path: Path) -> None:
    owned(open_store()).close()
    with lmdb.open(str(tmp_path / "store"), max_dbs=2) as env, env.begin(write=True) as txn:
        txn.delete(lmdb_layout.FORMAT_KEY)
    refused(open_store, "E-STORE-DAMAGED", "no format record")


def test_an_unreadable_note_is_damage(open_store: Open, tmp_path: Path) -> None:
    owned(open_store()).close()
    (tmp_path / "store" / adapter.IDENTITY_NOTE).write_bytes(b"{")
    refused(open_store, "E-STORE-DAMAGED", adapter.IDENTITY_NOTE)


def test_a_lost_note_is_written_again(open_store: Open, tmp_path: Path) -> None:
    owned(open_store()).close()
    note = tmp_path / "store" / adapter.IDENTITY_NOTE
    written = note.read_bytes()
    note.unlink()
    open_store().apply([port.Initialise(IDENTITY)])
    assert note.read_bytes() == written


def test_d7_a_garbage_header_is_refused(open_store: Open, tmp_path: Path) -> None:
    owned(open_store()).close()
    with data_file(tmp_path).open("r+b") as handle:
        handle.write(b"\xa5" * 8_192)
    refused(open_store, "E-STORE-DAMAGED")


def test_d18_a_newer_format_is_refused_with_both_numbers(open_store: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "FORMAT", 3)
    owned(open_store()).close()
    monkeypatch.undo()
    refused(open_store, "E-NEWER-FORMAT", "format 3", "reads 1")


def test_d6_a_flipped_bit_fails_its_own_record_only(open_store: Open, tmp_path: Path) -> None:
    store = owned(open_store())
    store.apply([write("bad", b"a body to find"), write("good", b"other")])
    store.close()
    content = data_file(tmp_path).read_bytes()
    assert b"a body to find" in content
    data_file(tmp_path).write_bytes(content.replace(b"a body to find", b"a body to fine"))
    asked = [port.ReadState("site", "bad"), write("bad", b"new", revision=1), port.ReadState("site", "good")]
    *failed, good = open_store().apply(asked)
    assert [(a.code, a.definite) for a in failed if isinstance(a, port.StoreFailed)] == [("E-RECORD-DAMAGED", True)] * 2
    assert good == port.Record("site", "good", 1, 1, b"other")


def test_a_lease_of_another_boot_has_expired(open_store: Open) -> None:
    store = open_store(boot="first")
    assert store.apply([port.AcquireLease("l", "a", 60_000)]) == [port.LeaseGranted(1, 60_000)]
    store.close()
    store = open_store(boot="first")
    assert isinstance(store.apply([port.AcquireLease("l", "b", 60_000)])[0], port.LeaseHeld)
    store.close()
    store = open_store(boot="second")
    assert store.apply([port.AcquireLease("l", "b", 60_000)]) == [port.LeaseGranted(2, 60_000)]


def test_d8_a_file_in_the_directory_s_place_is_refused_with_its_path(open_store: Open, tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"")
    refused(open_store, "E-STORE-PATH", str(tmp_path / "store"))


def test_one_process_opens_a_store_once(open_store: Open) -> None:
    open_store()
    refused(open_store, "E-STORE-PATH", "already open")


def test_a_closed_store_is_a_programming_error(open_store: Open) -> None:
    store = open_store()
    store.close()
    with pytest.raises(InvariantError):
        store.apply([])


def verified(store: LmdbStore, limit: int) -> tuple[int, set[str]]:
    """A whole round, in pages."""
    checked, damaged, after = 0, set(), b""
    while True:
        (page,) = store.apply([port.VerifyRecords(after, limit)])
        assert isinstance(page, port.Verified)
        checked += page.checked
        damaged |= set(page.damaged)
        after = page.after
        if not after:
            return checked, damaged


def test_d6_flipped_bits_are_never_read_as_data_and_all_found(open_store: Open, tmp_path: Path) -> None:
    """1 to 20 bits anywhere in the bodies, stopped; a read gives what was written, or says that it is damaged."""
    store = owned(open_store())
    bodies = {f"e{n}": f"body-{n}-".encode() * 20 for n in range(40)}
    store.apply([write(id_, body) for id_, body in bodies.items()])
    store.close()
    whole = data_file(tmp_path).read_bytes()
    for seed in range(20):
        rng = random.Random(seed)
        content = bytearray(whole)
        victims = rng.sample(sorted(bodies), rng.randint(1, 20))
        for victim in victims:
            at = content.find(bodies[victim])
            while at >= 0:  # old copies of a page may hold it, too
                content[at + rng.randrange(len(bodies[victim]))] ^= 1 << rng.randrange(8)
                at = content.find(bodies[victim])
        data_file(tmp_path).write_bytes(content)
        store = open_store()
        for id_, body in bodies.items():
            (answer,) = store.apply([port.ReadState("site", id_)])
            if id_ in victims:
                assert isinstance(answer, port.StoreFailed)
                assert answer.code == "E-RECORD-DAMAGED"
            else:
                assert answer == port.Record("site", id_, 1, 1, body)
        checked, damaged = verified(store, limit=7)
        assert damaged == {f"Ssite:{victim}" for victim in victims}
        assert checked > 2 * len(bodies), "states and their index"
        store.close()


def test_a_state_that_only_the_index_knows_is_damage(open_store: Open) -> None:
    store = owned(open_store())
    store.apply([write("x", b"b")])
    assert verified(store, limit=3)[1] == set()
    with store._env.begin(write=True) as txn:
        txn.delete(lmdb_layout.state_key("site", "x"))
    assert verified(store, limit=3)[1] == {"X:\x07site:x"}


def test_d13_reads_do_not_hold_old_pages(open_store: Open, tmp_path: Path) -> None:
    """Each read ends its transaction: 600 overwrites between reads do not make the file grow."""
    store = owned(open_store())
    store.apply([write("x", bytes(3_000))])
    for revision in range(1, 50):
        store.apply([write("x", bytes(3_000), revision=revision), port.ReadState("site", "x")])
    size = data_file(tmp_path).stat().st_size
    for revision in range(50, 650):
        assert store.apply([port.ReadState("site", "x")])
        assert store.apply([write("x", bytes(3_000), revision=revision)]) == [port.Written(revision + 1)]
    assert data_file(tmp_path).stat().st_size <= size + 64 * 1_024


def test_d14_no_reader_slot_left_is_refused_and_used_again_when_one_is_free(
    open_store: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter.limits, "store_readers_max", 2)
    store = owned(open_store())
    readers = [store._env.begin(), store._env.begin()]
    (answer,) = store.apply([port.ReadState("site", "x")])
    assert isinstance(answer, port.StoreFailed)
    assert (answer.code, answer.definite) == ("E-STORE-DISK", True)
    readers.pop().abort()
    assert store.apply([port.ReadState("site", "x")]) == [port.Absent()]
    readers.pop().abort()


def test_verify_reads_in_a_process_of_its_own_and_makes_nothing(open_store: Open, tmp_path: Path) -> None:
    store = owned(open_store())
    store.apply([write("good", b"good"), write("bad", b"a body to find")])
    store.close()

    def scan(path: Path) -> Progress:
        command = [sys.executable, "-m", "node.store.verify", str(path)]
        return msgspec.json.decode(subprocess.run(command, capture_output=True, check=True).stdout, type=Progress)

    found = scan(tmp_path / "store")
    assert (found.damaged, found.done, found.error) == ((), True, "")
    content = data_file(tmp_path).read_bytes()
    data_file(tmp_path).write_bytes(content.replace(b"a body to find", b"a body to fine"))
    assert scan(tmp_path / "store").damaged == ("Ssite:bad",)
    data_file(tmp_path).write_bytes(content[:5_000])
    assert "its header says" in scan(tmp_path / "store").error
    assert "missing" in scan(tmp_path / "nothing").error
    assert not (tmp_path / "nothing").exists()
