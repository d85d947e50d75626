"""What is shown until the first answer: the last picture, as old as it is, of this cluster and no other."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from tui_stage import META, FakeSource, node, push, refusal, staged

from node.admin.protocol import ClusterStatus
from node.core.clock import MS, SECOND, ManualClock
from promovolvectl.client.profiles import Profile
from promovolvectl.tui.app import Dashboard, Options
from promovolvectl.tui.incoming import Pushed
from promovolvectl.tui.kept import keep, kept
from promovolvectl.tui.start import Wanted, run
from promovolvectl.tui.state import reduce

SEEN = push(node("alpha-1"), node("alpha-2"))
SEEN_MS = 1_795_960_991_204  # META's observed_at
HOUR_MS = 3_600_000


def test_a_picture_comes_back_with_its_age(tmp_path: Path) -> None:
    keep(tmp_path / "cache", SEEN)
    clock = ManualClock(mono_ns=7 * SECOND, wall_ms=SEEN_MS + 3 * HOUR_MS)
    found = kept(tmp_path / "cache", "c-0001", clock)
    assert found is not None
    assert found.push == SEEN
    assert found.at_ns == 7 * SECOND - 3 * HOUR_MS * MS
    (path,) = (tmp_path / "cache").iterdir()
    assert path.stat().st_mode & 0o077 == 0
    keep(tmp_path / "cache", push(node("alpha-1")))
    assert list((tmp_path / "cache").iterdir()) == [path]


def test_a_clock_that_went_back_makes_no_picture_of_the_future(tmp_path: Path) -> None:
    keep(tmp_path, SEEN)
    found = kept(tmp_path, "c-0001", ManualClock(mono_ns=SECOND, wall_ms=SEEN_MS - HOUR_MS))
    assert found is not None
    assert found.at_ns < 0


@pytest.mark.parametrize("text", ["", "{}", "[1]", "\udcff", '{"kind": "opened", "at_ns": 1, "where": "x"}'])
def test_a_file_that_is_none_is_no_picture(text: str, tmp_path: Path) -> None:
    (tmp_path / "seen-c-0001.json").write_text(text, encoding="utf-8", errors="surrogateescape")
    assert kept(tmp_path, "c-0001", ManualClock()) is None


def test_another_clusters_picture_and_a_name_that_leads_elsewhere_are_not_taken(tmp_path: Path) -> None:
    keep(tmp_path, SEEN)
    (tmp_path / "seen-c-0001.json").rename(tmp_path / "seen-c-0002.json")
    clock = ManualClock(wall_ms=SEEN_MS)
    assert kept(tmp_path, "c-0002", clock) is None
    assert kept(tmp_path, "", clock) is None
    odd = msgspec.structs.replace(SEEN, meta=msgspec.structs.replace(META, cluster_id="../../x"))
    keep(tmp_path / "a" / "b", odd)
    assert not (tmp_path / "a").exists()
    assert kept(tmp_path, "../../x", clock) is None


def test_a_folder_that_cant_be_written_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    keep(tmp_path / "file", SEEN)


def test_it_is_no_point_of_a_chart(tmp_path: Path) -> None:
    """It stood alone at the left of each, and made it as long as it was old."""

    async def look() -> None:
        keep(tmp_path, SEEN)
        clock = ManualClock(mono_ns=1_000 * SECOND, wall_ms=SEEN_MS + 30_000)
        source = FakeSource()
        async with staged((100, 30), source, remembered=kept(tmp_path, "c-0001", clock)) as stage:
            assert stage.app.state.series.of("requests") == ()
            source.play(SEEN)
            await stage.until("● live")
            assert len(stage.app.state.series.of("requests")) == 1

    asyncio.run(look())


def test_it_is_shown_at_once_with_its_time_and_gives_way_to_the_first_answer(tmp_path: Path) -> None:
    """Nothing can be changed meanwhile."""

    async def look() -> None:
        keep(tmp_path, SEEN)
        clock = ManualClock(mono_ns=1_000 * SECOND, wall_ms=SEEN_MS + 3 * HOUR_MS)
        remembered = kept(tmp_path, "c-0001", clock)
        source = FakeSource()
        async with staged((100, 30), source, remembered=remembered) as stage:
            text = await stage.text()
            assert "alpha-2" in text
            assert "as it was at 14:03:11" in text
            assert "STALE · 3h" in text
            assert "● live" not in text
            assert stage.app.newest is None
            await stage.pilot.press("2", "D")
            await stage.until("the cluster is not in reach")
            await stage.pilot.press("1")
            source.play(push(node("omega-1")))
            text = await stage.until("● live", "omega-1")
            assert "alpha-1" not in text
            assert stage.app.newest == push(node("omega-1"))

    asyncio.run(look())


def test_a_dashboard_keeps_what_it_saw_last_and_begins_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    begun: list[ClusterStatus | None] = []

    def watched(app: Dashboard) -> None:
        begun.append(app.state.status)
        app.state = reduce(app.state, Pushed(1, SEEN))

    monkeypatch.setattr(Dashboard, "run", watched)
    for _ in range(2):
        assert run(Profile(name="x", cluster_id="c-0001"), tmp_path / "config.toml", Wanted(Options()), print) == 0
    assert begun == [None, SEEN.status]


def test_it_is_shown_as_offline_when_the_cluster_is_away(tmp_path: Path) -> None:
    async def look() -> None:
        keep(tmp_path, SEEN)
        remembered = kept(tmp_path, "c-0001", ManualClock(mono_ns=1_000 * SECOND, wall_ms=SEEN_MS + 3 * HOUR_MS))
        source = FakeSource()
        source.away = refusal("no node could be reached")
        async with staged((100, 30), source, remembered=remembered) as stage:
            assert "alpha-2" in await stage.until("OFFLINE", "no node could be reached")

    asyncio.run(look())
