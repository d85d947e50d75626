"""The state store of one node: opened by its settings, waited for, recognised as this cluster's, and watched."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

from node.actors.runtime import outcome_of
from node.actors.store_driver import StoreDriver
from node.core import limits
from node.core.clock import MS, Clock, SystemClock
from node.core.errors import OperatingError
from node.core.hashing import HASH_VERSION, MAP_COUNT, SHARD_COUNT
from node.core.ids import NodeId
from node.core.rng import Rng
from node.core.settings import NodeSettings
from node.engine.faults import Faults
from node.store.opening import PASSING, open_store, place
from node.store.port import (
    Identity,
    Incarnation,
    Initialise,
    NextIncarnation,
    ReadPlacement,
    Request,
    StoreFailed,
)

_log = logging.getLogger("node")


def opened(settings: NodeSettings, clock: SystemClock) -> StoreDriver:
    """The driver of the store that the settings name; raises OperatingError."""
    store, lane_of = open_store(settings.store, settings.node.name, clock)
    return StoreDriver(store, clock, lane_of)


async def answers(driver: StoreDriver, waits_for: Callable[[str], None]) -> None:
    """Returns when the store answers; until then `waits_for` is told why it does not."""
    said = ""
    while True:
        answer = await outcome_of(lambda done: driver.submit(ReadPlacement(), done))
        if not isinstance(answer, StoreFailed) or answer.code not in PASSING:
            return
        if answer.message != said:
            _log.warning("waits for the state store: %s: %s", answer.code, answer.message)
        said = answer.message
        waits_for(f"the state store: {answer.message}")
        await asyncio.sleep(limits.store_retry_ms / 1_000)


async def cluster_id(driver: StoreDriver, settings: NodeSettings, rng: Rng) -> tuple[str, bool]:
    """The cluster's id, and whether the store knew it before this start; raises OperatingError for a store of another
    cluster."""
    proposed = f"c-{rng.getrandbits(48):012x}"
    wanted = Identity(proposed, settings.cluster.name, SHARD_COUNT, MAP_COUNT, HASH_VERSION)
    found = await _ask(driver, Initialise(wanted))
    if not isinstance(found, Identity):
        _refuse(f"the state store answered {found!r}")
    for key, ours, theirs in (
        ("cluster.name", wanted.cluster_name, found.cluster_name),
        ("shard count", wanted.shard_count, found.shard_count),
        ("map count", wanted.map_count, found.map_count),
        ("hash version", wanted.hash_version, found.hash_version),
    ):
        if ours != theirs:
            raise OperatingError(
                "E-OTHER-CLUSTER",
                f"{place(settings.store)} was made for another cluster: {key} is {theirs!r} there and {ours!r} here",
                hint="give this cluster a folder, or a schema, of its own",
            )
    return found.cluster_id, found.cluster_id != proposed


async def incarnation(driver: StoreDriver, name: str) -> NodeId:
    """The node's id for this start; raises OperatingError."""
    answer = await _ask(driver, NextIncarnation(name))
    if not isinstance(answer, Incarnation):
        _refuse(f"the state store answered {answer!r}")
    return NodeId(name, answer.number)


async def watch(driver: StoreDriver, clock: Clock, faults: Faults) -> None:
    """For ever: shows as faults that the store does not answer, or refuses writes."""
    shown = ""
    while True:
        blocked_ns = driver.blocked_since_ns
        waited_ms = (clock.mono_ns() - blocked_ns) // MS if blocked_ns else 0
        text = f"the state store has not answered for {waited_ms // 1000} s: out of reach, or another process blocks it"
        faults.put("E-STORE-BLOCKED", "store", text if blocked_ns else "")
        driver.look_again()
        failure = driver.failure
        code = failure.code if failure else ""
        if shown and shown != code:
            faults.clear(shown, "store/writes")
        if failure:
            faults.put(code, "store/writes", failure.message)
        shown = code
        await asyncio.sleep(limits.store_wait_ms_max / 2_000)


async def _ask(driver: StoreDriver, request: Request) -> object:
    answer = await outcome_of(lambda done: driver.submit(request, done))
    if isinstance(answer, StoreFailed):
        raise OperatingError(answer.code, answer.message)
    return answer


def _refuse(message: str) -> NoReturn:
    raise OperatingError("E-STORE", message)
