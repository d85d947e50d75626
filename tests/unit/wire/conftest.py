"""Loops for the tests of node.wire."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
import uvloop
from wire_nodes import Node, Run


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def runner(body: Callable[[], Awaitable[None]]) -> None:
        async def with_cleanup() -> None:
            try:
                await body()
            finally:
                while Node.alive:
                    Node.alive[0].close()

        with asyncio.Runner(loop_factory=factory) as loop_runner:
            loop_runner.run(with_cleanup())

    yield runner
    assert not Node.alive
