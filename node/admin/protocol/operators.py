"""Who may ask what: operators' keys, and what the one that asks is allowed."""

from __future__ import annotations

import msgspec

from node.wire.registry import wire_type


@wire_type("admin.identity_get")
class GetIdentity(msgspec.Struct, frozen=True, kw_only=True):
    pass


@wire_type("admin.identity")
class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Who the cluster takes the asker for. `expires_at` is None for a key that does not expire."""

    name: str
    role: str
    public_key: str
    expires_at: str | None
    may: tuple[str, ...]


@wire_type("admin.permission_get")
class GetPermission(msgspec.Struct, frozen=True, kw_only=True):
    """`words`: a command as `NOUN VERB`."""

    words: str


@wire_type("admin.permission")
class Permission(msgspec.Struct, frozen=True, kw_only=True):
    """`grants`: operators who can hand out a key with the role that is needed."""

    command: str
    name: str
    role: str
    needed: str
    allowed: bool
    grants: tuple[str, ...] = ()


@wire_type("admin.operator_keys_get")
class GetOperatorKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`revoked`: those that are no longer accepted, too."""

    revoked: bool = False


@wire_type("admin.operator_key_item")
class OperatorKeyItem(msgspec.Struct, frozen=True, kw_only=True):
    """`state`: active, expired or revoked. `last_used_at` is known to the minute; None: not used since it was made."""

    name: str
    role: str
    state: str
    public_key: str
    created_at: str | None
    expires_at: str | None
    last_used_at: str | None
    last_used_on: str = ""


@wire_type("admin.operator_keys")
class OperatorKeyList(msgspec.Struct, frozen=True, kw_only=True):
    items: tuple[OperatorKeyItem, ...]


@wire_type("admin.operator_key_create")
class CreateOperatorKey(msgspec.Struct, frozen=True, kw_only=True):
    """The public half only: whoever makes the pair keeps the other. `expires_s` 0: never."""

    name: str
    role: str
    public_key: str
    expires_s: int = 0
    reason: str = ""
    request_id: str = ""


@wire_type("admin.operator_key_rotate")
class RotateOperatorKey(msgspec.Struct, frozen=True, kw_only=True):
    """Another key under the same name. The one before is accepted for `overlap_s` more."""

    name: str
    public_key: str
    overlap_s: int = 0
    reason: str = ""
    request_id: str = ""


@wire_type("admin.operator_key_revoke")
class RevokeOperatorKey(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    reason: str = ""
    request_id: str = ""


@wire_type("admin.operator_key_changed")
class OperatorKeyChanged(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes have taken it into effect, and which will at their next look at the state store."""

    name: str
    role: str
    state: str
    public_key: str
    expires_at: str | None
    confirmed: tuple[str, ...]
    unconfirmed: tuple[str, ...]
    changed: bool
