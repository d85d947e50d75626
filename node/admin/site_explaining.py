"""`site explain`: a site, its ad server and its auctioneer asked what they counted, and compared with each other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from node.actors.runtime import outcome_of
from node.admin import protocol as p
from node.admin import site_findings as findings
from node.admin.asking import patience_ms
from node.admin.outcomes import READ_MS, not_found, owner
from node.admin.protocol import explaining as x
from node.ads import messages as m
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.page_shelf import KIND as PAGE_SHELF
from node.ads.entities.page_shelf import PageShelfState, shelf_id
from node.ads.entities.site_state import SiteState, fresh
from node.ads.keys import site_id
from node.ads.pages_compared import page_hash
from node.ads.view import CandidateView
from node.core.clock import rfc3339
from node.core.hashing import shard_of, stripe_of
from node.core.ids import EntityRef
from node.core.limits import find_pages_max

if TYPE_CHECKING:
    from node.admin.server import AdminServer

S = TypeVar("S", bound=msgspec.Struct)
_SECOND_LOOK_S: Final = 0.5  # what only one of two looks sees was on its way
NOT_AUCTIONED: Final = "fresh pages that the auctioneer lacks"
NOT_SERVED: Final = "fresh pages that the ad server lacks"
STALE: Final = "aged pages taught to the auctioneer"
QUEUED: Final = "decided creatives that still wait"
FORBIDDEN: Final = "candidates that must not be served"


class SiteExplaining:
    """The handler."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers[x.ExplainSite] = self.explain

    async def explain(self, request: x.ExplainSite, call: p.Meta) -> tuple[x.SiteExplanation, p.Meta]:
        site = site_id(request.site)
        found, missing = await self._look(site)
        # Who did not answer would cost its whole time again.
        if not missing and any(row.result == "fail" for row in found.checks):
            await asyncio.sleep(_SECOND_LOOK_S)
            found, missing = await self._look(site)
        return found, self._server.with_missing(call, missing)

    async def _look(self, site: str) -> tuple[x.SiteExplanation, tuple[p.Missing, ...]]:
        """What is found, and whose node did not tell its part of it: of what that is, nothing is made up."""
        state, pages = await self._stored(site)
        now_ms = self._engine.world.clock.wall_ms()
        urls = {page_hash(page.url): page.url for page in pages if fresh(page, now_ms)}
        ask, auctioneer, adserver = m.GetTallies(), EntityRef("auctioneer", site), EntityRef("adserver", site)
        asked = owner(self._engine, auctioneer)  # all of a site's entities live in one shard, which may move meanwhile
        told, served, auctions, unauctioned, unserved, campaigns = await asyncio.gather(
            self._asked(EntityRef("site", site), ask, m.SiteTallies),
            self._asked(adserver, ask, m.ServeTallies),
            self._asked(auctioneer, ask, m.AuctionTallies),
            self._lacking(auctioneer, urls),
            self._lacking(adserver, urls),
            self._campaigns(state),
        )
        stale = None if auctions is None else [f"{auctions.stale} since the auctioneer's start"] * bool(auctions.stale)
        checks = (
            findings.check(NOT_AUCTIONED, *unauctioned),
            findings.check(NOT_SERVED, *unserved),
            findings.check(STALE, stale, auctions.stale if auctions else -1),
            findings.check(QUEUED, findings.decided_and_waiting(state)),
            findings.check(FORBIDDEN, findings.not_allowed(state, campaigns, dict(self._views(site)))),
        )
        found = x.SiteExplanation(
            site=site,
            ok=all(row.result == "ok" for row in checks),
            checks=checks,
            pages=findings.pages(pages, told, served, auctions, now_ms),
            today=findings.today(served),
            counts=findings.counts(told, served, auctions),
            unknown=findings.unknown(served),
            waiting=findings.waiting(state, campaigns),
            bidders=self._bidders(site, auctions),
            floors=findings.floors(state),
            weights=findings.weights(auctions),
        )
        untold = any(part is None for part in (told, served, auctions, unauctioned[0], unserved[0]))
        return found, (self._server.gatherer.silent(asked),) if untold else ()

    async def _stored(self, site: str) -> tuple[SiteState, list[m.PageEntry]]:
        """The site and its pages as they are durable; raises AdminRefusal (3)."""
        state = await self._server.states.one("site", site, SiteState)
        if state is None:
            raise not_found("site", site, await self._server.states.ids("site"))
        found = dict(state.pages)
        names = [shelf_id(site, number) for number in range(state.shelves)]
        for shelf in await self._server.states.some(PAGE_SHELF, names, PageShelfState):
            found.update((page.url, page) for page in shelf.pages)
        return state, list(found.values())

    async def _campaigns(self, state: SiteState) -> dict[str, CampaignState]:
        """Those whose creatives wait or stand in a pool here."""
        names = {row.campaign for row in state.pending.values()}
        names |= {c.campaign_id for _, view in self._views(state.site) for c in view}
        found = await self._server.states.some("campaign", sorted(names), CampaignState)
        return {campaign.campaign: campaign for campaign in found}

    def _views(self, site: str) -> list[tuple[str, Sequence[CandidateView]]]:
        index = self._engine.index
        return [(key, view.candidates) for key in index.keys_of(site).keys if (view := index.read(key)) is not None]

    async def _lacking(self, who: EntityRef, urls: dict[int, str]) -> tuple[list[str] | None, int]:
        """Which of these pages it lacks, some by name, and how many; None where it did not answer."""
        named: list[str] = []
        count, wanted = 0, list(urls)
        for begin in range(0, max(len(wanted), 1), find_pages_max):
            answer = await self._asked(who, m.FindPages(tuple(wanted[begin : begin + find_pages_max])), m.PagesLacking)
            if answer is None:
                return None, -1
            named += [urls[page] for page in answer.urls if page in urls]
            count += answer.count
        return named, count

    # ---- asking

    async def _asked(self, who: EntityRef, message: msgspec.Struct, answer: type[S]) -> S | None:
        for_ms = patience_ms(self._engine.world.clock, READ_MS)
        outcome = await outcome_of(lambda done: self._engine.ask(who, message, for_ms, done))
        return outcome if isinstance(outcome, answer) else None

    def _bidders(self, site: str, auctions: m.AuctionTallies | None) -> tuple[x.HeardBidder, ...]:
        homes, stripe = self._engine.sharding.region.homes(), stripe_of(site)
        found = []
        for heard in auctions.bidders if auctions else ():
            home = homes[shard_of(f"{heard.category}|{stripe}")]
            found.append(
                x.HeardBidder(
                    category=heard.category,
                    name=findings.category_name(heard.category),
                    stripe=stripe,
                    shard=home.shard,
                    node=home.node or None,
                    answered_at=rfc3339(heard.answered_ms) if heard.answered_ms else None,
                    complete=heard.complete,
                )
            )
        return tuple(found)
