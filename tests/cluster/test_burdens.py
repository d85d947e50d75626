"""Heartbeats keep their time whatever else a node has to do: the scenario of saturated executors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from relayed import prepare

from promovolvectl.local import layout as lay

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
SECONDS = min(60, 10 * SCALE)
NODES = 3
WAIT_S = 120


def test_nobody_misses_a_heartbeat_while_no_executor_takes_anything_more(tmp_path: Path) -> None:
    """`db`, `llm`, `browser` and `disk` of every node are saturated, and heartbeats come in time."""
    layout = prepare(tmp_path, NODES)
    script = str(Path(__file__).with_name("burdened_node.py"))
    nodes = []
    for node in layout.nodes:
        words = [str(SECONDS), str(NODES), str(tmp_path / f"{node.name}.json")]
        command = [sys.executable, "-P", script, *words, "--config", str(lay.node_file(tmp_path, node.name))]
        with (tmp_path / f"{node.name}.log").open("w") as log:
            nodes.append(subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL))
    try:
        for process in nodes:
            process.wait(WAIT_S)
    finally:
        for process in nodes:
            process.kill()
            process.wait()
    for node in layout.nodes:
        result = tmp_path / f"{node.name}.json"
        assert result.exists(), (tmp_path / f"{node.name}.log").read_text()
        seen: dict[str, Any] = json.loads(result.read_text())
        assert seen["full"] > 0, "the burden never was one"
        assert seen["unreachable"] == []
        gaps = sorted(gap for peer in seen["gaps_ms"].values() for gap in peer)
        assert len(seen["gaps_ms"]) == NODES - 1
        assert min(map(len, seen["gaps_ms"].values())) > SECONDS, "one a second at the very least"
        assert gaps[len(gaps) * 99 // 100] < seen["pause_ms"], gaps
