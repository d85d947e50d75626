"""docs/dashboard.md and its pictures are what the dashboard is: `python -m scripts.dashboard_page` writes both."""

from __future__ import annotations

import asyncio
import re

from promovolvectl.tui import keys
from promovolvectl.tui.recording import read
from scripts import dashboard_page as made

TEXT = made.PAGE.read_text("utf-8")
NAMES = [name for _, name, _ in keys.SCREENS]


def test_keys_and_tables_on_the_page_are_those_of_the_screens() -> None:
    assert made.page(TEXT) == TEXT, "python -m scripts.dashboard_page"


def test_the_page_tells_of_every_screen_in_the_order_of_its_key_and_of_every_kind_of_key() -> None:
    assert re.findall(r"^## (\d) (\w+)$", TEXT, re.MULTILINE) == [(key, title) for key, _, title in keys.SCREENS]
    assert sorted(re.findall(r"<!-- made: ([a-z ]+) -->", TEXT)) == sorted(made.blocks())
    shown = re.findall(r"\(pictures/(\w+)\.svg\)", TEXT)
    assert shown == NAMES


def test_the_pictures_are_those_of_the_recording() -> None:
    """Hastily, and where that makes others, with all the patience that the script has."""
    kept = {name: (made.PICTURES / f"{name}.svg").read_text("utf-8") for name in NAMES}
    drawn = asyncio.run(made.pictures(read(made.RECORDING), looks=2))
    if drawn != kept:
        drawn = asyncio.run(made.pictures(read(made.RECORDING)))
    differ = [name for name in NAMES if kept[name] != drawn[name]]
    assert not differ, "python -m scripts.dashboard_page"
    assert not [name for name, svg in drawn.items() if "url(http" in svg or "failed:" in svg]


def test_a_change_of_a_key_makes_the_page_out_of_date() -> None:
    """The comparison itself can fail."""
    assert made.page(TEXT.replace("| `?` |", "| `!` |")) == TEXT
    assert made.page(TEXT.replace("pictures/nodes.svg", "pictures/node.svg")) == TEXT
