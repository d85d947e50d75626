"""Remembered entities, told as stories: they run again without a message, paced, where their shard is, each once.

Passivation itself needs no cluster: P58, P69, P70 and P74 are in tests/unit/actors.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from seeds import seeds

from node.actors.actor import Context, EntityType
from node.actors.cell import Phase
from node.ads.classifier import Classifier
from node.ads.serveindex import ServeIndex
from node.core import limits
from node.core.clock import SECOND
from node.core.ids import EntityRef
from node.engine.entities import EntityTypes, entity_types
from node.flows.operation import Cluster
from node.sim.conditions import answered, converged, removed
from node.sim.process import Process
from node.sim.story import Condition, Story, story
from node.wire.registry import wire_type

KEEPER = "keeper"
NODES = 5


@wire_type("test_passivation.kept")
class Kept(msgspec.Struct, frozen=True):
    number: int = 0


@wire_type("test_passivation.keep")
class Keep(msgspec.Struct, frozen=True):
    number: int


@wire_type("test_passivation.delete")
class Delete(msgspec.Struct, frozen=True):
    pass


class Keeper:
    """Durable and remembered, or deleted; answers once it is."""

    def __init__(self, _entity: str) -> None:
        pass

    def start(self, ctx: Context, state: Kept | None) -> None:
        pass

    def receive(self, ctx: Context, message: Any) -> None:
        if isinstance(message, Delete):
            ctx.delete(reply=Kept())
        else:
            ctx.persist(Kept(message.number), reply=Kept(message.number))


def with_keepers(_process: Process) -> EntityTypes:
    def types(classifier: Classifier, index: ServeIndex, cluster: Cluster) -> tuple[EntityType, ...]:
        keeper = EntityType(KEEPER, lambda entity: Keeper(entity), Kept, remember=True)
        return (*entity_types(classifier, index, cluster), keeper)

    return types


def cluster_of_keepers(s: Story, count: int) -> list[EntityRef]:
    """A cluster that has that many of them, each durable."""
    for number in range(1, NODES + 1):
        s.setup(f"n{number}", compose=with_keepers)
    s.start(*(f"n{number}" for number in range(1, NODES + 1)))
    s.until(converged())
    refs = [EntityRef(KEEPER, f"k{number}") for number in range(count)]
    s.until(answered(*(s.ask(ref, Keep(number)) for number, ref in enumerate(refs))))
    return refs


def where(s: Story) -> dict[EntityRef, list[str]]:
    """On which hosts each keeper runs."""
    found: dict[EntityRef, list[str]] = {}
    for engine in s.running():
        for cell in engine.system.cells():
            if cell.ref.kind == KEEPER and cell.phase is Phase.RUNNING:
                found.setdefault(cell.ref, []).append(engine.me.name)
    return found


def all_run_at_home(refs: list[EntityRef]) -> Condition:
    """Each of them, where its shard is, and nowhere else."""

    def condition(s: Story) -> str:
        running = where(s)
        if len(running) < len(refs):
            return f"{len(running)} of {len(refs)} run"
        owners: dict[int, list[str]] = {}
        for engine in s.running():
            for shard in engine.sharding.region.running():
                owners.setdefault(shard, []).append(engine.me.name)
        amiss = [ref for ref in refs if running.get(ref) != owners.get(ref.shard) or len(running[ref]) != 1]
        return f"{len(amiss)} not once at home, such as {amiss[0]}: {running.get(amiss[0])}" if amiss else ""

    return condition


def paced(s: Story) -> str:
    """No node starts remembered entities faster than it may. As every condition: why it does not hold."""
    for engine in s.running():
        clock = engine.world.clock
        up_s = (clock.mono_ns() - engine.started_ns) / SECOND
        started = engine.system.stats().get("remembered", 0)
        allowed = limits.remember_starts_per_s * (up_s + limits.remember_tick_ms / 1_000)
        if started > allowed:
            return f"{engine.me} started {started} in {up_s:.2f} s"
    return ""


@seeds(1)
def test_p71_all_nodes_start_again_and_remembered_entities_run_once_at_their_pace(seed: int) -> None:
    with story(nodes=NODES, seed=seed, start=False) as s:
        refs = cluster_of_keepers(s, 1_200)
        s.kill(*(f"n{number}" for number in range(1, NODES + 1)))
        s.run(1)
        begun_s = s.now_s
        s.start(*(f"n{number}" for number in range(1, NODES + 1)))
        with s.always(paced):
            s.until(converged())
            s.until(all_run_at_home(refs), within_s=20)
        print(f"seed {seed}: {len(refs)} remembered entities run {s.now_s - begun_s:.1f} s after the start")
        sent = sum(engine.system.stats()["remembered"] for engine in s.running())
        assert sent >= len(refs), "nobody asked for them"


@seeds(1)
def test_p72_what_was_deleted_is_not_started_when_all_nodes_start_again_nor_written_by_a_former_owner(
    seed: int,
) -> None:
    with story(nodes=NODES, seed=seed, start=False) as s:
        refs = cluster_of_keepers(s, 200)
        gone, kept = refs[::4], [ref for number, ref in enumerate(refs) if number % 4]
        former = s.owner(gone[0].shard)
        s.ask(gone[0], Keep(9), at=former)
        s.stop(former)
        s.until(removed(former), within_s=s.bound_s)
        other = next(name for name in s.world.hosts if name != former)
        s.until(answered(*(s.ask(ref, Delete(), at=other, timeout_ms=20_000) for ref in gone)))
        s.thaw(former)  # and now it writes what it was asked for
        s.until(converged(), all_run_at_home(kept))
        assert not where(s).keys() & set(gone), "they ended when they were deleted, and stay so"
        s.kill(*(f"n{number}" for number in range(1, NODES + 1)))
        s.run(1)
        s.start(*(f"n{number}" for number in range(1, NODES + 1)))
        with s.never(lambda s: "" if where(s).keys() & set(gone) else "none of them runs"):
            s.until(converged(), all_run_at_home(kept), within_s=20)
            s.run(5)
        s.until(answered(*(s.ask(ref, Keep(1)) for ref in gone)))
        s.until(all_run_at_home(refs))


@seeds(1)
def test_p73_the_coordinator_and_then_twenty_shards_move_and_each_runs_once_at_home(seed: int) -> None:
    with story(nodes=NODES, seed=seed, start=False) as s:
        refs = cluster_of_keepers(s, 200)
        first = s.coordinator()
        s.kill(first)
        s.until(removed(first), within_s=s.bound_s)
        s.until(converged(), all_run_at_home(refs))
        assert s.coordinator() != first
        owners = Counter(s.owner(shard) for shard in range(256))
        source, target = owners.most_common()[0][0], owners.most_common()[-1][0]
        moved = [shard for shard in range(256) if s.owner(shard) == source][:20]
        assert len(moved) == 20
        for shard in moved:
            s.move(shard, target)
            s.until(lambda s, shard=shard: "" if s.owner(shard) == target else f"{shard} has not moved")
        s.until(converged(), all_run_at_home(refs))
        assert any(ref.shard in moved for ref in refs)
