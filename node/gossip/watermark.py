"""The stable time of one node's writes: what was accepted before it is on every replica of the roster."""

from __future__ import annotations

from collections.abc import Mapping

from node.gossip.lag import PeerLag
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replica_views import Holdback, Watermark


def watermark_of(
    me: str, roster: ReplicaRoster, lags: Mapping[str, PeerLag], caught_up: frozenset[str], wall_ms: int
) -> Watermark:
    """`lags` by peer, of the writes of this start; `caught_up`: peers that were compared with wholly since then, so
    that what an earlier start wrote is there too. Who holds it back longest comes first, unknown before all."""
    held: list[Holdback] = []
    for name in sorted(roster.names() - {me}):
        lag = lags.get(name)
        if lag is None or name not in caught_up:
            held.append(Holdback(name, lag.entries if lag else 0, 0, "not compared with since this node's start"))
        elif lag.entries:
            held.append(Holdback(name, lag.entries, wall_ms - lag.ms, "has not acknowledged"))
    held.sort(key=lambda holdback: (holdback.since_ms, holdback.node))
    return Watermark(min([holdback.since_ms for holdback in held], default=wall_ms), tuple(held))
