"""The audit log as operators read it."""

from __future__ import annotations

from typing import Final

import msgspec

from node.wire.registry import wire_type

OUTCOMES: Final = (
    *("begun", "done", "unchanged", "started", "staged", "cancelling", "cancelled", "refused", "failed"),
    "unknown",
)


@wire_type("audit.entry")
class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One link of the chain. `outcome`, of OUTCOMES: begun, done, unchanged, refused, failed or unknown (nobody can say
    whether it happened); of long work how far it was. A change is two entries: `begun` before anything happens, and its
    outcome, which names that one's number in `begins`. `before` and `digest` are SHA-256 in hex; see
    `node.admin.audit_chain`."""

    number: int
    at: str
    who: str
    role: str
    node: str
    verb: str
    about: str = msgspec.field(name="object")
    reason: str
    outcome: str
    code: str
    plan: str
    operation: str
    begins: int
    nonce: str
    before: str
    digest: str


@wire_type("admin.audit_get")
class GetAudit(msgspec.Struct, frozen=True, kw_only=True):
    """The newest first, from `below` on (0: from the newest). `who` and `outcome` match whole, `object` from the
    start, `verb` too, with its noun or without; `since` is RFC 3339. Empty for all."""

    who: str = ""
    verb: str = ""
    about: str = msgspec.field(name="object", default="")
    outcome: str = ""
    since: str = ""
    below: int = 0
    limit: int = 100


@wire_type("admin.audit_list")
class AuditList(msgspec.Struct, frozen=True, kw_only=True):
    """One item for each change or refusal: a beginning is left out once its outcome is known. `next_below`: where to
    go on; 0 at the end."""

    items: tuple[AuditEntry, ...]
    next_below: int = 0


@wire_type("admin.audit_entries_get")
class GetAuditEntries(msgspec.Struct, frozen=True, kw_only=True):
    """Every entry above a number, the oldest first."""

    above: int = 0
    limit: int = 200


@wire_type("admin.audit_entries")
class AuditEntries(msgspec.Struct, frozen=True, kw_only=True):
    """`next_above`: where to go on; 0 at the end."""

    items: tuple[AuditEntry, ...]
    next_above: int = 0


@wire_type("admin.audit_verify_get")
class GetAuditVerify(msgspec.Struct, frozen=True, kw_only=True):
    """Recompute the chain above an entry whose digest is known; from the beginning when neither is given."""

    above: int = 0
    digest: str = ""


@wire_type("admin.audit_verify")
class AuditVerify(msgspec.Struct, frozen=True, kw_only=True):
    """`entries` hold up to the one with `digest`. `broken` is the number of the first link that does not, 0 for none;
    `more`: there are entries behind those that were looked at."""

    ok: bool
    entries: int
    digest: str
    broken: int = 0
    why: str = ""
    more: bool = False
