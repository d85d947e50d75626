"""Decisions about what the cluster serves: pausing, suspending, revoking, blocking; and why slots stay empty."""

from __future__ import annotations

import msgspec

from node.admin.protocol.domain import Slot, SlotFloor
from node.wire.registry import wire_type


@wire_type("admin.campaign_status_set")
class SetCampaignStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`status`: active, paused, or deleted, which is for ever."""

    campaign: str
    status: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.advertiser_status_set")
class SetAdvertiserStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`status`: active, suspended, or deleted, which is for ever."""

    advertiser: str
    status: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.campaign_update")
class UpdateCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """What is None stays as it is, and so does an empty name. Of the targeting, what is empty is lifted."""

    campaign: str
    name: str = ""
    max_cpm: str | None = None
    daily_budget: str | None = None
    reason: str = ""
    request_id: str = ""
    sites: tuple[str, ...] | None = None
    places: tuple[str, ...] | None = None
    blocked_categories: tuple[str, ...] | None = None
    start_at: str | None = None
    end_at: str | None = None
    unmatched: bool | None = None
    audience: tuple[str, ...] | None = None


@wire_type("admin.advertiser_update")
class UpdateAdvertiser(msgspec.Struct, frozen=True, kw_only=True):
    """What is None or empty stays as it is."""

    advertiser: str
    name: str = ""
    daily_budget: str | None = None
    reason: str = ""
    request_id: str = ""


@wire_type("admin.creative_status_set")
class SetCreativeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """`status`: active, paused, or deleted, which is for ever."""

    creative: str
    status: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.site_update")
class UpdateSite(msgspec.Struct, frozen=True, kw_only=True):
    """What is None or empty stays as it is. `timezone` tells the publisher's days; `margin` is the share of each price
    that stays with the platform, such as 0.2. `distrust`: campaigns and domains that skip the queue no more, as
    `campaign|id` and `domain|name`. `slots` are added, or get another size; `drop_slots` go, with their own floors.
    `audience`: places where the readers are; empty: nothing is said."""

    site: str
    floor_cpm: str | None = None
    suspended: bool | None = None
    block_domains: tuple[str, ...] = ()
    unblock_domains: tuple[str, ...] = ()
    block_products: tuple[str, ...] = ()
    unblock_products: tuple[str, ...] = ()
    paced: bool | None = None
    auto_approve: bool | None = None
    slot_floors: tuple[SlotFloor, ...] = ()
    clear_slot_floors: tuple[str, ...] = ()
    timezone: str = ""
    margin: str | None = None
    audience: tuple[str, ...] | None = None
    reason: str = ""
    request_id: str = ""
    distrust: tuple[str, ...] = ()
    slots: tuple[Slot, ...] = ()
    drop_slots: tuple[str, ...] = ()


@wire_type("admin.creative_revoke")
class RevokeCreative(msgspec.Struct, frozen=True, kw_only=True):
    """`site` empty: every site where it is approved, or with `reject` where it waits. With `reject` no publisher is
    asked about it again."""

    creative: str
    site: str = ""
    reject: bool = False
    reason: str = ""
    request_id: str = ""


@wire_type("admin.revoked")
class Revoked(msgspec.Struct, frozen=True, kw_only=True):
    creative: str
    sites: tuple[str, ...]
    rejected: bool
    changed: bool


@wire_type("admin.coverage_explanation_get")
class ExplainCoverage(msgspec.Struct, frozen=True, kw_only=True):
    site: str


@wire_type("admin.explained_slot")
class ExplainedSlot(msgspec.Struct, frozen=True, kw_only=True):
    """`reason`: filled, or why it is not; `fill`: what would fill it; `lacking`: nodes whose replica has no pool of it
    although the owner's has. Those that did not say are missing from the answer."""

    slot: str
    reason: str
    why: str
    fill: str
    pages: int
    lacking: tuple[str, ...] = ()


@wire_type("admin.coverage_explanation")
class CoverageExplanation(msgspec.Struct, frozen=True, kw_only=True):
    site: str
    expected: int
    present: int
    ratio: float
    slots: tuple[ExplainedSlot, ...]


@wire_type("admin.placement_explanation_get")
class ExplainPlacement(msgspec.Struct, frozen=True, kw_only=True):
    shard: int


@wire_type("admin.placement_node")
class PlacementNode(msgspec.Struct, frozen=True, kw_only=True):
    """What a node weighs: its capacity, the shards that are its share, and those it has."""

    node: str
    capacity: float
    share: int
    shards: int
    takes: bool
    why_not: str = ""


@wire_type("admin.placement_explanation")
class PlacementExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a shard is where it is: `why` in words, the strongest reason first."""

    shard: int
    node: str | None
    epoch: int
    state: str
    since: str | None
    cause: str
    why: tuple[str, ...]
    nodes: tuple[PlacementNode, ...]
