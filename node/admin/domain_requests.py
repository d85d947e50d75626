"""Requests about what the cluster serves: sites, advertisers, campaigns, creatives, pages, decisions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from node.actors.actor import Failed, Failure
from node.actors.runtime import outcome_of
from node.admin import domain_views as views
from node.admin import order_messages
from node.admin import protocol as p
from node.admin.approvals import approving_sites, creative_of
from node.admin.asking import in_time_ns, patience_ms
from node.admin.homes import at_home, looked_at
from node.admin.outcomes import CONFLICT, FAILED, READ_MS, USAGE, ask, not_found, owner, read, silence
from node.admin.page_words import pages_of, told_of_page
from node.admin.pages import page, wanted
from node.admin.targets import ready_for
from node.ads import messages as m
from node.ads.classifier import Classification
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.page_shelf import KIND as PAGE_SHELF
from node.ads.entities.page_shelf import PageShelfState, shelf_id
from node.ads.entities.site_state import SiteState
from node.ads.explain import ServeDecision
from node.ads.hosts import same_host
from node.ads.keys import entity_id, fold_page_text, page_url, serve_key, site_id, slot_id
from node.core.clock import MS
from node.core.ids import EntityRef
from node.core.limits import admin_page_states_max, classify_margin_ms
from node.crawler.html_text import extract, looks_like_html

if TYPE_CHECKING:
    from node.admin.server import AdminServer

SEARCHES_AT_ONCE = 32


class DomainRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.CreateSite: self.create_site,
            p.GetSites: self.sites,
            p.GetSite: self.site,
            p.GetPages: self.pages,
            p.ClassifyText: self.classify,
            p.CreateAdvertiser: self.create_advertiser,
            p.GetAdvertisers: self.advertisers,
            p.GetAdvertiser: self.advertiser,
            p.CreateCampaign: self.create_campaign,
            p.GetCampaigns: self.campaigns,
            p.GetCampaign: self.campaign,
            p.CreateCreative: self.create_creative,
            p.GetCreatives: self.creatives,
            p.GetCreative: self.creative,
            p.ApproveCreative: self.approve,
            p.GetExplanation: self.explain,
        }

    # ---- sites and pages

    async def create_site(self, request: p.CreateSite, call: p.Meta) -> tuple[p.SiteShow, p.Meta]:
        message = order_messages.site_creation(request)
        for other in await self._server.states.all("site", SiteState):
            if other.publisher != message.publisher and same_host(other.host, message.host):
                text = f"host {message.host!r} belongs to site {other.site!r} of publisher {other.publisher!r}"
                raise p.AdminRefusal(CONFLICT, "E-CONFLICT", text, about=message.host)
        info = await ask(self._engine, EntityRef("site", message.site), message)
        return at_home(self._engine, views.site(info), info.site), call

    async def sites(self, request: p.GetSites, call: p.Meta) -> tuple[p.SiteList, p.Meta]:
        now_ms = self._engine.world.clock.wall_ms()
        states: list[SiteState] = []
        after, more = request.after, True
        while more and len(states) <= wanted(request.limit):
            read, more = await self._server.states.page("site", SiteState, after, wanted(request.limit))
            states += [state for state in read if request.publisher in ("", state.publisher)]
            after = read[-1].site if read else after
        pages = {state.site: dict(state.pages) for state in states}
        names = [shelf_id(state.site, number) for state in states for number in range(state.shelves)]
        for shelf in await self._server.states.some(PAGE_SHELF, names, PageShelfState):
            pages[shelf.site].update((page.url, page) for page in shelf.pages)
        shown = (views.site_of_state(state, pages[state.site].values(), now_ms) for state in states)
        items = ((site.site, looked_at(self._engine, site, site.site)) for site in shown)
        found, following = page(items, request.limit, more=more)
        return p.SiteList(items=found, next=following), call

    async def site(self, request: p.GetSite, call: p.Meta) -> tuple[p.SiteShow, p.Meta]:
        info = await read(self._engine, EntityRef("site", site_id(request.site)), m.GetSite())
        return looked_at(self._engine, views.site(info), info.site), call

    async def pages(self, request: p.GetPages, call: p.Meta) -> tuple[p.PageList, p.Meta]:
        # Read from the store, which a listing of thousands of pages may be; a message between nodes may not.
        state = await self._server.states.one("site", site_id(request.site), SiteState)
        if state is None:
            raise not_found("site", request.site, await self._server.states.ids("site"))
        found = await pages_of(self._server.states, state)
        oldest_first = sorted(found.values(), key=lambda page: (page.classified_at_ms, page.url))
        begin = next((n for n, entry in enumerate(oldest_first, 1) if entry.url == request.after), 0)
        if request.after and not begin:
            hint = f"promovolvectl page list {state.site}"
            raise p.AdminRefusal(CONFLICT, "E-CONFLICT", f"{request.after} is no page of the site any more", hint=hint)
        now_ms = self._engine.world.clock.wall_ms()
        items, following = page(((e.url, views.page(e, now_ms)) for e in oldest_first[begin:]), request.limit)
        return p.PageList(items=items, next=following), call

    async def classify(self, request: p.ClassifyText, call: p.Meta) -> tuple[p.ClassificationShow, p.Meta]:
        page = request.text
        if request.transfer:
            page = self._server.uploads.claim(request.transfer).decode(errors="replace")
        text = fold_page_text(extract(page).text if request.html or looks_like_html(page) else page)
        if not any(char.isalnum() for char in text):
            hint = "a page that a script fills has no text of its own: save what the browser shows"
            raise p.AdminRefusal(USAGE, "E-NO-TEXT", "the page has no text", hint=hint, about="text")
        clock = self._engine.world.clock
        begun_ns = clock.mono_ns()
        classify = self._server.classifier.classify
        asked = (text, request.hint, in_time_ns(classify_margin_ms))
        outcome = await outcome_of(lambda done: self._execute(classify, asked, done))
        if not isinstance(outcome, Classification):
            raise p.AdminRefusal(FAILED, "E-CLASSIFIER", f"the classifier did not answer: {outcome}")
        return views.classification(outcome, (clock.mono_ns() - begun_ns) / MS), call

    def _execute(self, fn: object, args: tuple[str, str, int | None], done: object) -> None:
        if not self._engine.world.execute("llm", fn, args, done):  # type: ignore[arg-type]
            raise p.AdminRefusal(FAILED, "E-BUSY", "the classifier's queue is full", hint="try again in a moment")

    # ---- advertisers, campaigns, creatives

    async def create_advertiser(self, request: p.CreateAdvertiser, call: p.Meta) -> tuple[p.AdvertiserShow, p.Meta]:
        message = order_messages.advertiser_creation(request)
        info = await ask(self._engine, EntityRef("advertiser", message.advertiser), message)
        creatives = await self._creative_counts([info])  # there may be some: a repeat answers with what there is
        shown = views.advertiser(info, creatives[message.advertiser])
        return at_home(self._engine, shown, message.advertiser), call

    async def advertisers(self, request: p.GetAdvertisers, call: p.Meta) -> tuple[p.AdvertiserList, p.Meta]:
        now_ms = self._engine.world.clock.wall_ms()
        found = self._server.states.page("advertiser", AdvertiserState, request.after, wanted(request.limit))
        states, more = await found
        # Their campaigns are read to count creatives: a count of the advertiser's own would be written with each of its
        # impressions, and wrong whenever a campaign's word is late.
        ends = accumulate(len(state.campaigns) for state in states)
        kept = max(1, sum(end <= admin_page_states_max for end in ends))
        states, more = states[:kept], more or kept < len(states)
        creatives = await self._creative_counts(states)
        shown = (views.advertiser_of_state(s, creatives[s.advertiser], now_ms) for s in states)
        items = ((one.advertiser, looked_at(self._engine, one, one.advertiser)) for one in shown)
        listed, following = page(items, request.limit, more=more)
        return p.AdvertiserList(items=listed, next=following), call

    async def advertiser(self, request: p.GetAdvertiser, call: p.Meta) -> tuple[p.AdvertiserShow, p.Meta]:
        name = entity_id(request.advertiser, "advertiser")
        info = await read(self._engine, EntityRef("advertiser", name), m.GetAdvertiser())
        creatives = await self._creative_counts([info])
        return looked_at(self._engine, views.advertiser(info, creatives[name]), name), call

    async def _creative_counts(self, advertisers: Sequence[AdvertiserState | m.AdvertiserInfo]) -> Counter[str]:
        """How many creatives each has, read from its own campaigns."""
        counts: Counter[str] = Counter()
        names = [campaign for advertiser in advertisers for campaign in advertiser.campaigns]
        for campaign in await self._server.states.some("campaign", names, CampaignState):
            counts[campaign.advertiser] += len(campaign.creatives)
        return counts

    async def create_campaign(self, request: p.CreateCampaign, call: p.Meta) -> tuple[p.CampaignShow, p.Meta]:
        await ready_for(request)
        order_messages.campaign_creation(request, "")  # what is wrong with it comes before who its advertiser is
        advertiser = EntityRef("advertiser", entity_id(request.advertiser, "advertiser"))
        above: m.AdvertiserInfo = await read(self._engine, advertiser, m.GetAdvertiser())
        if above.status == "deleted":
            text = f"advertiser {above.advertiser!r} is deleted, which is for ever"
            hint = "promovolvectl advertiser list"
            raise p.AdminRefusal(CONFLICT, "E-CONFLICT", text, hint=hint, about=f"advertiser/{above.advertiser}")
        message = order_messages.campaign_creation(request, above.timezone)
        info = await ask(self._engine, EntityRef("campaign", message.campaign), message)
        await ask(self._engine, advertiser, m.AttachCampaign(message.campaign))
        return at_home(self._engine, views.campaign(info), message.campaign), call

    async def campaigns(self, request: p.GetCampaigns, call: p.Meta) -> tuple[p.CampaignList, p.Meta]:
        limit, now_ms = wanted(request.limit), self._engine.world.clock.wall_ms()
        if request.advertiser is None:
            chosen, more = await self._server.states.page("campaign", CampaignState, request.after, limit)
        else:
            chosen, more = await self._campaigns_of(request.advertiser, request.after, limit)
        shown = (views.campaign_of_state(state, now_ms) for state in chosen)
        items = ((one.campaign, looked_at(self._engine, one, one.campaign)) for one in shown)
        found, following = page(items, request.limit, more=more)
        return p.CampaignList(items=found, next=following), call

    async def _campaigns_of(self, advertiser: str, after: str, limit: int) -> tuple[list[CampaignState], bool]:
        """The next of its own, by their names, and whether there are more: among all there may be few."""
        above = await self._server.states.one("advertiser", advertiser, AdvertiserState)
        names = sorted(name for name in above.campaigns if name > after) if above else []
        return await self._server.states.some("campaign", names[:limit], CampaignState), len(names) > limit

    async def campaign(self, request: p.GetCampaign, call: p.Meta) -> tuple[p.CampaignShow, p.Meta]:
        name = entity_id(request.campaign, "campaign")
        info = await read(self._engine, EntityRef("campaign", name), m.GetCampaign())
        return looked_at(self._engine, views.campaign(info), name), call

    async def create_creative(self, request: p.CreateCreative, call: p.Meta) -> tuple[p.CreativeShow, p.Meta]:
        spec = order_messages.creative_spec(request)
        campaign = EntityRef("campaign", entity_id(request.campaign, "campaign"))
        for other in await self._server.states.all("campaign", CampaignState):
            if other.campaign != request.campaign and any(c.creative == spec.creative for c in other.creatives):
                text = f"creative {spec.creative!r} belongs to campaign {other.campaign!r}"
                raise p.AdminRefusal(CONFLICT, "E-CONFLICT", text, about=spec.creative)
        accepted: m.Accepted = await ask(self._engine, campaign, m.AddCreative(spec))
        info: m.CampaignInfo = await ask(self._engine, campaign, m.GetCampaign())
        sites = (await self._approving()).get(spec.creative, [])
        return views.creative(spec, info, tuple(sites), changed=accepted.changed), call

    async def creatives(self, request: p.GetCreatives, call: p.Meta) -> tuple[p.CreativeList, p.Meta]:
        """A campaign's creatives are on one page together."""
        states = self._server.states
        more = False
        if request.campaign is not None:
            campaigns = await states.some("campaign", [request.campaign], CampaignState)
        else:
            campaigns, more = await states.page("campaign", CampaignState, request.after, wanted(request.limit))
        by_creative = await self._approving()
        found: list[p.CreativeShow] = []
        following = campaigns[-1].campaign if more else ""
        for number, campaign in enumerate(campaigns):
            if found and len(found) + len(campaign.creatives) > wanted(request.limit):
                following = campaigns[number - 1].campaign
                break
            found += [views.creative(c, campaign, tuple(by_creative.get(c.creative, ()))) for c in campaign.creatives]
        return p.CreativeList(items=tuple(found), next=following), call

    async def creative(self, request: p.GetCreative, call: p.Meta) -> tuple[p.CreativeShow, p.Meta]:
        campaign, spec = await creative_of(self._server.states, request.creative)
        sites = (await self._approving()).get(spec.creative, [])
        return views.creative(spec, campaign, tuple(sites)), call

    async def _approving(self) -> dict[str, list[str]]:
        """The sites that have approved each creative."""
        found: dict[str, list[str]] = {}
        for site in await self._server.states.all("site", SiteState):
            for creative in site.approved:
                found.setdefault(creative, []).append(site.site)
        return found

    async def approve(self, request: p.ApproveCreative, call: p.Meta) -> tuple[p.Approved, p.Meta]:
        await creative_of(self._server.states, request.creative)
        sites = await approving_sites(self._server.states, request)
        changed = False
        for site in sites:
            accepted = await ask(self._engine, EntityRef("site", site), m.ApproveCreative(request.creative))
            changed |= accepted.changed
        return p.Approved(creative=request.creative, sites=tuple(sites), changed=changed), call

    # ---- decisions

    async def explain(self, request: p.GetExplanation, call: p.Meta) -> tuple[p.ServeExplanation, p.Meta]:
        if not request.request_id and not request.site:
            hint = "promovolvectl serve explain --site SITE"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", "neither a request id nor a site is given", hint=hint)
        page = page_url(request.page, "page") if request.page else ""
        query = m.GetDecision(request.request_id, request.slot, page)
        sites = [site_id(request.site)] if request.site else await self._server.states.ids("site")
        if request.site and request.site not in await self._server.states.ids("site"):
            raise not_found("site", request.site, await self._server.states.ids("site"))
        silent: set[str] = set()  # each would cost its whole time once more
        for begin in range(0, len(sites), SEARCHES_AT_ONCE):
            some = sites[begin : begin + SEARCHES_AT_ONCE]
            by_node = {site: owner(self._engine, EntityRef("adserver", site)) for site in some}
            asked = [site for site in some if by_node[site] not in silent]
            found = await asyncio.gather(*(self._decision(site, query) for site in asked))
            for site, decision in zip(asked, found, strict=True):
                if isinstance(decision, ServeDecision):
                    shown = views.explanation(decision)
                    why = await told_of_page(self._server.states, decision, shown)
                    return msgspec.structs.replace(shown, why=why), call
                if isinstance(decision, Failed) and decision.failure is not Failure.REJECTED:
                    silent.add(by_node[site])
        if silent:
            raise silence(sorted(silent), "whether it remembers such a decision is not known")
        if request.site and request.slot and not request.request_id:
            return await self._never_asked(request), call
        hint = "each site remembers its last 1,000 decisions, until its shard moves or its node stops"
        text = "no such decision is remembered"
        raise p.AdminRefusal(3, "E-NOT-FOUND", text, hint=hint, about=request.request_id or request.site)

    async def _decision(self, site: str, query: m.GetDecision) -> object:
        for_ms = patience_ms(self._engine.world.clock, READ_MS)
        return await outcome_of(lambda done: self._engine.ask(EntityRef("adserver", site), query, for_ms, done))

    async def _never_asked(self, request: p.GetExplanation) -> p.ServeExplanation:
        info: m.SiteInfo = await read(self._engine, EntityRef("site", request.site), m.GetSite())
        key = serve_key(request.site, slot_id(request.slot))
        slots = [slot.slot for slot in info.slots]
        if request.slot not in slots and self._engine.index.read(key) is None:
            raise not_found("slot", request.slot, slots, listed=f"promovolvectl site show {info.site}")
        view = self._engine.index.read(key)
        return views.undecided(
            info, request.slot, view, self._engine.index.version(key), self._engine.world.clock.wall_ms()
        )
