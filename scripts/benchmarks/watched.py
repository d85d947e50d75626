"""What dashboards that nobody touches cost: percent of a core of each node while none, one and ten are open, and of the
dashboards themselves.

PROMOVOLVE_TEST_SCALE multiplies one minute of rest with each number of them, up to the ten minutes of check V20.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from scripts.benchmarks.dashboard import Terminal
from scripts.benchmarks.measure import cpu_s

NODES: Final = 5
OPEN: Final = (0, 1, 10)
REST_S: Final = min(600, 60 * int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1")))
LIMITS: Final = {"dashboard_percent": 2.0, "node_above_none_percent": {"1": 0.5, "10": 2.0}}
RESTING_RATIO: Final = 0.1  # of a core, over a second: what begins takes all that it gets
_COMMAND: Final = str(Path(sys.executable).with_name("promovolvectl"))


def measure(_runs: int) -> dict[str, object]:
    """Percent of a core; one look for each number of dashboards."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PROMOVOLVE")},
            "PROMOVOLVECTL_CONFIG": f"{folder}/config.toml",
            "XDG_STATE_HOME": f"{folder}/state",
            "TERM": "xterm-256color",
        }
        data = ("--data", f"{folder}/data")
        _asked(("up", "--nodes", str(NODES), *data), env)
        dashboards: list[Terminal] = []
        looks: dict[int, dict[str, Any]] = {}
        try:
            _asked(("cluster", "wait", "--for", "converged", "--for", "shards=allocated", "-t", "60s"), env)
            nodes = {item["name"]: int(item["pid"]) for item in _asked(("node", "list"), env)["items"]}
            for number in OPEN:
                while len(dashboards) < number:
                    dashboards.append(_at_rest(env))
                looks[number] = _look(nodes, dashboards)
        finally:
            for each in dashboards:
                each.quit()
            _asked(("down", *data), env)
    none = looks[0]["nodes"]
    return {
        "seconds": REST_S,
        "limits": LIMITS,
        "by_dashboards": looks,
        "most_above_none": {
            number: round(max(percent - none[name] for name, percent in looks[number]["nodes"].items()), 2)
            for number in OPEN[1:]
        },
    }


def _at_rest(env: dict[str, str]) -> Terminal:
    """A dashboard that has painted its first picture and has nothing to do for now."""
    terminal = Terminal((_COMMAND, "dashboard"), env)
    terminal.until(lambda: terminal.written > 5_000)

    def rests() -> bool:
        began_s, began = terminal.cpu_s, time.monotonic()
        time.sleep(1.0)
        return terminal.cpu_s - began_s < RESTING_RATIO * (time.monotonic() - began)

    terminal.until(rests)
    return terminal


def _look(nodes: Mapping[str, int], dashboards: list[Terminal]) -> dict[str, Any]:
    """What each has used of a core while `REST_S` went by."""
    pids = {**nodes, **{f"dashboard-{number}": each.process.pid for number, each in enumerate(dashboards)}}
    before, began = {name: cpu_s(pid) for name, pid in pids.items()}, time.monotonic()
    time.sleep(REST_S)
    took = time.monotonic() - began
    used = {name: round((cpu_s(pid) - before[name]) / took * 100, 2) for name, pid in pids.items()}
    return {
        "nodes": {name: used[name] for name in nodes},
        "dashboards_most": max((used[name] for name in used if name not in nodes), default=0.0),
    }


def _asked(words: tuple[str, ...], env: Mapping[str, str]) -> dict[str, Any]:
    line = (_COMMAND, *words, "-o", "json")
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
