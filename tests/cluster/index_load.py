"""Writes to the ServeIndex of a real cluster over the admin port: rows to load, a steady rate of puts, removals.

The keys belong to sites that no auction knows, so that nobody else writes them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import msgspec
from cluster_world import Cluster, eventually

from node.admin.protocol import (
    CommitPlan,
    DumpRow,
    EntryVersion,
    LoadTaken,
    Operation,
    Plan,
    SendLoad,
    StageKeyRemoval,
    StageLoad,
)
from node.ads.view import CandidateView, ServeView
from node.core.hashing import map_of
from node.wire.codec import CODEC
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.profiles import find, load_file
from promovolvectl.local.access import client_of

SITES = 40
TTL_MS = 24 * 3_600_000
BATCHES_PER_S = 10
AT_ONCE = 3
REMOVAL_MS = 30_000
ROWS_PER_MESSAGE = 500


def key_of(number: int, name: str = "bulk") -> str:
    return f"{name}-{number % SITES}.example|slot-{number}"


def row_of(key: str) -> DumpRow:
    """A view of one candidate, about 1 KB when encoded."""
    now_ms = time.time_ns() // 1_000_000
    texts = [f"https://{what}.example/{key.replace('|', '/')}/{'x' * 280}" for what in ("asset", "landing")]
    candidate = CandidateView(
        *("creative-1", "campaign-1", "advertiser-1", *texts, "landing.example", "image/png"),
        *(300, 250, "IAB1", 1_000_000, now_ms),
    )
    view = ServeView((candidate,), now_ms, now_ms + TTL_MS)
    version = EntryVersion(epoch=1, hlc=now_ms << 16, origin="test")
    value = CODEC.encode(view)
    return DumpRow(
        key=key, map=f"serve-{map_of(key):02d}", version=version, expires_at=None, removed=False, value=value
    )


def write_rows(path: Path, keys: Iterable[str]) -> Path:
    """A file for `serveindex load`."""
    with path.open("wb") as file:
        for key in keys:
            file.write(msgspec.json.encode(row_of(key)) + b"\n")
    return path


@dataclass(frozen=True)
class Kept:
    """What became of a steady load: the puts that their owners wrote, in so many batches, and the time from the first
    one's beginning to the last one's end, or to when another would have been due."""

    written: int
    batches: int
    seconds: float

    @property
    def rate(self) -> float:
        """Puts a second."""
        return self.written / self.seconds


class IndexWriter:
    """Asks a cluster's nodes as its operator's command does, without starting a process each time."""

    def __init__(self, cluster: Cluster) -> None:
        config = Path(cluster.env["PROMOVOLVECTL_CONFIG"])
        self._loop = asyncio.new_event_loop()
        self._client = client_of(find(load_file(config), config, ""))
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._names = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.begin(self._end()).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def begin(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Runs it beside this thread; its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _end(self) -> None:
        self._client.close()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)

    async def put(self, keys: list[str]) -> int:
        """Loads a row for each key; how many their owners wrote. Raises CommandFailed."""
        self._names += 1
        name = f"writer-{id(self)}-{self._names}"
        for sent in range(0, len(keys), ROWS_PER_MESSAGE):  # a message has its limits
            rows = tuple(map(row_of, keys[sent : sent + ROWS_PER_MESSAGE]))
            await self._client.ask(SendLoad(load=name, offset=sent, rows=rows), LoadTaken)
        plan, _ = await self._client.ask(StageLoad(load=name, rows_count=len(keys)), Plan)
        done, _ = await self._client.ask(CommitPlan(id=plan.id, request_id=plan.id), Operation)
        return int(done.result["written_count"])

    async def remove(self, key: str) -> None:
        """Returns when a majority has it on disk; raises CommandFailed when that is not said."""
        plan, _ = await self._client.ask(StageKeyRemoval(key=key), Plan, REMOVAL_MS)
        done, _ = await self._client.ask(CommitPlan(id=plan.id, request_id=plan.id), Operation, REMOVAL_MS)
        assert done.result["removed"] is True

    async def put_steadily(self, keys: list[str], rate: int) -> Kept:
        """So many puts a second, in ten batches, or fewer where the cluster does not keep up."""
        size, begun = rate // BATCHES_PER_S, time.monotonic()
        slots = asyncio.Semaphore(AT_ONCE)

        async def batch(start: int) -> int:
            async with slots:
                return await self.put(keys[start : start + size])

        tasks: list[asyncio.Task[int]] = []
        async with asyncio.TaskGroup() as group:
            for number, start in enumerate(range(0, len(keys), size)):
                await asyncio.sleep(begun + number / BATCHES_PER_S - time.monotonic())
                tasks.append(group.create_task(batch(start)))
        took = max(time.monotonic() - begun, len(tasks) / BATCHES_PER_S)
        return Kept(sum(task.result() for task in tasks), len(tasks), took)


class Removing:
    """Removes keys of a list one after the other, from entering to leaving or until the nodes are gone: `acknowledged`
    are those whose removal was."""

    def __init__(self, writer: IndexWriter, keys: list[str]) -> None:
        self._writer = writer
        self._keys = keys
        self._stop = threading.Event()
        self._running: Any = None
        self.acknowledged: list[str] = []
        self.failed: list[str] = []

    def __enter__(self) -> Self:
        self._running = self._writer.begin(self._run())
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._running.result(2 * REMOVAL_MS / 1_000)

    def more(self, count: int) -> None:
        """Waits until so many more are acknowledged."""
        wanted = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged), lambda n: n >= wanted, 60, f"{count} more removals")

    def cut_off(self) -> None:
        """Waits until one has failed, since the nodes are gone."""
        eventually(lambda: self.failed, bool, 60, "a removal that was cut off")

    async def _run(self) -> None:
        for key in self._keys:
            if self._stop.is_set():
                return
            try:
                await self._writer.remove(key)
            except CommandFailed as failed:
                self.failed.append(f"{key}: {failed}")
                return
            self.acknowledged.append(key)


def scraped(fetch: Callable[[], str], name: str) -> dict[str, float]:
    """The samples of one metric, by their labels as they are written."""
    found = {}
    for line in fetch().splitlines():
        if line.startswith(name):
            labels, _, value = line.removeprefix(name).rpartition(" ")
            found[labels] = float(value)
    return found
