"""What a test of the admin server needs besides its engine: operators with roles, a store that takes their audit."""

from __future__ import annotations

from node.core.clock import Clock
from node.core.hashing import SHARD_COUNT
from node.store.memory import MemoryStore
from node.store.port import AcquireLease, LeaseGranted, PlacementWritten, ShardRow, ShardState, WritePlacement
from node.wire.roster import OperatorEntry, OperatorRole, Roster
from node.wire.zmq_sockets import new_key_pair

PAIRS = {role: new_key_pair() for role in OperatorRole}
# One operator of each role, under the role's name.
OPERATORS = Roster(operators=[OperatorEntry(role.value, pair.public, role) for role, pair in PAIRS.items()])


def placed_store(clock: Clock, epoch: int = 1) -> MemoryStore:
    """A store whose shards all have an owner."""
    store = MemoryStore(clock)
    (lease,) = store.apply([AcquireLease("coordinator", "n1@1", 60_000)])
    assert isinstance(lease, LeaseGranted)
    rows = tuple(ShardRow(shard, "n1", 1, epoch, ShardState.RUNNING) for shard in range(SHARD_COUNT))
    (written,) = store.apply([WritePlacement("coordinator", "n1@1", lease.term, 0, rows)])
    assert isinstance(written, PlacementWritten)
    return store
