"""What a key is about: the panel, the row and the object that a person has chosen, and none that they have not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tui_answers import everything
from tui_stage import FakeSource, node, push, staged

from node.admin import protocol as p
from promovolvectl.tui.attention import object_of
from promovolvectl.tui.screens.dialog import Dialog
from promovolvectl.tui.widgets.keybar import Shown, kept
from promovolvectl.tui.widgets.table import Table
from promovolvectl.tui.widgets.topbar import screens_line

NODES = tuple(node(f"entity-{number}") for number in (1, 2, 3))
SINCE = "2026-11-29T14:02:11.204Z"


def fault(about: str) -> p.FaultRow:
    return p.FaultRow(code="E", object=about, message="all is not as it should be " * 3, since=SINCE)


def held(*cordoned: str) -> tuple[p.NodeRow, ...]:
    """The nodes, of which these are cordoned."""
    return tuple(replace(row, cordoned=row.name in cordoned) for row in NODES)


def test_a_panel_shows_that_it_has_the_keys_and_opens_what_it_is_about() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("overview")
            for title, leads, screen in (
                ("operations", "operations", "operations | plans"),
                ("events", "events", "events | kept by the nodes"),
                ("members", "nodes", "─ about"),
            ):
                stage.app.screen.query_one(Table).focus()
                for _ in range(12):
                    if f"{title} ⏎ {leads}" in await stage.text():
                        break
                    await stage.tap("tab")
                assert (await stage.text()).count("⏎ ") >= 2, "its heading, and the line of keys"
                await stage.tap("enter")
                await stage.until(screen)
                await stage.go("overview")

    asyncio.run(look())


@pytest.mark.parametrize(
    ("about", "stands"),
    [
        ("node/entity-2", "─ nodes 3"),
        ("shards", "─ shard"),
        ("cluster", "checks | stuck"),
        ("slots", "slots | campaigns"),
    ],
)
def test_what_needs_attention_opens_the_screen_of_its_object(about: str, stands: str) -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES, faults=(fault("node/entity-1"), fault(about))))
            await stage.until("● live", about)
            await stage.tap("down", "enter")
            await stage.until(stands)

    asyncio.run(look())


def test_the_object_is_seen_however_far_its_columns_are_shifted() -> None:
    async def look() -> None:
        async with staged((80, 24), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES, faults=(fault("node/entity-2"),)))
            await stage.until("node/entity-2   1m all is not")
            await stage.tap("right", "right", "right")
            await stage.until("node/entity-2 all is not")

    asyncio.run(look())


def test_when_the_chosen_row_goes_none_is_chosen_and_no_key_is_about_the_next() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("nodes")
            await stage.tap("down")
            await stage.until("entity-2 ● up")
            stage.source.play(push(NODES[0], NODES[2]))
            await stage.until("nodes 2 · entity-2 is not here any more", "nothing is selected")
            await stage.tap("D")
            await stage.until("Drain: no node is selected")
            assert not isinstance(stage.app.screen, Dialog)
            stage.source.play(push(*NODES))
            await stage.until("nodes 3 ─")
            assert stage.app.screen.query_one(Table).row is not None, "it came back, and is chosen as before"
            stage.source.play(push(NODES[0], NODES[2]))
            await stage.until("is not here any more")
            await stage.tap("down")
            table = stage.app.screen.query_one(Table)
            assert table.row is not None
            assert table.row.key == "entity-3", "the first after the one that went"

    asyncio.run(look())


def test_a_row_about_the_same_object_takes_the_place_of_the_chosen_one_that_went() -> None:
    """A fault that becomes a reason against health is another row about the same node."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES, faults=(fault("node/entity-1"), fault("node/entity-2"))))
            await stage.until("● live", "node/entity-2")
            await stage.tap("down")
            table = stage.app.screen.query_one(Table)

            def chosen() -> str:
                return object_of(table.row.key) if table.row else ""

            assert chosen() == "node/entity-2"
            reasons = (p.HealthReason(code="E-OTHER", object="node/entity-2", text="goes"),)
            stage.source.play(push(*NODES, state="degraded", reasons=reasons, faults=(fault("node/entity-3"),)))
            await stage.until("goes", "node/entity-3")
            assert chosen() == "node/entity-2"
            stage.source.play(push(*NODES, faults=(fault("node/entity-3"),)))
            await stage.until("node/entity-2 needs no attention any more")
            stage.later(31)
            assert "needs no attention any more" not in await stage.text(), "it is no news any more"
            assert not chosen(), "no key is about the next all the same"
            assert chosen() == "", "nobody has looked at the one that took its place"
            stage.source.play(push(*NODES, state="degraded", reasons=reasons))
            await stage.until("goes")
            assert chosen() == "node/entity-2"

    asyncio.run(look())


@pytest.mark.parametrize(("view", "title"), [(0, "operations"), (1, "plans")])
def test_what_comes_newest_first_opens_on_the_newest_and_stays_where_the_cursor_was_moved(
    view: int, title: str
) -> None:
    async def look() -> None:
        known: Any = everything()
        names = ["w-1"]
        answers: dict[type, Any] = {
            p.ListOperations: lambda _: p.OperationList(
                items=tuple(known(p.GetOperation(id=name)) for name in reversed(names))
            ),
            p.GetPlans: lambda _: p.PlanList(
                items=tuple(replace(known(p.GetPlan(id=name)), id=name) for name in names)
            ),
        }
        async with staged((120, 40), FakeSource(answers, known)) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("operations")
            await stage.tap(*["v"] * view)
            table = stage.app.screen.query_one(Table)

            async def chosen_with(newest: str) -> str:
                names.append(newest)
                stage.later(6)
                stage.source.play(push(*NODES))  # it is live
                stage.app.look()
                await stage.until(f"{title} {len(names)}", newest)
                return table.look.cursor

            assert await chosen_with("w-2") == "w-2"
            assert await chosen_with("w-3") == "w-3"
            await stage.tap("down")
            assert await chosen_with("w-4") == "w-2"
            await stage.tap("home")
            assert await chosen_with("w-5") == "w-4", "whoever went there wants that one"

    asyncio.run(look())


def test_a_line_of_keys_with_no_room_leaves_away_what_is_known_everywhere_and_cuts_nothing() -> None:
    words = "Open Filter Back View Move Rebalance Keys Commands Quit"
    names = "table.open list.filter list.back list.view change.move change.rebalance help palette quit"
    line = [Shown(name, "k", "k", word, True) for name, word in zip(names.split(), words.split(), strict=True)]

    def told(width: int) -> str:
        return "  ".join(f"{each.sign} {each.words}" for each in kept(line, width))

    whole = "  ".join(f"k {word}" for word in words.split())
    assert told(len(whole)) == whole
    assert told(len(whole) - 1) == "k Open  k Filter  k Back  k View  k Move  k Rebalance  k Keys  k Quit"
    assert told(36) == "k Open  k Move  k Rebalance  k Keys"
    assert told(33) == "k Open  k Move  k Keys"
    assert told(0) == "k Keys"


def test_a_key_that_does_either_of_two_things_says_which() -> None:
    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((120, 40), source) as stage:
            stage.source.play(push(*held("entity-2")[:2], node("entity-3", ready=False, why_not_ready=("draining",))))
            await stage.until("● live")
            await stage.go("nodes")
            await stage.until("C Cordon", "D Drain")
            await stage.tap("down")
            await stage.until("C Uncordon", "D Drain")
            await stage.tap("down")
            await stage.until("C Cordon", "D Undrain", "◌ draining")

    asyncio.run(look())


def test_a_name_that_nothing_has_is_answered_in_the_palette() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.pilot.press("colon")
            await stage.pilot.press(*"zzstart")
            await stage.until("nothing shown so far is called zzstart")

    asyncio.run(look())


def test_screens_have_names_at_80_columns_and_keys_where_there_is_less() -> None:
    for name in ("overview", "operations", "serveindex"):
        words = "".join(text for text, _ in screens_line(name, 78))
        assert [word for word in ("Nodes", "Shard", "Index", "Ops", "Doctor") if word not in words] == []
        assert len(words) <= 78
    assert "1 2 3" in "".join(text for text, _ in screens_line("doctor", 40))
