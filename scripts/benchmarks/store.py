"""Durable writes of 1 and of 100 entities at once, on the embedded store and on PostgreSQL, through the driver.

Each entity waits for its write (1 KB of state, one fact) before the next, as cells do; what waits together goes in one
transaction. Beside them, in the same run: a bare write and fdatasync of 4 KB, and SQLite committing the same rows.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from node.actors.runtime import outcome_of
from node.actors.store_driver import StoreDriver
from node.core.clock import SystemClock
from node.store import port
from node.store.lanes import lane_of, one_lane
from node.store.lmdb import LmdbStore
from node.store.postgres import PostgresOptions, PostgresStore
from scripts.benchmarks.measure import percentile, spread
from scripts.postgres_server import PostgresServer

RUN_S = 2.0
BODY = bytes(1_000)
FACT = port.Fact("bench.fact", bytes(100))
SHARD = 7
ENTITIES = (1, 100)

Sample = tuple[float, list[float]]  # writes a second, and each write's milliseconds


def measure(runs: int) -> dict[str, Any]:
    server = PostgresServer(fsync=True)
    samples: dict[str, list[Sample]] = {}
    try:
        server.start()
        for number in range(runs):
            with tempfile.TemporaryDirectory() as folder:
                for name, work in _subjects(Path(folder), server, number).items():
                    samples.setdefault(name, []).append(work())
    finally:
        server.close()
    report: dict[str, Any] = {}
    for name, found in samples.items():
        report[name] = {
            "writes": spread([rate for rate, _ in found], "1/s"),
            "p50": spread([percentile(each, 0.5) for _, each in found], "ms"),
            "p99": spread([percentile(each, 0.99) for _, each in found], "ms"),
        }
    for name in ("lmdb", "postgres"):
        one, many = (report[f"{name}, {count} entities"]["writes"]["median"] for count in ENTITIES)
        report[f"{name}, gain of 100 entities"] = round(many / one, 2)
    return report


def _subjects(folder: Path, server: PostgresServer, number: int) -> dict[str, Callable[[], Sample]]:
    subjects: dict[str, Callable[[], Sample]] = {
        "floor: write and fdatasync": lambda: _floor(folder / "floor"),
        "peer: SQLite, a row a commit": lambda: _sqlite(folder / "peer.db"),
    }
    for count in ENTITIES:
        subjects[f"lmdb, {count} entities"] = lambda count=count: asyncio.run(  # type: ignore[misc]
            _entities(LmdbStore(folder / f"lmdb-{count}", SystemClock()), count, lanes=False)
        )
        options = PostgresOptions(dsn=server.dsn, schema=f"bench_{number}_{count}")
        subjects[f"postgres, {count} entities"] = lambda count=count, options=options: asyncio.run(  # type: ignore[misc]
            _entities(PostgresStore(options, SystemClock()), count, lanes=True)
        )
    return subjects


async def _entities(store: port.StateStore, count: int, *, lanes: bool) -> Sample:
    row = port.ShardRow(SHARD, "n", 1, 1, port.ShardState.RUNNING)
    store.apply([port.AcquireLease("c", "n@1", 600_000), port.WritePlacement("c", "n@1", 1, 0, (row,))])
    driver = StoreDriver(store, SystemClock(), lane_of if lanes else one_lane)
    took: list[float] = []
    ends = time.perf_counter() + RUN_S

    async def entity(name: str) -> None:
        revision = 0
        while time.perf_counter() < ends:
            request = port.WriteState("bench", name, SHARD, 1, revision, BODY, (FACT,))
            begun = time.perf_counter()
            answer = await outcome_of(lambda done: driver.submit(request, done))  # noqa: B023
            took.append((time.perf_counter() - begun) * 1_000)
            assert isinstance(answer, port.Written), answer
            revision = answer.revision

    begun = time.perf_counter()
    await asyncio.gather(*(entity(f"e{number}") for number in range(count)))
    rate = len(took) / (time.perf_counter() - begun)
    await driver.close()
    return rate, took


def _repeat(work: Callable[[], object]) -> Sample:
    took: list[float] = []
    begun = time.perf_counter()
    while time.perf_counter() - begun < RUN_S:
        started = time.perf_counter()
        work()
        took.append((time.perf_counter() - started) * 1_000)
    return len(took) / (time.perf_counter() - begun), took


def _floor(path: Path) -> Sample:
    handle = os.open(path, os.O_RDWR | os.O_CREAT)
    block = bytes(4_096)

    def once() -> None:
        os.pwrite(handle, block, 0)
        os.fdatasync(handle)

    try:
        return _repeat(once)
    finally:
        os.close(handle)


def _sqlite(path: Path) -> Sample:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("CREATE TABLE states (id TEXT PRIMARY KEY, body BLOB)")
        connection.execute("CREATE TABLE facts (n INTEGER PRIMARY KEY AUTOINCREMENT, body BLOB)")

        def once() -> None:
            connection.execute("BEGIN")
            connection.execute("INSERT OR REPLACE INTO states VALUES ('e', ?)", (BODY,))
            connection.execute("INSERT INTO facts (body) VALUES (?)", (FACT.body,))
            connection.execute("COMMIT")

        return _repeat(once)
    finally:
        connection.close()
