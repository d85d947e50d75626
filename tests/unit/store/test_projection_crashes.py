"""G10 with processes: whoever keeps the projections is killed at each step of the transaction that moves them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from test_crash_points import section, store  # noqa: F401 - fixtures

from node.ads.facts import Impression
from node.ads.projections import PROJECTIONS
from node.ads.recount import Recount
from node.core.fault_signals import FAULT_AT
from node.core.settings import StoreSection
from node.store import port
from node.wire.codec import CODEC

CHILD = """
import asyncio, sys
from node.actors.runtime import outcome_of
from node.actors.store_driver import StoreDriver
from node.ads.projections import PROJECTIONS
from node.core import limits
from node.core.clock import SystemClock
from node.core.fault_signals import arm_from_environment
from node.core.settings import StoreSection
from node.flows.follower import Follower
from node.store.opening import open_store

limits.facts_page = 10

async def main():
    store, lane_of = open_store(StoreSection.model_validate_json(sys.argv[1]), "child", SystemClock())
    driver = StoreDriver(store, SystemClock(), lane_of)
    arm_from_environment()
    for name, projection in PROJECTIONS.items():
        follower = Follower(name, projection)
        request = follower.tick(1 << 62)
        while request is not None:
            asked = request
            answer = await outcome_of(lambda done: driver.submit(asked, done))
            request = follower.answered(answer)
        assert not follower.failure, follower.failure

asyncio.run(main())
"""
FACTS, NTH = 100, 7  # an advance on each store, though one counts reads as steps, too
POINTS = ("store.before_commit", "store.after_commit")


def run(section: StoreSection, fault: str) -> int:  # noqa: F811
    command = [sys.executable, "-c", CHILD, section.model_dump_json(exclude_defaults=True)]
    return subprocess.run(command, env={**os.environ, FAULT_AT: fault}, timeout=60, check=False).returncode


def wrong(store: port.StateStore, facts: tuple[port.StoredFact, ...]) -> tuple[list[int], list[str]]:  # noqa: F811
    """Where each projection stands, and the rows that are not what the facts up to there make."""
    offsets, found = [], []
    for name, projection in PROJECTIONS.items():
        [page] = store.apply([port.ListProjection(name, limit=5_000)])
        assert isinstance(page, port.ProjectionPage)
        recount = Recount(projection)
        recount.add(facts[: page.offset])
        offsets.append(page.offset)
        found += recount.differing("", {row.key: row.body for row in page.rows}, end=True)
    return offsets, found


@pytest.mark.parametrize("point", POINTS)
def test_g10_killed_at_each_step_of_the_transaction_between_effect_and_offset(
    section: StoreSection,  # noqa: F811
    store: port.StateStore,  # noqa: F811
    point: str,
) -> None:
    seen = [Impression(f"r{n}", "s", f"c{n % 3}", "cr", 10, "acme", "ann", "653", 0, 2, 1) for n in range(FACTS)]
    bodies = tuple(port.Fact("fact.impression", CODEC.encode_record(fact)) for fact in seen)
    assert isinstance(store.apply([port.WriteState("campaign", "c", 7, 1, 0, b"s", bodies)])[0], port.Written)
    [page] = store.apply([port.ReadFacts()])
    assert isinstance(page, port.FactPage)
    assert run(section, f"{point}:kill:{NTH}") == -signal.SIGKILL
    offsets, found = wrong(store, page.facts)
    assert found == []
    assert 0 < offsets[0] < FACTS, "it was killed on its way"
    assert run(section, "") == 0
    assert wrong(store, page.facts) == ([FACTS] * len(PROJECTIONS), [])
