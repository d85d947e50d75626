"""Long lists: ten thousand are there, a page is fetched, and the cluster narrows what it can narrow."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tui_answers import everything
from tui_stage import FakeSource, node, push, staged

from node.admin import protocol as p
from promovolvectl.tui.widgets.table import Table
from promovolvectl.tui.windows import PAGE, Window, parted

MANY = 10_000
IDS = [f"c{number:05d}" for number in range(MANY)]


def entities(request: p.GetEntities) -> p.EntityList:
    """As a node answers: those behind `after`, at most `limit`."""
    ids = [each for each in IDS if f"campaign/{each}" > request.after and request.kind in ("", "campaign")]
    shown = ids[: request.limit]
    items = tuple(
        p.EntityItem(kind="campaign", id=each, shard=1, node="entity-1", state="running", mailbox=0, last_used="")
        for each in shown
    )
    following = f"campaign/{shown[-1]}" if len(ids) > len(shown) else ""
    return p.EntityList(items=items, total=MANY if not request.kind else len(ids), next=following)


def sites(request: p.GetSites) -> p.SiteList:
    model = everything()(p.GetSites()).items[0]  # type: ignore[attr-defined]
    ids = [each for each in IDS if each > request.after][: request.limit or MANY]
    items = tuple(msgspec.structs.replace(model, site=each) for each in ids)
    return p.SiteList(items=items, next=ids[-1] if ids and ids[-1] != IDS[-1] else "")


def asked_of(source: FakeSource, kind: type[Any]) -> list[Any]:
    return [each for each in source.asked if isinstance(each, kind)]


def test_entities_come_by_pages_and_a_filter_goes_to_the_cluster() -> None:
    async def look() -> None:
        source = FakeSource({p.GetEntities: entities}, everything())
        async with staged((120, 40), source) as stage:
            source.play(push(node("entity-1")))
            await stage.until("● live")
            await stage.go("entities")
            await stage.until("entities 200 of 10 000 in memory page 1 ]", "campaign/c00000")
            await stage.pilot.press("end", "right_square_bracket")
            await stage.until("page 2 [ ]", "campaign/c00200")
            assert stage.app.screen.query_one(Table).look.cursor == "campaign/c00200"
            await stage.pilot.press("left_square_bracket", "left_square_bracket")
            await stage.until("page 1 ]", "this is the first page")
            await stage.pilot.press("right_square_bracket", "slash", *"type=site", "enter")
            await stage.until("entities 0 of 0", "empty: none in memory")
            await stage.pilot.press("escape")
            await stage.until("page 1 ]", "campaign/c00000")
            asked = asked_of(source, p.GetEntities)
            assert p.GetEntities(limit=PAGE, after="campaign/c00199") in asked
            assert p.GetEntities(limit=PAGE, kind="site") in asked
            assert {each.limit for each in asked} == {PAGE}

    asyncio.run(look())


@pytest.mark.parametrize(("board", "turns"), [("serving", 0), ("replays", 1)])
def test_sites_come_by_pages_and_coverage_is_asked_for_these(board: str, turns: int) -> None:
    async def look() -> None:
        source = FakeSource({p.GetSites: sites}, everything())
        async with staged((120, 40), source) as stage:
            source.play(push(node("entity-1")))
            await stage.until("● live")
            await stage.go(board)
            for _ in range(turns):
                await stage.pilot.press("v")
            await stage.quiet()
            await stage.until("page 1 ]")
            await stage.pilot.press("right_square_bracket")
            await stage.quiet()
            await stage.until("page 2 [ ]")
            assert {each.limit for each in asked_of(source, p.GetSites)} == {PAGE}
            assert p.GetCoverage(sites=tuple(IDS[PAGE : 2 * PAGE])) in source.asked
            assert p.GetCoverage() not in source.asked

    asyncio.run(look())


def test_a_window_turns_its_pages_and_says_where_it_is() -> None:
    first = Window(terms=(("node", "a"),))
    second = first.onward("x")
    assert (first.after, second.after, second.onward("y").after) == ("", "x", "y")
    assert (second.back(), first.back()) == (first, first)
    assert (first.term("node"), first.term("type")) == ("a", "")
    assert (first.words(more=False), first.words(more=True)) == ("", "page 1 ]")
    assert (second.words(more=False), second.words(more=True)) == ("page 2 [", "page 2 [ ]")


@pytest.mark.parametrize(
    ("needle", "terms", "left"),
    [
        ("", (), ""),
        ("node=a word", (("node", "a"),), "word"),
        ("NODE=a !b other=c", (("node", "a"),), "!b other=c"),
        ("node= node", (), "node= node"),
        ("node!=a node>1", (), "node!=a node>1"),
    ],
)
def test_words_of_a_filter_go_to_the_cluster_or_stay(needle: str, terms: object, left: str) -> None:
    assert parted(needle, ("node", "type")) == (terms, left)
