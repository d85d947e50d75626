"""Checks of the dashboard by their names (`docs/checks.md`): what public reports tell of other tools."""

from __future__ import annotations

import asyncio
import re

import pytest
from textual.binding import Binding
from tui_stage import FakeSource, Stage, node, push, refusal, shards, staged

from node.admin import protocol as p
from promovolvectl.tui import keys
from promovolvectl.tui.screens.board import Board
from promovolvectl.tui.widgets.panel import Panel

PRINTABLE = [chr(number) for number in range(33, 127) if chr(number) != "q"]  # q quits, and has a test of its own
CONTROLLED = [f"ctrl+{chr(number)}" for number in range(ord("a"), ord("z") + 1) if chr(number) not in "cq"]
READS = {p.GetShards, p.GetNode}
ANSWERS = {
    p.GetShards: lambda _: shards("entity-1", "entity-2"),
    p.GetNode: lambda request: p.NodeShow(node=node(request.node), phases=("joined: done",)),
}
BOARDS = ("1", "2")
# What every terminal and multiplexer hands on.
ARRIVES = re.compile(r"[a-zA-Z0-9]|up|down|left|right|enter|escape|tab|slash|question_mark")
# Ways of doing faster what other keys do, too.
FASTER = {"page(1)", "page(-1)"}


async def live(stage: Stage) -> None:
    stage.source.play(push(node("entity-1"), node("entity-2")))
    await stage.until("● live", "HEALTHY")


@pytest.mark.parametrize("board", BOARDS)
def test_check_v18_enter_and_every_other_key_on_every_screen_asks_for_no_change(board: str) -> None:
    """Also on top of each: the help, and an open filter. There is no dialog that could be answered by a slip."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(ANSWERS)) as stage:
            await live(stage)
            for opening in ([], ["question_mark"], ["slash"]):
                await stage.pilot.press("escape", board, *opening, "enter")
                await stage.pilot.press(*CONTROLLED)
                await stage.pilot.press(*PRINTABLE)
                await stage.pilot.press("enter", "escape", "escape")
                assert stage.app.is_running
            assert {type(asked) for asked in stage.source.asked} <= READS

    asyncio.run(look())


@pytest.mark.parametrize("board", BOARDS)
def test_check_v19_ten_minutes_without_a_cluster_end_nothing(board: str) -> None:
    """Data stay with their age; nobody is asked for a key; live again when a node answers. A suspended program is the
    same: time went on, and nothing came."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(ANSWERS)) as stage:
            await live(stage)
            await stage.pilot.press(board)
            stage.source.away = refusal("no node could be reached")
            stage.source.play(refusal("the connection was lost"))
            await stage.until("OFFLINE")
            for _ in range(5):
                stage.later(120)
                assert "entity-1" in await stage.until("OFFLINE")
            await stage.until("10m")
            stage.source.away = None
            stage.source.play(push(node("entity-1"), node("back")))
            await stage.pilot.press("r")
            await stage.until("● live", "back")

    asyncio.run(look())


def test_check_v19_it_starts_with_no_node_in_reach() -> None:
    async def look() -> None:
        source = FakeSource()
        source.away = refusal()
        async with staged((80, 24), source) as stage:
            await stage.until("OFFLINE", "next try")
            stage.later(600)
            await stage.until("OFFLINE")
            assert stage.app.is_running
            assert stage.app.return_code is None

    asyncio.run(look())


def test_check_e7_every_function_has_a_key_that_arrives() -> None:
    bindings = [each for name in ("APP", "SCROLL", "NODES", "TABLE", "HELP") for each in getattr(keys, name)]
    assert all(isinstance(each, Binding) for each in bindings)
    arriving = {each.action for each in bindings if any(ARRIVES.fullmatch(key) for key in each.key.split(","))}
    assert {each.action for each in bindings} - arriving <= FASTER


@pytest.mark.parametrize("board", BOARDS)
def test_check_e8_a_panel_that_fails_takes_no_other_with_it(board: str) -> None:
    """Each panel of each screen in turn."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(ANSWERS)) as stage:
            await live(stage)
            await stage.pilot.press(board)
            await stage.until("● live")
            assert isinstance(stage.app.screen, Board)
            panels = [panel for panel in stage.app.screen.query(Panel) if panel.display]
            assert panels
            for panel in panels:
                kept = panel._draw
                panel._draw = lambda *_: [[(str(1 // 0), "")]]
                failed = [each for each in panels if "this panel failed" in told(stage, each)]
                assert failed == ([panel] if panel._at_ns(stage.app.state) else [])
                panel._draw = kept
                assert not [each for each in panels if "this panel failed" in told(stage, each)]
            assert stage.app.is_running

    asyncio.run(look())


def told(stage: Stage, panel: Panel) -> str:
    """What a panel draws for the state as it is."""
    panel.show(stage.app.state, stage.clock.mono_ns())
    return "\n".join("".join(text for text, _ in line) for line in panel._lines_for(panel.content_size))
