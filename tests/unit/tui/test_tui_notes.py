"""Notes over a screen: few of them, and none twice."""

from __future__ import annotations

import asyncio

from textual.widgets._toast import Toast
from tui_answers import everything
from tui_stage import FakeSource, Stage, live, staged

from promovolvectl.tui.notes import NOTES_MAX
from promovolvectl.tui.screens.board import Board


def shown(stage: Stage) -> list[str]:
    """The toasts that stand on the screen, oldest first."""
    return [str(toast.render()) for toast in stage.app.screen.query(Toast)]


async def settled(stage: Stage, wanted: list[str]) -> None:
    for _ in range(100):
        if shown(stage) == wanted:
            return
        await stage.pilot.pause(0.01)
    raise AssertionError(f"{shown(stage)} instead of {wanted}")


def test_the_same_words_are_one_note_with_a_count() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            for _ in range(4):
                stage.app.say("no node is selected", alarming=True)
            stage.app.say("it was so already")
            stage.app.say("no node is selected", alarming=True)
            await settled(stage, ["it was so already", "no node is selected (5 times)"])
            assert "no node is selected (5 times)" in await stage.text()

    asyncio.run(look())


def test_a_key_that_is_held_down_leaves_one_note_and_room_for_the_screen() -> None:
    async def look() -> None:
        async with staged((80, 24), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("replays")
            for _ in range(12):
                await stage.tap("[")
            await settled(stage, ["this is the first page (12 times)"])
            assert isinstance(stage.app.screen, Board)

    asyncio.run(look())


def test_only_the_newest_few_are_shown_and_alarming_ones_longer() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            stage.app.say("bad", alarming=True)
            for number in range(9):
                stage.app.say(f"note {number}")
            await settled(stage, ["bad", "note 7", "note 8"])
            assert len(shown(stage)) == NOTES_MAX
            for number in range(3):
                stage.app.say(f"worse {number}", alarming=True)
            await settled(stage, ["worse 0", "worse 1", "worse 2"])
            stage.app.say("done")
            await settled(stage, ["worse 1", "worse 2", "done"])

    asyncio.run(look())
