"""Pings and ledgers as operators ask for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin.gather import Gatherer
from node.admin.probe_requests import ProbeRequests, ping_item
from node.core.clock import ManualClock
from node.core.ids import NodeId, ServiceRef
from node.core.limits import ping_deadline_ms, pings_max
from node.engine.messages import EchoControl, EchoData, GetLedger, LedgerReport
from node.wire.ledger import LedgerRow

META = p.Meta(cluster_name="demo", cluster_id="c", observed_at="", observed_by="n1")


class Server:
    """As much of the admin server as these requests need; `answer` stands for the cluster."""

    def __init__(self, answer: Callable[[str, msgspec.Struct, int], object]) -> None:
        self.handlers: dict[type, Any] = {}
        self.clock = ManualClock()
        self.asked: list[tuple[str, type]] = []

        def ask(to: ServiceRef, message: msgspec.Struct, timeout_ms: int, done: Callable[[object], None]) -> None:
            self.asked.append((to.node, type(message)))
            done(answer(to.node, message, timeout_ms))

        self.engine = SimpleNamespace(
            me=NodeId("n1", 1),
            view=SimpleNamespace(members=dict.fromkeys(("n1", "n2", "n3"))),
            membership=SimpleNamespace(state=SimpleNamespace(members={})),
            world=SimpleNamespace(clock=self.clock),
            ask=ask,
        )
        self.gatherer = Gatherer(cast(Any, self.engine), cast(Any, None))
        ProbeRequests(cast(Any, self))

    def with_missing(self, meta: p.Meta, missing: tuple[p.Missing, ...]) -> p.Meta:
        return msgspec.structs.replace(meta, missing=missing)

    def get(self, request: Any) -> tuple[Any, p.Meta]:
        found: tuple[Any, p.Meta] = asyncio.run(self.handlers[type(request)](request, META))
        return found


def test_each_node_is_pinged_on_both_lanes_and_a_silent_one_costs_one_deadline() -> None:
    def answer(node: str, message: msgspec.Struct, timeout_ms: int) -> object:
        if node == "n2":
            server.clock.advance_ns(timeout_ms * 1_000_000)
            return Failed(Failure.TIMEOUT, "")
        server.clock.advance_ns(2_000_000)
        return message

    server = Server(answer)
    reply, meta = server.get(p.GetPing(count=5))
    rows = {(row.node, row.lane): row for row in reply.items}
    assert set(rows) == {(node, lane) for node in ("n1", "n2", "n3") for lane in ("control", "data")}
    assert [missing.node for missing in meta.missing] == ["n2"]
    well = rows["n3", "data"]
    assert (well.origin, well.sent_count, well.lost_count, well.min_ms, well.p99_ms) == ("n1", 5, 0, 2.0, 2.0)
    silent = rows["n2", "control"]
    assert (silent.sent_count, silent.lost_ratio, silent.median_ms) == (1, 1.0, None)
    assert silent.why == Failure.TIMEOUT.value
    assert server.clock.mono_ns() < 4 * ping_deadline_ms * 1_000_000
    assert {kind for _, kind in server.asked} == {EchoControl, EchoData}


def test_pings_are_bounded_and_a_node_that_there_is_not_is_refused() -> None:
    server = Server(lambda _node, message, _ms: message)
    reply, _ = server.get(p.GetPing(node="n3", count=10**9))
    assert {row.sent_count for row in reply.items} == {pings_max}
    with pytest.raises(p.AdminRefusal) as caught:
        server.get(p.GetPing(node="n9"))
    assert caught.value.exit_status == 3


def test_the_row_of_a_way_counts_what_was_lost() -> None:
    row = ping_item("a", "b", "data", 4, [5.0, 1.0, 3.0], "timeout")
    assert (row.lost_count, row.lost_ratio, row.min_ms, row.median_ms, row.p99_ms) == (1, 0.25, 1.0, 3.0, 5.0)


def test_ledgers_come_by_node_peer_and_type_with_reasons_and_the_silent_named() -> None:
    rows = (LedgerRow(NodeId("n1", 4), "ads.x", 5, 3, 2, 1, {"peer_busy": 2}, {}, {"no_home": 1}),)

    def answer(node: str, message: msgspec.Struct, _ms: int) -> object:
        if node == "n3":
            return Failed(Failure.TIMEOUT, "")
        if isinstance(message, GetLedger):
            return LedgerReport(NodeId(node, 1), 0, rows if node == "n2" else ())
        return None

    reply, meta = Server(answer).get(p.GetWire())
    (item,) = reply.items
    assert (item.node, item.peer, item.incarnation, item.type) == ("n2", "n1", 4, "ads.x")
    assert (item.sent_count, item.received_count, item.handled_count, item.lost_count) == (5, 3, 2, 1)
    assert (item.unsent, item.dropped) == (
        (p.Counter(name="peer_busy", count=2),),
        (p.Counter(name="no_home", count=1),),
    )
    assert [missing.node for missing in meta.missing] == ["n3"]
