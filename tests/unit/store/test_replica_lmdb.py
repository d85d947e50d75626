"""What a replica does when its file, its disk or its process is not as it should be."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from node.core.clock import ManualClock
from node.core.errors import OperatingError
from node.core.hashing import leaf_of, map_of
from node.store import replica_file, replica_open
from node.store.replica_file import NOTE_NAME
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.store.replica_opening import Opening
from node.store.replica_port import MapCount, ReplicaBatch, ReplicaEntry

Open = Callable[..., tuple[LmdbReplica, Opening]]


@pytest.fixture
def open_(tmp_path: Path) -> Iterator[Open]:
    made: list[LmdbReplica] = []

    def open_again(**how: Any) -> tuple[LmdbReplica, Opening]:
        how = {"cluster_id": "c-1", "node": "n1", "tenure": 1, "map_bytes_max": 1 << 26, **how}
        replica, opening = open_replica(tmp_path / "replica", ManualClock(), **how)
        made.append(replica)
        return replica, opening

    yield open_again
    for replica in made:
        replica.close()


def batch(*entries: ReplicaEntry, **fields: Any) -> ReplicaBatch:
    return ReplicaBatch(**{"puts": entries, "drops": (), "digests": {}, "hlc_mark": 0, "counts": {}, **fields})


def entry(key: str, value: bytes) -> ReplicaEntry:
    return ReplicaEntry(key, 1, 2, "n1", 0, tombstone=False, value=value)


def get(replica: LmdbReplica, key: str) -> ReplicaEntry | None:
    return replica.get(map_of(key), leaf_of(key), key)


def filled(open_: Open) -> Path:
    """A closed replica of 200 entries; its data file."""
    replica, opening = open_()
    assert opening == Opening("fresh")
    digests = {(map_, leaf): 1 for map_ in range(32) for leaf in range(256)}
    counts = {0: MapCount(200, 1, 1)}
    replica.commit(
        batch(*(entry(f"s{n}|a", b"body %d " % n * 200) for n in range(200)), digests=digests, counts=counts)
    )
    replica.close()
    return replica.path / "data.mdb"


def test_a_good_replica_is_reused(open_: Open) -> None:
    filled(open_)
    replica, opening = open_(tenure=2)
    assert opening == Opening("reused")
    assert get(replica, "s7|a") == entry("s7|a", b"body 7 " * 200)
    assert (replica.identity.tenure, replica.damaged_reads) == (1, 0)


def test_a_tenure_is_adopted_for_good(open_: Open) -> None:
    filled(open_)
    replica, _ = open_()
    replica.commit(ReplicaBatch((), (), {}, 0, {}, tenure=5))
    assert replica.identity.tenure == 5
    replica.close()
    assert open_()[0].identity.tenure == 5


def set_aside(open_: Open, data: Path, *words: str) -> LmdbReplica:
    """The damaged file is kept under a dated name, byte by byte, and an empty replica works in its place."""
    before = data.read_bytes()
    replica, opening = open_()
    assert opening.how == "set_aside"
    for word in words:
        assert word in opening.reason
    assert "damaged-2023-11-14T221320000Z" in opening.path
    assert Path(opening.path).read_bytes() == before
    assert get(replica, "s7|a") is None
    assert (replica.digests()[0][0], replica.counts()[0]) == (0, MapCount())
    replica.commit(batch(entry("s7|a", b"again")))
    replica.close()
    reopened, opening = open_()
    assert opening == Opening("reused")
    assert get(reopened, "s7|a") == entry("s7|a", b"again")
    return reopened


@pytest.mark.parametrize(("size", "word"), [(0, "is empty"), (10, ""), (5_000, "header says"), ("37 %", "header says")])
def test_d4_a_truncated_file_is_set_aside(open_: Open, size: int | str, word: str) -> None:
    data = filled(open_)
    with data.open("r+b") as handle:
        handle.truncate(data.stat().st_size * 37 // 100 if size == "37 %" else int(size))
    set_aside(open_, data, word)


def test_a_truncated_file_without_its_note_is_set_aside_too(open_: Open) -> None:
    data = filled(open_)
    data.with_name(NOTE_NAME).unlink()
    with data.open("r+b") as handle:
        handle.truncate(data.stat().st_size * 37 // 100)
    set_aside(open_, data, "header says")


def test_d7_a_garbage_header_is_set_aside(open_: Open) -> None:
    data = filled(open_)
    with data.open("r+b") as handle:
        handle.write(b"\xa5" * 8_192)
    set_aside(open_, data)


def test_d5_a_missing_file_beside_its_note_is_said_and_made_anew(open_: Open) -> None:
    filled(open_).unlink()
    _, opening = open_()
    assert (opening.how, opening.path) == ("set_aside", "")
    assert "is missing" in opening.reason


def test_d5_an_empty_database_in_its_place_is_set_aside(open_: Open) -> None:
    data = filled(open_)
    data.unlink()
    lmdb.open(str(data.parent), max_dbs=2).close()
    set_aside(open_, data, "holds nothing")


@pytest.mark.parametrize("key", [b"identity", b"digests\x03\x01", b"counts"])
def test_a_damaged_record_of_the_replica_itself_sets_it_aside(open_: Open, key: bytes) -> None:
    data = filled(open_)
    with lmdb.open(str(data.parent), max_dbs=8, map_size=1 << 26) as env, env.begin(write=True) as txn:
        meta = env.open_db(b"meta", txn=txn)
        value = bytearray(txn.get(key, b"", db=meta))
        value[-1] ^= 1
        txn.put(key, bytes(value), db=meta)
    set_aside(open_, data, "checksum")


def test_a_replica_without_an_identity_record_is_set_aside(open_: Open) -> None:
    data = filled(open_)
    with lmdb.open(str(data.parent), max_dbs=8, map_size=1 << 26) as env, env.begin(write=True) as txn:
        txn.delete(b"identity", db=env.open_db(b"meta", txn=txn))
    set_aside(open_, data, "no identity record")


def test_two_damaged_files_of_one_moment_are_both_kept(open_: Open) -> None:
    data, kept = filled(open_), []
    for _ in range(2):
        data.write_bytes(b"")
        replica, opening = open_()
        replica.close()
        kept.append(opening.path)
    assert len(set(kept)) == 2
    assert all(Path(path).exists() for path in kept)


def test_a_note_that_cannot_be_read_is_replaced_and_the_data_kept(open_: Open) -> None:
    note = filled(open_).with_name(NOTE_NAME)
    written = note.read_bytes()
    note.write_bytes(b"{")
    replica, opening = open_()
    assert opening == Opening("reused")
    assert get(replica, "s7|a") is not None
    assert note.read_bytes() == written


def test_a_start_that_was_killed_before_its_first_record_is_fresh(open_: Open, tmp_path: Path) -> None:
    (tmp_path / "replica").mkdir()
    lmdb.open(str(tmp_path / "replica"), max_dbs=2).close()
    assert open_()[1] == Opening("fresh")


@pytest.mark.parametrize("owner", [{"cluster_id": "c-2"}, {"node": "n2"}])
@pytest.mark.parametrize("with_note", [True, False])
def test_d17_another_s_replica_is_refused_and_left_alone(open_: Open, owner: dict[str, str], with_note: bool) -> None:
    data = filled(open_)
    if not with_note:
        data.with_name(NOTE_NAME).unlink()
    before = data.read_bytes()
    with pytest.raises(OperatingError, match="is the replica of node n1 of cluster c-1") as caught:
        open_(**owner)
    assert caught.value.code == "E-OTHER-CLUSTER"
    assert data.read_bytes() == before
    assert open_()[1] == Opening("reused"), "the refusal holds no lock"


def test_d17_an_older_copy_whose_disk_takes_nothing_is_of_no_stay_and_says_so_with_the_next_commit(open_: Open) -> None:
    filled(open_)
    replica, _ = open_()
    replica.begin(5)
    replica.close()
    replica, _ = open_()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, hard))
    try:
        with pytest.raises(OperatingError) as caught:
            replica.begin(7)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.code == "E-REPLICA-DISK"
    assert (replica.identity.tenure, get(replica, "s7|a") is None) == (0, False)
    replica.commit(batch(entry("s7|b", b"new")))
    replica.close()
    reopened = open_()[0].identity
    assert (reopened.tenure, reopened.incarnation) == (0, 7)


def test_d17_a_copy_made_and_put_back_within_one_run_of_its_node_is_an_older_one(open_: Open, tmp_path: Path) -> None:
    """It has missed no start; that there were commits since is remembered beside its folder."""
    mark, folder, copy = tmp_path / "commits", tmp_path / "replica", tmp_path / "copy"

    def started(start: int) -> tuple[LmdbReplica, str]:
        replica, opening = open_(mark=mark)
        replica.begin(start)
        return replica, opening.how

    replica, how = started(5)
    replica.commit(batch(entry("s7|a", b"old")))
    shutil.copytree(folder, copy)
    replica.close()
    assert how == "fresh"
    replica, how = started(6)
    assert (how, replica.identity.tenure) == ("reused", 1), "nothing was lost"
    shutil.rmtree(copy)
    shutil.copytree(folder, copy)
    replica.commit(batch(entry("s7|a", b"new")))
    replica.close()
    shutil.rmtree(folder)
    copy.rename(folder)
    replica, how = started(7)
    assert (how, replica.identity.tenure) == ("older_copy", 0)
    replica.commit(batch(tenure=2))
    replica.close()
    replica, how = started(8)
    assert (how, replica.identity.tenure) == ("reused", 2), "it has taken over"
    replica.close()
    mark.write_bytes(b"")
    assert started(9)[1] == "reused", "what is not known says nothing against a file"


def test_d18_a_newer_format_is_refused_with_both_numbers(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (replica_open, replica_file):
        monkeypatch.setattr(module, "FORMAT", 3)
    filled(open_)
    monkeypatch.undo()
    with pytest.raises(OperatingError, match="format 3, this release reads 2") as caught:
        open_()
    assert caught.value.code == "E-NEWER-FORMAT"


def test_d6_a_flipped_bit_is_never_returned_until_it_is_written_again(open_: Open) -> None:
    data = filled(open_)
    content = data.read_bytes()
    data.write_bytes(content.replace(b"body 42 body 42 ", b"body 42 bodi 42 "))
    assert data.read_bytes() != content
    replica, opening = open_()
    assert opening == Opening("reused")
    assert get(replica, "s42|a") is None
    assert "s42|a" not in {one.key for one in replica.scan(map_of("s42|a"), leaf_of("s42|a"))}
    assert len(replica.scan_all("", 500)) == 199
    assert get(replica, "s43|a") == entry("s43|a", b"body 43 " * 200)
    assert (replica.damaged, replica.damaged_reads) == ({"s42|a"}, 3)
    replica.commit(batch(entry("s42|a", b"fetched")))
    assert get(replica, "s42|a") == entry("s42|a", b"fetched")
    assert replica.damaged == frozenset()
    assert replica.take_found() == {"s42|a"}, "once for three reads, although it was written again"
    assert replica.take_found() == frozenset(), "each is said once"


def test_d1_a_full_disk_refuses_the_commit_and_serving_goes_on(open_: Open, tmp_path: Path) -> None:
    filled(open_)
    replica, _ = open_()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "replica" / "data.mdb").stat().st_size, hard))
    try:
        with pytest.raises(OperatingError) as caught:
            replica.commit(batch(entry("s1|a", bytes(500_000)), hlc_mark=9, digests={(1, 1): 7}))
        assert (caught.value.code, caught.value.definite) == ("E-REPLICA-DISK", True)
        assert get(replica, "s1|a") == entry("s1|a", b"body 1 " * 200)
        assert (replica.hlc_mark(), replica.digests()[1][1]) == (0, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    replica.commit(batch(entry("s1|a", bytes(500_000)), hlc_mark=9))
    assert get(replica, "s1|a") == entry("s1|a", bytes(500_000))


def test_d3_at_its_limit_the_file_refuses_the_commit_and_serving_goes_on(open_: Open) -> None:
    replica, _ = open_(map_bytes_max=1 << 20)
    replica.commit(batch(entry("s1|a", b"kept")))
    with pytest.raises(OperatingError) as caught:
        replica.commit(batch(entry("s1|a", b"lost"), entry("s2|a", bytes(2 << 20))))
    assert (caught.value.code, caught.value.definite) == ("E-REPLICA-FULL", True)
    assert get(replica, "s1|a") == entry("s1|a", b"kept")
    used, limit = replica.usage()
    assert 0 < used < limit == 1 << 20
    replica.commit(batch(entry("s1|a", b"next")))
    assert get(replica, "s1|a") == entry("s1|a", b"next")


def test_a_disk_too_full_for_a_new_replica_is_said_and_sets_nothing_aside(open_: Open, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, hard))
    try:
        with pytest.raises(OperatingError) as caught:
            open_()
        assert caught.value.code == "E-REPLICA-DISK"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list((tmp_path / "replica").glob("*damaged*"))
    assert open_()[1] == Opening("fresh")


class CondemnedEnv:
    """An environment whose header could not be written: LMDB refuses every transaction then."""

    def __init__(self, env: lmdb.Environment) -> None:
        self.env = env

    def begin(self, **how: Any) -> Any:
        raise lmdb.PanicError("begin")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.env, name)


def test_a_condemned_file_is_indefinite_and_reads_as_absent(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(open_)
    replica, _ = open_()
    monkeypatch.setattr(replica, "_env", CondemnedEnv(replica._env))
    with pytest.raises(OperatingError) as caught:
        replica.commit(batch(entry("s1|a", b"lost?")))
    assert (caught.value.code, caught.value.definite) == ("E-REPLICA-DISK", False)
    assert (get(replica, "s1|a"), list(replica.scan_all("", 9)), replica.reads_failed) == (None, [], 2)
    replica.close()
    assert get(open_()[0], "s1|a") == entry("s1|a", b"body 1 " * 200)


def test_reads_never_see_half_a_commit(open_: Open) -> None:
    replica, _ = open_()
    keys = [f"s{n}|same" for n in range(5_000) if leaf_of(f"s{n}|same") == 9 and map_of(f"s{n}|same") == 9]
    keys += [key for key in (f"t{n}|x" for n in range(60_000)) if (map_of(key), leaf_of(key)) == (9, 9)][:4]
    assert len(keys) >= 4
    problems: list[object] = []

    def write_rounds() -> None:
        try:
            for number in range(100):
                replica.commit(batch(*(entry(key, b"%d" % number) for key in keys)))
        except BaseException as error:
            problems.append(error)

    writer = threading.Thread(target=write_rounds)
    writer.start()
    seen: list[int] = []
    while writer.is_alive():
        values = {one.value for one in replica.scan(9, 9)}
        assert len(values) <= 1
        seen += [int(value) for value in values]
    writer.join()
    assert problems == []
    assert seen == sorted(seen)
    assert {one.value for one in replica.scan(9, 9)} == {b"99"}


def test_overwriting_does_not_grow_the_file_without_end(open_: Open) -> None:
    """No read transaction stays open: one that did would keep every page that was ever overwritten."""
    replica, _ = open_()
    for number in range(80):
        replica.commit(batch(*(entry(f"s{n}|a", bytes([number]) * 3_000) for n in range(10))))
        assert get(replica, "s1|a") == entry("s1|a", bytes([number]) * 3_000)
    assert replica.usage()[0] < 600_000


# ---- with other processes

CHILD = """
import os, sys
from pathlib import Path
from node.core.clock import SystemClock
from node.core.errors import InvariantError, OperatingError
from node.store.replica_open import open_replica
from node.store.replica_port import ReplicaBatch, ReplicaEntry

def commit(replica, n, *, drop=()):
    made = ReplicaEntry(f"s{n}|a", 1, n, "n1", 0, False, b"%d" % n)
    replica.commit(ReplicaBatch((made,), drop, {(0, 0): n}, n, {}))

def open_():
    owner = {"cluster_id": "c-1", "node": "n1", "tenure": 1}
    return open_replica(Path(sys.argv[1]), SystemClock(), **owner, map_bytes_max=1 << 26)[0]
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    children: list[subprocess.Popen[str]] = []

    def start_(script: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CHILD + textwrap.dedent(script), str(tmp_path / "replica")]
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return children[-1]

    yield start_
    for child in children:
        child.kill()
        child.communicate()


def test_d15_a_second_process_is_refused_naming_the_first(
    open_: Open, start: Callable[[str], subprocess.Popen[str]]
) -> None:
    child = start("""
        replica = open_()
        print("open", flush=True)
        sys.stdin.read()
    """)
    assert child.stdout is not None
    assert child.stdout.readline() == "open\n"
    with pytest.raises(OperatingError, match=f"is open in process {child.pid}$") as caught:
        open_()
    assert caught.value.code == "E-REPLICA-IN-USE"
    child.kill()
    child.wait()
    assert open_()[1] == Opening("reused"), "the lock ends with its process"
    with pytest.raises(OperatingError, match=f"is open in process {os.getpid()}$"):
        open_()


def test_what_was_committed_is_there_after_kill_9(open_: Open, start: Callable[[str], subprocess.Popen[str]]) -> None:
    child = start("""
        replica, n = open_(), 0
        while True:
            n += 1
            commit(replica, n, drop=(f"s{n - 3}|a",))
            os.write(1, b"%d\\n" % n)
    """)
    assert child.stdout is not None
    for _ in range(100):
        child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    acknowledged = int((child.stdout.read().split() or ["100"])[-1])
    child.wait()
    replica, opening = open_()
    assert opening == Opening("reused")
    last = replica.hlc_mark()
    assert acknowledged >= 100
    assert last in (acknowledged, acknowledged + 1)
    assert replica.digests()[0][0] == last
    assert {one.key for one in replica.scan_all("", 99)} == {f"s{last - n}|a" for n in range(3)}


def test_a_forked_child_may_not_commit(start: Callable[[str], subprocess.Popen[str]]) -> None:
    child = start("""
        replica = open_()
        pid = os.fork()
        if pid == 0:
            replica.close()
            try:
                commit(replica, 1)
            except InvariantError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        commit(replica, 2)
        print(replica.hlc_mark(), flush=True)
    """)
    said, mark = child.communicate()[0].splitlines()
    assert said.startswith("replica-fork")
    assert mark == "2"
