"""Which requests may wait for which: a lane is answered in order, lanes overtake one another.

Lanes are for stores that serve several batches at once. Leases have one of their own, so that they are renewed however
slow the writes are; reads have one, so that a start which lists ten thousand states holds nobody's write up. Whoever
asks waits for the answer before they ask what depends on it, so nothing is lost by it.
"""

from __future__ import annotations

import enum
from typing import Final

from node.store import port
from node.store.projection import ProjectionRow

READS: Final = (
    port.ReadState,
    port.ListStates,
    port.ReadFacts,
    port.ReadPlacement,
    port.ReadConsumer,
    port.ListProjection,
    port.VerifyRecords,
)


class Lane(enum.Enum):
    """A queue of requests."""

    LEASES = "leases"
    READS = "reads"
    WRITES = "writes"


# Requests that mean nothing, to find out whether a lane is served again: what failed may never be tried again, an audit
# entry for one. That of the writes does write, since one that changes nothing would pass where a disk is full.
PROBES: Final[dict[Lane, port.Request]] = {
    Lane.READS: port.ReadConsumer("probe"),
    Lane.LEASES: port.ReleaseLease("probe", "probe", 0),
    Lane.WRITES: port.AdvanceConsumer("probe", 0, 0, (ProjectionRow("written", b"1"),)),
}


def lane_of(request: port.Request) -> Lane:
    """The lane of a request in a store that has them all."""
    if isinstance(request, READS):
        return Lane.READS
    return Lane.LEASES if isinstance(request, port.AcquireLease | port.ReleaseLease) else Lane.WRITES


def one_lane(request: port.Request) -> Lane:
    """The lane of every request in a store that serves one batch at a time."""
    del request
    return Lane.WRITES
