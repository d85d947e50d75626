"""Changes by name: the same dialogs as the keys open, under the same locks."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from textual.app import App
from tui_answers import everything
from tui_stage import NODES, FakeSource, Stage, live, me, node, staged

from node.admin import protocol as p
from node.admin.protocol.operators import GetIdentity
from promovolvectl.tui.actions import Action
from promovolvectl.tui.app import BOARDS, Dashboard, Options
from promovolvectl.tui.destinations import destination_of
from promovolvectl.tui.screens.dialog import Dialog
from promovolvectl.tui.screens.listing import Listing

ACTIONS = [(board.NAME, each) for board in BOARDS if issubclass(board, Listing) for each in board.ACTIONS]


async def typed(stage: Stage, words: str, *wanted: str) -> None:
    """Opens the palette and types; waits for what it finds, and takes the first."""
    await stage.tap("colon")
    await stage.pilot.press(*("space" if each == " " else each for each in words))
    await stage.until(*wanted)
    await stage.pilot.press("enter")


def staged_for(source: FakeSource) -> list[msgspec.Struct]:
    return [asked for asked in source.asked if type(asked).__name__.startswith("Stage")]


@pytest.mark.parametrize(("screen", "action"), ACTIONS, ids=[f"{name}-{each.name}" for name, each in ACTIONS])
def test_every_change_that_has_a_key_is_found_by_name(screen: str, action: Action) -> None:
    """'drain' and 'move' found nothing: the palette said that changes have keys on their screens."""
    assert action.of or action.whole
    for noun in action.of:
        place = destination_of(f"{noun}/x")
        assert place is not None
        assert place.screen == screen or action.whole, "what it is done to is shown where its key is"


def test_what_the_palette_asks_of_the_application_is_no_name_of_textuals() -> None:
    assert not [name for name in ("actions", "chosen", "offer") if hasattr(App, name)]
    assert all(hasattr(Dashboard, name) for name in ("actions", "chosen", "offer"))


@pytest.mark.parametrize(
    ("words", "found", "shows"),
    [
        ("drain entity-1", "drain node entity-1", "promovolvectl node drain entity-1"),
        ("uncordon", "uncordon node entity-3", "promovolvectl node uncordon entity-3"),
        ("rebalance", "rebalance shards", "promovolvectl shard rebalance"),
        ("repair shards", "repair shards", "promovolvectl shard repair"),
        ("replay all", "replay all that misses something", "promovolvectl replay start --all --missing --detach"),
        ("move shard 17", "move shard 17", "to which node"),
    ],
)
def test_a_change_by_name_opens_the_dialog_of_its_key_on_whichever_screen(words: str, found: str, shows: str) -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage, *NODES, node("entity-3", cordoned=True))
            await stage.until("entity-3")
            await stage.quiet()  # the overview asks for the map
            await typed(stage, words, found)
            await stage.until(shows)
            assert isinstance(stage.app.screen, Dialog)
            await stage.tap("escape")
            assert stage.app.screen is stage.app.boards["overview"]

    asyncio.run(look())


@pytest.mark.parametrize(
    ("role", "options", "why"),
    [
        ("operator", Options(read_only=True), "Drain: it was started with --read-only"),
        ("viewer", Options(), "Drain: ana is a viewer"),
    ],
)
def test_where_nothing_can_be_changed_a_change_by_name_says_why(role: str, options: Options, why: str) -> None:
    async def look() -> None:
        source = FakeSource({GetIdentity: lambda _: me(role)}, everything())
        async with staged((120, 40), source, options) as stage:
            await live(stage)
            await stage.quiet()
            await typed(stage, "drain entity-1", "drain node entity-1")
            await stage.until(why)
            assert stage.app.screen is stage.app.boards["overview"]
            assert not staged_for(source)

    asyncio.run(look())


def test_before_anything_is_typed_changes_of_the_row_under_the_cursor_are_offered() -> None:
    async def look() -> None:
        async with staged((120, 60), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("nodes")
            await stage.tap("down")
            await stage.tap("colon")
            found = await stage.until("cordon node entity-1", "drain node entity-1", "rebalance shards")
            assert "node entity-2" not in found.partition("Search")[2]

    asyncio.run(look())


def test_a_change_of_something_that_went_meanwhile_says_so() -> None:
    async def look() -> None:
        source = FakeSource({p.GetShards: lambda _: p.ShardList(items=())}, everything())
        async with staged((120, 40), source) as stage:
            await live(stage, node("entity-1"), node("entity-2", reachable=False))
            await typed(stage, "drain entity-2", "drain node entity-2")
            await stage.until("entity-2 is unreachable:")
            assert not staged_for(source)

    asyncio.run(look())
