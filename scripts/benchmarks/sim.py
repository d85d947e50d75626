"""Virtual seconds of a whole cluster under faults for each second of one core: 5 nodes with 1,000 resting entities."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

from node.gossip.settings import PROFILES
from node.sim import faults, pool
from node.sim.recipe import Recipe
from node.sim.run import run
from node.sim.scheduler import Scheduler
from scripts.benchmarks.measure import spread

NODES = 5
ENTITIES = 1_000
SECONDS = 120


def measure(runs: int) -> dict[str, Any]:
    """Processor time, so that what else runs on the machine counts little; each run is of another seed."""
    pool.be_quiet()
    seeds = range(1, runs + 1)
    return {profile: spread([_speed(seed, profile) for seed in seeds], "virtual s/s") for profile in PROFILES}


def _speed(seed: int, profile: str) -> float:
    hosts = tuple(f"n{number}" for number in range(1, NODES + 1))
    drawn = faults.draw(Scheduler(seed).derive, hosts, SECONDS)
    began_s = time.process_time()
    result = run(Recipe(seed, NODES, SECONDS), drawn=dataclasses.replace(drawn, crowd=ENTITIES, profile=profile))
    if not result.ok:
        raise RuntimeError(f"seed {seed} ({profile}): {result.violation}")
    return result.virtual_ms / 1_000 / (time.process_time() - began_s)
