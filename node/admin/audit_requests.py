"""`audit list|show|verify|export`: pages of the log, made here so that no client reads all of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from node.admin import protocol as p
from node.admin.audit_chain import walk
from node.admin.guard import BEGUN
from node.admin.outcomes import USAGE
from node.admin.protocol import audit
from node.core.limits import audit_list_max, audit_page_max, audit_scan_max

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class AuditRequests:
    """The handlers."""

    def __init__(self, server: AdminServer) -> None:
        self._log = server.guard.log
        server.handlers |= {
            audit.GetAudit: self.listed,
            audit.GetAuditEntries: self.exported,
            audit.GetAuditVerify: self.verified,
        }

    async def listed(self, request: audit.GetAudit, call: p.Meta) -> tuple[audit.AuditList, p.Meta]:
        _expect("limit", 1 <= request.limit <= audit_list_max, f"is not between 1 and {audit_list_max}")
        _expect("below", request.below >= 0, "is negative")
        _expect("since", not request.since or bool(_TIME.fullmatch(request.since)), "is no time of RFC 3339 in UTC")
        newest = await self._log.newest()
        high = min(request.below - 1, newest) if request.below else newest
        lowest = max(0, high - audit_scan_max)
        found: list[audit.AuditEntry] = []
        ended = await self._ended_above(high) if request.below else set()
        while high > lowest:
            low = max(high - audit_page_max, lowest)
            for entry in reversed(await self._log.above(low, high - low)):
                if request.since and entry.at < request.since:
                    return audit.AuditList(items=tuple(found)), call
                ended.add(entry.begins)
                settled = entry.outcome == BEGUN and entry.number in ended
                if not settled and _wanted(entry, request):
                    found.append(entry)
                    if len(found) == request.limit:
                        return audit.AuditList(items=tuple(found), next_below=_below(entry.number)), call
            high = low
        return audit.AuditList(items=tuple(found), next_below=_below(high + 1)), call

    async def exported(self, request: audit.GetAuditEntries, call: p.Meta) -> tuple[audit.AuditEntries, p.Meta]:
        _expect("limit", 1 <= request.limit <= audit_list_max, f"is not between 1 and {audit_list_max}")
        _expect("above", request.above >= 0, "is negative")
        items = await self._log.above(request.above, request.limit)
        more = len(items) == request.limit
        return audit.AuditEntries(items=tuple(items), next_above=items[-1].number if more else 0), call

    async def verified(self, request: audit.GetAuditVerify, call: p.Meta) -> tuple[audit.AuditVerify, p.Meta]:
        _expect("above", request.above >= 0, "is negative")
        _expect("digest", not request.digest or bool(_DIGEST.fullmatch(request.digest)), "is no SHA-256 in hex")
        _expect("digest", bool(request.digest) == bool(request.above), "and above go together")
        number, digest = request.above, request.digest or self._log.beginning
        while number < request.above + audit_scan_max:
            page = await self._log.above(number)
            number, digest, broken, why = walk(page, number, digest)
            if broken:
                found = audit.AuditVerify(ok=False, entries=number, digest=digest, broken=broken, why=why)
                return found, call
            if len(page) < audit_page_max:
                return audit.AuditVerify(ok=True, entries=number, digest=digest), call
        return audit.AuditVerify(ok=True, entries=number, digest=digest, more=True), call

    async def _ended_above(self, number: int) -> set[int]:
        """Beginnings whose outcome stands above a number, so that a later page leaves them out, too."""
        return {entry.begins for entry in await self._log.above(number)}


def _below(number: int) -> int:
    """The cursor behind an entry: nothing stands below the first."""
    return number if number > 1 else 0


def _wanted(entry: audit.AuditEntry, request: audit.GetAudit) -> bool:
    return (
        (not request.who or entry.who == request.who)
        and (entry.verb.startswith(request.verb) or entry.verb.rpartition(" ")[2].startswith(request.verb))
        and entry.about.startswith(request.about)
        and (not request.outcome or entry.outcome == request.outcome)
    )


def _expect(field: str, holds: bool, text: str) -> None:
    if not holds:
        raise p.AdminRefusal(USAGE, "E-BAD-INPUT", f"{field} {text}", about=field)
