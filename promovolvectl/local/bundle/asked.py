"""What a bundle asks of a cluster: once of anybody, and of each node by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from node.admin import protocol as p
from node.admin.protocol import diagnosis as d

LETTERS: Final = 200
TURNS: Final = 500
LINES: Final = 2_000  # of a node's log in its memory; its file, where it is here, goes further back

# Asked of one node that answers, for all.
CLUSTER: Final[Mapping[str, msgspec.Struct]] = {
    "cluster/health.json": p.GetClusterHealth(),
    "cluster/check.json": p.CheckCluster(),
    "cluster/views.json": d.GetViews(),
    "cluster/stuck.json": d.GetStuck(),
    "cluster/events.json": d.GetEventList(),
    "cluster/decisions.json": p.GetDecisions(),
    "cluster/shards.json": p.GetShards(),
    "cluster/shard-map.json": p.GetShardMap(),
    "cluster/shard-check.json": p.GetShardCheck(),
    "cluster/serveindex-status.json": p.GetIndexStatus(),
    "cluster/serveindex-maps.json": p.GetMaps(),
    "cluster/serveindex-lag.json": p.GetLag(),
    "cluster/serveindex-pending.json": p.GetPendingRemovals(),
    "cluster/serveindex-tombstones.json": p.GetTombstones(),
    "cluster/serveindex-roster.json": p.GetRoster(),
    "cluster/coverage.json": p.GetCoverage(),
    "cluster/operations.json": p.ListOperations(),
    "cluster/plans.json": p.GetPlans(),
    "cluster/deadletters.json": p.GetDeadLetters(limit=LETTERS),
    "cluster/quarantine.json": p.GetQuarantine(),
}


def of_node(name: str) -> dict[str, msgspec.Struct]:
    """Asked of each node itself: its own view of the others, and what only it knows."""
    return {
        "status.json": p.GetClusterStatus(),
        "members.json": d.GetMembers(),
        "logs.json": d.GetLogs(node=name, limit=LINES),
        "node.json": p.GetNode(node=name),
        "mailboxes.json": p.GetMailboxes(node=name),
        "flight.json": p.GetFlight(node=name, limit=TURNS),
        "wire.json": p.GetWire(node=name),
        "ping.json": p.GetPing(count=5),
    }


def of_silent(name: str) -> msgspec.Struct:
    """Asked of the others about a node that says nothing itself."""
    return p.GetNode(node=name)
