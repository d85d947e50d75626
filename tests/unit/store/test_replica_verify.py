"""What a check of a whole replica file finds, in the process of its own that it runs in."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import lmdb
import msgspec
import pytest

from node.core import limits
from node.core.clock import ManualClock
from node.core.hashing import leaf_of, map_of
from node.gossip.contents import Contents
from node.store import replica_check
from node.store.replica_check import check
from node.store.replica_codec import entry_bytes, entry_of, key_bytes
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.store.replica_port import ReplicaEntry
from node.store.replica_report import Problem, ReplicaReport, VerifyProgress

ENTRIES = 600
CHANGED = "s42.example|a"


def opened(path: Path) -> LmdbReplica:
    return open_replica(path, ManualClock(), cluster_id="c-1", node="n1", tenure=3, map_bytes_max=1 << 26)[0]


def commit(replica: LmdbReplica, contents: Contents) -> None:
    while contents.uncommitted():
        replica.commit(contents.take_batch(1))
        contents.commit_ended(True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed replica of ENTRIES entries, every sixth a tombstone."""
    replica = opened(tmp_path / "replica")
    contents = Contents(replica, 1_000)
    for n in range(ENTRIES):
        gone = n % 6 == 5
        contents.apply(
            ReplicaEntry(
                f"s{n}.example|a", 1, n + 1, "n1", 0, tombstone=gone, value=b"" if gone else b"body %d " % n * 90
            )
        )
    commit(replica, contents)
    replica.close()
    return tmp_path / "replica"


def found(folder: Path, progress: Callable[[VerifyProgress], None] = lambda _: None) -> ReplicaReport:
    return asyncio.run(check(folder, progress))


def by_hand(folder: Path, change: Callable[[bytes, bytes], dict[bytes, bytes | None]]) -> None:
    """Changes the file as a person with LMDB's own tools would."""
    place = key_bytes(CHANGED)
    with lmdb.open(str(folder), max_dbs=8, map_size=1 << 26) as env, env.begin(write=True) as txn:
        entries = env.open_db(b"entries", txn=txn)
        value = txn.get(place, db=entries)
        assert value is not None
        for key, new in change(place, value).items():
            if new is None:
                txn.delete(key, db=entries)
            else:
                txn.put(key, new, db=entries)


def test_a_sound_replica_is_counted_to_the_last_entry(folder: Path) -> None:
    report = found(folder)
    assert report.sound
    assert (report.checked, report.cluster_id, report.node, report.tenure) == (ENTRIES, "c-1", "n1", 3)
    assert sum(m.entries for m in report.maps) == ENTRIES * 5 // 6
    assert sum(m.tombstones for m in report.maps) == ENTRIES // 6
    assert 0 < report.live_bytes <= report.file_bytes == (folder / "data.mdb").stat().st_size
    replica = opened(folder)
    mask = (1 << 128) - 1
    assert [m.digest for m in report.maps] == [f"{sum(row) & mask:032x}" for row in replica.digests()]
    replica.close()


def test_d6_a_flipped_bit_in_a_value_is_named(folder: Path) -> None:
    data = folder / "data.mdb"
    content = data.read_bytes()
    data.write_bytes(content.replace(b"body 42 body 42 ", b"body 42 bodi 42 "))
    report = found(folder)
    assert report.complete
    assert [(p.kind, p.map, p.key) for p in report.problems] == [("damaged", map_of(CHANGED), CHANGED)]
    assert report.maps[map_of(CHANGED)].damaged == 1


def test_an_entry_changed_by_hand_is_damage_unless_it_is_sealed_again(folder: Path) -> None:
    by_hand(folder, lambda place, value: {place: value[:-5] + b"hand!"})
    assert [(p.kind, p.key) for p in found(folder).problems] == [("damaged", CHANGED)]


def changed_version(place: bytes, value: bytes) -> dict[bytes, bytes | None]:
    entry = entry_of(place, value)
    return {place: entry_bytes(place, msgspec.structs.replace(entry, hlc=entry.hlc + 1, value=b"x" * len(entry.value)))}


def taken_away(place: bytes, value: bytes) -> dict[bytes, bytes | None]:
    return {place: None}


def added(place: bytes, value: bytes) -> dict[bytes, bytes | None]:
    new = ReplicaEntry("new.example|a", 9, 9, "n1", 0, tombstone=False, value=b"new")
    return {key_bytes(new.key): entry_bytes(key_bytes(new.key), new)}


@pytest.mark.parametrize(
    ("change", "kinds"),
    [(changed_version, {"digest"}), (taken_away, {"digest", "count"}), (added, {"digest", "count", "index"})],
)
def test_an_entry_that_another_hand_sealed_contradicts_the_digests(
    folder: Path, change: Callable[[bytes, bytes], dict[bytes, bytes | None]], kinds: set[str]
) -> None:
    by_hand(folder, change)
    report = found(folder)
    key = "new.example|a" if change is added else CHANGED
    assert {p.kind for p in report.problems} == kinds
    assert {p.map for p in report.problems} == {map_of(key)}
    assert f"leaf {leaf_of(key)} " in next(p.text for p in report.problems if p.kind == "digest")


def test_a_value_sealed_again_under_its_version_shows_in_the_content_of_its_map_alone(folder: Path) -> None:
    """Nothing in the file can tell; two replicas side by side do."""
    before = found(folder).maps

    def change(place: bytes, value: bytes) -> dict[bytes, bytes | None]:
        entry = entry_of(place, value)
        return {place: entry_bytes(place, msgspec.structs.replace(entry, value=b"x" * len(entry.value)))}

    by_hand(folder, change)
    report = found(folder)
    assert report.sound
    assert [m.digest for m in report.maps] == [m.digest for m in before]
    assert [n for n, m in enumerate(report.maps) if m.content != before[n].content] == [map_of(CHANGED)]


def test_a_record_under_another_s_key_is_damage(folder: Path) -> None:
    by_hand(folder, lambda place, value: {place[:2] + b"other|a": value, bytes((200, 1)) + b"x|y": value})
    assert {(p.kind, p.key) for p in found(folder).problems} == {("damaged", "other|a"), ("structure", "")}


@pytest.mark.parametrize("share", [0, 2, 37, 90])
def test_d4_a_truncated_file_is_a_structure_fault(folder: Path, share: int) -> None:
    data = folder / "data.mdb"
    with data.open("r+b") as handle:
        handle.truncate(data.stat().st_size * share // 100)
    report = found(folder)
    assert not report.complete
    assert {p.kind for p in report.problems} == {"structure"}
    assert str(data) in report.problems[0].text


def test_d7_a_garbage_header_and_a_missing_file_are_structure_faults(folder: Path) -> None:
    data = folder / "data.mdb"
    with data.open("r+b") as handle:
        handle.write(b"\xa5" * 8_192)
    assert [p.kind for p in found(folder).problems] == ["structure"]
    data.unlink()
    report = found(folder)
    assert (report.complete, [p.kind for p in report.problems]) == (False, ["structure"])
    assert not data.exists(), "a check makes nothing"


def test_a_replica_is_checked_beside_the_node_that_writes_it(folder: Path) -> None:
    replica = opened(folder)
    contents = Contents(replica, 1_000)

    async def both() -> list[ReplicaReport]:
        checks = asyncio.create_task(check(folder)), asyncio.create_task(check(folder))
        number = 0
        while not all(task.done() for task in checks):
            number += 1
            for n in range(50):
                contents.apply(
                    ReplicaEntry(f"s{n}.example|a", 2, number, "n1", 0, tombstone=False, value=b"%d" % number)
                )
            commit(replica, contents)
            await asyncio.sleep(0)
        assert number > 3
        return [await task for task in checks]

    for report in asyncio.run(both()):
        assert (report.sound, report.checked) == (True, ENTRIES), report.problems
    replica.close()


def test_progress_is_said_while_it_reads(folder: Path) -> None:
    said: list[VerifyProgress] = []
    replica = opened(folder)
    contents = Contents(replica, 1_000)
    entries = limits.verify_progress_entries + 1
    for n in range(entries):
        contents.apply(ReplicaEntry(f"t{n}|a", 1, n + 1, "n1", 0, tombstone=False, value=b"x"))
    commit(replica, contents)
    replica.close()
    assert found(folder, said.append).sound
    assert said == [VerifyProgress(limits.verify_progress_entries, ENTRIES + entries, 0)]


@pytest.mark.parametrize(
    ("child", "words"), [("os.kill(os.getpid(), 9)", "ended by SIGKILL"), ("sys.exit(3)", "status 3")]
)
def test_a_reader_that_dies_is_a_structure_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, child: str, words: str
) -> None:
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\nimport os, sys\n"
        """print('{"type":"progress","checked":7,"total":9,"problems":2}', flush=True)\n"""
        f"{child}\n"
    )
    python.chmod(0o700)
    monkeypatch.setattr(replica_check.sys, "executable", str(python))
    report = found(tmp_path)
    assert (report.complete, report.checked, report.problems_found) == (False, 7, 3)
    assert words in report.problems[0].text
    assert isinstance(report.problems[0], Problem)


def test_a_check_that_is_given_up_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\nimport os, signal\n"
        """print('{"type":"progress","checked":%d,"total":9,"problems":2}' % os.getpid(), flush=True)\n"""
        "signal.pause()\n"
    )
    python.chmod(0o700)
    monkeypatch.setattr(replica_check.sys, "executable", str(python))
    pids: list[int] = []

    async def give_up() -> None:
        begun = asyncio.Event()

        def progress(line: VerifyProgress) -> None:
            pids.append(line.checked)
            begun.set()

        task = asyncio.create_task(check(tmp_path, progress))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], signal.SIGCONT)
