"""The placement table in memory: which node owns which shard, under which epoch.

An allocation takes the next epoch; marking a shard *moving* keeps it; nothing ever goes from moving back to running
under the same epoch. So rows of one shard are totally ordered by (epoch, moving), and news can arrive in any order.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from node.core.check import invariant
from node.core.ids import NodeId
from node.store.port import Placement, ShardRow, ShardState


def rank(row: ShardRow) -> tuple[int, bool]:
    """The order of a shard's rows in time."""
    return row.epoch, row.state is ShardState.MOVING


def owner(row: ShardRow) -> NodeId:
    return NodeId(row.node, row.incarnation)


def placed(row: ShardRow, target: NodeId) -> ShardRow:
    """The row that gives a shard to `target` under the next epoch."""
    return ShardRow(
        shard=row.shard,
        node=target.name,
        incarnation=target.incarnation,
        epoch=row.epoch + 1,
        state=ShardState.RUNNING,
    )


def marked(row: ShardRow) -> ShardRow:
    """The row that says that its owner is about to lose it."""
    return msgspec.structs.replace(row, state=ShardState.MOVING)


class PlacementTable:
    """Rows by shard, and the version that the store gave them. `owners` are the rows' owners, kept beside them because
    decisions look at all of them."""

    def __init__(self, shard_count: int) -> None:
        self.version = 0
        self.rows: list[ShardRow] = [ShardRow(shard) for shard in range(shard_count)]
        self.owners: list[NodeId] = [owner(row) for row in self.rows]

    def replace(self, read: Placement) -> None:
        """Take what the store holds."""
        for row in read.rows:
            invariant(0 <= row.shard < len(self.rows), "placement-shard", shard=row.shard, count=len(self.rows))
            self._set(row)
        self.version = read.version

    def apply(self, rows: Iterable[ShardRow], version: int) -> None:
        """Take rows that were just made durable as `version`."""
        for row in rows:
            invariant(rank(row) > rank(self.rows[row.shard]), "I1 epoch-went-back", row=row)
            self._set(row)
        self.version = version

    def _set(self, row: ShardRow) -> None:
        self.rows[row.shard] = row
        self.owners[row.shard] = owner(row)

    def owned_by(self, node: NodeId) -> list[ShardRow]:
        return [row for row, holder in zip(self.rows, self.owners, strict=True) if holder == node]

    def counts(self) -> dict[NodeId, int]:
        """Shards per owner; those without one are left out."""
        counts: dict[NodeId, int] = {}
        for row, holder in zip(self.rows, self.owners, strict=True):
            if row.state is not ShardState.UNALLOCATED:
                counts[holder] = counts.get(holder, 0) + 1
        return counts
