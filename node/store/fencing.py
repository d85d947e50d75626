"""The fence (I1): whether a writer may still write, decided inside the transaction that writes; and a consumer's."""

from __future__ import annotations

from node.store.lease import StoredLease, StoreTime, left_ns
from node.store.port import Conflict, Fenced, StateChange, StoreFailed, WritePlacement
from node.store.projection import AdvanceConsumer


def state_refusal(request: StateChange, shard_epoch: int, found_revision: int) -> Fenced | Conflict | None:
    """Why a state may not be written or deleted, or None; `found_revision` is the state's or its tombstone's.

    The fence comes before the revision: a former owner is told that it is one, not that it should read again.
    Epoch 0 means never allocated, so nobody may write under it.
    """
    if request.epoch != shard_epoch or shard_epoch < 1:
        return Fenced(found=shard_epoch)
    if request.revision != found_revision:
        return Conflict(found=found_revision)
    return None


def term_refusal(request: WritePlacement, lease: StoredLease | None, at: StoreTime) -> Fenced | None:
    """Why a coordinator may not change the placement, or None. An expired lease is lost, also when nobody has taken
    it: the coordinator acquires it anew, under a new term."""
    if lease is None:
        return Fenced(found=0)
    if lease.holder != request.holder or lease.term != request.term or left_ns(lease, at) == 0:
        return Fenced(found=lease.term)
    return None


def advance_refusal(request: AdvanceConsumer, stands_at: int, last_offset: int) -> Conflict | StoreFailed | None:
    """Why a consumer may not advance so, or None; `last_offset` is the log's."""
    if request.expected != stands_at:
        return Conflict(found=stands_at)
    if not stands_at <= request.offset <= last_offset:
        message = f"{request.name} stands at {stands_at}, the log at {last_offset}: {request.offset} is no next offset"
        return StoreFailed("E-BAD-OFFSET", message, definite=True)
    return None
