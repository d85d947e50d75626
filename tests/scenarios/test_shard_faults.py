"""V2 and V8 of `docs/checks.md`, told as stories: what cannot move is listed by name, and every kind of disagreement
about a shard is found by whichever node is asked.

The store's table, or what one node says of itself, is made wrong for as long as a check takes: by itself no run comes
there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from console import Console
from msgspec.structs import replace as changed
from seeds import seeds
from test_drains import over, shown, told_to_drain

from node.admin import protocol as p
from node.admin import shard_requests
from node.core.clock import MS
from node.core.hashing import shard_of
from node.engine.messages import NodeReport
from node.sharding.check import FaultKind
from node.sharding.requests import Stage
from node.sim.conditions import answered, converged, removed
from node.sim.story import Story, story
from node.store.memory import MemoryStore
from node.store.port import ShardRow, ShardState

SHARD = 17
OWNERS = ("n1", "n2", "n3")
API = "n4"


# ---- what is made wrong


def table(s: Story) -> dict[int, ShardRow]:
    store = s.world.store._store
    assert isinstance(store, MemoryStore)
    return store._rows


@contextmanager
def recorded(s: Story, **fields: Any) -> Iterator[None]:
    """The table says something else of the shard."""
    rows = table(s)
    before = rows[SHARD]
    rows[SHARD] = changed(before, **fields)
    yield
    rows[SHARD] = before


@contextmanager
def claimed(s: Story, node: str, epoch: int) -> Iterator[None]:
    """A node says that it runs the shard, too."""
    process = s.host(node).process
    assert process is not None
    service = process.service
    assert service is not None
    told = service.report

    def claims(*, coverage: bool) -> NodeReport:
        found = told(coverage=coverage)
        return changed(found, running=(*found.running, (SHARD, epoch, 0)), living=(*found.living, (SHARD, epoch)))

    service.report = claims  # type: ignore[method-assign]
    yield
    service.report = told  # type: ignore[method-assign]


# ---- V8


def verdicts(s: Story) -> tuple[p.ShardCheck, list[p.ClusterCheck]]:
    """What `shard check` finds, the same by every node, and each node's `cluster check`."""
    consoles = [Console(s, name) for name in s.world.hosts]
    first, *others = [console.ask(p.GetShardCheck()) for console in consoles]
    assert others == [first] * len(others)
    assert first.unchecked == ()
    return first, [console.ask(p.CheckCluster()) for console in consoles]


def named(s: Story, kind: FaultKind, words: str) -> None:
    """Fails unless every node names the kind and the shard, in words that say who and under which epochs."""
    shard = -1 if kind is FaultKind.IMBALANCE else SHARD
    found, checks = verdicts(s)
    details = [fault.detail for fault in found.faults if (fault.kind, fault.shard) == (kind, shard)]
    assert any(re.fullmatch(words, detail) for detail in details), found.faults
    assert not found.ok
    assert {fault.shard for fault in found.faults} == {shard}
    for check in checks:
        failed = [row.detail for row in check.checks if row.result == "fail"]
        assert not check.ok
        assert any(details[0] in row for row in failed), check.checks


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its two looks the server sleeps in real time, of which a story has none."""
    monkeypatch.setattr(shard_requests, "SECOND_LOOK_S", 0)


@seeds(1)
def test_every_kind_of_disagreement_is_named_by_whichever_node_is_asked(seed: int) -> None:
    with story(nodes=4, seed=seed, start=False, min_entity_nodes=3) as s:
        s.setup(API, roles=("api",))
        s.start(*s.world.hosts)
        s.until(converged())
        assert verdicts(s)[0].ok
        row = table(s)[SHARD]
        other = next(name for name in OWNERS if name != row.node)
        epoch, at = row.epoch, rf"{row.node}@1"
        with recorded(s, incarnation=9):
            named(s, FaultKind.ORPHAN, rf"its owner {row.node}@9, epoch {epoch}, is gone")
        with recorded(s, epoch=epoch + 1):
            says = rf"{at} runs it under epoch {epoch}; the table says {at} epoch {epoch + 1}"
            named(s, FaultKind.STALE_EPOCH, says)
        with recorded(s, state=ShardState.MOVING):
            says = rf"it is marked moving on {at}, epoch {epoch}, and nobody moves it"
            named(s, FaultKind.STUCK_HANDOFF, says)
        with recorded(s, node=API):
            named(s, FaultKind.WRONG_ROLE, rf"its owner {API}@1, epoch {epoch}, has no role entity")
        with recorded(s, state=ShardState.UNALLOCATED, node=""):
            named(s, FaultKind.UNALLOCATED, rf"no node owns it, epoch {epoch}")
        with claimed(s, other, epoch):
            both = ", ".join(f"{each}@1 \\(epoch {epoch}\\)" for each in sorted((row.node, other)))
            named(s, FaultKind.DUPLICATE, rf"it runs on {both}; the table says {at} epoch {epoch}")
        assert verdicts(s)[0].ok


@seeds(1)
def test_load_that_nobody_evens_out_is_named_by_whichever_node_is_asked(seed: int) -> None:
    with story(nodes=3, seed=seed, start=False, min_entity_nodes=3) as s:
        for name, host in s.world.hosts.items():
            s.setup(name, sharding=replace(host.setup.sharding, moves_at_once=0))
        s.start(*s.world.hosts)
        s.until(converged())
        away = tuple(sorted(s.engine("n2").sharding.region.running()))[:40]
        s.commit(Stage("p-away", "move", away, "n1"))
        s.until(lambda _: "" if s.plan("p-away").plan.state == "done" else "not moved yet")
        counts = ", ".join(f"{name}@1 {len(s.engine(name).sharding.region.running())}" for name in OWNERS)
        why = "the limit of shards moved at once is 0"
        named(s, FaultKind.IMBALANCE, rf"{counts}: \d+ moves would even it out \(not now: {why}\)")


# ---- V2


@seeds(2)
def test_a_drain_lists_exactly_what_cannot_move_and_fails_at_its_deadline(seed: int) -> None:
    """Three entities whose writes do not end; what a pin means for the drain stands in its plan, before it begins."""
    with story(nodes=3, seed=seed) as s:
        s.setup("n2", drain_deadline_ms=20_000)
        s.kill("n2")
        s.until(removed("n2"))
        s.start("n2")
        s.until(converged())
        names = [f"e{n}" for n in range(100) if s.owner(f"e{n}") == "n2"]
        stuck = list({shard_of(name): name for name in names}.values())[:3]
        assert len(stuck) == 3
        for name in stuck:
            s.until(answered(s.add_to(name)))
        pinned = next(shard for shard in s.engine("n2").sharding.region.running())
        s.commit(Stage("p-pin", "pin", (pinned,), "n2"))
        plan = Console(s, "n1").ask(p.StageDrain(node="n2"))
        assert f"shard {pinned} is pinned to n2 and comes back to it" in plan.notes
        assert {move.shard for move in plan.moves} == set(s.engine("n2").sharding.region.running())

        s.host("n2").process.applied_ns += 15_000 * MS  # type: ignore[union-attr]  # its store takes so long from now on
        writes = [s.add_to(name, at="n2") for name in stuck]
        s.run(0.1)
        elsewhere = next(f"op-{n}" for n in range(100) if s.owner(f"op-{n}") == "n1")
        operation = told_to_drain(s, "n2", at="n1", name=elsewhere)
        wanted = {f"entity/probe/{each}: a write is under way, its shard {shard_of(each)} stops" for each in stuck}
        wanted |= {"3 shards are still here"}
        said: list[set[str]] = []
        while (found := shown(s, operation)).state == "running":
            said += [set(phase.blockers) for phase in found.phases if phase.name == "shards" and phase.blockers]
            s.run(0.2)
        assert wanted in said
        assert over(s, operation).state == "failed"
        behind = {phase.name: set(phase.blockers) for phase in found.phases if phase.state == "overran"}
        assert behind["shards"] == wanted
        s.until(removed("n2"), *(answered(write) for write in writes), within_s=60)
        s.until(converged("n1", "n3"), within_s=60)
