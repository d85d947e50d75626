"""When shards had no home: their owner by the placement table had ended, and no other was placed yet. And when a node
could not hear of one: it had just started, and nobody that may coordinate was there.

This decides from the record alone (what the store accepted, when processes ended), not from what a node said of it: an
excuse that the judged could give themselves would be none.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final

from node.core.clock import MS
from node.core.hashing import SHARD_COUNT
from node.core.ids import NodeId
from node.sim import history as h

# Until a node that looks for a shard hears where it was placed: it asks again within `homes_wanted_ms`, and waits for a
# turn and a store that may both be slow. A home that was there for longer has to be found.
FOUND_MS_MAX: Final = 2_000

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


def unguided(
    log: Sequence[h.Event], ended_ns: Mapping[NodeId, int], may_coordinate: Container[str], now_ns: int
) -> dict[str, list[Span]]:
    """By host, the spans in which its process could hear of no home. They begin when the last process that may
    coordinate ends (all such hosts were drained, seed 554), and end when the store grants the next lease. Whoever has
    been there for longer knows the homes."""
    starts = [event for event in log if isinstance(event, h.Started)]
    leases_ns = [event.at_ns for event in log if isinstance(event, h.Leased)]
    alone: list[Span] = []
    running = 0
    came = [(start.at_ns, 1) for start in starts if start.node.name in may_coordinate]
    went = [(ended_ns[s.node], -1) for s in starts if s.node.name in may_coordinate and s.node in ended_ns]
    for at_ns, change in sorted(came + went):
        running += change
        if not running:
            alone.append((at_ns, next((lease_ns for lease_ns in leases_ns if lease_ns > at_ns), now_ns)))
    found: dict[str, list[Span]] = {}
    for start in starts:
        for first_ns, last_ns in alone:
            if first_ns - FOUND_MS_MAX * MS <= start.at_ns <= last_ns:
                found.setdefault(start.node.name, []).append((first_ns, last_ns))
    return found


def overlaps(spans: Iterable[Span], from_ns: int, to_ns: int) -> bool:
    """Whether one of the spans has a moment of that time."""
    return any(first_ns <= to_ns and from_ns <= last_ns for first_ns, last_ns in spans)


def outlasts(spans: Iterable[Span], at_ns: int, within_ns: int, least_ns: int) -> bool:
    """Whether one of the spans is there within so long after a moment, and goes on for so long after both."""
    return any(
        first_ns <= at_ns + within_ns and last_ns - max(first_ns, at_ns) >= least_ns for first_ns, last_ns in spans
    )
