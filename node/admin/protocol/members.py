"""Taking a member out of the cluster, and whether one can stop."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.stage_remove")
class StageRemove(msgspec.Struct, frozen=True, kw_only=True):
    """Declare a member dead. `force` names the rules to override: live-node, majority, last-entity-node. Answered by a
    Plan; `changed` false where it was removed before."""

    node: str
    force: tuple[str, ...] = ()
    reason: str = ""


@wire_type("admin.can_stop_get")
class GetCanStop(msgspec.Struct, frozen=True, kw_only=True):
    node: str


@wire_type("admin.stop_reason")
class StopReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a node can't stop now. `code`: unreachable, last-of-role, majority, replica-behind, shards-moving,
    other-stops, not-up or no-answer; `object` is what it is about."""

    code: str
    about: str = msgspec.field(name="object")
    text: str


@wire_type("admin.can_stop")
class CanStop(msgspec.Struct, frozen=True, kw_only=True):
    """What would happen if a node stopped now. `required` and `available`: counted members, once it has gone."""

    node: str
    can_stop: bool
    reasons: tuple[StopReason, ...]
    shards: int
    entities: int
    counted: int
    required: int
    available: int
