"""Where shards go: pure functions of the table and the nodes.

First placement and the shards of a lost node: rendezvous hashing weighted by capacity (score -w/ln u), where a node
that has its fair share already is passed over (consistent hashing with bounded loads), so that the result needs no
rebalance. Shards of a drained node: newest app version, then lightest load. Rebalance: heaviest to lightest while that
narrows the gap by at least two shards' worth.

Everywhere a pin comes first, where its node takes shards; and where shards must be placed, only nodes of the newest
version are looked at, so that a rolling update moves each shard once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import xxhash

from node.core.app_version import version_key
from node.core.ids import NodeId
from node.sharding.nodes import EntityNode, EntityNodes
from node.sharding.placement import owner
from node.store.port import ShardRow, ShardState

NO_PINS: Final[Mapping[int, str]] = {}


def score(shard: int, node: str, capacity: float) -> float:
    """The rendezvous score of a node for a shard; by name, so that a restart keeps its places."""
    bits = xxhash.xxh64_intdigest(f"{shard}|{node}".encode(), 0) >> 11
    unit = (bits + 0.5) / (1 << 53)  # within (0, 1), so that the logarithm exists and isn't zero
    return -capacity / math.log(unit)


def place(
    orphans: Sequence[ShardRow],
    counts: Mapping[NodeId, int],
    targets: Sequence[EntityNode],
    shard_count: int,
    pins: Mapping[int, str] = NO_PINS,
) -> dict[int, NodeId]:
    """A node for each orphan; `counts` are the shards that stay with their owners, `pins` names nodes by shard. Empty
    without targets.

    A shard whose former owner is back under a new incarnation goes back to it.
    """
    if not targets:
        return {}
    load = {t.node: counts.get(t.node, 0) for t in targets}
    pinned = {t.node.name: t for t in targets}
    targets = newest(targets)
    by_name = {t.node.name: t for t in targets}
    homes: dict[int, NodeId] = {}
    for row in orphans:
        back = pinned.get(pins.get(row.shard, "")) or by_name.get(row.node)
        if back is not None:
            homes[row.shard] = back.node
            load[back.node] += 1
    weight = sum(t.capacity for t in targets)
    # Whole shares for all, and one shard more for as many as the remainder reaches: 86, 85 and 85 of 256.
    fair = {t.node: math.floor(shard_count * t.capacity / weight) for t in targets}
    odd = shard_count - sum(fair.values())
    for row in orphans:
        if row.shard in homes:
            continue
        left = odd - sum(1 for t in targets if load[t.node] > fair[t.node])
        open_ = [t for t in targets if load[t.node] < fair[t.node] + (left > 0)]
        best = max(open_ or targets, key=lambda t: (score(row.shard, t.node.name, t.capacity), t.node))
        homes[row.shard] = best.node
        load[best.node] += 1
    return homes


def newest(targets: Sequence[EntityNode]) -> list[EntityNode]:
    """Those of the newest version."""
    best = max((version_key(t.version) for t in targets), default=None)
    return [t for t in targets if version_key(t.version) == best]


def successor(counts: Mapping[NodeId, int], targets: Sequence[EntityNode], pin: str = "") -> NodeId | None:
    """Who takes a shard of a node that is drained: the node it is pinned to, else the newest version, then the
    lightest load, then by name."""
    if not targets:
        return None
    pinned = next((t.node for t in targets if t.node.name == pin), None)
    return pinned or min(newest(targets), key=lambda t: (counts.get(t.node, 0) / t.capacity, t.node)).node


def drained(
    rows: Sequence[ShardRow], node: str, targets: Sequence[EntityNode], pins: Mapping[int, str] = NO_PINS
) -> dict[int, NodeId]:
    """Where each shard of a drained node would go if the drain began now: `successor`, one after the other."""
    counts: dict[NodeId, int] = {}
    for row in rows:
        at = NodeId(row.node, row.incarnation)
        counts[at] = counts.get(at, 0) + 1
    found: dict[int, NodeId] = {}
    for row in rows:
        if row.node != node:
            continue
        target = successor(counts, targets, pins.get(row.shard, ""))
        if target is not None:
            counts[target] = counts.get(target, 0) + 1
            found[row.shard] = target
    return found


def rebalance(
    rows: Sequence[ShardRow], targets: Sequence[EntityNode], moves_max: int, pins: Mapping[int, str] = NO_PINS
) -> list[tuple[int, NodeId]]:
    """Up to `moves_max` moves (shard, to) that even the load out; pinned shards and those on no target stay."""
    if len(targets) < 2:
        return []
    movable: dict[NodeId, list[int]] = {t.node: [] for t in targets}
    count: dict[NodeId, int] = {t.node: 0 for t in targets}
    for row in rows:
        if owner(row) not in count:
            continue
        count[owner(row)] += 1
        if row.state is ShardState.RUNNING and row.shard not in pins:
            movable[owner(row)].append(row.shard)
    weight = sum(t.capacity for t in targets)
    total = sum(count.values())
    fair = {t.node: total * t.capacity / weight for t in targets}
    moves: list[tuple[int, NodeId]] = []
    while len(moves) < moves_max:
        givers = [n for n in count if movable[n]]
        if not givers:
            break
        heaviest = max(givers, key=lambda n: (count[n] - fair[n], n))
        lightest = min(count, key=lambda n: (count[n] - fair[n], n))
        # a hair below two: fair shares are fractions
        if (count[heaviest] - fair[heaviest]) - (count[lightest] - fair[lightest]) < 2 - 1e-9:
            break
        moves.append((movable[heaviest].pop(), lightest))
        count[heaviest] -= 1
        count[lightest] += 1
    return moves


def passing(nodes: EntityNodes) -> tuple[str, ...]:
    """Those hindrances that end by themselves within moments."""
    found = [f"{name} is joining" for name in nodes.joining]
    return (*found, *(["a rolling restart is under way"] if nodes.held else []))


def hindrances(nodes: EntityNodes) -> tuple[str, ...]:
    """Why nothing should be rebalanced now, each in words: what the cluster looks like is about to change."""
    unreachable = {*nodes.unreachable, *(n.node.name for n in nodes.nodes if not n.reachable)}
    found = [*(f"{name} is unreachable" for name in sorted(unreachable)), *passing(nodes)]
    versions = {n.version for n in nodes.nodes}
    if len(versions) > 1:
        found.append("mixed versions: " + ", ".join(f"{n.node.name} {n.version}" for n in nodes.nodes))
    return tuple(found)
