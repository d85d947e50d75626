"""The page of figures: each part is written over itself and over nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Any

from scripts.benchmarks.serve import left_at_aim_us
from scripts.performance_page import growth, placed, plot, serve


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


def test_a_page_view_tells_what_the_aim_would_leave_to_actors() -> None:
    parts: dict[str, Any] = {name: figure(2.0) for name in ("decode", "draw", "messages", "sign", "ring", "encode")}
    left = left_at_aim_us(14.0, parts)  # 14 / 0.35 = 40, of which HTTP takes 14 and four parts 8
    assert left == 18.0
    parts["share"] = dict.fromkeys((*parts, "actor", "http"), 0.1)
    parts["site_memory"] = {"median": 1_640_000, "decisions": 1_000}
    names = ("decision", "to_numpy_ratio", "decision_evidence", "evidence_to_numpy_ratio")
    parts["selection"] = {name: figure(1.0) for name in names}
    measured = ("requests", "p50", "p99", "cpu", "to_floor_ratio", "p99_to_floor_ratio", "floor_to_cpu_ratio")
    floor = [f"floor_constant_{name}" for name in measured[:4]]
    found: dict[str, Any] = {name: figure(1.0) for name in (*measured, *floor)}
    found |= {"parts": parts, "left_at_aim": {"median": left, "aim_ratio": 0.35}}
    found["load"] = {"sites": 1_000, "nodes": 1, "pool": 10, "connections": 16, "seconds": 5.0}
    text = serve({"cores": 2, "python": "3.11", "serve": found})
    assert "The aim, 0.35 of the bare handler's rate, would leave 18.0 µs" in text
    assert "last 1,000 decisions, and what it waits to hear of them, takes 1.6 MB" in text
    assert "takes 2.0 µs for the page view's ask" in text
