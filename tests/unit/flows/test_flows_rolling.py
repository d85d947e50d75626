"""A rolling restart's next step, as the function that it is."""

from __future__ import annotations

import msgspec
import pytest

from node.core.limits import roll_return_ms_max, roll_settle_ms_max
from node.flows.messages import NodeStanding
from node.flows.rolling import AWAY, DRAIN, SETTLE, Over, Roll, Sight, next_step, phases, whole

NODES = (("n2", 1), ("n1", 1))
WHOLE = Sight((), 4, 1)


def standing(why: tuple[str, ...] = (), digest: str = "d", sites: int = 2, missing: int = 0) -> NodeStanding:
    return NodeStanding(1, why, digest, sites, 10, 10 - missing)


def stepped(roll: Roll, sight: Sight, now_ms: int = 5) -> Roll:
    found = next_step(roll, NODES, sight, now_ms)
    assert isinstance(found, Roll)
    return found


def over(roll: Roll, sight: Sight, now_ms: int = 5) -> Over:
    found = next_step(roll, NODES, sight, now_ms)
    assert isinstance(found, Over)
    return found


def test_from_the_first_node_to_the_end() -> None:
    roll = stepped(Roll(), WHOLE)
    assert (roll.stage, roll.at, roll.sites, roll.missing, roll.entered_ms) == (DRAIN, 0, 4, 1, 5)
    roll = msgspec.structs.replace(roll, drain="op-2")
    roll = stepped(roll, Sight((), 4, 1, gone=True, drain="done", moved=60, lost=0))
    assert (roll.stage, roll.moved) == (AWAY, 60)
    roll = stepped(roll, Sight((), 4, 1, gone=True, back=True))
    assert (roll.stage, roll.at, roll.drain) == (SETTLE, 1, "")
    roll = stepped(roll, WHOLE)
    roll = stepped(msgspec.structs.replace(roll, drain="op-1"), Sight((), 4, 1, gone=True, drain="done", moved=70))
    roll = stepped(roll, Sight((), 4, 1, gone=True, back=True))
    assert (roll.at, roll.moved) == (2, 130)
    held = Sight(("replicas differ",), 4, 1)
    assert stepped(roll, held) is roll, "whole after the last one, too"
    assert over(roll, WHOLE).outcome == "done"


@pytest.mark.parametrize("stage", [SETTLE, DRAIN, AWAY])
def test_nothing_happens_while_nothing_has_happened(stage: str) -> None:
    roll = Roll(stage=stage, drain="op-2", sites=4, missing=1)
    assert stepped(roll, Sight(("n1 is away",), 3, 9, gone=stage == AWAY, drain="running")) is roll


def test_each_stage_has_its_end() -> None:
    lacking = Sight(("replicas differ",), 4, 1)
    assert stepped(Roll(), lacking, roll_settle_ms_max - 1).stage == SETTLE
    assert "replicas differ" in over(Roll(), lacking, roll_settle_ms_max).reason
    for state in ("failed", "cancelled"):
        found = over(Roll(stage=DRAIN, drain="op-2"), Sight((), 4, 1, gone=True, drain=state))
        assert (found.outcome, "op-2" in found.reason, state in found.reason) == ("failed", True, True)
    away = Roll(stage=AWAY)
    assert stepped(away, Sight((), 4, 1, gone=True), roll_return_ms_max - 1) is away
    assert "n2" in over(away, Sight((), 4, 1, gone=True), roll_return_ms_max).reason


def test_a_node_that_restarted_by_itself_before_its_drain_had_a_name_is_waited_for() -> None:
    assert stepped(Roll(stage=DRAIN), Sight((), 4, 1, gone=True)).stage == AWAY
    gone = Sight((), 4, 1, gone=True)
    assert stepped(Roll(stage=DRAIN, drain="op-2"), gone).stage == DRAIN, "its operation has the last word"


def test_whole_is_what_it_was_when_it_began() -> None:
    begun = Roll(sites=4, missing=1)
    both = {"n1": standing(missing=1), "n2": standing()}
    assert whole("", both, begun) == Sight((), 4, 1)
    assert whole("3 shards are moving", both, begun).lacking == ("3 shards are moving",)
    for name, other in {
        "does not answer": None,
        "draining": standing(("draining",)),
        "replicas differ": standing(digest="e"),
        "3 of 4 sites": standing(sites=1),
        "2 slots have no candidates, 1 had none": standing(missing=1),
    }.items():
        lacking = whole("", {**both, "n2": other}, begun).lacking
        assert any(name in text for text in lacking), (name, lacking)
    assert whole("", {"n1": standing(missing=5)}, Roll()).lacking == (), "what was missing before is not waited for"


def test_every_node_is_a_phase_and_the_one_that_is_away_says_what_it_needs() -> None:
    rows = phases(Roll(at=1, stage=AWAY, entered_ms=5), NODES, (), 9)
    assert [(p.name, p.state) for p in rows] == [("n2", "done"), ("n1", "running"), ("cluster", "waiting")]
    assert (rows[1].detail, rows[1].elapsed_ms, "n1" in rows[1].blockers[0]) == ("away", 4, True)
    ended = phases(Roll(at=2), NODES, (), 9, "done")
    assert {p.state for p in ended} == {"done"}


def test_a_phase_lasts_from_the_turn_s_beginning_to_its_end() -> None:
    roll = msgspec.structs.replace(stepped(Roll(entered_ms=100), WHOLE, 110), drain="op-2")
    roll = stepped(roll, Sight((), 4, 1, gone=True, drain="done"), 150)
    assert [p.elapsed_ms for p in phases(roll, NODES, (), 160)] == [60, 0, 0]
    roll = stepped(roll, Sight((), 4, 1, gone=True, back=True), 170)
    roll = msgspec.structs.replace(stepped(roll, WHOLE, 200), drain="op-1")
    roll = stepped(stepped(roll, Sight((), 4, 1, gone=True, drain="done"), 220), Sight((), 4, 1, back=True), 250)
    assert [p.elapsed_ms for p in phases(roll, NODES, (), 255, "done")] == [70, 80, 5]
