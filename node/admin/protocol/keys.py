"""Keys of nodes."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.key_rotate")
class RotateKey(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a rotation, `install`, `use` or `retire`; repeating it is harmless. `force`: retire although a node
    that has not confirmed will be cut off from the one whose key it is."""

    node: str
    step: str
    force: bool = False
    reason: str = ""
    request_id: str = ""


@wire_type("admin.key_rotation")
class KeyRotation(msgspec.Struct, frozen=True, kw_only=True):
    """Who has taken the step into effect and who has not: a node that missed it goes on working until `retire`.
    `accepted`: the keys that stand for the node now, the one that is expected first."""

    node: str
    step: str
    accepted: tuple[str, ...]
    confirmed: tuple[str, ...]
    unconfirmed: tuple[str, ...] = ()
    changed: bool = False
