"""Stopping nodes and the whole cluster."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.node_stop")
class StopNode(msgspec.Struct, frozen=True, kw_only=True):
    """Ask a node to stop: with `drain` its shards move first, without it state is flushed and the process exits."""

    node: str
    drain: bool = True
    reason: str = ""
    request_id: str = ""


@wire_type("admin.freeze")
class FreezePlacement(msgspec.Struct, frozen=True, kw_only=True):
    """Before a whole-cluster stop: nothing is moved because nodes go away."""

    reason: str = ""
    request_id: str = ""


@wire_type("admin.done")
class Done(msgspec.Struct, frozen=True, kw_only=True):
    changed: bool
    message: str = ""
