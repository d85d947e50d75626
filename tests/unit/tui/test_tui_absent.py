"""A node that is missed stays on the screens: counted, told of with the way back, and an alarm only where it is one."""

from __future__ import annotations

import asyncio

import pytest
from tui_answers import everything
from tui_stage import FakeSource, Stage, node, push, refusal, staged

from node.admin import protocol as p
from node.admin.protocol.cluster import AbsentNode

SINCE = "2026-11-29T09:32:01.000Z"  # the cluster's clock says 14:03:11
DEAD = AbsentNode(
    name="entity-3", went="removed", since=SINCE, why="decision d-1", back="promovolvectl node start entity-3"
)
GONE = AbsentNode(
    name="entity-4", went="drained", since=SINCE, why="was told", back="promovolvectl node start entity-4"
)
WHY_NOT = {
    "o": "no member observes it while it is none itself",
    "p": "nobody can be asked for its peers: only entity-3 itself knows them",
    "m": "nobody can be asked for its mailboxes: only entity-3 itself knows them",
    "l": "it lies in logs/entity-3.log of its host",
    "c": "nobody can be asked for its settings: only entity-3 itself knows them",
    "n": "nothing is held by it that could go elsewhere",
}
MISSED = p.HealthReason(code="E-NODE-ABSENT", object="node/entity-3", text="it went without being told to")
THERE = tuple(node(f"entity-{number}") for number in (1, 2, 5, 6))


async def seen(stage: Stage, absent: AbsentNode, *reasons: p.HealthReason) -> None:
    stage.source.play(push(*THERE, state="degraded" if reasons else "healthy", reasons=reasons, absent=(absent,)))
    await stage.until("● live")


def test_a_dead_node_is_counted_listed_and_told_of_with_the_way_back() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await seen(stage, DEAD, MISSED)
            screen = await stage.until("DEGRADED  4/5 up  entity-3 absent since 09:32:01", "✗ entity-3")
            assert "absent since 09:32:01" in screen
            await stage.go("nodes")
            await stage.tap("down", "down")
            await stage.until("nodes 5", "✗ absent since 09:32:01", "decision d-1", "promovolvectl node start entity-3")
            assert p.GetNode(node="entity-3") not in stage.source.asked, "nobody is there who could be asked"
            for key in "opmlcn":
                await stage.tap(key)
                screen = await stage.until("brings it back: promovolvectl node start entity-3")
                for of, why in WHY_NOT.items():
                    assert (why in screen) is (key == of), f"{key}: {why}"
            for key, word in (("D", "Drain"), ("C", "Cordon"), ("X", "Restart")):
                await stage.tap(key)
                await stage.until(f"{word}: entity-3 is absent since 09:32:01")
            assert not [each for each in stage.source.asked if type(each).__name__.startswith("Stage")]

    asyncio.run(look())


def test_what_opens_a_node_that_is_gone_is_its_pane_alone() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await seen(stage, DEAD, MISSED)
            await stage.go("nodes")
            await stage.tap("down", "down", "enter")
            screen = await stage.until("decision d-1", "promovolvectl node start entity-3")
            assert screen.count("decision d-1") == 1
            assert "shards of the node" not in screen
            assert p.GetShards(node="entity-3") not in stage.source.asked
            await stage.tap("escape")
            await stage.until("nodes 5")

    asyncio.run(look())


def test_a_table_that_was_not_told_says_why_once() -> None:
    """The node went while one was within it: its pane said the same again."""

    async def look() -> None:
        source = FakeSource(otherwise=everything())
        source.answers[p.GetShards] = lambda _: refused()
        async with staged((120, 40), source) as stage:
            stage.source.play(push(*THERE))
            await stage.until("● live")
            await stage.go("nodes")
            await stage.tap("enter")
            screen = await stage.until("shards of the node entity-1", "not told: entity-1 is no member")
            assert screen.count("entity-1 is no member") == 1

    asyncio.run(look())


def refused() -> p.ShardList:
    raise refusal("entity-1 is no member")


def test_a_node_that_was_drained_is_a_note_and_no_alarm() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await seen(stage, GONE)
            screen = await stage.until("HEALTHY", "4/5 up, 1 drained", "drained at 09:32:01")
            row = next(line for line in screen.splitlines() if "node/entity-4" in line)
            assert "!" not in row
            assert "4h31m drained at 09:32:01: prom" in row
            await stage.go("nodes")
            await stage.until("nodes 5", "- drained at 09:32:01")

    asyncio.run(look())


@pytest.mark.parametrize("told", [True, False], ids=["checks told", "checks not told"])
def test_the_doctor_says_what_the_header_says(told: bool) -> None:
    """All checks may be well, or may not have been told: why the cluster is not healthy stands above them."""

    async def look() -> None:
        well = p.ClusterCheck(ok=True, checks=(p.CheckRow(check="one owner", result="ok", detail=""),), unchecked=())
        answers = {p.CheckCluster: lambda _: well} if told else {}
        async with staged((120, 40), FakeSource(answers)) as stage:
            await seen(stage, DEAD, MISSED)
            screen = await stage.go("doctor")
            assert ("✓ one owner" in screen) is told
            lines = screen.splitlines()
            failing = next(n for n, line in enumerate(lines) if "✗ node/entity-3" in line)
            assert "E-NODE-ABSENT" in lines[failing]
            assert not told or failing < next(n for n, line in enumerate(lines) if "✓ one owner" in line)
            assert told is ("promovolvectl explain E-NODE-ABSENT" in screen), "the pane says why there are no checks"

    asyncio.run(look())
