"""When shards had no home: their owner by the placement table had ended, and no other was placed yet.

This decides from the record alone (what the store accepted, when processes ended), not from what a node said of it: an
excuse that the judged could give themselves would be none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from node.core.hashing import SHARD_COUNT
from node.core.ids import NodeId
from node.sim import history as h

Span = tuple[int, int]  # from, to, in nanoseconds
Homeless = Mapping[int, Sequence[Span]]  # by shard, in order


def homeless(log: Iterable[h.Event], ended_ns: Mapping[NodeId, int], now_ns: int) -> dict[int, list[Span]]:
    """The spans of each shard that had some. Before its first placement a shard has no home either."""
    since: dict[int, int | None] = dict.fromkeys(range(SHARD_COUNT), 0)
    found: dict[int, list[Span]] = {}

    def close(shard: int, at_ns: int) -> None:
        from_ns = since[shard]
        if from_ns is not None and from_ns < at_ns:
            found.setdefault(shard, []).append((from_ns, at_ns))

    for event in log:
        if isinstance(event, h.Placed):
            close(event.shard, event.at_ns)
            since[event.shard] = ended_ns.get(event.owner)
    for shard in since:
        close(shard, now_ns)
    return found


def overlaps(spans: Iterable[Span], from_ns: int, to_ns: int) -> bool:
    """Whether one of the spans has a moment of that time."""
    return any(first_ns <= to_ns and from_ns <= last_ns for first_ns, last_ns in spans)


def outlasts(spans: Iterable[Span], at_ns: int, within_ns: int, least_ns: int) -> bool:
    """Whether one of the spans is there within so long after a moment, and goes on for so long after both."""
    return any(
        first_ns <= at_ns + within_ns and last_ns - max(first_ns, at_ns) >= least_ns for first_ns, last_ns in spans
    )
