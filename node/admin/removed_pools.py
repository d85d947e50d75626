"""Whether a slot has no pool because an operator removed it: out of what replicas remember of the key, and of the audit
log, which remembers longer. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from node.admin.protocol.audit import AuditEntry
from node.core.clock import rfc3339
from node.core.hlc import hlc_wall_ms
from node.engine.removal_messages import KeyHistory, VersionRow
from node.gossip.removal import NOT_KNOWN

REMOVED: Final = "removed"
_CARRIED_OUT: Final = ("done", "unknown")  # one whose majority is awaited still is carried out all the same


def removed_words(key: str, histories: Sequence[KeyHistory], entries: Iterable[AuditEntry]) -> str:
    """Who removed the key, when and why; empty where nobody did, or where it was written since. `entries`: removals,
    the newest first."""
    seen = [row for history in histories for row in history.seen]
    newest = max(seen, key=lambda row: _order(row.version), default=None)
    if newest is not None and not newest.tombstone:
        return ""
    for history in histories:
        found = history.certificate
        asked = found is not None and found.asked_by not in ("", NOT_KNOWN)
        if found is not None and asked and (newest is None or found.version == newest.version):
            return _words(rfc3339(found.asked_ms), found.asked_by)
    since = rfc3339(hlc_wall_ms(newest.version.hlc)) if newest is not None else ""
    for entry in entries:
        if entry.about == f"key/{key}" and entry.outcome in _CARRIED_OUT and entry.at >= since:
            return _words(entry.at, f"{entry.who}: {entry.reason}" if entry.reason else entry.who)
    return ""


def _words(at: str, by: str) -> str:
    return f"its pool was removed at {at} by {by}; the winners of auctions before that are not put back by themselves"


def _order(version: VersionRow) -> tuple[int, int, str]:
    return (version.epoch, version.hlc, version.origin)
