"""Subscriptions and what is pushed under them."""

from __future__ import annotations

import msgspec

from node.admin.protocol.cluster import ClusterStatus, Health
from node.admin.protocol.envelope import Meta
from node.wire.registry import wire_type


@wire_type("admin.subscribe")
class Subscribe(msgspec.Struct, frozen=True, kw_only=True):
    """A `StatusPush` at once and whenever it changed, at most one each `min_interval_ms`, and the cluster's events."""

    min_interval_ms: int = 500


@wire_type("admin.subscribed")
class Subscribed(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.event")
class AdminEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One typed event in words: `topic` such as `node.up`, `shard.moved`; `gap` counts events lost before it."""

    at: str
    topic: str
    object: str
    text: str
    node: str = ""
    gap: int = 0


@wire_type("admin.status_push")
class StatusPush(msgspec.Struct, frozen=True, kw_only=True):
    """`health` is judged by the node that pushes, from this very status; null when it is of an older release."""

    status: ClusterStatus
    meta: Meta
    health: Health | None = None
