"""`ledger show|verify`: the books, and whether facts, projections and entities tell the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from node.admin import protocol as p
from node.admin.fact_log import FactLog
from node.admin.ledger_views import BY, summed
from node.admin.outcomes import FAILED
from node.admin.pages import page
from node.admin.protocol import facts as f
from node.ads import ledger
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.ledger import LedgerEntry, Place, place_of, read_entry
from node.ads.projections import PROJECTIONS
from node.ads.reconcile import Counted, Counters, Difference
from node.ads.recount import Recount
from node.core import limits
from node.core.errors import BadInput, RemoteProtocolError
from node.wire.codec import CODEC

if TYPE_CHECKING:
    from node.admin.server import AdminServer

_LOOKS: Final = 5  # at an entity that writes meanwhile, before it is called busy


class LedgerRequests:
    """The handlers."""

    def __init__(self, server: AdminServer) -> None:
        self._engine = server.engine
        self._states = server.states
        self._log = FactLog(server.engine)
        self._verifying = asyncio.Lock()  # one at a time: each holds all rows
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
        async with self._verifying:
            differences: list[Difference] = []
            rows = unreadable = 0
            for name, projection in PROJECTIONS.items():
                recount = Recount(projection)
                rows += await self._compared(name, recount, differences)
                if name == ledger.CONSUMER:
                    unreadable = read_entry(recount.rows.get(ledger.UNREADABLE)).postings
            counters, entities, busy = await self._reconciled(differences)
        items = tuple(
            f.LedgerDifference(kind=one.kind, about=one.object, found=one.found, expected=one.expected)
            for one in differences[: limits.ledger_differences_max]
        )
        found = f.LedgerVerify(
            ok=not differences and not unreadable,
            facts=counters.at,
            rows=rows,
            entities=entities,
            unreadable=unreadable,
            differing=len(differences),
            items=items,
            busy=busy,
        )
        return found, call

    async def _compared(self, name: str, recount: Recount, differences: list[Difference]) -> int:
        """How many rows of a projection there are; those that are not what the facts make are added."""
        count = 0
        async for after, rows in self._log.rows(name):
            while recount.at < rows.offset:
                facts = (await self._log.page(recount.at, limits.ledger_facts_at_once)).facts
                recount.add([fact for fact in facts if fact.offset <= rows.offset])
            stored = {row.key: row.body for row in rows.rows}
            count += len(stored)
            for key in recount.differing(after, stored, end=not rows.more):
                differences.append(Difference(name, key, _shown(stored.get(key)), _shown(recount.rows.get(key))))
        return count

    async def _reconciled(self, differences: list[Difference]) -> tuple[Counters, int, tuple[str, ...]]:
        """The entities' own counters against the facts. One that wrote between two looks at it is looked at again."""
        counters = Counters(self._engine.world.clock.wall_ms() - limits.charges_settle_ms)
        await self._count_on(counters)
        advertisers = await self._states.all("advertiser", AdvertiserState)
        await self._count_on(counters)
        for advertiser in advertisers:
            differences += counters.advertiser(advertiser.advertiser, sum(advertiser.charged.values()))
        waiting: Sequence[str] = await self._states.ids("campaign")
        names = list(waiting)
        for _ in range(_LOOKS):
            waiting = [name for name in waiting if not await self._campaign(name, counters, differences)]
        differences += counters.strangers(names)
        return counters, len(advertisers) + len(names) - len(waiting), tuple(f"campaign/{name}" for name in waiting)

    async def _campaign(self, name: str, counters: Counters, differences: list[Difference]) -> bool:
        """Whether it could be compared: it wrote nothing from before the facts were read until after."""
        before = await self._states.record("campaign", name)
        await self._count_on(counters)
        after = await self._states.record("campaign", name)
        if before is None or after is None or before.revision != after.revision:
            return False
        state = CODEC.decode_record(before.body)
        if isinstance(state, CampaignState):
            differences += counters.campaign(name, Counted(state.impressions, state.clicks, state.budget, state.ctas))
        return True

    async def _count_on(self, counters: Counters) -> None:
        """Up to the end of the log, as it is now."""
        more = True
        while more:
            found = await self._log.page(counters.at, limits.ledger_facts_at_once)
            counters.add(found.facts)
            more = found.more


def _row(key: str, body: bytes) -> tuple[Place | None, LedgerEntry]:
    """Raises AdminRefusal for a row that is no ledger's."""
    try:
        return place_of(key), read_entry(body)
    except RemoteProtocolError as error:
        text = f"the ledger's row {key[:80]!r} can't be read: {error.detail}"
        raise p.AdminRefusal(FAILED, "E-LEDGER", text, hint="promovolvectl ledger verify") from error


def _shown(body: bytes | None) -> str:
    """A row in a line."""
    if body is None:
        return "no row"
    try:
        name, _, fields = CODEC.body_of(CODEC.decode_record(body))
    except RemoteProtocolError as error:
        return f"not readable: {error.detail[:80]}"
    return " ".join(f"{field}={value}" for field, value in fields.items()) or name
