"""S16: the database is crashed and started again under load; nobody hangs, nothing acknowledged is lost or doubled.

The bug report (MagicStack/asyncpg#1307) was about tasks that waited for ever after a fail-over. PROMOVOLVE_TEST_SCALE
times three rounds; at 10 each is 20 s long, the row's ten minutes, and its bounds hold: whoever asks has an answer by
its deadline, and 5 s after a start as much is written as before.
"""

from __future__ import annotations

import asyncio
import os
import time

from postgres_clock import new_schema

from node.actors.runtime import outcome_of
from node.actors.store_driver import StoreDriver
from node.core.clock import SystemClock
from node.store import port
from node.store.lanes import lane_of
from node.store.postgres import PostgresOptions, PostgresStore
from scripts.postgres_server import PostgresServer

ROUNDS = 3 * int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
ENTITIES = 20
DEADLINE_MS = 2_000
WHOLE = ROUNDS >= 30
MEASURED_S = 7.0
# An operation waits for the batch before its own, too; the rest is what a busy machine adds.
LONGEST_S = 2 * DEADLINE_MS / 1_000 + (1 if WHOLE else 20)
BACK_S = 5.0
BACK_RATIO = 0.7  # of what was written in as long before the crash
ROW = port.ShardRow(7, "n1", 1, 1, port.ShardState.RUNNING)


class Entity:
    """Writes its counter again and again; an indefinite answer is resolved by reading, as a cell's reload does."""

    def __init__(self, name: str, driver: StoreDriver) -> None:
        self.name = name
        self._driver = driver
        self.revision = 0
        self.acknowledged = 0
        self.longest_s = 0.0

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            body = b"%d" % (self.revision + 1)
            answer = await self._ask(
                port.WriteState("e", self.name, 7, 1, self.revision, body, (port.Fact("t.f", body),))
            )
            match answer:
                case port.Written(revision=revision):
                    self.revision = self.acknowledged = revision
                case port.StoreFailed(definite=True):
                    await asyncio.sleep(0.01)
                case _:
                    await self._look()

    async def _look(self) -> None:
        while True:
            found = await self._ask(port.ReadState("e", self.name))
            if isinstance(found, port.Record):
                assert found.revision >= self.acknowledged, "an acknowledged write is gone"
                self.revision = found.revision
                return
            if isinstance(found, port.Absent):
                assert self.acknowledged == 0
                return
            await asyncio.sleep(0.01)

    async def _ask(self, request: port.Request) -> port.Answer:
        begun = time.monotonic()
        answer: port.Answer = await outcome_of(lambda done: self._driver.submit(request, done))
        self.longest_s = max(self.longest_s, time.monotonic() - begun)
        return answer


def test_s16_a_database_that_crashes_again_and_again_under_load(own_postgres: PostgresServer) -> None:
    options = PostgresOptions(dsn=own_postgres.dsn, schema=new_schema(), deadline_ms=DEADLINE_MS)
    store = PostgresStore(options, SystemClock())
    store.apply([port.AcquireLease("c", "n1@1", 60_000)])
    assert store.apply([port.WritePlacement("c", "n1@1", 1, 0, (ROW,))]) == [port.PlacementWritten(1)]

    async def rounds() -> list[Entity]:
        driver = StoreDriver(store, SystemClock(), lane_of)
        entities = [Entity(f"e{number}", driver) for number in range(ENTITIES)]
        stop = asyncio.Event()
        running = [asyncio.create_task(entity.run(stop)) for entity in entities]
        for _ in range(ROUNDS):
            await _all_go_on(entities)
            usual = await _written(entities, MEASURED_S) if WHOLE else 0
            await asyncio.to_thread(own_postgres.stop)
            await asyncio.to_thread(own_postgres.start)
            if WHOLE:
                await asyncio.sleep(BACK_S)
                back = await _written(entities, MEASURED_S)
                assert back >= usual * BACK_RATIO, f"{back} writes in {MEASURED_S:g} s, {usual} before"
        await _all_go_on(entities)
        stop.set()
        await asyncio.gather(*running)
        await driver.close()
        return entities

    entities = asyncio.run(rounds())
    assert max(entity.longest_s for entity in entities) < LONGEST_S
    _nothing_lost_or_doubled(options, entities)


async def _written(entities: list[Entity], seconds: float) -> int:
    """Writes acknowledged in so long."""
    before = sum(one.acknowledged for one in entities)
    await asyncio.sleep(seconds)
    return sum(one.acknowledged for one in entities) - before


async def _all_go_on(entities: list[Entity]) -> None:
    """Every entity has a write acknowledged, after whatever happened before."""
    before = [entity.acknowledged for entity in entities]
    async with asyncio.timeout(60):
        while any(one.acknowledged <= was for one, was in zip(entities, before, strict=True)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def _nothing_lost_or_doubled(options: PostgresOptions, entities: list[Entity]) -> None:
    """The log holds each entity's numbers, each once, in order, as far as its state says."""
    store = PostgresStore(options, SystemClock())
    log: dict[str, list[int]] = {}
    offset = 0
    while True:
        (page,) = store.apply([port.ReadFacts(after=offset)])
        assert isinstance(page, port.FactPage)
        for fact in page.facts:
            assert fact.offset == offset + 1, "the log is dense"
            offset = fact.offset
            log.setdefault(fact.id, []).append(int(fact.body))
        if not page.more:
            break
    for entity in entities:
        (record,) = store.apply([port.ReadState("e", entity.name)])
        assert isinstance(record, port.Record)
        assert record.revision >= entity.acknowledged
        assert log[entity.name] == list(range(1, record.revision + 1))
    store.close()
