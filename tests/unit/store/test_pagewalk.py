"""A file that is shorter than its header says is told from one that has lost pages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import lmdb
import pytest

from node.core.clock import ManualClock
from node.core.errors import OperatingError
from node.store import port
from node.store.datafile import is_short
from node.store.lmdb import LmdbStore, header, keep_length
from node.store.pagewalk import missing_page
from node.store.replica_open import open_replica
from node.store.replica_opening import Opening
from node.store.replica_port import ReplicaBatch, ReplicaEntry

PAGE = 4_096
READ_ALL = """
import lmdb, sys
env = lmdb.open(sys.argv[1], map_size=1 << 27, max_dbs=8)
with env.begin() as txn, txn.cursor() as names:
    for name in [bytes(name) for name, _ in names]:
        with txn.cursor(env.open_db(name, txn=txn, create=False)) as cursor:
            for key, value in cursor:
                bytes(key) + bytes(value)
"""


def batch(puts: range, drops: range) -> ReplicaBatch:
    made = (ReplicaEntry(f"s{n}|a", 1, n, "n1", 0, tombstone=False, value=b"x" * (500 + n % 7 * 1_000)) for n in puts)
    return ReplicaBatch(tuple(made), tuple(f"s{n}|a" for n in drops), {}, 1, {})


def churn_until_short(env: lmdb.Environment, path: Path, db: bytes | None) -> None:
    """Adds and removes scratch records until one transaction has given back the last pages that it took: these are
    counted in the header and never written."""
    random, keys, place = Random(3), set[bytes](), env.open_db(db)
    for _ in range(400):
        with env.begin(write=True, db=place) as txn:
            for _ in range(random.choice((10, 1_000))):
                key = b"scratch%d" % random.randrange(100_000)
                txn.put(key, bytes(random.choice((200, 3_000))))
                keys.add(key)
            for key in random.sample(sorted(keys), random.randrange(len(keys))):
                txn.delete(key)
                keys.discard(key)
        if is_short(path, header(env)):
            return
    pytest.fail("LMDB has left no page unwritten")


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """The directory of a whole replica of 500 entries whose file is shorter than its header says."""
    path = tmp_path / "replica"
    replica, _ = open_replica(path, ManualClock(), cluster_id="c", node="n", tenure=1, map_bytes_max=1 << 27)
    replica.commit(batch(range(500), range(0)))
    churn_until_short(replica._env, path, b"meta")
    replica.close()
    return path


def test_a_short_file_that_is_whole_is_opened_and_lengthened(short: Path) -> None:
    before = (short / "data.mdb").stat().st_size
    replica, opening = open_replica(short, ManualClock(), cluster_id="c", node="n", tenure=1, map_bytes_max=1 << 27)
    assert opening == Opening("reused")
    assert len(replica.scan_all("", 5_000)) == 500
    assert (short / "data.mdb").stat().st_size == (header(replica._env).last_page + 1) * PAGE > before
    replica.close()


def test_what_follows_a_commit_lengthens_the_file(short: Path) -> None:
    env = lmdb.open(str(short), map_size=1 << 27, max_dbs=8)
    keep_length(env, short)
    assert (short / "data.mdb").stat().st_size == (header(env).last_page + 1) * PAGE
    before = (short / "data.mdb").read_bytes()
    keep_length(env, short)
    assert (short / "data.mdb").read_bytes() == before
    env.close()


def test_each_commit_of_a_replica_sees_to_its_length(tmp_path: Path) -> None:
    replica, _ = open_replica(tmp_path, ManualClock(), cluster_id="c", node="n", tenure=1, map_bytes_max=1 << 27)
    churn_until_short(replica._env, tmp_path, b"meta")
    replica.commit(batch(range(1), range(0)))
    assert not is_short(tmp_path, header(replica._env))
    replica.close()


def test_each_commit_of_a_state_store_sees_to_its_length(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path, ManualClock())
    churn_until_short(store._env, tmp_path, None)
    store.apply([port.NextIncarnation("n")])
    assert not is_short(tmp_path, header(store._env))
    store.close()


def test_a_short_state_store_is_opened_and_a_cut_one_refused(tmp_path: Path) -> None:
    store = LmdbStore(tmp_path, ManualClock())
    store.apply([port.NextIncarnation("n")])
    churn_until_short(store._env, tmp_path, None)
    store.close()
    reopened = LmdbStore(tmp_path, ManualClock())
    assert reopened.apply([port.NextIncarnation("n")]) == [port.Incarnation(2)]
    reopened.close()
    with (tmp_path / "data.mdb").open("r+b") as handle:
        handle.truncate(3 * PAGE)
    with pytest.raises(OperatingError, match="the file has 3") as caught:
        LmdbStore(tmp_path, ManualClock())
    assert caught.value.code == "E-STORE-DAMAGED"


def survives_reading(path: Path, pages: int, scratch: Path) -> bool:
    """The truth: a process of its own reads every value of a copy that was cut, and lives."""
    scratch.mkdir()
    shutil.copy(path / "data.mdb", scratch / "data.mdb")
    with (scratch / "data.mdb").open("r+b") as handle:
        handle.truncate(pages * PAGE)
    return subprocess.run([sys.executable, "-c", READ_ALL, scratch], capture_output=True, check=False).returncode == 0


def test_what_the_walk_calls_whole_can_be_read(short: Path, tmp_path: Path) -> None:
    whole = (short / "data.mdb").stat().st_size // PAGE
    verdicts = []
    for number, pages in enumerate((3, whole // 4, whole // 2, whole - 40, whole - 1, whole)):
        survived = survives_reading(short, pages, tmp_path / f"cut{number}")
        missing = missing_page(tmp_path / f"cut{number}" / "data.mdb", PAGE)
        # The walk also looks at the list of free pages, which no reader touches and every writer does.
        assert survived or missing, f"{pages} pages read as whole and killed the reader"
        verdicts.append(not missing)
    assert verdicts[0] is False
    assert verdicts[-1] is True


def test_a_page_that_refers_back_ends_the_walk(short: Path) -> None:
    file = short / "data.mdb"
    content = bytearray(file.read_bytes())
    roots = {int.from_bytes(content[at : at + 8], "little") for at in (16 + 24 + 40, 16 + 24 + 48 + 40)}
    for root in roots - {(1 << 64) - 1}:
        content[root * PAGE + 10 : root * PAGE + 12] = (1).to_bytes(2, "little")  # a branch …
        content[root * PAGE + 12 : root * PAGE + 14] = (18).to_bytes(2, "little")  # … of one node …
        node = int.from_bytes(content[root * PAGE + 16 : root * PAGE + 18], "little")
        content[root * PAGE + node : root * PAGE + node + 6] = root.to_bytes(6, "little")  # … of itself
    for meta in (0, 1):
        content[meta * PAGE : meta * PAGE + PAGE] = content[:PAGE]
    file.write_bytes(content)
    assert "is referred to twice" in missing_page(file, PAGE)


@pytest.mark.parametrize("content", [b"", b"\xa5" * 3 * PAGE, bytes(3 * PAGE)])
def test_what_is_no_data_file_is_missing_everything(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "data.mdb").write_bytes(content)
    assert missing_page(tmp_path / "data.mdb", PAGE)


def test_a_failure_to_lengthen_does_not_undo_a_commit(tmp_path: Path) -> None:
    env = lmdb.open(str(tmp_path), map_size=1 << 20)
    with env.begin(write=True) as txn:
        txn.put(b"k", b"v")
    (tmp_path / "data.mdb").rename(tmp_path / "elsewhere")
    keep_length(env, tmp_path)
    with env.begin() as txn:
        assert txn.get(b"k") == b"v"
    env.close()
