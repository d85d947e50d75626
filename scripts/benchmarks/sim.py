"""Virtual seconds of a whole cluster for each second of one core: 5 nodes with 1,000 resting entities, at rest and
under faults and clients."""

from __future__ import annotations

import dataclasses
import gc
import time
from functools import partial
from typing import Any

from node.ads.messages import AdvertiserInfo, CreateAdvertiser
from node.core.clock import MS
from node.core.ids import EntityRef
from node.gossip.settings import PROFILES
from node.sim import faults, pool, setup
from node.sim.recipe import Recipe
from node.sim.run import run
from node.sim.scheduler import Scheduler
from node.sim.traps import sealed
from node.sim.world import World
from scripts.benchmarks.measure import spread

NODES = 5
ENTITIES = 1_000
SECONDS = 120
FORMED_MS = 20_000
CREATE_EVERY_MS = 10
HOSTS = tuple(f"n{number}" for number in range(1, NODES + 1))


def measure(runs: int) -> dict[str, Any]:
    """Processor time, so that what else runs on the machine counts little; each run is of another seed."""
    pool.be_quiet()
    seeds = range(1, runs + 1)
    kinds = {"at rest": _at_rest, "under faults": _under_faults}
    return {
        f"{profile}, {name}": spread([speed(seed, profile) for seed in seeds], "virtual s/s")
        for name, speed in kinds.items()
        for profile in PROFILES
    }


def _at_rest(seed: int, profile: str) -> float:
    """A cluster that has formed and made its entities: what its machinery alone costs."""
    scheduler = Scheduler(seed)
    knobs = faults.calm(profile=profile)
    created: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        with sealed():
            world = World(scheduler, knobs, setup.drawn(HOSTS, api_only_node=False, profile=profile))
            world.begin(scheduler.derive("world"))
            world.run(FORMED_MS)
            for number in range(ENTITIES):
                name = f"adv{number}"
                host, ref = world.hosts[HOSTS[number % NODES]], EntityRef("advertiser", name)
                create = CreateAdvertiser(name, name, 1_000_000, "UTC")
                ask = partial(world.ask, host, ref, create, 5_000, created.append)
                scheduler.after(number * CREATE_EVERY_MS * MS, ask)
            rested_ms = FORMED_MS + 2 * ENTITIES * CREATE_EVERY_MS
            world.run(rested_ms)
            began_s = time.process_time()
            world.run(rested_ms + SECONDS * 1_000)
            took_s = time.process_time() - began_s
    finally:
        gc.enable()
    if world.violation is not None or sum(isinstance(each, AdvertiserInfo) for each in created) != ENTITIES:
        raise RuntimeError(f"seed {seed} ({profile}): {world.violation or 'not all entities were made'}")
    return SECONDS / took_s


def _under_faults(seed: int, profile: str) -> float:
    """A whole run: faults and clients, the making of the entities, healing and all checks."""
    drawn = faults.draw(Scheduler(seed).derive, HOSTS, SECONDS)
    began_s = time.process_time()
    result = run(Recipe(seed, NODES, SECONDS), drawn=dataclasses.replace(drawn, crowd=ENTITIES, profile=profile))
    if not result.ok:
        raise RuntimeError(f"seed {seed} ({profile}): {result.violation}")
    return result.virtual_ms / 1_000 / (time.process_time() - began_s)
