"""What flows ask of entities and nodes, and what they are told."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("flow.replay_site")
class ReplaySite(msgspec.Struct, frozen=True):
    """Send a site's fresh classifications to its auctioneer again, whether it holds them or not."""

    operation: str


@wire_type("flow.replay_report")
class ReplayReport(msgspec.Struct, frozen=True):
    """Pages of one site: how many there are, went out again, were too old, and failed."""

    total: int
    replayed: int
    ignored: int
    failed: int
