"""One verification of the books: the log is counted again beside what is stored, and what entities count themselves.

It may take minutes, and no answer waits for so long: it goes on by itself, says how far it is, and keeps its outcome.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Final

from node.admin.fact_log import FactLog
from node.admin.protocol import facts as f
from node.admin.states import States
from node.ads import ledger
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState, counted
from node.ads.ledger import read_entry
from node.ads.projections import PROJECTIONS
from node.ads.reconcile import Counters, Difference
from node.ads.recount import Recount
from node.core import limits
from node.core.errors import RemoteProtocolError
from node.engine.engine import Engine
from node.wire.codec import CODEC

_LOOKS: Final = 5  # at an entity that writes meanwhile, before it is called busy
RUNNING: Final = "running"


class Verification:
    """Begins at once; `task` ends with the answer, or AdminRefusal. `number` names it among those of all nodes."""

    def __init__(self, engine: Engine, states: States, log: FactLog) -> None:
        clock = engine.world.clock
        self.number = clock.wall_ms()
        self._states = states
        self._log = log
        self._last = 0
        self._counters = Counters(clock.wall_ms() - limits.charges_settle_ms)
        self._differences: list[Difference] = []
        # Nothing of whoever asked first, such as how long that one waits.
        self.task = asyncio.get_running_loop().create_task(self._run(), name="ledger-verify", context=Context())
        self.task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # also if nobody asks again

    def so_far(self) -> f.LedgerVerify:
        """How far it is."""
        return f.LedgerVerify(
            ok=False,
            facts=self._counters.at,
            rows=0,
            entities=0,
            unreadable=0,
            differing=len(self._differences),
            items=(),
            state=RUNNING,
            number=self.number,
            last=max(self._last, self._counters.at),
        )

    async def _run(self) -> f.LedgerVerify:
        self._last = await self._log.last()
        recounts = {name: Recount(projection) for name, projection in PROJECTIONS.items()}
        await self._count_together(recounts)
        rows = sum([await self._compared(name, recount) for name, recount in recounts.items()])
        unreadable = read_entry(recounts[ledger.CONSUMER].rows.get(ledger.UNREADABLE)).postings
        entities, busy = await self._reconciled()
        items = tuple(
            f.LedgerDifference(kind=one.kind, about=one.object, found=one.found, expected=one.expected)
            for one in self._differences[: limits.ledger_differences_max]
        )
        return f.LedgerVerify(
            ok=not self._differences and not unreadable,
            facts=self._counters.at,
            rows=rows,
            entities=entities,
            unreadable=unreadable,
            differing=len(self._differences),
            items=items,
            busy=busy,
            last=self._counters.at,
        )

    # ---- what is derived

    async def _count_together(self, recounts: Mapping[str, Recount]) -> None:
        """As far as every projection has come, the log is read once for all of them and for the entities."""
        end = min([await self._log.offset(name) for name in recounts])
        counters = self._counters
        while counters.at < end:
            found = (await self._log.page(counters.at, limits.ledger_facts_at_once)).facts
            facts = [fact for fact in found if fact.offset <= end]
            for recount in recounts.values():
                recount.add(facts)
            counters.add(facts)

    async def _compared(self, name: str, recount: Recount) -> int:
        """How many rows of a projection there are; those that are not what the facts make are noted."""
        count = 0
        async for after, rows in self._log.rows(name):
            while recount.at < rows.offset:
                facts = (await self._log.page(recount.at, limits.ledger_facts_at_once)).facts
                recount.add([fact for fact in facts if fact.offset <= rows.offset])
            stored = {row.key: row.body for row in rows.rows}
            count += len(stored)
            for key in recount.differing(after, stored, end=not rows.more):
                self._differences.append(Difference(name, key, _shown(stored.get(key)), _shown(recount.rows.get(key))))
        return count

    # ---- what entities count

    async def _reconciled(self) -> tuple[int, tuple[str, ...]]:
        """How many entities were compared with the facts, and who wrote whenever it was looked at. One that wrote
        between two looks at it is looked at again."""
        counters = self._counters
        await self._count_on()
        advertisers = await self._states.all("advertiser", AdvertiserState)
        await self._count_on()
        for advertiser in advertisers:
            self._differences += counters.advertiser(advertiser.advertiser, sum(advertiser.charged.values()))
        waiting: Sequence[str] = await self._states.ids("campaign")
        names = list(waiting)
        for _ in range(_LOOKS):
            waiting = [name for name in waiting if not await self._campaign(name)]
        self._differences += counters.strangers(names)
        return len(advertisers) + len(names) - len(waiting), tuple(f"campaign/{name}" for name in waiting)

    async def _campaign(self, name: str) -> bool:
        """Whether it could be compared: it wrote nothing from before the facts were read until after."""
        before = await self._states.record("campaign", name)
        await self._count_on()
        after = await self._states.record("campaign", name)
        if before is None or after is None or before.revision != after.revision:
            return False
        state = CODEC.decode_record(before.body)
        if isinstance(state, CampaignState):
            self._differences += self._counters.campaign(name, counted(state))
        return True

    async def _count_on(self) -> None:
        """Up to the end of the log, as it is now."""
        more = True
        while more:
            found = await self._log.page(self._counters.at, limits.ledger_facts_at_once)
            self._counters.add(found.facts)
            more = found.more


def _shown(body: bytes | None) -> str:
    """A row in a line."""
    if body is None:
        return "no row"
    try:
        name, _, fields = CODEC.body_of(CODEC.decode_record(body))
    except RemoteProtocolError as error:
        return f"not readable: {error.detail[:80]}"
    return " ".join(f"{field}={value}" for field, value in fields.items()) or name
