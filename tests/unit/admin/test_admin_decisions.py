"""Decisions as operators ask for them: the logs of all nodes in one order, and rehearsals with the live rule."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.admin import protocol as p
from node.admin.decision_requests import DecisionRequests
from node.core.clock import ManualClock
from node.core.errors import BadInput
from node.core.ids import NodeId
from node.engine.decisions import DecisionLog
from node.engine.messages import DecisionsReport
from node.gossip.member import Member, Status
from node.gossip.settings import FAST
from node.gossip.splitbrain import Decision, decide
from node.gossip.view import ClusterView, Unreachability
from node.store.journal import MemoryJournal

MEMBERS = {f"n{i}": Member(f"n{i}", 1, f"h:{i}", roles=("entity",), status=Status.UP, up_number=i) for i in range(1, 4)}
META = p.Meta(cluster_name="demo", cluster_id="c", observed_at="", observed_by="n1")
NOW_MS = ManualClock().wall_ms()


def taken(me: str, number: int, at_ms: int = NOW_MS) -> Decision:
    view = ClusterView(NodeId(me, 1), members=MEMBERS, unreachable={"n3": Unreachability((NodeId(me, 1),), 0)})
    return decide(view, FAST, 0, at_ms=at_ms, number=number)


def log_of(*lines: bytes) -> DecisionLog:
    journal = MemoryJournal(100)
    for line in lines:
        journal.append(line)
    return DecisionLog(journal, ManualClock())


class Server:
    """As much of the admin server as these requests need."""

    def __init__(self, reports: dict[str, DecisionsReport], missing: tuple[p.Missing, ...] = ()) -> None:
        self.handlers: dict[type, Any] = {}
        self.engine = SimpleNamespace(
            view=ClusterView(NodeId("n1", 1), members=MEMBERS), config=SimpleNamespace(membership=FAST)
        )

        async def decisions(limit: int) -> tuple[dict[str, DecisionsReport], tuple[p.Missing, ...]]:
            return reports, missing

        self.gatherer = SimpleNamespace(decisions=decisions)
        DecisionRequests(cast(Any, self))

    def with_missing(self, meta: p.Meta, missing: tuple[p.Missing, ...]) -> p.Meta:
        return msgspec.structs.replace(meta, missing=missing)

    def ask(self, request: Any) -> tuple[Any, p.Meta]:
        found: tuple[Any, p.Meta] = asyncio.run(self.handlers[type(request)](request, META))
        return found


def test_all_nodes_decisions_come_in_one_order_and_what_is_missing_is_said() -> None:
    reports = {
        "n1": DecisionsReport("n1", (taken("n1", 1, 5_000), taken("n1", 2, 9_000))),
        "n2": DecisionsReport("n2", (taken("n2", 1, 7_000),), unreadable=2),
    }
    away = (p.Missing(node="n3", reason="no answer", since=""),)
    reply, meta = Server(reports, away).ask(p.GetDecisions())
    assert [item.id for item in reply.items] == ["n1.1-1", "n2.1-1", "n1.1-2"]
    first = reply.items[0]
    assert (first.outcome, first.goes, first.required, first.available) == ("down_unreachable", ("n3",), 2, 2)
    assert first.members[2].observers == ("n1",)
    assert meta.missing == away
    assert [w.text for w in meta.warnings] == ["2 decisions of n2 can't be read here"]


def test_a_rehearsal_answers_for_every_side_and_every_loss() -> None:
    server = Server({})
    cut, _ = server.ask(p.Rehearse(cut=(("n1",), ("n2", "n3"))))
    assert [(item.survivors, len(item.decisions)) for item in cut.items] == [(("n2", "n3"), 2)]
    assert cut.items[0].decisions[0].id == ""
    lost, _ = server.ask(p.Rehearse(lose=1))
    assert (lost.cases_total, lost.cases_surviving) == (3, 3)
    with pytest.raises(BadInput, match="either a cut"):
        server.ask(p.Rehearse())


def test_the_log_keeps_what_is_young_and_readable() -> None:
    log = log_of(b"{not json")
    assert log.add(taken("n1", 1, at_ms=NOW_MS - 91 * 86_400_000)) == ""
    assert log.add(taken("n1", 2)) == ""
    assert [d.number for d in log.newest(10)] == [2]
    assert log.unreadable == 1
    assert log.newest(10)[0] == taken("n1", 2)


def test_a_decision_that_cannot_be_written_is_said() -> None:
    class Full(MemoryJournal):
        def append(self, line: bytes) -> None:
            super().append(line)
            raise OSError(28, "No space left on device")

    log = DecisionLog(Full(10), ManualClock())
    assert log.add(taken("n1", 1)) == "decision n1.1-1 is not on disk: No space left on device"
    assert len(log.newest(10)) == 1
