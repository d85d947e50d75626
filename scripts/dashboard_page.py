"""docs/dashboard.md and docs/pictures: what each screen shows and which keys it has, from the dashboard itself.

The text of the page is written by hand; what stands between its marks is made from the screens and their bindings.
Pictures are drawn from docs/pictures/recording.jsonl, which is of a real cluster, at the moment at which it ends.

    python -m scripts.dashboard_page                    writes the page and the pictures
    python -m scripts.dashboard_page --record PROFILE   keeps a new recording first
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from textual.binding import Binding, BindingType
from textual.pilot import Pilot

from node.core.clock import MS, SECOND, ManualClock, SystemClock
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.link import open_link
from promovolvectl.client.paths import config_file
from promovolvectl.client.profiles import find, load_file
from promovolvectl.tui import keys
from promovolvectl.tui.app import BOARDS, Dashboard, Options
from promovolvectl.tui.recording import Recorded, Recorder, read
from promovolvectl.tui.screens.board import Board
from promovolvectl.tui.screens.listing import Listing
from promovolvectl.tui.start import Replayed

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "dashboard.md"
PICTURES: Final = ROOT / "docs" / "pictures"
RECORDING: Final = PICTURES / "recording.jsonl"
SIZE: Final = (120, 40)
WATCHED_S: Final = 40  # long enough for lines that show how figures changed
LOOK_S: Final = 0.2
LOOKS_TOLD: Final = 5
STILL_S: Final = 0.02
LOOKS_ALIKE: Final = 40
MARKED: Final = re.compile(r"(<!-- made: ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
FONTS: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)  # they would be fetched from elsewhere


def page(text: str) -> str:
    """The page with what is between its marks made anew; KeyError for a mark that names nothing."""
    made = blocks()
    return MARKED.sub(lambda found: f"{found[1]}{made[found[2]]}{found[3]}", text)


def blocks() -> dict[str, str]:
    """What may stand between marks, by the name of the mark."""
    screens = {name: _screen(name) for _, name, _ in keys.SCREENS}
    common = {
        "everywhere": keys.APP,
        "listing": keys.LISTING,
        "table": keys.TABLE,
        "shard map": keys.GRID,
        "dialog": keys.DIALOG,
    }
    return screens | {name: _table(bindings) for name, bindings in common.items()}


def _screen(name: str) -> str:
    board = next(each for each in BOARDS if name == each.NAME)
    known = [*keys.LISTING, *keys.SCROLL]
    own = _table(each for each in board.BINDINGS if each not in known and not _chooses_pane(each))
    return f"![The {name} screen](pictures/{name}.svg)\n\n{_views(board)}{own}"


def _views(board: type[Board]) -> str:
    if not issubclass(board, Listing):
        return ""
    lines: list[str] = []
    told: set[str] = set()
    for view in board.VIEWS:
        lines.append(f"- **{view.name}**: {' → '.join(level.name for level in view.levels)}")
        for level in view.levels:
            panes = ", ".join(f"`{tab.key}` {tab.name}" for tab in level.tabs)
            lines += [f"  - panes of {level.name}: {panes}"] if panes and level.name not in told else []
            told.add(level.name)
    return "\n".join(lines) + "\n\n"


def _chooses_pane(binding: BindingType) -> bool:
    """Those stand beside their tables."""
    return isinstance(binding, Binding) and bool(binding.id) and str(binding.id).startswith("tab.")


def _table(bindings: Iterable[BindingType]) -> str:
    """A row for each action, in the order of its first key."""
    found: dict[tuple[str, str], list[str]] = {}
    for binding in bindings:
        if isinstance(binding, Binding):
            names = [binding.key_display] if binding.key_display else binding.key.split(",")
            found.setdefault((binding.action, binding.tooltip or binding.description), []).extend(names)
    rows = [f"| {' '.join(f'`{name}`' for name in names)} | {words} |" for (_, words), names in found.items()]
    return "\n".join(["| keys | |", "|---|---|", *rows]) + "\n" if rows else ""


async def pictures(recorded: Recorded, looks: int = LOOKS_ALIKE) -> dict[str, str]:
    """SVG of each screen as the recording leaves it, by the screen's name; drawn when it was alike at so many `looks`
    in a row. A busy machine needs many until widgets, focus and footer have all heard of each other."""
    clock = ManualClock(mono_ns=recorded.began_ns + recorded.lasts_ms * MS)
    app = Replayed(recorded, clock, Options(recorded=True))
    drawn: dict[str, str] = {}
    async with app.run_test(size=SIZE) as pilot:
        for _, name, _ in keys.SCREENS:
            app.go(name)
            drawn[name] = await _still(app, pilot, name, looks)
    return drawn


async def _still(app: Dashboard, pilot: Pilot[int], name: str, looks: int) -> str:
    seen, alike = "", 0
    while alike < looks:
        app.paint()
        await pilot.pause(STILL_S)
        svg = app.export_screenshot(title=f"promovolvectl dashboard --screen {name}")
        now = FONTS.sub("", re.sub(r"terminal-\d+", "terminal", svg))
        shown = app.screen is app.boards[name] and "RECORDING" in now
        alike = alike + 1 if shown and now == seen else 0
        seen = now
    return seen


async def record(profile: str, path: Path) -> None:
    """Watches a cluster, then goes through all screens of it."""
    clock, config = SystemClock(), config_file(os.environ)
    recorder = Recorder(path, profile, clock)
    source = AdminClient(find(load_file(config), config, profile), open_link)
    app = Dashboard(source, profile, clock, record=recorder)
    async with app.run_test(size=SIZE) as pilot:
        until_ns = clock.mono_ns() + WATCHED_S * SECOND
        while clock.mono_ns() < until_ns:
            await pilot.pause(LOOK_S)
        first, *others = (name for _, name, _ in keys.SCREENS)
        for name in (*others, first):  # it is the page's first picture, and is to be as new as the others
            app.go(name)
            looks_told = 0
            while looks_told < LOOKS_TOLD:  # an answer leads to the next question: of the row under the cursor
                await pilot.pause(LOOK_S)
                looks_told = looks_told + 1 if _told(app) else 0
    recorder.close()


def _told(app: Dashboard) -> bool:
    board = app.board
    return board is not None and all(app.state.report(query.params).tried_ns for query in board.queries(app.state))


def write(drawn: Mapping[str, str]) -> None:
    for name, svg in drawn.items():
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.dashboard_page",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--record", metavar="PROFILE", default="")
    wanted = parser.parse_args()
    if wanted.record:
        RECORDING.unlink(missing_ok=True)
        asyncio.run(record(wanted.record, RECORDING))
    write(asyncio.run(pictures(read(RECORDING))))


if __name__ == "__main__":
    main()
