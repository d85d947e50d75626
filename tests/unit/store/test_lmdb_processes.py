"""The embedded store between real processes: shared, stopped, forked and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from node.core.clock import SystemClock
from node.store import datafile, port
from node.store.lmdb import LmdbStore

PRELUDE = """
import os, sys
from pathlib import Path
from node.core.clock import SystemClock
from node.store import port
from node.store.lmdb import LmdbStore
store = LmdbStore(Path(sys.argv[1]), SystemClock(), map_bytes=1 << 20)
"""
Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    children: list[subprocess.Popen[str]] = []

    def start_(script: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PRELUDE + textwrap.dedent(script), str(tmp_path / "store")]
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return children[-1]

    yield start_
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """Shard 7 is n1's under epoch 1."""
    made = LmdbStore(tmp_path / "store", SystemClock(), map_bytes=1 << 20)
    row = port.ShardRow(7, "n1", 1, 1, port.ShardState.RUNNING)
    made.apply([port.AcquireLease("c", "n1@1", 60_000), port.WritePlacement("c", "n1@1", 1, 0, (row,))])
    yield made
    made.close()


def eventually(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline, what
        threading.Event().wait(0.002)


COUNT_UP = """
done = 0
while done < 60:
    found, incarnation = store.apply([port.ReadState("site", "x"), port.NextIncarnation("n")])
    revision = found.revision if isinstance(found, port.Record) else 0
    body = b"%d" % (int(found.body) + 1 if revision else 1)
    answer = store.apply([port.WriteState("site", "x", 7, 1, revision, body, (port.Fact("t.f", body),))])[0]
    assert isinstance(answer, (port.Written, port.Conflict)), answer
    done += isinstance(answer, port.Written)
    print(incarnation.number, flush=True)
"""


def test_two_writers_of_one_file_lose_no_update_and_share_no_number(store: LmdbStore, start: Start) -> None:
    outputs = [child.communicate()[0] for child in (start(COUNT_UP), start(COUNT_UP))]
    numbers = [int(number) for output in outputs for number in output.split()]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
    record, page = store.apply([port.ReadState("site", "x"), port.ReadFacts(limit=1_000)])
    assert record == port.Record("site", "x", 120, 1, b"120")
    assert isinstance(page, port.FactPage)
    assert [(fact.offset, int(fact.body)) for fact in page.facts] == [(n, n) for n in range(1, 121)]


def test_d16_a_file_that_another_process_has_grown_is_read_on(store: LmdbStore, start: Start) -> None:
    child = start("""
        for n in range(20):
            print(store.apply([port.WriteState("site", f"big{n}", 7, 1, 0, bytes(1_000_000))]))
    """)
    assert child.communicate()[0].count("Written(revision=1") == 20
    found, written = store.apply([port.ReadState("site", "big19"), port.WriteState("site", "x", 7, 1, 0, b"")])
    assert found == port.Record("site", "big19", 1, 1, bytes(1_000_000))
    assert written == port.Written(1)


def test_d16_a_file_that_another_process_grows_during_the_open_is_no_damage(
    tmp_path: Path, store: LmdbStore, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()

    def grow_meanwhile(*_: object) -> str:
        child = start("""
            for n in range(20):
                store.apply([port.WriteState("site", f"big{n}", 7, 1, 0, bytes(1_000_000))])
        """)
        child.communicate()
        return ""

    monkeypatch.setattr(datafile, "truncation", grow_meanwhile)
    opened = LmdbStore(tmp_path / "store", SystemClock(), map_bytes=1 << 20)
    assert opened.apply([port.ReadState("site", "big19")]) == [port.Record("site", "big19", 1, 1, bytes(1_000_000))]
    opened.close()


def test_many_processes_make_one_new_store(start: Start) -> None:
    children = [start("print(store.apply([port.NextIncarnation('n')])[0].number)") for _ in range(6)]
    assert sorted(int(child.communicate()[0]) for child in children) == [1, 2, 3, 4, 5, 6]


def test_a_stopped_writer_does_not_stop_an_open_or_a_read(store: LmdbStore, start: Start) -> None:
    store.apply([port.WriteState("site", "x", 7, 1, 0, b"b")])
    holder = start("""
        txn = store._env.begin(write=True)
        print("inside", flush=True)
        sys.stdin.read()
    """)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "inside\n"
    holder.send_signal(signal.SIGSTOP)
    reader = start("print(store.apply([port.ReadState('site', 'x')])[0].body)")
    assert reader.communicate(timeout=20)[0] == "b'b'\n"


def test_a_writer_that_waits_for_a_stopped_process_can_be_seen_waiting(store: LmdbStore, start: Start) -> None:
    child = start("""
        txn = store._env.begin(write=True)
        txn.put(b"Nn", b"uncommitted")
        print("inside", flush=True)
        sys.stdin.read()
    """)
    assert child.stdout is not None
    assert child.stdout.readline() == "inside\n"
    child.send_signal(signal.SIGSTOP)
    answers: list[port.Answer] = []
    assert store.waiting_since_ns is None
    waiter = threading.Thread(target=lambda: answers.extend(store.apply([port.NextIncarnation("n")])))
    before_ns = time.monotonic_ns()
    waiter.start()
    eventually(lambda: store.waiting_since_ns is not None, "the writer is not seen waiting")
    # The lock is waited for in the thread alone: this one goes on, and sees the wait grow.
    eventually(lambda: time.monotonic_ns() - before_ns > 50_000_000, "time stands still")
    assert waiter.is_alive()
    assert before_ns <= (store.waiting_since_ns or 0) <= time.monotonic_ns()
    child.kill()
    waiter.join(20)
    assert answers == [port.Incarnation(1)]
    assert store.waiting_since_ns is None


def test_a_forked_child_may_not_use_its_parent_s_store(start: Start) -> None:
    child = start("""
        from node.core.errors import InvariantError
        pid = os.fork()
        if pid == 0:
            store.close()
            try:
                store.apply([port.NextIncarnation("n")])
            except InvariantError as error:
                print(error, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        print(store.apply([port.NextIncarnation("n")]), flush=True)
    """)
    said, worked = child.communicate()[0].splitlines()
    assert said.startswith("store-fork")
    assert worked == "[Incarnation(number=1)]"


WRITE_FOR_EVER = """
revision = 0
while True:
    body = b"%d" % (revision + 1)
    fact = port.Fact("t.f", body)
    (answer,) = store.apply([port.WriteState("site", "x", 7, 1, revision, body, (fact,))])
    revision = answer.revision
    os.write(1, b"%d\\n" % revision)
"""


def test_what_was_acknowledged_is_there_after_kill_9(store: LmdbStore, start: Start) -> None:
    store.apply([port.Initialise(port.Identity("c", "n", 256, 32, "x"))])
    child = start(WRITE_FOR_EVER)
    assert child.stdout is not None
    for _ in range(80):
        child.stdout.readline()
    os.kill(child.pid, signal.SIGKILL)
    acknowledged = int((child.stdout.read().split() or ["80"])[-1])
    child.wait()
    assert acknowledged >= 80
    record, page = store.apply([port.ReadState("site", "x"), port.ReadFacts(limit=5_000)])
    assert isinstance(record, port.Record)
    assert isinstance(page, port.FactPage)
    # The last write may have been made without its acknowledgement having been read.
    assert record.revision in (acknowledged, acknowledged + 1)
    assert int(record.body) == record.revision
    assert [int(fact.body) for fact in page.facts] == list(range(1, record.revision + 1))
    assert store.apply([port.NextIncarnation("n")]) == [port.Incarnation(1)]
