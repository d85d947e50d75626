"""Nodes that come and go leave nothing with those that stay (P03, of which a simulation shows all but the memory)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cluster_world import Cluster
from relayed import prepare

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
ROUNDS = min(20, 2 * SCALE)
STAY, CHURN = ("api-1", "entity-1", "entity-2"), ("entity-3", "entity-4")


def resident(pid: int) -> int:
    """Bytes of memory that a process has in use."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) * 1024


@pytest.mark.timeout(600)
def test_p03_the_memory_of_those_that_stay_is_as_before(tmp_path: Path) -> None:
    """P03: two of five join and leave again and again. PROMOVOLVE_TEST_SCALE=10 makes it the row's 20 times. The start
    is what stands once they have come and gone for the first time: what every node loads when it needs it is loaded."""
    cluster = Cluster(tmp_path)
    prepare(cluster.data, 5)
    try:
        cluster.up()
        cluster.whole(nodes=5)
        pids = {name: pid for name, pid in cluster.pids().items() if name in STAY}

        def come_and_go() -> dict[str, int]:
            for name in CHURN:
                cluster.ask("node", "drain", name, "--yes")
            cluster.restore(nodes=5)
            return {name: resident(pid) for name, pid in pids.items()}

        start = come_and_go()
        for _ in range(ROUNDS):
            end = come_and_go()
        print(f"resident MiB after {ROUNDS} rounds:", {n: (start[n] >> 20, end[n] >> 20) for n in STAY})
        assert {name: pid for name, pid in cluster.pids().items() if name in STAY} == pids
        assert all(end[name] <= start[name] * 1.05 for name in STAY), (start, end)
        cluster.down()
    finally:
        cluster.last_resort()
