"""What keeps a phase of a drain from ending, by name: entities, peers, nodes; empty when it may end. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING

from node.actors.unfinished import Unfinished
from node.core.ids import SINGLETON_SHARD
from node.core.limits import drain_blockers_named_max
from node.engine import topology
from node.engine.drain import Step

if TYPE_CHECKING:
    from node.engine.engine import Engine


def blockers(engine: Engine, step: Step, now_ns: int) -> tuple[str, ...]:
    """See the module; at most `drain_blockers_named_max` lines and one that counts the rest."""
    match step:
        case Step.INGESTION:
            return _some(_count(engine.executing, "classifications run"))
        case Step.SINGLETONS:
            return _some(_singletons(engine))
        case Step.SHARDS:
            return _some(_shards(engine))
        case Step.ASKS:
            return _some(
                f"{_entity(who.kind, who.id) if who else 'edges'}: {count} answers are awaited"
                for who, count in engine.system.askers().items()
            )
        case Step.REPLICAS:
            return _some(
                f"peer/{peer}: {entries} entries are not acknowledged"
                for peer, entries in sorted(engine.replication.behind(now_ns).items())
            )
        case Step.OUTBOXES:
            return _some(_writes(engine))
        case Step.FLUSH:
            return _some((*_writes(engine), *_count(engine.replication.unwritten(), "replica entries are not on disk")))
        case Step.READINESS | Step.LEAVE:
            return ()


def somebody_takes_shards(engine: Engine) -> bool:
    """False when every other entity node drains too, or nothing is to be moved: waiting would be for nothing."""
    if engine.freezing.on:
        return False
    nodes = topology.entity_nodes(engine.view, engine.draining_nodes()).nodes
    return any(node.takes_shards for node in nodes if node.node != engine.me)


def named(item: Unfinished) -> str:
    """A cell that can't go yet, as a blocker."""
    return f"{_entity(item.ref.kind, item.ref.id)}: {item.why}"


def _singletons(engine: Engine) -> list[str]:
    if SINGLETON_SHARD not in engine.system.owned() or len(engine.view.up("singleton")) < 2:
        return []
    return ["singletons are still here"]


def _shards(engine: Engine) -> list[str]:
    region = engine.sharding.region
    found: list[str] = []
    held = region.held() if somebody_takes_shards(engine) else 0
    if held:
        coordinator = engine.sharding.coordinator_node()
        if coordinator is None:
            found.append("no node coordinates shards")
        elif not engine.view.reachable(coordinator):
            found.append(f"node/{coordinator}: coordinates shards and can't be reached")
        found += [f"{named(item)}, its shard {item.ref.shard} stops" for item in _stopping(engine)]
        found.append(f"{held} shards are still here")
    return [*found, *_count(region.waiting(), "messages wait for a shard's new home")]


def _stopping(engine: Engine) -> Iterable[Unfinished]:
    return (item for item in engine.system.unfinished() if item.stopping)


def _writes(engine: Engine) -> list[str]:
    found = [named(item) for item in engine.system.unfinished() if item.writes]
    return [*found, *_count(max(0, engine.writing - len(found)), "other writes are under way")]


def _count(count: int, what: str) -> tuple[str, ...]:
    return (f"{count} {what}",) if count else ()


def _entity(kind: str, name: str) -> str:
    return f"entity/{kind}/{name}"


def _some(lines: Iterable[str]) -> tuple[str, ...]:
    """The first few, and how many more there are."""
    left = iter(lines)
    shown = tuple(islice(left, drain_blockers_named_max))
    more = sum(1 for _ in left)
    return (*shown, f"and {more} more") if more else shown
