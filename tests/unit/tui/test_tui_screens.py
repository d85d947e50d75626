"""The screens as a person sees them, at three sizes, in every state of the connection."""

from __future__ import annotations

import asyncio

import pytest
from rich.cells import cell_len
from tui_stage import HOSTILE, HOSTILE_SHOWN, SIZES, FakeSource, Stage, event, node, push, refusal, shards, staged

from node.admin import protocol as p
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.screens.help import Help
from promovolvectl.tui.widgets.nodetable import NodeTable
from promovolvectl.tui.widgets.panel import Panel
from promovolvectl.tui.widgets.topbar import Bar

NODES = (
    node("api-1", roles=("api",), shards=0),
    node("entity-1"),
    node("entity-2", ready=False, why_not_ready=("replica",)),
)
ANSWERS = {
    p.GetShards: lambda _: shards("entity-1", "entity-2"),
    p.GetNode: lambda request: p.NodeShow(
        node=node(request.node),
        phases=("joined: done",),
        counters=(p.Counter(name="region.delivered", count=1234), p.Counter(name="never", count=0)),
        settings=(("node.name", request.node),),
    ),
}
at_every_size = pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
on_every_screen = pytest.mark.parametrize("key", ["1", "2"])


def fits(screen: str, size: tuple[int, int]) -> bool:
    return all(cell_len(line) <= size[0] for line in screen.splitlines())


async def live(stage: Stage) -> None:
    stage.source.play(push(*NODES), event())
    await stage.until("● live", "HEALTHY")


@at_every_size
def test_overview_live(size: tuple[int, int]) -> None:
    async def look() -> None:
        async with staged(size, FakeSource(ANSWERS)) as stage:
            await live(stage)
            screen = await stage.until("not ready")
            assert fits(screen, size)
            for part in ("local", "api-1 · 0.0s", "members", "entity-2", "38 112", "converged", "● api-1", "2 Nodes"):
                assert part in screen, part
            if size[0] >= 80:
                for part in ("1 204.5", "replicas agree", "coverage 1.000", "faults", "node.up", "allocated 255/256"):
                    assert part in screen, part
            if size[0] >= 120:
                map_ = await stage.until("a entity-1 128", "▲ moving 1")
                assert " 1x a ▲ a b" in map_

    asyncio.run(look())


@at_every_size
def test_nodes_live_and_one_opened(size: tuple[int, int]) -> None:
    async def look() -> None:
        async with staged(size, FakeSource(ANSWERS)) as stage:
            await live(stage)
            await stage.pilot.press("2")
            screen = await stage.until("nodes 3 of 3", "880 MiB")
            assert fits(screen, size)
            assert stage.source.asked.count(p.GetNode(node="entity-1")) == 0, "counters are asked for on demand only"
            await stage.pilot.press("down", "enter")
            screen = await stage.until("region.delivered 1 234", "joined: done", "incarnation 7")
            assert "never" not in screen
            assert fits(screen, size)
            assert ("nodes 3 of 3" in screen) == (size[0] > 60)
            await stage.pilot.press("escape")
            await stage.until("nodes 3 of 3")

    asyncio.run(look())


@at_every_size
@on_every_screen
def test_stale_then_offline_keep_the_data_with_their_age_and_come_back(size: tuple[int, int], key: str) -> None:
    async def look() -> None:
        async with staged(size, FakeSource(ANSWERS)) as stage:
            await live(stage)
            await stage.pilot.press(key)
            stage.later(31)
            screen = await stage.until("STALE", "31s", "the node went quiet", "entity-1")
            assert "● live" not in screen
            stage.source.away = refusal("no node could be reached\n  127.0.0.1:1 (api-1): connection refused")
            stage.source.play(refusal("the connection was lost"))
            await stage.pilot.pause(0.3)
            screen = await stage.until("OFFLINE", "r now", "no node could be", "entity-1")
            assert fits(screen, size)
            stage.source.away = None
            stage.source.play(push(*NODES))
            await stage.pilot.press("r")
            await stage.until("● live · api-1 · 0.0s")
            assert stage.source.subscriptions >= 3

    asyncio.run(look())


@at_every_size
@on_every_screen
def test_never_reached_says_so_everywhere_and_waits(size: tuple[int, int], key: str) -> None:
    async def look() -> None:
        source = FakeSource()
        source.away = refusal()
        async with staged(size, source) as stage:
            await stage.pilot.press(key)
            screen = await stage.until("OFFLINE", "next try", "no data: no node has answered yet")
            assert fits(screen, size)
            assert stage.app.is_running

    asyncio.run(look())


@at_every_size
def test_a_cluster_without_members_and_one_that_denies(size: tuple[int, int]) -> None:
    async def look() -> None:
        async with staged(size) as stage:
            await stage.until("connecting", "loading: waiting")
            stage.source.play(push())
            await stage.until("● live", "empty: the cluster has no members")
            await stage.pilot.press("2")
            await stage.until("nodes 0 of 0", "no node is selected")
        source = FakeSource()
        source.away = refusal("this key is not known", ExitStatus.NOT_ALLOWED)
        async with staged(size, source) as stage:
            await stage.until("DENIED", "this key is not known", "not permitted")

    asyncio.run(look())


@at_every_size
@on_every_screen
def test_hostile_names_are_shown_and_do_nothing(size: tuple[int, int], key: str) -> None:
    async def look() -> None:
        rows = tuple(node(name, roles=(name,), why_not_ready=(name,), ready=False, address=name) for name in HOSTILE)
        bad = tuple(p.FaultRow(code=name, object=name, message=name, since=name) for name in HOSTILE)
        reasons = tuple(p.HealthReason(code=name, object=name, text=name) for name in HOSTILE)
        answers = {
            p.GetShards: lambda _: shards(*HOSTILE),
            p.GetNode: lambda request: p.NodeShow(
                node=node(request.node),
                phases=HOSTILE,
                counters=tuple(p.Counter(name=name, count=1) for name in HOSTILE),
                settings=tuple((name, name) for name in HOSTILE),
                observers_against=HOSTILE,
            ),
        }
        async with staged(size, FakeSource(answers)) as stage:
            hostile = push(*rows, faults=bad, reasons=reasons, state="[bold]odd", coordinator=HOSTILE[2])
            stage.source.play(hostile, *(event(name, name, name) for name in HOSTILE))
            await stage.pilot.press(key)
            screen = await stage.until("● live", *(HOSTILE_SHOWN if key == "1" else HOSTILE_SHOWN[:3]), "[BOLD]ODD")
            assert "\x1b" not in screen
            assert "\u202e" not in screen
            assert "this panel failed" not in screen
            if key == "2":
                await stage.pilot.press("enter")
                assert "this panel failed" not in await stage.until("asked 0.0s ago")
            if size == SIZES[0]:
                for y in range(size[1] - 1):
                    await stage.pilot.click(offset=(6, y))
            assert stage.app.is_running
            assert stage.app.return_code is None

    asyncio.run(look())


def test_below_the_smallest_size_one_line_tells_health() -> None:
    async def look() -> None:
        async with staged((39, 9)) as stage:
            stage.source.play(push(*NODES, state="degraded"))
            screen = await stage.until("DEGRADED 3/3 up")
            assert [line for line in screen.splitlines() if line] == [screen.splitlines()[0]]
            stage.later(60)
            await stage.until("STALE 1m")
            await stage.pilot.resize_terminal(80, 24)
            await stage.until("members", "2 Nodes")

    asyncio.run(look())


def test_the_filter_narrows_by_words_and_esc_clears_it() -> None:
    async def look() -> None:
        async with staged((80, 24)) as stage:
            await live(stage)
            await stage.pilot.press("2", "slash", *"ready_entity-2")
            await stage.until("nodes 0 of 3", "no node matches the filter")
            await stage.pilot.press(*["backspace"] * 20, *"not", "space", *"entity", "enter")
            screen = await stage.until("nodes 1 of 3 · filter not entity")
            assert "not ready" in screen
            assert stage.app.screen.query_one(NodeTable).choice.cursor == "entity-2"
            await stage.pilot.press("escape")
            await stage.until("nodes 3 of 3 ─")

    asyncio.run(look())


def test_q_in_the_filter_is_a_letter_and_elsewhere_quits() -> None:
    async def look() -> None:
        async with staged((80, 24)) as stage:
            await live(stage)
            await stage.pilot.press("2", "slash", "q", "1")
            await stage.until("filter q1")
            await stage.pilot.press("escape", "q")
            await stage.pilot.pause()
            assert stage.app.return_code == 0
            assert stage.source.closed

    asyncio.run(look())


def test_the_cursor_stays_on_its_node_when_others_come_and_go() -> None:
    async def look() -> None:
        async with staged((80, 24)) as stage:
            stage.source.play(push(node("b"), node("c")))
            await stage.until("● live")
            await stage.pilot.press("2", "down")
            table = stage.app.screen.query_one(NodeTable)
            assert table.choice.cursor == "c"
            stage.source.play(push(node("a"), node("b"), node("c"), node("d")))
            await stage.until("nodes 4 of 4")
            assert table.choice.cursor == "c"
            stage.source.play(push(node("a"), node("b")))
            await stage.until("nodes 2 of 2")
            assert table.choice.cursor == "a"

    asyncio.run(look())


def test_every_row_of_a_large_cluster_can_be_reached() -> None:
    async def look() -> None:
        async with staged((60, 16)) as stage:
            stage.source.play(push(*(node(f"n-{number}") for number in range(300)), node("z-bad", reachable=False)))
            overview = await stage.until("● live", "? z-bad", "more")
            assert "+" in overview.splitlines()[-2], "the strip counts those without room"
            await stage.pilot.press("2", "end")
            await stage.until("z-bad", "unreachable", "n-299")

    asyncio.run(look())


@pytest.mark.parametrize("screen", ["1", "2"])
def test_no_key_asks_for_a_change(screen: str) -> None:
    """Every key that a terminal sends: what is asked of the cluster are reads."""

    async def look() -> None:
        async with staged((80, 24), FakeSource(ANSWERS)) as stage:
            await live(stage)
            letters = "abcdefghijklmnoprstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # q quits, and has a test of its own
            await stage.pilot.press(screen, "enter", *letters, *"34567890", "enter", "tab", "space", "delete", "escape")
            assert stage.app.is_running
            assert {type(asked) for asked in stage.source.asked} <= {p.GetShards, p.GetNode}

    asyncio.run(look())


def test_the_help_lists_the_keys_that_work_here_and_closes() -> None:
    async def look() -> None:
        async with staged((80, 24)) as stage:
            await live(stage)
            await stage.pilot.press("2", "question_mark")
            await stage.until("Keys", "read-only", "Filter", "down j", "Quit")
            assert isinstance(stage.app.screen, Help)
            stage.source.play(push(node("late")))
            await stage.until("late")
            await stage.pilot.press("q")
            assert not isinstance(stage.app.screen, Help)
            assert stage.app.is_running

    asyncio.run(look())


def test_a_panel_that_fails_says_so_in_its_place_and_the_rest_goes_on() -> None:
    async def look() -> None:
        async with staged((80, 24)) as stage:
            await live(stage)
            broken = stage.app.screen.query_one("#serving", Panel)
            broken._draw = lambda *_: [[(str(1 // 0), "")]]
            stage.source.play(push(node("after")))
            await stage.until("this panel failed: ZeroDivision", "after", "replicas agree")

    asyncio.run(look())


def test_members_and_bars_have_room_again_after_a_layout_that_was_lost() -> None:
    async def look() -> None:
        async with staged((80, 24)) as stage:
            stage.source.play(push())
            await stage.until("● live")
            panels = [stage.app.screen.query_one(name, Panel) for name in ("#members", "#shards")]
            for panel in panels:
                panel.refresh = lambda *_, **__: None  # type: ignore[method-assign]
            stage.source.play(push(node("entity-1"), node("entity-2")))
            await stage.pilot.pause(0.2)
            await stage.text()
            for panel in panels:
                del panel.refresh  # type: ignore[method-assign]
            await stage.until("● entity-2", "entity-2 █")

    asyncio.run(look())


def test_nothing_is_painted_when_nothing_changed() -> None:
    async def look() -> None:
        async with staged((120, 40)) as stage:
            await live(stage)
            await stage.text()
            painted: list[object] = []
            for widget in stage.app.screen.query("Panel, Bar"):
                assert isinstance(widget, (Panel, Bar))
                widget.refresh = lambda *_, **__: painted.append(1)  # type: ignore[method-assign]
            stage.app.paint()
            assert not painted
            stage.later(1)
            stage.app.paint()
            assert painted, "ages go on"

    asyncio.run(look())


def test_the_map_is_asked_for_when_shards_changed_and_not_again() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(ANSWERS)) as stage:
            await live(stage)
            await stage.until("a entity-1 128")
            stage.source.play(push(*NODES), push(*NODES), event("node.up", text="again"))
            await stage.until("again")
            assert stage.source.asked == [p.GetShards()]

    asyncio.run(look())
