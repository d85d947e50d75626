"""Starting a replay where another one, whose node is silent, went through the same sites."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.admin import protocol as p
from node.admin.replay_requests import ReplayRequests
from node.core.clock import ManualClock
from node.core.hashing import SHARD_COUNT
from node.flows import messages as f
from node.store.port import ShardRow, ShardState

SITE = "news.example"
ROWS = tuple(ShardRow(number, "n4", 1, 1, ShardState.RUNNING) for number in range(SHARD_COUNT))


STATUS = ("r-2", "running", SITE, 4, 0, 0, 0, 0.5, 0.5, 1_000, 0)


def status(name: str, state: str) -> f.ReplayStatus:
    return f.ReplayStatus(name, state, *STATUS[2:])


class Server:
    """As much of an admin server as the request needs: a register in which r-1 stands, and what is durable of it."""

    def __init__(self, durable: str) -> None:
        self.handlers: dict[type, Any] = {}
        self.engine = self.states = self
        self.world = SimpleNamespace(clock=ManualClock(), rng=SimpleNamespace(getrandbits=lambda _bits: 2))
        self.sharding = SimpleNamespace(region=SimpleNamespace(homes=lambda: ROWS))
        self.durable = durable
        self.orders: list[f.OpenReplay] = []
        ReplayRequests(cast("Any", self))

    async def ids(self, _kind: str) -> list[str]:
        return [SITE]

    async def one(self, _kind: str, name: str, _shape: type) -> Any:
        return SimpleNamespace(status=status(name, self.durable)) if self.durable else None

    def ask(self, _to: Any, order: f.OpenReplay, _timeout_ms: int, done: Any) -> None:
        self.orders.append(order)
        done(status(order.id, "running") if "r-1" in order.over else f.ReplaySilent("r-1"))

    def start(self) -> p.Replay:
        found, _ = asyncio.run(self.handlers[p.StartReplay](p.StartReplay(), cast("p.Meta", None)))
        assert isinstance(found, p.Replay)
        return found


def test_the_reason_that_was_given_goes_with_the_order_and_is_told() -> None:
    server = Server("done")
    order = p.StartReplay(reason="after the restore")
    asyncio.run(server.handlers[p.StartReplay](order, cast("p.Meta", None)))
    assert {sent.order.why for sent in server.orders} == {"after the restore"}
    told = ReplayRequests(cast("Any", server))._replay(f.ReplayStatus(*STATUS, why="after the restore"))
    assert (told.started_for, told.reason) == ("after the restore", "")


def test_one_that_is_durably_over_stands_in_nobodys_way() -> None:
    server = Server("done")
    assert server.start().state == "running"
    assert [order.over for order in server.orders] == [(), ("r-1",)]


@pytest.mark.parametrize("durable", ["running", ""])
def test_one_that_may_still_run_is_named_with_the_node_that_is_silent(durable: str) -> None:
    with pytest.raises(p.AdminRefusal) as refused:
        Server(durable).start()
    assert (refused.value.exit_status, refused.value.about) == (4, "replay/r-1")
    assert "n4, which runs it, does not answer" in refused.value.message
    assert "promovolvectl replay show r-1" in refused.value.hint
    assert "name" not in refused.value.hint
