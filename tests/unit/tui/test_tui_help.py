"""The page of keys: what works where one is, searched, and read by keys where it has no room."""

from __future__ import annotations

import asyncio
import re

import pytest
from textual.binding import Binding
from tui_answers import everything
from tui_stage import FakeSource, live, staged

from promovolvectl.cli.walk import leaves
from promovolvectl.tui import keys
from promovolvectl.tui.screens.help import Help


def test_help_lists_the_keys_that_work_there_and_can_be_searched() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.pilot.press("question_mark")
            screen = await stage.until("Keys", "Screen Nodes", "Freeze the picture")
            assert "Drain the node" not in screen
            await stage.pilot.press("escape", "2", "question_mark")
            await stage.until("Drain the node", "Pane: peers")
            await stage.pilot.press(*"drain")
            screen = await stage.until("Drain the node")
            assert "Pane: peers" not in screen
            assert isinstance(stage.app.screen, Help)
            await stage.pilot.press("enter")
            assert not isinstance(stage.app.screen, Help)

    asyncio.run(look())


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 16)])
def test_help_goes_by_keys_to_what_has_no_room(size: tuple[int, int]) -> None:
    async def look() -> None:
        async with staged(size, FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.pilot.press("2", "question_mark")
            first = await stage.until("Cordon the node, or lift it")
            assert "Another cluster" not in first
            await stage.tap("end")
            last = await stage.until("Another cluster")
            assert "Cordon the node, or lift it" not in last
            await stage.tap("home")
            assert await stage.text() == first
            await stage.tap("pagedown")
            assert await stage.text() != first
            await stage.tap("pageup", "down")
            moved = await stage.text()
            assert moved != first
            await stage.tap("up")
            assert await stage.text() == first
            seen: set[str] = set()
            for _ in range(60):
                seen |= set((await stage.text()).splitlines())
                await stage.tap("down")
            assert [title for _, _, title in keys.SCREENS if not any(f"Screen {title}" in line for line in seen)] == []

    asyncio.run(look())


def test_help_finds_a_key_by_what_else_it_is_called_and_says_when_there_is_none() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.pilot.press("question_mark", *"profile")
            assert "ctrl+c" not in await stage.until("Another cluster")
            await stage.pilot.press(*["backspace"] * 7, *"theme")
            await stage.until("no key here is called so")

    asyncio.run(look())


def test_the_command_s_help_names_keys_that_there_are() -> None:
    told = next(leaf for leaf in leaves() if leaf.name == "dashboard").about.changes
    text = told[told.index("Keys: ") : told.index("ends it. ")]
    named = [*re.findall(r"'(.)'", text), *re.findall(r" ([A-Za-z]|enter) ", text), "1", "0"]
    bindings = [*keys.APP, *keys.LISTING, *keys.TABLE]
    there = {each.key_display or each.key for each in bindings if isinstance(each, Binding)}
    assert {"?", ":", "/", "L", "q", "enter"} <= {*named}
    assert {*named} <= there
    assert "-y" in told
