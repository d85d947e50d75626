"""What a screen shows does not outlive what it was asked of: by age, by events, and while another screen was seen."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from test_tui_tables import answered, begun, each_level, place_of
from tui_answers import everything
from tui_stage import AT, FakeSource, Stage, event, live, staged

from node.admin import protocol as p
from node.admin.protocol.diagnosis import EventItem, EventList, GetEventList
from promovolvectl.tui.queries import Query
from promovolvectl.tui.screens.overview import Overview
from promovolvectl.tui.views import Level, View


@each_level
def test_every_answer_that_a_table_or_pane_shows_is_asked_anew(view: View, depth: int, level: Level) -> None:
    """Kept events, a letter, and all comparisons of replicas, shards and audit entries stood for as long as the
    dashboard ran."""
    answer = everything()
    state, where = place_of(view, depth, begun("thing"), answer)
    found: list[Query] = []
    for _ in range(2):  # an answer may raise the next question
        found += level.queries(state, where)
        state = answered(state, answer, level.queries(state, where))
    for tab in level.tabs:
        found += tab.queries(state, (*where, level.rows(state, where)[0].key))
    assert all(0 < query.every_s <= 60 for query in found)
    assert all(query.rest_s <= query.every_s for query in found)


def test_the_overview_asks_anew() -> None:
    assert all(0 < query.every_s <= 60 for query in Overview().queries(begun("thing")))


async def _asked_after(stage: Stage, kind: type[msgspec.Struct], seconds: float) -> int:
    """How often it is asked in so many seconds, of which each is looked at."""
    before = sum(isinstance(each, kind) for each in stage.source.asked)
    for _ in range(int(seconds)):
        stage.later(1)
        await stage.quiet()
    return sum(isinstance(each, kind) for each in stage.source.asked) - before


def test_what_was_started_elsewhere_comes_to_the_list_of_replays() -> None:
    """The command that starts one is another process: nothing is pushed here, neither then nor at its end."""
    replays: list[p.Replay] = []

    def started(identity: str, state: str) -> p.Replay:
        pages = p.ReplayPages(total=4, replayed=4 if state == "done" else 1, ignored=0, failed=0)
        return p.Replay(
            id=identity,
            state=state,
            scope="news.example",
            pages=pages,
            coverage_before=0.5,
            coverage_after=1.0,
            elapsed_s=1.0,
            started_at=AT,
        )

    async def look() -> None:
        source = FakeSource({p.ListReplays: lambda _: p.ReplayList(items=tuple(replays))}, everything())
        async with staged((120, 40), source) as stage:
            await live(stage)
            await stage.go("replays")
            assert "replays 0" in await stage.text()
            replays.append(started("r-1", "running"))
            stage.later(3)
            found = await stage.quiet()
            assert "replays 1" in found
            assert "running" in found
            replays[0] = started("r-1", "done")
            stage.later(3)
            assert "4/4" in await stage.quiet()

    asyncio.run(look())


def test_kept_events_go_on_with_what_happens() -> None:
    kept = [EventItem(at=AT, topic="node.up", object="node/a", text="was joining", node="a")]

    async def look() -> None:
        source = FakeSource({GetEventList: lambda _: EventList(items=tuple(kept), cursor="c")}, everything())
        async with staged((120, 40), source) as stage:
            await live(stage)
            await stage.go("events")
            await stage.tap("v")
            assert "kept events 1" in await stage.quiet()
            kept.append(EventItem(at=AT, topic="shard.moved", object="shard/17", text="a → b", node="b"))
            stage.source.play(event("shard.moved", "shard/17", "a → b"))
            await stage.pilot.pause()
            stage.later(2)
            assert "kept events 2" in await stage.quiet()
            kept.append(EventItem(at=AT, topic="node.reachable", object="node/a", text="is seen again", node="b"))
            stage.later(5)  # another node saw it, and this one was told nothing
            assert "kept events 3" in await stage.quiet()

    asyncio.run(look())


@pytest.mark.parametrize("elsewhere", ["operations", "nodes"])
def test_an_answer_from_before_an_event_is_not_taken_for_fresh_on_coming_back(elsewhere: str) -> None:
    """Events were heeded only for the screen that is seen: a map from before a move stood for its ten seconds."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            await live(stage)
            await stage.go("shards")
            await _asked_after(stage, p.GetShards, 3)
            await stage.go(elsewhere)
            stage.source.play(event("shard.moved", "shard/17", "entity-1 → entity-2"))
            await stage.pilot.pause()
            assert await _asked_after(stage, p.GetShards, 2) == 0, "nobody looks"
            before = stage.source.asked.count(p.GetShards())
            await stage.go("shards")
            assert stage.source.asked.count(p.GetShards()) == before + 1

    asyncio.run(look())
