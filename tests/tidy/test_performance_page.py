"""The page of figures: each part is written over itself and over nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

from scripts.performance_page import growth, placed, plot


def figure(value: float) -> dict[str, Any]:
    return {"median": value, "min": value / 2, "max": value * 2, "runs": 3, "unit": "1"}


def row(nodes: int, sites: int) -> dict[str, Any]:
    names = ("requests", "p50", "p99", "cpu", "to_floor_ratio")
    return {"nodes": nodes, "sites": sites} | {name: figure(float(sites * nodes)) for name in names}


ROWS = [row(nodes, sites) for nodes in (1, 3) for sites in (10, 100, 1_000)]


def test_a_part_is_written_over_itself_and_the_rest_stays() -> None:
    page = placed(placed("# Performance\n\nBy hand.\n", "serve", "one"), "growth", "two")
    again = placed(page, "serve", "three")
    assert again == page.replace("one", "three")
    assert again.startswith("# Performance\n\nBy hand.\n")
    assert placed(again, "growth", "two") == again


def test_growth_has_a_row_and_a_point_for_each_size() -> None:
    load = {"connections": 16, "seconds": 5.0, "pool": 10}
    text = growth({"cores": 2, "python": "3.11", "growth": {"rows": ROWS, "load": load}})
    assert sum(line.startswith(("| 1 |", "| 3 |")) for line in text.splitlines()) == len(ROWS)
    assert "| 3 | 1,000 | 3,000 (1,500-6,000) |" in text
    drawn = ET.fromstring(plot(ROWS))
    assert len(drawn.findall("{*}circle")) == 2 * len(ROWS)
    assert len(drawn.findall("{*}polyline")) == 4
