"""How long a command takes beside `python -c pass`: medians of the same run, in turns, so that a busy moment hits all.

`cluster status` is asked of a cluster of four nodes that this starts and stops again.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

RUNS_MIN: Final = 15
LIMITS: Final = {"--version": 4.0, "--help": 8.0, "cluster status": 20.0}
_COMMAND: Final = str(Path(sys.executable).with_name("promovolvectl"))


def measure(runs: int) -> dict[str, object]:
    """Medians in milliseconds, and how many times `python -c pass` each takes beside what it may."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PROMOVOLVE")},
            "PROMOVOLVECTL_CONFIG": f"{folder}/config.toml",
            "XDG_STATE_HOME": f"{folder}/state",
        }
        data = ("--data", f"{folder}/data")
        _run((_COMMAND, "up", "--nodes", "4", *data), env)
        try:
            _run((_COMMAND, "cluster", "wait", "--for", "converged", "-t", "60s"), env)
            medians = _medians(max(runs, RUNS_MIN), env)
        finally:
            _run((_COMMAND, "down", *data), env)
    bare = medians.pop("python -c pass")
    return {
        "runs": max(runs, RUNS_MIN),
        "python -c pass": {"median_ms": bare},
        **{
            name: {"median_ms": taken, "ratio": round(taken / bare, 1), "limit_ratio": LIMITS[name]}
            for name, taken in medians.items()
        },
    }


def _medians(runs: int, env: Mapping[str, str]) -> dict[str, float]:
    lines: dict[str, Sequence[str]] = {"python -c pass": (sys.executable, "-c", "pass")}
    lines |= {name: (_COMMAND, *name.split()) for name in LIMITS}
    taken: dict[str, list[float]] = {name: [] for name in lines}
    for line in lines.values():
        _run(line, env)  # compiles modules and warms the file cache
    for _ in range(runs):
        for name, line in lines.items():
            started = time.perf_counter()
            _run(line, env)
            taken[name].append((time.perf_counter() - started) * 1000)
    return {name: round(statistics.median(found), 1) for name, found in taken.items()}


def _run(line: Sequence[str], env: Mapping[str, str]) -> None:
    subprocess.run(
        line, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
