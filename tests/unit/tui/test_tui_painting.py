"""What is painted, and how often: only lines that changed, a burst as one picture, stores with an end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from textual.geometry import Region
from tui_answers import everything
from tui_stage import FakeSource, event, node, push, staged

from promovolvectl.tui.app import FRAME_S, Dashboard
from promovolvectl.tui.state import EVENTS_MAX
from promovolvectl.tui.widgets.lines import Lines
from promovolvectl.tui.widgets.panel import Panel

BURST = 5_000


def test_a_burst_is_painted_once_a_frame_and_kept_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    painted: list[int] = []
    all_there = asyncio.Event()
    paint = Dashboard.paint

    def counted(app: Dashboard) -> None:
        painted.append(app.state.events_seen)
        paint(app)
        if app.state.events_seen >= BURST:
            all_there.set()

    monkeypatch.setattr(Dashboard, "paint", counted)

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(node("entity-1")))
            await stage.go("events")
            began = asyncio.get_running_loop().time()
            painted.clear()
            stage.source.play(*(event(text=f"number {number}") for number in range(BURST)))
            await all_there.wait()
            frames = (asyncio.get_running_loop().time() - began) / FRAME_S
            # the tick, which shows how ages go on, and one more that was due
            assert len(painted) <= frames * 1.25 + 2
            assert len(stage.app.state.events) == EVENTS_MAX
            assert f"number {BURST - 1}" in await stage.text()

    asyncio.run(look())


def test_an_age_that_goes_on_paints_headings_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    painted: dict[str, list[Region]] = {}
    refresh = Lines.refresh

    def noted(widget: Lines, *regions: Region, **options: Any) -> Lines:
        painted.setdefault(widget.id or "", []).extend(regions or (widget.size.region,))
        return refresh(widget, *regions, **options)

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(node("entity-1"), node("entity-2")))
            await stage.until("● live")
            await stage.go("overview")
            await stage.text()
            monkeypatch.setattr(Lines, "refresh", noted)
            stage.later(1)
            stage.app.paint()
            panels = {panel.id for panel in stage.app.screen.query(Panel) if panel.display}
            assert panels <= set(painted)
            assert {(region.y, region.height) for regions in painted.values() for region in regions} == {(0, 1)}
            painted.clear()
            stage.app.paint()
            assert not painted, "the same picture is not painted again"

    asyncio.run(look())


def test_a_line_is_cut_at_the_width_and_shown_in_the_colours_of_its_theme() -> None:
    async def look() -> None:
        async with staged((60, 16), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(node("entity-1")))
            await stage.until("● live")
            bar = stage.app.screen.query_one("#title", Lines)
            dark = bar.render_line(0)
            assert dark.cell_length == bar.size.width
            stage.app.wear("promo-light")
            await stage.text()
            light = bar.render_line(0)
            assert light.text == dark.text
            assert [segment.style for segment in light] != [segment.style for segment in dark]
            assert not list(bar.render_line(1))

    asyncio.run(look())
