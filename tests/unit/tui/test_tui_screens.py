"""The ten screens under a person's hands: going in and back, filters, freezing, what is asked when. How they look in
each state is in `test_tui_snapshots.py`."""

from __future__ import annotations

import asyncio

import pytest
from textual.binding import Binding
from tui_answers import everything
from tui_stage import (
    HOSTILE,
    HOSTILE_SHOWN,
    NODES,
    FakeSource,
    event,
    fits,
    live,
    me,
    node,
    push,
    refusal,
    staged,
)

from node.admin import protocol as p
from node.admin.protocol.operators import GetIdentity
from promovolvectl.tui import keys
from promovolvectl.tui.app import BOARDS, Options
from promovolvectl.tui.screens.board import Board
from promovolvectl.tui.screens.listing import Listing
from promovolvectl.tui.widgets.panel import Panel
from promovolvectl.tui.widgets.table import Table
from promovolvectl.tui.widgets.topbar import Bar

NAMES = [name for _, name, _ in keys.SCREENS]


def test_never_reached_says_so_on_every_screen_and_waits() -> None:
    async def look() -> None:
        source = FakeSource()
        source.away = refusal()
        async with staged((80, 24), source) as stage:
            await stage.until("OFFLINE")
            for name in NAMES:
                stage.app.go(name)
                screen = await stage.until("OFFLINE", "no data: no node has answered yet")
                fits(screen, (80, 24))
            assert not source.asked
            assert stage.app.is_running

    asyncio.run(look())


def test_a_screen_that_was_not_looked_at_before_all_was_lost_says_how_long_nobody_answers() -> None:
    async def look() -> None:
        async with staged((80, 24), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            stage.source.away = refusal()
            stage.source.play(refusal())
            await stage.until("OFFLINE")
            stage.later(60)
            stage.app.go("entities")
            assert "no node has answered yet" not in await stage.until("no data: nobody has answered for 1m")

    asyncio.run(look())


def test_a_row_whose_table_tells_all_is_opened_whole() -> None:
    name = "[red]x[/red] [/a-name-that-is-far-longer-than-its-column-may-ever-be][@click=app.quit]y[/]"

    async def look() -> None:
        async with staged((80, 24), FakeSource(otherwise=everything((name,)))) as stage:
            await live(stage)
            stage.app.go(f"advertiser/{name}")
            await stage.until("advertisers 1", "…")
            await stage.quiet()
            await stage.tap("enter")
            screen = await stage.until("ADVERTISER", "CAMPAIGNS")
            beside = screen.index("[red]", screen.index("ADVERTISER")) - screen.index("ADVERTISER")
            assert name in "".join(line[beside + 1 :].rstrip() for line in screen.splitlines())
            await stage.tap("escape")
            await stage.until("advertisers 1")

    asyncio.run(look())


def test_where_what_was_begun_is_listed_is_said_from_where_one_is() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            assert stage.app._way("replay/r-1") == "5 shows it"
            await stage.go("replays")
            assert stage.app._way("replay/r-1") == "it is listed here"
            await stage.tap("v")
            await stage.until("sites 1")
            assert stage.app._way("replay/r-1") == "v shows it"
            assert stage.app._way("op/op-1") == "7 shows it"
            await stage.go("nodes")
            assert stage.app._way("replay/r-1") == "5 then v shows it"
            await stage.tap("enter")
            await stage.until("shards of the node")
            assert stage.app._way("node/api-1") == "esc shows it"

    asyncio.run(look())


def test_hostile_names_are_shown_and_do_nothing_on_every_screen() -> None:
    async def look() -> None:
        rows = tuple(node(name, roles=(name,), why_not_ready=(name,), ready=False, address=name) for name in HOSTILE)
        bad = tuple(p.FaultRow(code=name, object=name, message=name, since=name) for name in HOSTILE)
        reasons = tuple(p.HealthReason(code=name, object=name, text=name) for name in HOSTILE)
        async with staged((80, 24), FakeSource(otherwise=everything(HOSTILE))) as stage:
            hostile = push(*rows, faults=bad, reasons=reasons, state="[bold]odd", coordinator=HOSTILE[2])
            stage.source.play(hostile, *(event(name, name, name) for name in HOSTILE))
            await stage.until("● live", "[BOLD]ODD")
            for name in NAMES:
                screen = await stage.go(name)
                fits(screen, (80, 24))
                assert any(shown in screen for shown in HOSTILE_SHOWN[:3]), screen
                assert "\x1b" not in screen
                assert "\u202e" not in screen
            for y in range(0, 23, 3):
                await stage.pilot.click(offset=(6, y))
            assert stage.app.is_running
            assert stage.app.return_code is None

    asyncio.run(look())


def test_all_hostile_names_stand_on_every_screen_as_they_are() -> None:
    """In each screen's own part, between the bars: the strip of nodes has them wherever one is."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything(HOSTILE))) as stage:
            faults = tuple(p.FaultRow(code=name, object=name, message=name, since=name) for name in HOSTILE)
            rows = (node(name, address=name) for name in HOSTILE)
            stage.source.play(push(*rows, faults=faults), *(event(name, name, name) for name in HOSTILE))
            await stage.until("● live")
            for name in NAMES:
                screen = await stage.go(name)
                own = "\n".join(screen.splitlines()[2:-3])
                assert [shown for shown in HOSTILE_SHOWN if shown not in own] == [], (name, screen)
                fits(screen, (120, 40))

    asyncio.run(look())


def test_below_the_smallest_size_one_line_tells_health_and_nothing_is_asked_for_more() -> None:
    async def look() -> None:
        async with staged((39, 9), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES, state="degraded"))
            screen = await stage.until("DEGRADED 3/3 up")
            assert [line for line in screen.splitlines() if line] == [screen.splitlines()[0]]
            await stage.pilot.press("4")
            await stage.pilot.pause()
            assert p.GetMaps() not in stage.source.asked
            stage.later(60)
            await stage.until("STALE 1m")
            await stage.pilot.resize_terminal(80, 24)
            await stage.until("maps 32")

    asyncio.run(look())


def test_the_filter_narrows_and_esc_clears_it() -> None:
    async def look() -> None:
        async with staged((80, 24), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.pilot.press("2", "slash", *"shards=94", "space", *"!api")
            await stage.until("nodes 2 of 3 · filter shards=94 !api")
            await stage.pilot.press("space", *"not", "enter")
            screen = await stage.until("nodes 1 of 3 · filter")
            assert "not ready" in screen
            assert stage.app.screen.query_one(Table).look.cursor == "entity-2"
            await stage.pilot.press("escape")
            await stage.until("nodes 3 ─")
            await stage.pilot.press("slash", *"nothing-like-it", "enter")
            await stage.until("nothing matches the filter, esc clears it")

    asyncio.run(look())


def test_a_filter_on_the_map_of_shards_lists_what_it_finds() -> None:
    async def look() -> None:
        async with staged((100, 30), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.pilot.press("3")
            await stage.until("map | list")
            await stage.pilot.press("slash", *"shard=124", "enter")
            await stage.until("shards 1 of 256 · filter shard=124")
            assert stage.app.screen.query_one(Table).look.cursor == "124"

    asyncio.run(look())


def test_a_table_keeps_cursor_order_and_filter_while_one_is_elsewhere() -> None:
    """Into a node, into its shard, and back out: the cursor follows its row though others come before it."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("nodes")
            await stage.pilot.press("down", "s", "S", "enter")
            await stage.until("entity-1  esc back", "shards of the node entity-1: 256")
            await stage.pilot.press("down", "down", "enter")
            await stage.until("entity-1 → 2", "entities of the shard")
            stage.source.play(push(*(node(f"before-{number}") for number in range(5)), *NODES))
            await stage.pilot.press("escape")
            await stage.until("shards of the node entity-1: 256")
            assert stage.app.screen.query_one(Table).look.cursor == "2"
            await stage.pilot.press("escape")
            await stage.until("nodes 8")
            look_ = stage.app.screen.query_one(Table).look
            assert look_.cursor == "entity-1"
            assert (look_.order.by, look_.order.reverse) == (0, True)
            await stage.pilot.press("3", "2")
            await stage.until("nodes 8")
            assert stage.app.screen.query_one(Table).look.cursor == "entity-1"

    asyncio.run(look())


def test_the_map_moves_by_arrows_and_leads_to_entities() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything(("entity-1", "entity-2")))) as stage:
            await live(stage)
            await stage.go("shards")
            await stage.pilot.press("down", "right")
            await stage.until("shard 17 0x11", "moving", "owner entity-2")
            await stage.pilot.press("enter")
            await stage.until("17  esc back", "entities of the shard")
            await stage.pilot.press("escape", "v")
            await stage.until("SHARD", "● running")

    asyncio.run(look())


def test_attention_leads_to_what_it_is_about() -> None:
    async def look() -> None:
        fault = p.FaultRow(code="E", object="node/entity-2", message="no answer", since="2026-11-29T14:02:11.204Z")
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES, faults=(fault,)))
            await stage.until("node/entity-2", "no answer", "1m")
            await stage.pilot.press("enter")
            await stage.until("nodes 3")
            await stage.quiet()
            assert stage.app.screen.query_one(Table).look.cursor == "entity-2"

    asyncio.run(look())


def test_events_follow_the_newest_until_one_looks_back() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            stage.source.play(*(event(text=f"number {number}") for number in range(60)), event("gap", gap=9))
            await stage.go("events")
            await stage.until("events 62 · 9 lost", "number 59")
            await stage.pilot.press("home")
            stage.source.play(event(text="a later one"))
            screen = await stage.until("events 63", "is up")
            assert "a later one" not in screen
            await stage.pilot.press("end")
            stage.source.play(event(text="the newest"))
            await stage.until("the newest")

    asyncio.run(look())


def test_freezing_keeps_the_picture_and_says_since_when() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.pilot.press("f")
            stage.later(5)
            stage.source.play(push(node("newcomer")))
            await stage.pilot.pause(0.3)
            screen = await stage.until("FROZEN 5.0s", "entity-1")
            assert "newcomer" not in screen
            await stage.pilot.press("f")
            await stage.until("newcomer")

    asyncio.run(look())


def test_what_is_not_seen_is_not_asked() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("serveindex")
            asked = stage.source.asked.count(p.GetMaps())
            assert asked == 1
            stage.later(30)
            await stage.go("operations")
            stage.later(30)
            await stage.quiet()
            assert stage.source.asked.count(p.GetMaps()) == asked
            await stage.go("serveindex")
            assert stage.source.asked.count(p.GetMaps()) == asked + 1

    asyncio.run(look())


def test_an_event_makes_what_depends_on_it_be_asked_again() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("shards")
            stage.later(2)
            await stage.quiet()  # the node that came up was an event, too
            before = stage.source.asked.count(p.GetShards())
            stage.later(2)
            await stage.quiet()
            assert stage.source.asked.count(p.GetShards()) == before
            stage.source.play(event("shard.moved", "shard/17", "entity-1 → entity-2"))
            await stage.pilot.pause()
            await stage.quiet()
            assert stage.source.asked.count(p.GetShards()) == before + 1

    asyncio.run(look())


@pytest.mark.parametrize("size", [(39, 9), (60, 16)])
@pytest.mark.parametrize("name", NAMES)
def test_the_keys_go_where_they_went_once_there_is_room_again(name: str, size: tuple[int, int]) -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go(name)
            for tabs in range(2):  # the table, then what stands beside it
                had = stage.app.screen.focused
                keys_before = (await stage.text()).splitlines()[-1]
                assert had is not None
                await stage.pilot.resize_terminal(*size)
                await stage.text()
                await stage.pilot.resize_terminal(120, 40)
                assert (await stage.text()).splitlines()[-1] == keys_before, tabs
                assert stage.app.screen.focused is had
                await stage.tap("tab")

    asyncio.run(look())


def test_a_row_is_gone_to_by_keys_after_the_screen_was_too_small() -> None:
    async def look() -> None:
        async with staged((39, 9), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES))
            await stage.until("3/3 up")
            stage.app.go("nodes")
            await stage.pilot.resize_terminal(120, 40)
            await stage.until("api-1", "Open")
            await stage.tap("down")
            assert stage.app.screen.query_one(Table).look.cursor == "entity-1"

    asyncio.run(look())


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (60, 16)])
def test_the_map_shows_the_row_that_the_cursor_is_on(size: tuple[int, int]) -> None:
    async def look() -> None:
        async with staged(size, FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("shards")
            for row in range(16):
                assert f" {row:X}x " in await stage.text()
                await stage.tap("down")
            for row in reversed(range(16)):
                assert f" {row:X}x " in await stage.text()
                await stage.tap("up")

    asyncio.run(look())


def test_the_palette_goes_to_objects_by_name_and_reads_no_markup() -> None:
    async def look() -> None:
        async with staged((100, 30), FakeSource(otherwise=everything())) as stage:
            await live(stage, *NODES, node("[red]x"))
            await stage.pilot.press("colon")
            await stage.pilot.press(*"[red]x")
            await stage.until("node [red]x")
            await stage.pilot.press("enter")
            await stage.until("nodes 4")
            await stage.quiet()
            assert stage.app.screen.query_one(Table).look.cursor == "[red]x"

    asyncio.run(look())


def test_each_theme_draws_and_colour_is_never_all_there_is() -> None:
    async def look() -> None:
        async with staged((100, 30), FakeSource(otherwise=everything()), Options(theme="mono")) as stage:
            await live(stage)
            plain = await stage.go("nodes")
            for name in ("promo-dark", "promo-light", "high-contrast"):
                stage.app.wear(name)
                assert await stage.text() == plain
                assert stage.app.current_theme.name == name

    asyncio.run(look())


def test_read_only_dims_keys_and_says_why() -> None:
    async def look() -> None:
        viewer = {GetIdentity: lambda _: me("viewer")}
        for source, options, why in (
            (FakeSource(otherwise=everything()), Options(read_only=True), "started with --read-only"),
            (FakeSource(viewer, everything()), Options(), "ana is a viewer"),
        ):
            async with staged((120, 40), source, options) as stage:
                await live(stage)
                await stage.go("nodes")
                await stage.pilot.press("D")
                await stage.until(why)
                assert len(stage.app.screen_stack) == 1 or stage.app.screen is stage.app.boards["nodes"]
                assert not [asked for asked in source.asked if type(asked).__name__.startswith("Stage")]

    asyncio.run(look())


def test_the_lock_locks_and_unlocks() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("nodes")
            await stage.pilot.press("L")
            await stage.until("READ-ONLY")
            await stage.pilot.press("D")
            await stage.until("it is locked: L unlocks")
            await stage.pilot.press("L", "D")
            await stage.until("promovolvectl node drain")

    asyncio.run(look())


def test_every_bar_and_panel_draws_text_only() -> None:
    """No widget of ours reads markup, whatever it is given."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            for name in NAMES:
                await stage.go(name)
                for kind in (Panel, Bar, Table):
                    for widget in stage.app.screen.query(kind):
                        assert widget._render_markup is False, widget

    asyncio.run(look())


def test_the_mouse_is_the_terminals_until_it_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("nodes")
            written: list[str] = []
            monkeypatch.setattr(stage.app._driver, "write", written.append)
            await stage.pilot.press("i")
            await stage.until("selects text now")
            assert "".join(written) == "\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
            written.clear()
            await stage.pilot.press("i")
            await stage.until("works here again")
            assert "".join(written) == "\x1b[?1000h\x1b[?1003h\x1b[?1015h\x1b[?1006h"

    asyncio.run(look())


def test_a_tick_while_the_screens_are_taken_down_finds_no_table_and_asks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It ended in a report of a mistake of ours."""
    ticked: list[bool] = []

    async def tick(self: Board) -> None:
        self.app._tick()
        self.app.paint()
        ticked.append(bool(self.query(Table)))

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("nodes")
            monkeypatch.setattr(Board, "_on_unmount", tick, raising=False)
        assert False in ticked

    asyncio.run(look())


def test_a_key_that_chooses_another_pane_in_another_table_names_them_all() -> None:
    """On Nodes, `c` shows a node's settings and a shard's check."""
    for board in (each for each in BOARDS if issubclass(each, Listing)):
        told = {each.key: each.tooltip for each in board.BINDINGS if isinstance(each, Binding)}
        tabs = [tab for view in board.VIEWS for level in view.levels for tab in level.tabs]
        assert tabs
        assert not [tab.name for tab in tabs if tab.name not in told[tab.key]], board.NAME
