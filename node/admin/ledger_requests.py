"""`ledger show|verify`: the books, and whether facts, projections and entities tell the same."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from node.admin import protocol as p
from node.admin.fact_log import FactLog
from node.admin.ledger_verification import Verification
from node.admin.ledger_views import BY, summed
from node.admin.outcomes import FAILED
from node.admin.pages import page
from node.admin.protocol import facts as f
from node.ads import ledger
from node.ads.ledger import LedgerEntry, Place, place_of, read_entry
from node.core.errors import BadInput, RemoteProtocolError

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_LOOKS: Final = 5  # at a ledger that goes on meanwhile, before it is shown as it is found
VERIFY_LOOK_S: Final = 1.0  # far below what a client waits for one node's answer


class LedgerRequests:
    """The handlers."""

    def __init__(self, server: AdminServer) -> None:
        self._engine = server.engine
        self._states = server.states
        self._log = FactLog(server.engine)
        self._verification: Verification | None = None
        server.handlers |= {f.GetLedger: self.shown, f.GetLedgerVerify: self.verified}

    # ---- show

    async def shown(self, request: f.GetLedger, call: p.Meta) -> tuple[f.LedgerShow, p.Meta]:
        if request.by not in BY:
            raise BadInput("by", f"is none of {', '.join(BY)}", hint="--by campaign")
        if request.limit < 0:
            raise BadInput("limit", "is negative")
        rows, unreadable, offset = await self._entries()
        balance = sum(entry.in_micros - entry.out_micros for _, entry in rows)
        items = [item for item in summed(rows, request) if item.id > request.after]
        found, following = page(((item.id, item) for item in items), request.limit)
        shown = f.LedgerShow(
            items=found,
            by=request.by,
            offset=offset,
            behind=max(0, await self._log.last() - offset),
            balanced=balance == 0,
            unreadable=unreadable,
            next=following,
        )
        return shown, call

    async def _entries(self) -> tuple[list[tuple[Place, LedgerEntry]], int, int]:
        """All entries, how many facts can't be read, and the offset. They are of one state, unless the ledger goes on
        so fast that none can be had."""
        looks = 0
        while True:
            looks += 1
            offsets, found, unreadable = set[int](), list[tuple[Place, LedgerEntry]](), 0
            async for _, rows in self._log.rows(ledger.CONSUMER):
                offsets.add(rows.offset)
                for row in rows.rows:
                    place, entry = _row(row.key, row.body)
                    if place is None:
                        unreadable += entry.postings
                    else:
                        found.append((place, entry))
            if len(offsets) == 1 or looks == _LOOKS:
                return found, unreadable, min(offsets)

    # ---- verify

    async def verified(self, request: f.GetLedgerVerify, call: p.Meta) -> tuple[f.LedgerVerify, p.Meta]:
        """One at a time, for each holds all rows; who asks while one runs is told about that one."""
        found = self._verification
        if found is None or (found.task.done() and found.number != request.number):
            found = self._verification = Verification(self._engine, self._states, self._log)
        await asyncio.wait({found.task}, timeout=VERIFY_LOOK_S)
        return (found.task.result() if found.task.done() else found.so_far()), call

    async def close(self) -> None:
        """Ends a verification that runs."""
        if self._verification is not None:
            self._verification.task.cancel()
            await asyncio.gather(self._verification.task, return_exceptions=True)


def _row(key: str, body: bytes) -> tuple[Place | None, LedgerEntry]:
    """Raises AdminRefusal for a row that is no ledger's."""
    try:
        return place_of(key), read_entry(body)
    except RemoteProtocolError as error:
        text = f"the ledger's row {key[:80]!r} can't be read: {error.detail}"
        raise p.AdminRefusal(FAILED, "E-LEDGER", text, hint="promovolvectl ledger verify") from error
