"""What page views cost as a market grows: rate and latency at 10 to 10,000 sites, with one and with three entity nodes.

The load is that of `serve`, on one node's address; with three nodes two page views of three are decided on another.
`docs/performance.md` is written from what this measures: `python -m scripts.benchmarks growth --page`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from typing import Any, Final

from scripts.benchmarks.http_load import CONNECTIONS, SECONDS, bare_server, measured
from scripts.benchmarks.market import CAMPAIGNS_PER_CATEGORY, Market
from scripts.benchmarks.measure import spread

SITES: Final = (10, 100, 1_000, 10_000)
NODES: Final = (1, 3)
PATH: Final = "/v1/serve/batch"


def measure(runs: int, sites: Sequence[int] = SITES, nodes: Sequence[int] = NODES) -> dict[str, Any]:
    """A row for each number of nodes and of sites."""
    return {
        "rows": [_row(runs, node_count, site_count) for node_count in nodes for site_count in sites],
        "load": {
            "connections": CONNECTIONS,
            "seconds": SECONDS,
            "pool": CAMPAIGNS_PER_CATEGORY,
            "slots_per_request": 1,
        },
    }


def _row(runs: int, nodes: int, sites: int) -> dict[str, Any]:
    sys.stderr.write(f"  {sites} sites on {nodes} node{'s' * (nodes > 1)} …\n")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, bare_server() as (bare_pid, bare_http):
        market = Market(folder, sites, 1, ("--nodes", str(nodes)))
        market.fill()
        market.up()
        try:
            covered_s = market.covered()
            bodies = list(market.requests())
            ours, floor = [], []
            for _ in range(runs):
                ours.append(measured(market.pids, market.http, PATH, bodies))
                floor.append(measured([bare_pid], bare_http, "/", bodies))
        finally:
            market.down()
    return {
        "nodes": nodes,
        "sites": sites,
        "requests": spread([o["rate"] for o in ours], "1/s"),
        "p50": spread([o["p50_ms"] for o in ours], "ms"),
        "p99": spread([o["p99_ms"] for o in ours], "ms"),
        "cpu": spread([o["cpu_us"] for o in ours], "us"),
        "filled_ratio": spread([o["filled_ratio"] for o in ours], "1"),
        "to_floor_ratio": spread([o["rate"] / f["rate"] for o, f in zip(ours, floor, strict=True)], "1"),
        "covered_s": round(covered_s, 1),
    }
