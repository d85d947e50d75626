"""Repetition and the figures that are quoted: median, minimum and maximum."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def spread(values: list[float], unit: str) -> dict[str, Any]:
    """The median, with the range that shows how noisy the machine was."""
    return {
        "median": round(statistics.median(values), 3),
        "min": round(min(values), 3),
        "max": round(max(values), 3),
        "runs": len(values),
        "unit": unit,
    }


def rates(count: int, runs: int, work: Callable[[], None]) -> list[float]:
    """Repetitions a second of `count` things done by `work`, once for each run after one that is not counted."""
    work()
    found: list[float] = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        found.append(count / (time.perf_counter() - begun))
    return found


def percentile(values: list[float], share: float) -> float:
    """The value below which `share` of the sorted values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def cpu_s(pid: int) -> float:
    """Seconds of a core that a process has used, all its threads together; raises FileNotFoundError for none."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
