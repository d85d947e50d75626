"""`campaign explain`: whether every bidder of its categories has a campaign's standing bid, and where its money is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from node.actors.runtime import outcome_of
from node.admin import protocol as p
from node.admin.asking import patience_ms
from node.admin.outcomes import not_found, read
from node.admin.protocol import explaining as x
from node.admin.site_findings import category_name
from node.ads import messages as m
from node.ads.budget import roll_over
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.keys import entity_id
from node.ads.money import format_money
from node.core.clock import rfc3339
from node.core.hashing import STRIPE_COUNT, shard_of
from node.core.ids import EntityRef

if TYPE_CHECKING:
    from node.admin.server import AdminServer

STRIPE_MS: Final = 2_000
COUNTS: Final = frozenset({"counts"})
BIDS_NOT: Final = frozenset({"withdrawn", "expired", "unknown"})


class CampaignExplaining:
    """The handler."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers[x.ExplainCampaign] = self.explain

    async def explain(self, request: x.ExplainCampaign, call: p.Meta) -> tuple[x.CampaignExplanation, p.Meta]:
        name = entity_id(request.campaign, "campaign")
        info: m.CampaignInfo = await read(self._engine, EntityRef("campaign", name), m.GetCampaign())
        state = await self._server.states.one("campaign", name, CampaignState)
        if state is None:
            raise not_found("campaign", name, await self._server.states.ids("campaign"))
        stripes = await asyncio.gather(
            *(self._stripe(state, market, number) for market in state.markets for number in range(STRIPE_COUNT))
        )
        found = x.CampaignExplanation(
            campaign=name,
            advertiser=state.advertiser,
            standing=info.standing,
            ok=all(row.ok for row in stripes),
            money=await self._money(state, info),
            without_product=tuple(spec.creative for spec in state.active_creatives if not spec.product),
            stripes=tuple(stripes),
        )
        silent = sorted({row.node for row in stripes if row.quote == "silent" and row.node})
        return found, self._server.with_missing(call, tuple(map(self._server.gatherer.silent, silent)))

    async def _stripe(self, state: CampaignState, market: str, number: int) -> x.CampaignStripe:
        identity = f"{market}|{number}"
        to, question = EntityRef("category-bidder", identity), m.GetStripe(state.campaign)
        for_ms = patience_ms(self._engine.world.clock, STRIPE_MS)
        told = await outcome_of(lambda done: self._engine.ask(to, question, for_ms, done))
        bids = state.bids(self._engine.world.clock.wall_ms()) and bool(state.active_creatives)
        home = self._engine.sharding.region.homes()[shard_of(identity)]
        answer = told if isinstance(told, m.StripeTold) else None
        mine = answer.quotes[0] if answer and answer.quotes else None
        quote = "silent" if answer is None else mine.state if mine else "unknown"
        aged = mine is not None and mine.state != "missing"
        return x.CampaignStripe(
            category=market,
            name=category_name(market),
            stripe=number,
            shard=home.shard,
            node=home.node or None,
            quote=quote,
            quote_age_s=mine.age_ms / 1_000 if mine is not None and aged else None,
            answered_at=rfc3339(answer.answered_ms) if answer and answer.answered_ms else None,
            complete=answer is not None and answer.complete,
            quotes=answer.registered if answer and answer.registered > 0 else 0,
            ok=quote in (COUNTS if bids else BIDS_NOT),
        )

    async def _money(self, state: CampaignState, info: m.CampaignInfo) -> x.CampaignMoney:
        advertiser = await self._server.states.one("advertiser", state.advertiser, AdvertiserState)
        told_micros = advertiser.charged.get(state.campaign, 0) if advertiser else 0
        today = roll_over(state.budget, now_ms=self._engine.world.clock.wall_ms())
        return x.CampaignMoney(
            daily_budget=format_money(info.daily_budget_micros),
            spent=format_money(info.spent_micros),
            reserved=format_money(info.reserved_micros),
            held=format_money(today.escrow_micros),
            charged=format_money(state.charged_micros),
            charged_to_advertiser=format_money(told_micros),
            untold=format_money(max(0, state.charged_micros - told_micros)),
        )
