"""Page views over HTTP: one node with the roles api and entity, a thousand sites whose pools have ten candidates, the
load from a process of its own, beside a bare handler of the same HTTP stack that answers a constant.

`cpu` is what the node's process takes of a core for one page view, and `floor_to_cpu_ratio` compares that: on a machine
that is busy with other things the rate is theirs too. `parts` says what of it goes where: each is timed by itself in a
process of its own (`serve_parts`), over the same entities, and what is left of `cpu` is HTTP's and the system's.
`left_at_aim` says what the aim would leave to the actors: of the processor's time that the aim allows, what the bare
handler, the codec, the draw and the signatures do not take.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, Final

from scripts.benchmarks import serve_parts
from scripts.benchmarks.http_load import CONNECTIONS, SECONDS, bare_server, measured, wait_for_rest
from scripts.benchmarks.market import CAMPAIGNS_PER_CATEGORY, Market
from scripts.benchmarks.measure import spread

SITES: Final = 1_000
AIM: Final = 0.35  # of the bare handler's rate
PATH: Final = "/v1/serve/batch"


def measure(runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, bare_server() as (bare_pid, bare_http):
        market = Market(folder, SITES, 1, ("--nodes", "1"))
        market.fill()
        market.up()
        try:
            covered_s = market.covered()
            rest_s = wait_for_rest(market.pids)  # all sites are auctioned once more as campaigns tell of themselves
            bodies = list(market.requests())
            ours, floor = [], []
            for _ in range(runs):  # in turn, so that both have the same machine
                ours.append(measured(market.pids, market.http, PATH, bodies))
                floor.append(measured([bare_pid], bare_http, "/", bodies))
        finally:
            market.down()
    cpu = spread([o["cpu_us"] for o in ours], "us")
    bare_cpu = spread([f["cpu_us"] for f in floor], "us")
    parts = serve_parts.measure(runs, cpu["median"])
    return {
        "requests": spread([o["rate"] for o in ours], "1/s"),
        "p50": spread([o["p50_ms"] for o in ours], "ms"),
        "p99": spread([o["p99_ms"] for o in ours], "ms"),
        "cpu": cpu,
        "filled_ratio": spread([o["filled_ratio"] for o in ours], "1"),
        "floor_constant_requests": spread([f["rate"] for f in floor], "1/s"),
        "floor_constant_p50": spread([f["p50_ms"] for f in floor], "ms"),
        "floor_constant_p99": spread([f["p99_ms"] for f in floor], "ms"),
        "floor_constant_cpu": bare_cpu,
        "to_floor_ratio": spread([o["rate"] / f["rate"] for o, f in zip(ours, floor, strict=True)], "1"),
        "floor_to_cpu_ratio": spread([f["cpu_us"] / o["cpu_us"] for o, f in zip(ours, floor, strict=True)], "1"),
        "p99_to_floor_ratio": spread([o["p99_ms"] / f["p99_ms"] for o, f in zip(ours, floor, strict=True)], "1"),
        "parts": parts,
        "left_at_aim": {"median": left_at_aim_us(bare_cpu["median"], parts), "unit": "us", "aim_ratio": AIM},
        "load": {
            "connections": CONNECTIONS,
            "seconds": SECONDS,
            "nodes": 1,
            "sites": SITES,
            "pool": CAMPAIGNS_PER_CATEGORY,
            "slots_per_request": 1,
            "covered_s": round(covered_s, 1),
            "rest_s": round(rest_s, 1),
        },
    }


def left_at_aim_us(bare_cpu_us: float, parts: Mapping[str, Any]) -> float:
    """See the module; below zero when the aim can't be met by actors that take no time at all."""
    without_actors = sum(float(parts[name]["median"]) for name in ("decode", "draw", "sign", "encode"))
    return round(bare_cpu_us / AIM - bare_cpu_us - without_actors, 1)
