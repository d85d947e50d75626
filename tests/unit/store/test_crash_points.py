"""P2 and P9: a process killed or stopped at each step of a durable write, on both stores, seen from another process.

The child writes one entity again and again through the driver and says what was acknowledged; the fault is armed as in
production, by the environment.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgres_clock import new_schema

from node.actors.store_driver import StoreDriver
from node.core.clock import SystemClock
from node.core.fault_signals import FAULT_AT
from node.core.settings import StoreSection
from node.store import port
from node.store.opening import open_store
from scripts.postgres_server import PostgresServer

CHILD = """
import asyncio, os, sys
from pathlib import Path
from node.actors.runtime import outcome_of
from node.actors.store_driver import StoreDriver
from node.core.clock import SystemClock
from node.core.fault_signals import arm_from_environment
from node.core.settings import StoreSection
from node.store import port
from node.store.opening import open_store

def said(revision):
    os.write(1, b"%d\\n" % revision)

async def main():
    store, lane_of = open_store(StoreSection.model_validate_json(sys.argv[1]), "child", SystemClock())
    driver = StoreDriver(store, SystemClock(), lane_of)
    arm_from_environment()
    revision = int(sys.argv[2])
    while True:
        body = b"%d" % (revision + 1)
        request = port.WriteState("site", "x", 7, 1, revision, body, (port.Fact("t.f", body),))
        acknowledged = asyncio.get_running_loop().create_future()

        def done(answer):
            assert isinstance(answer, port.Written), answer
            said(answer.revision)
            acknowledged.set_result(answer.revision)

        driver.submit(request, done)
        revision = await acknowledged

asyncio.run(main())
"""
BEFORE_COMMIT = ("store.before_begin", "store.in_transaction", "store.before_commit")
POINTS = (*BEFORE_COMMIT, "store.after_commit", "store.after_answer")
NTH = 4
ROW = port.ShardRow(7, "n1", 1, 1, port.ShardState.RUNNING)
Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture(params=["lmdb", "postgres"])
def section(request: pytest.FixtureRequest, tmp_path: Path) -> StoreSection:
    if request.param == "lmdb":
        return StoreSection(path=tmp_path / "store")
    server: PostgresServer = request.getfixturevalue("postgres")
    secret = tmp_path / "dsn"
    secret.write_text(server.dsn)
    secret.chmod(0o600)
    return StoreSection(kind="postgres", dsn_file=secret, schema_name=new_schema(), deadline_ms=20_000)


@pytest.fixture
def store(section: StoreSection) -> Iterator[port.StateStore]:
    """Shard 7 is n1's under epoch 1."""
    made, _ = open_store(section, "parent", SystemClock())
    made.apply([port.AcquireLease("c", "n1@1", 60_000)])
    assert made.apply([port.WritePlacement("c", "n1@1", 1, 0, (ROW,))]) == [port.PlacementWritten(1)]
    yield made
    made.close()


@pytest.fixture
def start(section: StoreSection) -> Iterator[Start]:
    children: list[subprocess.Popen[str]] = []

    def start_(fault: str, revision: int = 0) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", CHILD, section.model_dump_json(exclude_defaults=True), str(revision)]
        environment = {**os.environ, FAULT_AT: fault}
        children.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
        return children[-1]

    yield start_
    for child in children:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("point", POINTS)
def test_p2_killed_at_each_step_of_a_write(store: port.StateStore, start: Start, point: str) -> None:
    child = start(f"{point}:kill:{NTH}")
    acknowledged = [int(line) for line in child.communicate(timeout=60)[0].split()]
    assert child.returncode == -signal.SIGKILL
    assert len(acknowledged) == (NTH if point == "store.after_answer" else NTH - 1)
    durable = NTH - 1 if point in BEFORE_COMMIT else NTH
    record, page = store.apply([port.ReadState("site", "x"), port.ReadFacts()])
    assert record == port.Record("site", "x", durable, 1, b"%d" % durable)
    assert isinstance(page, port.FactPage)
    assert [fact.body for fact in page.facts] == [b"%d" % number for number in range(1, durable + 1)]
    again = port.WriteState("site", "x", 7, 1, acknowledged[-1], b"again", (port.Fact("t.f", b"again"),))
    expected = port.Conflict(durable) if durable > acknowledged[-1] else port.Written(durable + 1, durable + 1)
    assert store.apply([again]) == [expected], "what was done is not done twice"


@pytest.mark.parametrize("point", ["store.in_transaction", "store.before_commit"])
def test_p9_a_process_stopped_inside_a_transaction_is_named_and_does_not_block_for_ever(
    section: StoreSection, store: port.StateStore, start: Start, point: str
) -> None:
    child = start(f"{point}:stop:{NTH}")
    _stopped(child.pid)
    reads = store.apply([port.ReadState("site", "x")])
    assert reads == [port.Record("site", "x", NTH - 1, 1, b"%d" % (NTH - 1))], "reads go on"

    async def write() -> tuple[bool, port.Answer]:
        driver = StoreDriver(store, SystemClock())
        answered: asyncio.Future[port.Answer] = asyncio.get_running_loop().create_future()
        request = port.WriteState("site", "x", 7, 1, NTH - 1, b"other", (port.Fact("t.f", b"other"),))
        driver.submit(request, answered.set_result)
        named = False
        deadline = time.monotonic() + 30
        while not named and not answered.done():
            assert time.monotonic() < deadline, "the wait is not named"
            named = driver.blocked_since_ns is not None
            await asyncio.sleep(0.01)
        if section.kind == "lmdb":
            child.kill()  # the operator's part; PostgreSQL ends the transaction itself
        return named, await answered

    named, answer = asyncio.run(write())
    assert answer == port.Written(NTH, NTH)
    if section.kind == "lmdb":  # PostgreSQL has counted since the child stopped, and may be the first of the two
        assert named
    page = store.apply([port.ReadFacts(after=NTH - 1)])[0]
    assert isinstance(page, port.FactPage)
    assert [(fact.offset, fact.body) for fact in page.facts] == [(NTH, b"other")], "nothing of the stopped one is there"


def _stopped(pid: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, "the child does not stop"
        time.sleep(0.01)
