"""The four views compared: placement table, coordinator, regions, live entities. Each disagreement is named by kind.

Pure. The views are gathered one after the other while the cluster lives, so a single look may see a move half done;
the caller looks twice and believes what stays. What could not be looked at is not judged: `unchecked` names it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from node.core.ids import NodeId
from node.sharding.placement import owner
from node.sharding.requests import Placing
from node.store.port import ShardRow, ShardState

SPREAD_MAX_RATIO = 0.01  # of all shards, and never fewer than two: below it no move would be worth its pause


class FaultKind(enum.StrEnum):
    ORPHAN = "orphan"
    DUPLICATE = "duplicate"
    STALE_EPOCH = "stale-epoch"
    STUCK_HANDOFF = "stuck-handoff"
    WRONG_ROLE = "wrong-role"
    UNALLOCATED = "unallocated"
    IMBALANCE = "imbalance"


REPAIRS: Mapping[FaultKind, str] = {
    FaultKind.ORPHAN: "a new epoch for its owner, or by itself another owner",
    FaultKind.DUPLICATE: "a new epoch: whatever runs under an older one is fenced",
    FaultKind.STALE_EPOCH: "a new epoch: whatever runs under an older one is fenced",
    FaultKind.STUCK_HANDOFF: "a new owner at once, without asking the old one",
    FaultKind.WRONG_ROLE: "the coordinator gives it to an entity node by itself",
    FaultKind.UNALLOCATED: "the coordinator places it by itself as soon as an entity node can take it",
    FaultKind.IMBALANCE: "moves that even it out",
}


@dataclass(frozen=True, slots=True)
class ShardFault:
    """`shard` is -1 where the fault is no single shard's."""

    kind: FaultKind
    shard: int
    detail: str

    @property
    def repair(self) -> str:
        return REPAIRS[self.kind]


@dataclass(frozen=True, slots=True)
class NodeShards:
    """What one node says of itself: shard → epoch by its region, and by the actors that live there."""

    node: NodeId
    region: Mapping[int, int]
    entities: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Views:
    """`rows` as the store has them; `placing` is None when nobody coordinates; `members` with their roles."""

    rows: Sequence[ShardRow]
    placing: Placing | None
    nodes: Sequence[NodeShards]
    members: Mapping[NodeId, Sequence[str]]


def unchecked(views: Views) -> tuple[str, ...]:
    """What the views say nothing about, in words."""
    answered = {each.node for each in views.nodes}
    found = [f"{node} did not answer" for node in sorted(views.members) if node not in answered]
    placing = views.placing
    if placing is None:
        found.append("nobody coordinates the shards")
    return tuple(found)


def balance(views: Views) -> str | None:
    """How even the load is where that is no fault, in words; None when nobody says."""
    placing = views.placing
    if placing is None:
        return None
    if placing.balancing and _uneven(placing):
        return f"not yet: {placing.uneven} moves would even it out; {placing.balancing}"
    return "even"


def check(views: Views) -> tuple[ShardFault, ...]:
    """All disagreements, by shard."""
    found: list[ShardFault] = []
    for row in views.rows:
        found.extend(_shard(row, views))
    found.extend(_imbalance(views))
    return tuple(found)


def _shard(row: ShardRow, views: Views) -> Iterator[ShardFault]:
    yield from _owner(row, views)
    yield from _runs(row, views)
    yield from _move(row, views)


def _owner(row: ShardRow, views: Views) -> Iterator[ShardFault]:
    holder = owner(row)
    if row.state is ShardState.UNALLOCATED or not row.node:
        yield ShardFault(FaultKind.UNALLOCATED, row.shard, f"no node owns it, epoch {row.epoch}")
    elif holder not in views.members:
        yield ShardFault(FaultKind.ORPHAN, row.shard, f"its owner {holder}, epoch {row.epoch}, is gone")
    elif "entity" not in views.members[holder]:
        yield ShardFault(FaultKind.WRONG_ROLE, row.shard, f"its owner {holder}, epoch {row.epoch}, has no role entity")


def _runs(row: ShardRow, views: Views) -> Iterator[ShardFault]:
    holder, shard = owner(row), row.shard
    running = [(each.node, each.region[shard]) for each in views.nodes if shard in each.region]
    living = [(each.node, each.entities[shard]) for each in views.nodes if shard in each.entities]
    table = f"the table says {holder} epoch {row.epoch}"
    everywhere = sorted({*running, *living})
    if len({node for node, _ in everywhere}) > 1:
        both = ", ".join(f"{node} (epoch {epoch})" for node, epoch in everywhere)
        yield ShardFault(FaultKind.DUPLICATE, shard, f"it runs on {both}; {table}")
    for node, epoch in everywhere:
        if epoch < row.epoch:
            yield ShardFault(FaultKind.STALE_EPOCH, shard, f"{node} runs it under epoch {epoch}; {table}")
    placing = views.placing
    if placing is not None and placing.epochs[shard] < row.epoch:
        words = f"the coordinator holds epoch {placing.epochs[shard]}; {table}"
        yield ShardFault(FaultKind.STALE_EPOCH, shard, words)
    answered = {each.node for each in views.nodes}
    if row.state is not ShardState.RUNNING or holder not in answered:
        return
    if (holder, row.epoch) not in running:
        runs = ", ".join(f"{node} runs it under epoch {epoch}" for node, epoch in everywhere if node != holder)
        own = next((epoch for node, epoch in running if node == holder), None)
        does = "does not run it" if own is None else f"runs it under epoch {own}"
        silent = "" if runs or own is not None else "; nobody who answered does"
        words = f"placed on {holder}, epoch {row.epoch}, which {does}{f'; {runs}' if runs else silent}"
        yield ShardFault(FaultKind.ORPHAN, shard, words)
    elif (holder, row.epoch) not in living:
        yield ShardFault(FaultKind.ORPHAN, shard, f"{holder} owns it, and its entities have no place to live there")


def _move(row: ShardRow, views: Views) -> Iterator[ShardFault]:
    if views.placing is None or row.state is not ShardState.MOVING:
        return
    move = next((m for m in views.placing.moves if m.shard == row.shard), None)
    if move is None:
        words = f"it is marked moving on {owner(row)}, epoch {row.epoch}, and nobody moves it"
        yield ShardFault(FaultKind.STUCK_HANDOFF, row.shard, words)
    elif move.limit_ms and move.age_ms > move.limit_ms:
        since = f"{move.age_ms / 1_000:.1f} s, limit {move.limit_ms / 1_000:g} s"
        waits = f"{move.source} has not acknowledged" if move.state.startswith("asked") else "it waits for a new owner"
        yield ShardFault(FaultKind.STUCK_HANDOFF, row.shard, f"moving for {since}: {waits}")


def _uneven(placing: Placing) -> bool:
    return placing.uneven > max(1.0, SPREAD_MAX_RATIO * len(placing.owners))


def _imbalance(views: Views) -> Iterator[ShardFault]:
    """Only what nobody mends: moves are paced, and begin when it has lasted, so that after a restart load is uneven."""
    placing = views.placing
    if placing is None or placing.balancing or not _uneven(placing):
        return
    counts: dict[str, int] = {}
    for node in placing.owners:
        counts[node] = counts.get(node, 0) + 1
    held = ", ".join(f"{node} {count}" for node, count in sorted(counts.items()) if node)
    why = f" (not now: {'; '.join(placing.why_not_rebalancing)})" if placing.why_not_rebalancing else ""
    yield ShardFault(FaultKind.IMBALANCE, -1, f"{held}: {placing.uneven} moves would even it out{why}")
