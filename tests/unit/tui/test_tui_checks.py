"""Checks of the dashboard by their names (`docs/checks.md`): what public reports tell of other tools.

PROMOVOLVE_TEST_SCALE=10 presses every key on all screens.
"""

from __future__ import annotations

import asyncio
import os
import re

import msgspec
import pytest
from textual.binding import Binding
from tui_answers import everything
from tui_stage import FakeSource, Stage, node, push, refusal, staged

from node.admin.permits import Use, asked_of
from node.admin.protocol import CancelOperation, DiscardPlan, StageDeadLetters, StageDrain, StageMove
from promovolvectl.client.changes import Change, Question
from promovolvectl.tui import keys
from promovolvectl.tui.screens.board import Board
from promovolvectl.tui.screens.dialog import Dialog
from promovolvectl.tui.screens.listing import Listing
from promovolvectl.tui.widgets.panel import Panel

PRINTABLE = [chr(number) for number in range(33, 127) if chr(number) != "q"]  # q quits, and has a test of its own
CONTROLLED = [f"ctrl+{chr(number)}" for number in range(ord("a"), ord("z") + 1) if chr(number) not in "cq"]
MOVING = ["up", "down", "left", "right", "tab", "shift+tab", "home", "end", "pageup", "pagedown", "space", "backspace"]
YES = ("ctrl+s", "ctrl+j", "ctrl+m", "ctrl+y", "ctrl+d", "ctrl+k", "ctrl+o")
SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
BOARDS = [name for _, name, _ in keys.SCREENS]
# What every terminal and multiplexer hands on.
ARRIVES = re.compile(
    r"[a-zA-Z0-9]|up|down|left|right|enter|escape|tab|space|slash|colon|question_mark|(left|right)_square_bracket"
)
# Ways of doing faster what other keys do, too.
FASTER = {"page(1)", "page(-1)"}


def changes(source: FakeSource) -> list[msgspec.Struct]:
    """What was sent that changes something; plans that were made change nothing, nor does forgetting them."""
    return [asked for asked in source.asked if asked_of(asked).use is Use.CHANGE and not isinstance(asked, DiscardPlan)]


async def live(stage: Stage) -> None:
    stage.source.play(push(node("entity-1"), node("entity-2")))
    await stage.until("● live", "HEALTHY")


@pytest.mark.parametrize("board", BOARDS if SCALE >= 10 else ["nodes", "entities"])
def test_check_v18_every_key_on_every_screen_changes_nothing(board: str) -> None:
    """Also on top of what they open: help, filter, palette, dialogs. Enter after every few."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go(board)
            for place in range(0, len(PRINTABLE), 6):
                await stage.tap(*PRINTABLE[place : place + 6], "enter", "escape", "escape")
                stage.app.go(board)
            await stage.tap(*CONTROLLED, *MOVING, "enter", "escape")
            assert stage.app.is_running
            assert not changes(stage.source)

    asyncio.run(look())


OFFERS = {
    "staged": Change(("node", "drain", "entity-1"), StageDrain(node="entity-1")),
    "direct": Change(("op", "cancel", "op-1"), CancelOperation(id="op-1"), "what has moved stays"),
    "losing": Change(("deadletter", "discard", "x.1"), StageDeadLetters(verb="discard", ids=("x.1",)), loses="x.1"),
    "asking": Question(
        ("shard", "move", "7", "--to"),
        "to which node",
        ("entity-2",),
        lambda to: Change(("shard", "move", "7", "--to", to), StageMove(shard=7, to=to)),
    ),
}


@pytest.mark.parametrize("kind", list(OFFERS))
def test_check_v18_enter_after_any_key_in_any_kind_of_dialog_changes_nothing(kind: str) -> None:
    """Keys that a hand may meet beside Enter, those that move, and those that other programs take for a yes."""

    async def look() -> None:
        async with staged((100, 30), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            for key in ("enter", "tab", "shift+tab", "up", "down", "space", "backspace", *"yYcx1", *YES):
                stage.app._open(OFFERS[kind])
                await stage.pilot.pause(0)
                assert isinstance(stage.app.screen, Dialog)
                await stage.tap(key, "enter")
                assert not changes(stage.source), key
                while isinstance(stage.app.screen, Dialog):
                    await stage.tap("escape")

    asyncio.run(look())


def test_check_v18_each_key_for_a_change_opens_a_dialog_or_says_why_not() -> None:
    """Every action of every screen in every view: Cancel has the keys, or the field that asks; the command line stands
    above; Enter closes, or in an empty field does nothing."""

    async def look() -> None:
        opened = 0
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            for name in BOARDS:
                await stage.go(name)
                board = stage.app.boards[name]
                for _ in board.VIEWS if isinstance(board, Listing) else ():
                    assert isinstance(board, Listing)
                    for action in board.ACTIONS:
                        await stage.tap(action.key)
                        if isinstance(stage.app.screen, Dialog):
                            opened += 1
                            assert stage.app.screen._command().startswith("promovolvectl ")
                            asks = stage.app.screen._question is not None
                            assert stage.app.focused is stage.app.screen.query_one("#word" if asks else "#no")
                            await stage.tap("enter", *(("escape",) if asks else ()))
                        else:
                            assert len(stage.app._notifications)
                        assert stage.app.screen is board
                    await stage.tap("v")
                    await stage.quiet()
            assert not changes(stage.source)
        assert opened >= 12

    asyncio.run(look())


@pytest.mark.parametrize("board", ["overview", "shards"])
def test_check_v19_ten_minutes_without_a_cluster_end_nothing(board: str) -> None:
    """Data stay with their age; nobody is asked for a key; live again when a node answers. A suspended program is the
    same: time went on, and nothing came."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go(board)
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
    bindings = [
        each
        for name in ("APP", "SCROLL", "LISTING", "TABLE", "GRID", "HELP", "DIALOG", "PROFILES")
        for each in getattr(keys, name)
    ]
    assert all(isinstance(each, Binding) for each in bindings)
    arriving = {each.action for each in bindings if any(ARRIVES.fullmatch(key) for key in each.key.split(","))}
    assert {each.action for each in bindings} - arriving <= FASTER


@pytest.mark.parametrize("board", ["overview", "nodes"])
def test_check_e8_a_panel_that_fails_takes_no_other_with_it(board: str) -> None:
    """Each panel of each screen in turn."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go(board)
            await stage.until("● live")
            assert isinstance(stage.app.screen, Board)
            panels = [panel for panel in stage.app.screen.query(Panel) if panel.display]
            for panel in panels:
                kept = panel._draw
                panel._draw = lambda *_: [[(str(1 // 0), "")]]
                failed = [each for each in panels if "this panel failed" in told(stage, each)]
                assert failed == ([panel] if panel._origin(stage.app.state).at_ns else [])
                panel._draw = kept
                assert not [each for each in panels if "this panel failed" in told(stage, each)]
            assert stage.app.is_running

    asyncio.run(look())


def told(stage: Stage, panel: Panel) -> str:
    """What a panel draws for the state as it is."""
    panel.show(stage.app.state, stage.clock.mono_ns())
    return "\n".join("".join(text for text, _ in line) for line in panel._lines_for(panel.content_size))
