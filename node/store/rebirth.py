"""What a restored store must say differently from its backup, so that nobody from before can write to it (I1, I3).

Between the backup and the restore epochs, terms and starts may have been given out that the backup does not know. Given
out again, they would let two owners hold one epoch, and let replicas prefer what the former one wrote. So all of them
jump, further than they can have come, and every shard is without an owner: the next one gets an epoch above all before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from node.core import limits
from node.store.archive import CounterRow, IncarnationRow, LeaseRow, Row
from node.store.port import ShardRow, ShardState


def reborn(rows: Iterable[Row]) -> Iterator[Row]:
    """The rows of a backup as they are restored."""
    jump = limits.restore_jump
    for row in rows:
        match row:
            case ShardRow(shard=shard, epoch=epoch):
                yield ShardRow(shard, epoch=epoch + jump, state=ShardState.UNALLOCATED)
            case IncarnationRow(node, number):
                yield IncarnationRow(node, number + jump)
            case LeaseRow(name, term):
                yield LeaseRow(name, term + jump)
            case CounterRow("placement", version):
                yield msgspec.structs.replace(row, value=version + jump)
            case _:
                yield row
