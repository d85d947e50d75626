"""What goes on beside a replica's commits: the scrub, the quarantine, readers of other processes, and their faults."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import lmdb
import pytest
from replica_process import replica_process

from node.actors.actor import Failed, Failure
from node.core import limits
from node.core.clock import MS, ManualClock
from node.core.errors import OperatingError
from node.core.hashing import LEAF_COUNT, MAP_COUNT, leaf_of, map_of
from node.gossip import replica_io as io
from node.gossip.contents import Contents
from node.gossip.replicator import Replicator
from node.store.replica_check import check
from node.store.replica_codec import entry_bytes, key_bytes
from node.store.replica_health import ReplicaHealth
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_open import open_replica
from node.store.replica_port import ReplicaBatch, ReplicaEntry
from node.store.replica_report import Problem, ReplicaReport
from node.wiring import replica_care
from node.wiring.replica_care import ReplicaCare, warnings

KEEP_MS = 60_000
READER = """
import lmdb, sys
env = lmdb.open(sys.argv[1], readonly=True, max_dbs=8)
reads = [env.begin() for _ in range(int(sys.argv[2]))]
print("reads", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "replica"


@pytest.fixture
def open_(folder: Path) -> Iterator[Callable[[], LmdbReplica]]:
    made: list[LmdbReplica] = []

    def open_again() -> LmdbReplica:
        for replica in made:
            replica.close()
        made.append(
            open_replica(folder, ManualClock(), cluster_id="c-1", node="n1", tenure=1, map_bytes_max=1 << 26)[0]
        )
        return made[-1]

    yield open_again
    for replica in made:
        replica.close()


def entry(number: int, hlc: int = 1) -> ReplicaEntry:
    return ReplicaEntry(f"s{number}|a", 1, hlc, "n1", 0, tombstone=False, value=b"body %d " % number * 100)


def commit(replica: LmdbReplica, contents: Contents) -> None:
    while contents.uncommitted():
        replica.commit(contents.take_batch(1))
        contents.commit_ended(True)


def filled(replica: LmdbReplica, count: int = 300) -> Contents:
    contents = Contents(replica, KEEP_MS)
    for number in range(count):
        contents.apply(entry(number))
    commit(replica, contents)
    return contents


def flip(folder: Path, number: int) -> None:
    """One bit of an entry's body, wherever in the file it stands; the file stays where it is mapped."""
    body = b"body %d " % number * 2
    data = (folder / "data.mdb").read_bytes()
    with (folder / "data.mdb").open("r+b") as file:
        at = data.find(body)
        while at >= 0:
            file.seek(at)
            file.write(body.replace(b"y", b"i", 1))
            at = data.find(body, at + 1)


def whole_round(replica: LmdbReplica) -> None:
    for _ in range(MAP_COUNT * LEAF_COUNT):
        replica.scrub()


def test_d6_the_scrub_finds_a_flipped_bit_that_nobody_reads(folder: Path, open_: Callable[[], LmdbReplica]) -> None:
    replica = open_()
    contents = filled(replica)
    flip(folder, 42)
    assert replica.damaged == frozenset()
    whole_round(replica)
    assert replica.damaged == {"s42|a"}
    assert replica.take_suspects() == {(map_of("s42|a"), leaf_of("s42|a"))}
    assert replica.take_suspects() == frozenset(), "each is said once"
    health = replica.health()
    assert (health.quarantined, health.scrub_rounds, health.scrub_checked, health.scrub_leaves_wrong) == (1, 1, 300, 1)
    # What the replicator does with a leaf that is said: its digest misses the entry from then on: peers send it.
    contents.leaf_entries((map_of("s42|a"), leaf_of("s42|a")))
    commit(replica, contents)
    assert asyncio.run(check(folder)).sound
    assert not replica.counts()[map_of("s42|a")].sure, "it says itself that it is to be counted anew"
    contents.recount(None)
    commit(replica, contents)
    assert asyncio.run(check(folder)).sound
    contents.apply(entry(42, hlc=2))
    commit(replica, contents)
    assert asyncio.run(check(folder)).sound
    (known,) = replica.quarantined()
    assert (known.key, known.mended_ms > 0, replica.damaged) == ("s42|a", True, frozenset())


def test_the_scrub_misses_what_was_taken_away_by_hand(folder: Path, open_: Callable[[], LmdbReplica]) -> None:
    replica = open_()
    filled(replica)
    replica.close()
    place = key_bytes("s7|a")
    with lmdb.open(str(folder), max_dbs=8, map_size=1 << 26) as env, env.begin(write=True) as txn:
        assert txn.delete(place, db=env.open_db(b"entries", txn=txn))
    replica = open_()
    whole_round(replica)
    assert replica.damaged == frozenset()
    assert replica.take_suspects() == {(place[0], place[1])}


def test_what_is_in_quarantine_stays_in_the_file_for_whoever_looks_and_is_met_no_more(
    folder: Path, open_: Callable[[], LmdbReplica]
) -> None:
    replica = open_()
    contents = filled(replica)
    flip(folder, 42)
    place = (map_of("s42|a"), leaf_of("s42|a"))
    assert replica.get(*place, "s42|a") is None
    assert "s42|a" in replica.keys_of_site("s42")
    contents.leaf_entries(place)
    commit(replica, contents)
    assert list(replica.keys_of_site("s42")) == []
    met = replica.damaged_reads
    assert replica.get(*place, "s42|a") is None
    assert replica.damaged_reads == met, "it is not there any more"
    replica.close()
    with lmdb.open(str(folder), max_dbs=8, map_size=1 << 26) as env, env.begin() as txn:
        kept = txn.get(key_bytes("s42|a"), db=env.open_db(b"quarantine", txn=txn, create=False))
    assert kept is not None
    assert b"bodi 42 " in kept
    assert int.from_bytes(kept[:8], "big") == ManualClock().wall_ms()


def test_a_record_under_another_s_key_goes_into_quarantine_too(folder: Path, open_: Callable[[], LmdbReplica]) -> None:
    """Nobody would ever write that key: only the commit of its leaf can take it away."""
    replica = open_()
    filled(replica)
    replica.close()
    place = key_bytes("s7|a")
    with lmdb.open(str(folder), max_dbs=8, map_size=1 << 26) as env, env.begin(write=True) as txn:
        entries = env.open_db(b"entries", txn=txn)
        stray = place[:2] + b"stray|a"
        txn.put(stray, entry_bytes(stray, entry(7)), db=entries)
    replica = open_()
    contents = Contents(replica, KEEP_MS)
    whole_round(replica)
    assert replica.damaged == {"stray|a"}
    contents.leaf_entries((place[0], place[1]))
    contents.apply(entry(7, hlc=2))
    contents.recount(None)
    commit(replica, contents)
    assert asyncio.run(check(folder)).sound


def test_d6_an_entry_damaged_under_a_running_node_is_out_of_use_and_said_until_it_is_written_again(
    folder: Path,
) -> None:
    with replica_process(folder) as node:
        for number in range(50):
            node.put(f"s{number}|a", f"body {number} " * 100)
        node.until("committed")
        flip(folder, 42)
        assert node.get("s42|a") is None
        assert "s42|a" in node.until("fault", "E-REPLICA-DAMAGED")
        assert node.ask("health")["quarantined"] == 1
        node.until("committed")
        node.put("s42|a", "again")
        node.until("committed")
        node.until("no-fault", "E-REPLICA-DAMAGED")
        assert (node.get("s42|a"), node.get("s41|a")) == ("again", "body 41 " * 100)
        node.kill()
    assert {problem.kind for problem in asyncio.run(check(folder)).problems} <= {"count"}


@pytest.fixture
def reader(folder: Path) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    children: list[subprocess.Popen[str]] = []

    def start(reads: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", READER, str(folder), str(reads)]
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert children[-1].stdout is not None
        children[-1].stdout.readline()
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()


def test_d13_a_read_that_another_process_keeps_open_is_named_and_its_slot_cleared_once_it_is_killed(
    open_: Callable[[], LmdbReplica], reader: Callable[[int], subprocess.Popen[str]]
) -> None:
    replica = open_()
    contents = filled(replica, 20)
    child = reader(1)
    for hlc in range(2, limits.replica_reader_commits_max + 4):
        contents.apply(entry(1, hlc))
        commit(replica, contents)
    health = replica.health()
    assert health.oldest_reader_pid == child.pid
    assert health.oldest_reader_commits > limits.replica_reader_commits_max
    assert f"process {child.pid} " in warnings(health)["E-REPLICA-READER"]
    child.kill()
    child.wait()
    replica.scrub()
    health = replica.health()
    assert (health.oldest_reader_pid, warnings(health)["E-REPLICA-READER"]) == (0, "")
    grown = health.used_bytes
    for hlc in range(1_000, 1_040):
        contents.apply(entry(1, hlc))
        commit(replica, contents)
    assert replica.health().used_bytes == grown, "what the read had kept is used again"


def test_d13_slots_of_killed_processes_are_cleared_at_the_open(
    open_: Callable[[], LmdbReplica], reader: Callable[[int], subprocess.Popen[str]]
) -> None:
    replica = open_()
    filled(replica, 20)
    child = reader(5)
    assert replica.health().oldest_reader_pid == child.pid
    child.kill()
    child.wait()
    assert open_().health().oldest_reader_pid == 0


def test_d14_other_processes_that_take_every_slot_don_t_keep_the_node_from_reading(
    open_: Callable[[], LmdbReplica], reader: Callable[[int], subprocess.Popen[str]]
) -> None:
    """The node keeps the slot of its last read; it is the others that are refused."""
    replica = open_()
    contents = filled(replica, 20)
    free = limits.replica_readers_max - replica.health().readers
    reader(free)
    assert replica.health().readers == limits.replica_readers_max
    one_more = subprocess.run(
        [sys.executable, "-c", READER, str(replica.path), "1"], input="", capture_output=True, text=True, check=False
    )
    assert "MDB_READERS_FULL" in one_more.stderr
    contents.apply(entry(1, 2))
    commit(replica, contents)
    replica.scrub()
    assert replica.get(map_of("s1|a"), leaf_of("s1|a"), "s1|a") == entry(1, 2)
    assert list(replica.due(1 << 60, 9)) == list(replica.tombstones(9)) == []
    assert replica.reads_failed == 0


def test_the_file_s_numbers_are_whole_and_named_for_an_operator(open_: Callable[[], LmdbReplica]) -> None:
    replica = open_()
    filled(replica)
    for _ in range(MAP_COUNT * LEAF_COUNT // 2):
        replica.scrub()
    found = ReplicaCare(replica, lambda *call: False, ManualClock(), lambda reason: None).counters()
    assert all(isinstance(value, int) for value in found.values())
    assert 0 < found["replica_file.live_bytes"] <= found["replica_file.used_bytes"] < found["replica_file.limit_bytes"]
    assert (found["replica_file.scrub_progress_percent"], found["replica_file.scrub_rounds"]) == (50, 0)
    assert (found["replica_file.quarantined"], found["replica_file.mended"]) == (0, 0)


def test_d3_a_file_that_fills_is_said_at_four_fifths_of_its_limit() -> None:
    below = ReplicaHealth(live_bytes=799, limit_bytes=1_000)
    above = ReplicaHealth(live_bytes=800, limit_bytes=1_000)
    assert warnings(below)["E-REPLICA-FILLING"] == ""
    assert "800 of at most 1000 bytes (80 %)" in warnings(above)["E-REPLICA-FILLING"]
    assert warnings(ReplicaHealth()) == {"E-REPLICA-FILLING": "", "E-REPLICA-READER": ""}


def test_d3_the_file_takes_no_more_of_the_disk_than_what_was_written(
    folder: Path, open_: Callable[[], LmdbReplica]
) -> None:
    """The map has its greatest size from the beginning, so nothing has to grow under a reader; the file has not."""
    replica = open_()
    filled(replica, 20)
    health = replica.health()
    assert health.limit_bytes == 1 << 26
    assert health.live_bytes <= health.used_bytes == (folder / "data.mdb").stat().st_size < 1 << 20


class Alone:
    """A replicator over a file, without peers, whose commits run on the spot; faults by code."""

    def __init__(self, replica: LmdbReplica) -> None:
        self._replica = replica
        self.machine = Replicator("n1", replica, io.ReplicationSettings(), random.Random(1))
        self.faults: dict[str, str] = {}
        self._now_ns = 0
        self._carry_out(self.machine.step(io.PeersChanged(frozenset()), 0, 0))

    def put(self, key: str, value: bytes) -> None:
        self._carry_out(self.machine.put(key, value, 1, 0, self._now_ns, 0)[1])

    def remove(self, key: str) -> None:
        self._carry_out(self.machine.remove(key, 1, self._now_ns, 0)[1])

    def run(self, ticks: int) -> None:
        for _ in range(ticks):
            self._now_ns = max(self._now_ns + MS, self.machine.next_wake_ns())
            self._carry_out(self.machine.step(io.Tick(), self._now_ns, 0))

    def _carry_out(self, effects: Iterable[io.Effect]) -> None:
        for effect in effects:
            match effect:
                case io.Commit(token, batch):
                    try:
                        self._replica.commit(batch)
                        ended = io.Committed(token, ok=True)
                    except OperatingError as error:
                        ended = io.Committed(token, ok=False, error=f"{error.code}: {error.message}")
                    self._carry_out(self.machine.step(ended, self._now_ns, 0))
                case io.Fault(code, _, text):
                    self.faults[code] = text
                case io.FaultCleared(code, _):
                    self.faults.pop(code, None)


def test_d3_a_file_at_its_limit_degrades_the_replica_and_takes_all_again_once_there_is_room(folder: Path) -> None:
    """Removals go in although the puts beside them don't fit, and make the room for them."""
    replica, _ = open_replica(folder, ManualClock(), cluster_id="c-1", node="n1", tenure=1, map_bytes_max=1 << 20)
    node = Alone(replica)
    keys = [f"s{n}|a" for n in range(20)]
    for key in keys[:14]:
        node.put(key, bytes(50_000))
        node.run(3)
    assert node.faults == {}
    for key in keys[14:]:
        node.put(key, bytes(50_000))
    node.run(20)
    assert "E-REPLICA-FULL" in node.faults["E-REPLICA-DEGRADED"]
    assert str(folder) in node.faults["E-REPLICA-DEGRADED"]
    assert all(node.machine.get(key, 0) for key in keys), "what does not fit is served from memory"
    for key in keys[:10]:
        node.remove(key)
    node.run(200)
    assert (node.faults, node.machine.uncommitted()) == ({}, 0)
    replica.close()
    report = asyncio.run(check(folder))
    assert (report.sound, report.checked) == (True, len(keys)), report.problems


def test_d10_a_file_that_its_check_finds_broken_is_given_up_and_set_aside_at_the_next_start(
    open_: Callable[[], LmdbReplica], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written to it any more; the process ends, and what is left of the file is kept."""
    replica = open_()
    filled(replica)
    lost: list[str] = []
    ended: list[bool] = []

    async def broken(path: Path) -> ReplicaReport:
        return ReplicaReport(str(path), complete=False, problems=(Problem("structure", "page 7 is not there"),))

    def refuse(name: str, fn: object, args: object, done: Callable[[object], None]) -> bool:
        replica.poisoned = "Input/output error"
        done(Failed(Failure.FAILED, "Input/output error"))
        return True

    async def commit_once() -> None:
        care = ReplicaCare(replica, refuse, ManualClock(), lost.append)
        care.commit(ReplicaBatch((), (), {}, 0, {}), lambda ok, error: ended.append(ok))
        assert care.busy
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            await task

    monkeypatch.setattr(replica_care, "check", broken)
    asyncio.run(commit_once())
    assert ended == [], "the replicator is not told to try again"
    assert "page 7 is not there" in lost[0]
    replica.close()
    again, opening = open_replica(
        replica.path, ManualClock(), cluster_id="c-1", node="n1", tenure=1, map_bytes_max=1 << 26
    )
    again.close()
    assert (opening.how, opening.reason) == ("set_aside", "page 7 is not there")
    assert Path(opening.path).exists()
    assert open_().sites() == [], "and only once"
