"""`P`: other clusters, also ones that are away or whose profile is gone; nothing waits for the one that is left."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

import pytest
from tui_answers import everything
from tui_stage import FakeSource, Stage, node, push, refusal, staged

from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.screens.profiles import Known, Profiles

GONE = CommandFailed(ExitStatus.NOT_FOUND, "E-PROFILE-UNKNOWN", "there is no profile 'gone'")


class FakeClusters:
    """Profiles of this person, and what stands behind each."""

    def __init__(self, sources: Mapping[str, FakeSource | CommandFailed]) -> None:
        self.sources = dict(sources)
        self.unreadable: CommandFailed | None = None

    def known(self) -> Iterable[Known]:
        if self.unreadable is not None:
            raise self.unreadable
        return [Known(name, f"c-{name}", 3) for name in self.sources]

    def open(self, name: str) -> FakeSource:
        found = self.sources[name]
        if isinstance(found, CommandFailed):
            raise found
        return found


def cluster(*names: str) -> FakeSource:
    source = FakeSource(otherwise=everything())
    source.play(push(*(node(name) for name in names)))
    return source


async def choose(stage: Stage, name: str) -> None:
    await stage.pilot.press("P")
    await stage.until("Profiles", name)
    listed = [each.name for each in stage.app.screen._known] if isinstance(stage.app.screen, Profiles) else []
    await stage.pilot.press(*["down"] * listed.index(name), "enter")


def test_profiles_that_have_no_room_are_gone_to_by_keys() -> None:
    async def look() -> None:
        here = cluster("alpha-1")
        names = ["local", *(f"other-{number:02}" for number in range(60))]
        async with staged((80, 24), here, clusters=FakeClusters(dict.fromkeys(names, here))) as stage:
            await stage.until("● live", "alpha-1")
            await stage.pilot.press("P")
            assert "other-59" not in await stage.until("Profiles", "other-00")
            await stage.pilot.press("end")
            await stage.until("other-59")

    asyncio.run(look())


def test_another_profile_is_shown_and_the_one_before_is_let_go() -> None:
    async def look() -> None:
        here, there = cluster("alpha-1"), cluster("omega-1")
        clusters = FakeClusters({"local": here, "other": there})
        async with staged((100, 30), here, clusters=clusters) as stage:
            await stage.until("● live", "alpha-1")
            await choose(stage, "other")
            text = await stage.until("● live", "omega-1")
            assert "alpha-1" not in text
            assert stage.app.state.profile == "other"
            assert here.closed
            assert not there.closed
            asked = len(here.asked)
            await stage.go("shards")
            assert len(here.asked) == asked
            assert there.asked

    asyncio.run(look())


def test_a_cluster_that_is_away_is_shown_as_away_and_left_again_at_once() -> None:
    async def look() -> None:
        here, away, back = cluster("alpha-1"), FakeSource(), cluster("alpha-2")
        away.away = refusal("no node could be reached")
        clusters = FakeClusters({"local": here, "dead": away})
        async with staged((100, 30), here, clusters=clusters) as stage:
            await stage.until("● live", "alpha-1")
            await choose(stage, "dead")
            text = await stage.until("OFFLINE", "no node could be reached", "dead")
            assert "alpha-1" not in text, "what another cluster said must not stand under this name"
            assert stage.app.is_running
            clusters.sources["local"] = back
            await choose(stage, "local")
            await stage.until("● live", "alpha-2")
            assert away.closed

    asyncio.run(look())


def test_looking_and_staying_asks_nobody_and_changes_nothing() -> None:
    async def look() -> None:
        here, other = cluster("alpha-1"), cluster("omega-1")
        async with staged((100, 30), here, clusters=FakeClusters({"local": here, "other": other})) as stage:
            await stage.until("● live", "alpha-1")
            for last in ("escape", "P", "enter"):  # the last chooses the first, which is the one that is shown
                await stage.pilot.press("P")
                await stage.until("Profiles")
                await stage.pilot.press(last)
                await stage.until("● live", "alpha-1")
            assert (here.closed, other.subscriptions) == (False, 0)

    asyncio.run(look())


@pytest.mark.parametrize("whole", [True, False], ids=["one profile", "the whole file"])
def test_a_profile_that_is_gone_or_a_file_that_is_broken_is_said_and_ends_nothing(whole: bool) -> None:
    async def look() -> None:
        here = cluster("alpha-1")
        clusters = FakeClusters({"local": here, "gone": GONE})
        async with staged((100, 30), here, clusters=clusters) as stage:
            await stage.until("● live", "alpha-1")
            if whole:
                await choose(stage, "gone")
                await stage.until("there is no profile 'gone'")
            else:
                clusters.unreadable = CommandFailed(ExitStatus.UNUSABLE_CONFIG, "E-CONFIG", "line 3 is not TOML")
                await stage.pilot.press("P")
                await stage.until("line 3 is not TOML")
            assert stage.app.is_running
            assert not here.closed
            await stage.until("● live", "alpha-1")

    asyncio.run(look())
