"""Rules of the placement table: which change of a row is allowed."""

from __future__ import annotations

from collections.abc import Callable

from node.store.fencing import term_refusal
from node.store.lease import StoredLease, StoreTime
from node.store.port import Conflict, Fenced, ShardRow, StoreFailed, WritePlacement


def moves_back(present: ShardRow, wanted: ShardRow) -> bool:
    """Whether a row would break I1: its epoch goes back, or another owner would share the epoch of the one before."""
    if wanted.epoch < present.epoch:
        return True
    takes_over = bool(wanted.node) and (wanted.node, wanted.incarnation) != (present.node, present.incarnation)
    return takes_over and wanted.epoch == present.epoch


def placement_refusal(
    request: WritePlacement,
    version: int,
    row_of: Callable[[int], ShardRow],
    lease: StoredLease | None,
    at: StoreTime,
    shard_count: int,
) -> Fenced | Conflict | StoreFailed | None:
    """Why the table may not be changed so, or None; one row that may not change refuses all of them."""
    fenced = term_refusal(request, lease, at)
    if fenced is not None:
        return fenced
    shards = [row.shard for row in request.rows]
    if len(set(shards)) != len(shards) or any(not 0 <= shard < shard_count for shard in shards):
        return StoreFailed("E-BAD-PLACEMENT", f"each shard of 0 to {shard_count - 1} at most once", definite=True)
    if request.version != version or any(moves_back(row_of(row.shard), row) for row in request.rows):
        return Conflict(found=version)
    return None
