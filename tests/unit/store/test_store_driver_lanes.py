"""A fault of the store must end when its cause does, also where nobody has a request to try it with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from node.actors.store_driver import StoreDriver
from node.core.clock import SystemClock
from node.store.lanes import lane_of
from node.store.memory import MemoryStore
from node.store.port import AcquireLease, Answer, NextIncarnation, ReadState, Request, StoreFailed

AWAY = StoreFailed("E-STORE-UNREACHABLE", "away", definite=True)


class Flaky(MemoryStore):
    """Serves nothing while it is `away`."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.away = True
        self.asked: list[Request] = []

    def apply(self, batch: Sequence[Request]) -> list[Answer]:
        self.asked += batch
        return [AWAY] * len(batch) if self.away else super().apply(batch)


async def answer(driver: StoreDriver, request: Request) -> Answer:
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    driver.submit(request, future.set_result)
    return await future


def test_lanes_that_were_not_served_and_that_nobody_uses_are_asked_again() -> None:
    async def test() -> None:
        store = Flaky()
        driver = StoreDriver(store, SystemClock(), lane_of)
        for request in (ReadState("thing", "a"), AcquireLease("c", "t", 60_000), NextIncarnation("n")):
            assert await answer(driver, request) == AWAY
        driver.look_again()
        await asyncio.to_thread(lambda: None)
        assert driver.failure == AWAY
        store.away = False
        while driver.failure:
            driver.look_again()
            await asyncio.sleep(0)
        count = len(store.asked)
        driver.look_again()
        assert (driver.queued, len(store.asked)) == (0, count), "what is served is left alone"
        lease = await answer(driver, AcquireLease("c", "t", 60_000))
        await driver.close()
        assert (getattr(lease, "term", 0), store.asked[-1]) == (1, AcquireLease("c", "t", 60_000))

    asyncio.run(asyncio.wait_for(test(), 20))
