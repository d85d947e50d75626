"""Replays and coverage."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.replay_start")
class StartReplay(msgspec.Struct, frozen=True, kw_only=True):
    """`sites` empty: all."""

    sites: tuple[str, ...] = ()
    reason: str = ""
    request_id: str = ""


@wire_type("admin.replay_get")
class GetReplay(msgspec.Struct, frozen=True, kw_only=True):
    id: str


@wire_type("admin.replay_pages")
class ReplayPages(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    replayed: int
    ignored: int
    failed: int


@wire_type("admin.replay")
class Replay(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    state: str
    scope: str
    pages: ReplayPages
    coverage_before: float
    coverage_after: float
    elapsed_s: float


@wire_type("admin.coverage_get")
class GetCoverage(msgspec.Struct, frozen=True, kw_only=True):
    sites: tuple[str, ...] = ()


@wire_type("admin.empty_slot")
class EmptySlot(msgspec.Struct, frozen=True, kw_only=True):
    slot: str
    reason: str


@wire_type("admin.site_coverage")
class SiteCoverage(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    expected: int
    present: int
    ratio: float
    missing: tuple[EmptySlot, ...]


@wire_type("admin.node_coverage")
class NodeCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """Of the keys that should have a pool, those that the node's own replica can serve."""

    node: str
    expected: int
    present: int
    ratio: float


@wire_type("admin.coverage")
class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """A site's `missing` names each empty slot; those whose classifications are all too old are not expected."""

    expected: int
    present: int
    ratio: float
    sites: tuple[SiteCoverage, ...]
    nodes: tuple[NodeCoverage, ...] = ()
