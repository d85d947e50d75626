"""Who is missed on the roster, since when, and whether that is a reason against health."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admin_console import Console, played
from test_admin_views import member, report
from test_admin_views import status as status_of

from node.admin import protocol as p
from node.admin import views
from node.admin.absences import absences, awaited, words
from node.admin.protocol.cluster import AbsentNode
from node.core.hashing import shard_of
from node.core.ids import NodeId
from node.engine.members import went
from node.flows import messages as f
from node.flows.rolling import AWAY, DRAIN, SETTLE, Roll
from node.flows.state import OperationState
from node.gossip.events import Moved
from node.gossip.member import Member, Status
from node.store.port import WriteState, Written
from node.wire.codec import CODEC

ROSTER = ("n1", "n2", "gone", "dead", "fenced", "new")
RECORDS: dict[str, Member] = {
    "n1": member("n1"),
    "n2": member("n2"),
    "gone": member("gone", 3, status=Status.REMOVED, cause="left"),
    "dead": member(
        "dead", 2, status=Status.REMOVED, cause="at 2026-11-29T14:00:00.000Z by decision d-1, keep majority"
    ),
    "fenced": member("fenced", status=Status.REMOVED),
}
SAW = {NodeId("gone", 3): 1_000, NodeId("dead", 2): 9_000, NodeId("fenced", 7): 5_000}


def test_who_is_missed_is_told_with_how_it_went_when_and_the_way_back() -> None:
    found = {each.name: each for each in absences(ROSTER, ("n1", "n2", "guest"), RECORDS, SAW)}
    assert sorted(found) == ["dead", "fenced", "gone", "new"]
    told = {name: (each.went, each.since) for name, each in found.items()}
    assert told["gone"] == ("drained", "1970-01-01T00:00:01.000Z")
    assert told["dead"] == ("removed", "2026-11-29T14:00:00.000Z"), "as the decision has it, not as this node saw it"
    assert told["fenced"] == ("removed", ""), "another start of it was seen to go"
    assert told["new"] == ("never came", "")
    assert "decision d-1" in found["dead"].why
    assert {each.back for each in found.values()} == {f"promovolvectl node start {name}" for name in found}


def test_a_member_on_its_way_out_is_not_missed_yet_and_one_that_came_back_no_more() -> None:
    assert absences(("n1",), ("n1",), {"n1": member("n1", status=Status.DOWN)}, {}) == ()


def test_health_misses_who_went_without_being_told_to_and_nobody_else() -> None:
    def health(*absent: AbsentNode) -> Any:
        reports = {"n1": report("n1"), "n2": report("n2")}
        found = views.health(msgspec.structs.replace(status_of(reports=reports), absent=absent))
        return [(r.code, r.object) for r in found.reasons if r.code == "E-NODE-ABSENT"]

    missed = {each.name: each for each in absences(ROSTER, ("n1", "n2"), RECORDS, SAW)}
    assert health(missed["gone"]) == []
    dead, fenced = words(missed["dead"]), words(missed["fenced"])
    assert dead.count("2026-11-29T14:00:00.000Z") == 1, dead
    assert fenced.endswith("it went without being told to, the others removed it")
    assert health(*missed.values()) == [("E-NODE-ABSENT", f"node/{name}") for name in ("dead", "fenced", "new")]


def restart(state: str, at: int, stage: str, *nodes: tuple[str, int], verb: str = "restart") -> OperationState:
    status = f.OperationStatus("op-7", verb, "nodes", state, (), 0, 0, {})
    return OperationState(f.StartOperation(verb, nodes=nodes), status, Roll(at=at, stage=stage))


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_who_was_told_to_restart_and_did_not_come_back_is_missed(state: str) -> None:
    left = restart(state, 1, AWAY, ("n1", 1), ("gone", 3), ("n2", 1))
    (absent,) = absences(("gone",), (), RECORDS, SAW, awaited([left]))
    assert (absent.went, absent.since) == ("not back", "1970-01-01T00:00:01.000Z")
    assert "the restart op-7 told it to go" in absent.why
    reports = {"n1": report("n1"), "n2": report("n2")}
    found = views.health(msgspec.structs.replace(status_of(reports=reports), absent=(absent,)))
    (reason,) = (each for each in found.reasons if each.code == "E-NODE-ABSENT")
    assert reason.object == "node/gone"
    when = "since 1970-01-01T00:00:01.000Z"
    assert reason.text == f"it is on the roster and no member {when}: {absent.why}"


@pytest.mark.parametrize(
    "operation",
    [
        restart("running", 0, AWAY, ("gone", 3)),  # it still waits
        restart("failed", 0, AWAY, ("gone", 2)),  # it has been back since, and was told to go by somebody else
        restart("failed", 0, DRAIN, ("gone", 3)),  # it stayed then
        restart("failed", 1, SETTLE, ("gone", 3)),  # it was back
        restart("failed", 1, AWAY, ("gone", 3), ("dead", 2)),
        restart("done", 1, SETTLE, ("gone", 3)),
        restart("failed", 0, AWAY, ("gone", 3), verb="drain"),
        msgspec.structs.replace(restart("failed", 0, AWAY, ("gone", 3)), roll=None),
    ],
)
def test_who_went_for_another_reason_than_a_restart_is_not_missed(operation: OperationState) -> None:
    (absent,) = absences(("gone",), (), RECORDS, SAW, awaited([operation]))
    assert absent.went == "drained"


def test_who_did_not_leave_in_good_order_is_missed_for_that() -> None:
    (absent,) = absences(("dead",), (), RECORDS, SAW, awaited([restart("failed", 0, AWAY, ("dead", 2))]))
    assert (absent.went, "decision d-1" in absent.why) == ("removed", True)


def test_the_cluster_misses_whom_a_restart_on_record_has_left_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.admin.server.STORE_LOOK_S", 0.05)

    async def scene(console: Console) -> None:
        engine = console.engine
        gone = member("n3", 3, status=Status.REMOVED, cause="left")
        engine.membership.state.members = {**engine.view.members, "n3": gone}
        console.server.roster = frozenset(("n1", "n2", "n3"))

        async def missed() -> list[str]:
            found = await console.ask(p.GetClusterHealth())
            return [each.object for each in found.reasons if each.code == "E-NODE-ABSENT"]

        assert await missed() == []
        body = CODEC.encode_record(restart("failed", 0, AWAY, ("n3", 3)))
        (written,) = engine.store.apply([WriteState("operation", "op-7", shard_of("op-7"), 1, 0, body)])
        assert isinstance(written, Written), written
        assert await missed() == ["node/n3"]
        status = await console.ask(p.GetClusterStatus())
        assert [each.went for each in status.absent] == ["not back"]
        engine.world.submit = lambda _request, done: None  # the store does not answer
        assert await missed() == []

    played(scene)


def test_a_start_went_when_it_was_first_seen_to_and_the_next_one_takes_its_place() -> None:
    down, gone = member("n3", 2, status=Status.DOWN), member("n3", 2, status=Status.REMOVED)
    seen = went(went({}, Moved(down, Status.UP, ""), 1_000), Moved(gone, Status.DOWN, ""), 2_000)
    assert seen == {NodeId("n3", 2): 1_000}
    assert went(seen, Moved(member("n3", 3), None, ""), 3_000) == seen, "one that comes does not go"
    again = went(seen, Moved(member("n3", 3, status=Status.REMOVED), Status.EXITING, "left"), 4_000)
    assert again == {NodeId("n3", 3): 4_000}
    assert went({}, Moved(gone, None, ""), 5_000) == {}, "it went before anybody here could see it"
