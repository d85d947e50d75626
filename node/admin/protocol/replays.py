"""Replays and coverage."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.replay_start")
class StartReplay(msgspec.Struct, frozen=True, kw_only=True):
    """`sites` and `nodes` (those whose entities live there now) empty: all sites. `missing`: only pages with an empty
    slot; `rate` in pages a second, 0 for no limit; `until_coverage`: the ratio that is wanted, 0 for as much as
    comes."""

    sites: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    missing: bool = False
    rate: int = 0
    until_coverage: float = 0.0
    reason: str = ""
    request_id: str = ""


@wire_type("admin.replay_cancel")
class CancelReplay(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.replays_list")
class ListReplays(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: only those; empty for all."""

    state: str = ""


@wire_type("admin.replay_get")
class GetReplay(msgspec.Struct, frozen=True, kw_only=True):
    id: str


@wire_type("admin.replay_pages")
class ReplayPages(msgspec.Struct, frozen=True, kw_only=True):
    total: int
    replayed: int
    ignored: int
    failed: int


@wire_type("admin.replay_empty_slot")
class ReplayEmptySlot(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    slot: str
    reason: str


@wire_type("admin.replay")
class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """`coverage_after` is that of now while it runs. `reason`: why it ended so. `empty`: slots of its sites without
    candidates, the first ones; `reasons` counts all of them. `started_for`: the reason that was given for it."""

    id: str
    state: str
    scope: str
    pages: ReplayPages
    coverage_before: float
    coverage_after: float
    elapsed_s: float
    reason: str = ""
    empty: tuple[ReplayEmptySlot, ...] = ()
    reasons: dict[str, int] = {}
    started_at: str = ""
    started_for: str = ""


@wire_type("admin.replay_list")
class ReplayList(msgspec.Struct, frozen=True, kw_only=True):
    """The newest first, without their empty slots."""

    items: tuple[Replay, ...]


@wire_type("admin.coverage_get")
class GetCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """`node`: what this node's own replica can serve, not what the sites' owners have written."""

    sites: tuple[str, ...] = ()
    node: str = ""


@wire_type("admin.empty_slot")
class EmptySlot(msgspec.Struct, frozen=True, kw_only=True):
    slot: str
    reason: str


@wire_type("admin.site_coverage")
class SiteCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """The figures are null while the site does not tell of its slots: its owner is silent, or it has none."""

    site: str
    expected: int | None
    present: int | None
    ratio: float | None
    missing: tuple[EmptySlot, ...]


@wire_type("admin.node_coverage")
class NodeCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """Of the keys that should have a pool, those that the node's own replica can serve; as `Coverage` where some
    sites do not tell which keys these are."""

    node: str
    expected: int | None
    present: int | None
    ratio: float | None


@wire_type("admin.coverage")
class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """A site's `missing` names each empty slot; those whose classifications are all too old are not expected.

    While `unknown_sites` do not tell of their slots, `expected` and `ratio` are null, and `present` counts those of the
    others, null where nobody tells."""

    expected: int | None
    present: int | None
    ratio: float | None
    sites: tuple[SiteCoverage, ...]
    nodes: tuple[NodeCoverage, ...] = ()
    unknown_sites: int = 0
