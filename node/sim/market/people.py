"""A market's people: who opens it, publishers who approve, operators who change their minds, readers who see pages."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from node.ads import messages as m
from node.core.ids import EntityRef
from node.sim import history as h
from node.sim.market.edge import VIEW_TIMEOUT_MS, Edge, nothing
from node.sim.market.plan import FLOOR_MICROS, HOUR_S, HOURS, SLOTS, CampaignPlan, Plan, SitePlan
from node.sim.market.record import NEVER_MS, Judged, Record, Sold

SEEN: Final = 0.95  # of winners whose beacon comes
REPEATED: Final = 0.03
CLICKED: Final = 0.02
APPROVED: Final = 0.8  # of creatives that wait; the others are rejected
RECLASSIFY_S: Final = 20 * HOUR_S  # a page's text is sent again so often, well before it would be too old
BEACON_FIELDS: Final = ("url", "slot", "cid", "v", "b", "tok", "camp", "adv", "cpm", "rid")


class People:
    """`open` makes the market; `begin` lets them live in it. `digest` is of all that pages were told."""

    def __init__(self, edge: Edge, plan: Plan, record: Record) -> None:
        self._edge = edge
        self._plan = plan
        self._record = record
        derive = edge.world.scheduler.derive
        self._readers = derive("market/readers")
        self._publishers = derive("market/publishers")
        self._operators = derive("market/operators")
        self._creatives = 0
        self._deciding: set[tuple[str, str]] = set()
        self.unopened = 0
        self.digest = hashlib.blake2b(digest_size=16)

    # ---- opening

    def open(self) -> None:
        """Everything is made, approved and classified when `unopened` is 0."""
        for number, site in enumerate(self._plan.sites):
            self._opening(0.2 * number, self._make_site, site)
        advertisers = {each.advertiser: each for each in self._plan.campaigns}
        for number, campaign in enumerate(advertisers.values()):
            mine = [each for each in self._plan.campaigns if each.advertiser == campaign.advertiser]
            self._opening(0.2 * number, self._make_advertiser, mine)

    def _opening(self, delay_s: float, what: Callable[..., object], subject: Any) -> None:
        self.unopened += 1
        self._edge.after(delay_s, what, subject)

    def _opened(self) -> None:
        self.unopened -= 1

    def _make_site(self, site: SitePlan) -> None:
        to = EntityRef("site", site.site)

        def pace() -> None:
            self._edge.say("pace", (site.site,), to, m.UpdateSite(paced=site.paced), classify)

        def classify() -> None:
            for url, categories in site.pages:
                self._classify(site.site, url, categories)
            self._opened()

        create = m.CreateSite(site.site, site.site, f"pub-{site.site.partition('.')[0]}", SLOTS, FLOOR_MICROS)
        self._edge.say("create_site", (site.site,), to, create, pace)

    def _classify(self, site: str, url: str, categories: tuple[str, ...]) -> None:
        """A tag sends the page's text, and again before that is too old."""
        text = m.ClassifyPage(url, " ".join(categories))
        self._edge.say("classify", (site, url), EntityRef("site", site), text, nothing)
        self._edge.after(RECLASSIFY_S, self._classify, site, url, categories)

    def _make_advertiser(self, campaigns: list[CampaignPlan]) -> None:
        first = campaigns[0]
        name, budget = first.advertiser, 2 * sum(each.budget_micros for each in campaigns)

        def made() -> None:
            for campaign in campaigns:
                self._opening(0, self._make_campaign, campaign)
            self._opened()

        create = m.CreateAdvertiser(name, name, budget, first.zone)
        self._edge.say("create_advertiser", (name,), EntityRef("advertiser", name), create, made)

    def _make_campaign(self, plan: CampaignPlan) -> None:
        name, to = plan.campaign, EntityRef("campaign", plan.campaign)

        def attach() -> None:
            owner = EntityRef("advertiser", plan.advertiser)
            key = (plan.advertiser, name)
            self._edge.say("attach", key, owner, m.AttachCampaign(name), aim)

        def aim() -> None:
            self._edge.say("aim", (name,), to, m.UpdateCampaign(sites=plan.sites), creative)

        def creative() -> None:
            self._add_creative(plan, approve)

        def approve(creative: str) -> None:
            for site in self._plan.sites:
                self.judge(site.site, creative, approved=True, then=nothing)
            self._opened()

        create = m.CreateCampaign(
            name, plan.advertiser, name, plan.cpm_micros, plan.budget_micros, (plan.category,), plan.zone
        )
        self._edge.say("create_campaign", (name,), to, create, attach)

    def _add_creative(self, plan: CampaignPlan, then: Callable[[str], object]) -> None:
        self._creatives += 1
        name = f"{plan.campaign}-{self._creatives}"
        url = f"https://{plan.advertiser}.example/{name}"
        slot = SLOTS[0]
        spec = m.CreativeSpec(name, f"https://cdn.example/{name}.png", url, slot.width, slot.height, "image/png")
        to = EntityRef("campaign", plan.campaign)
        self._edge.say("add_creative", (plan.campaign, name), to, m.AddCreative(spec), partial(then, name))

    # ---- living

    def begin(self) -> None:
        for site in self._plan.sites:
            self._await_reader(site)
        size, rng = self._plan.size, self._operators
        self._every(rng, size.publish_every_s, self._publish)
        self._every(rng, size.pause_every_s, self._pause)
        self._every(rng, size.retarget_every_s, self._retarget)
        self._every(rng, size.creative_every_s, self._another_creative)
        self._every(rng, size.revoke_every_s, self._revoke)

    def _every(self, rng: random.Random, period_s: float, what: Callable[[], object]) -> None:
        def due() -> None:
            what()
            self._every(rng, period_s, what)

        self._edge.after(period_s * rng.uniform(0.8, 1.2), due)

    # ---- publishers

    def judge(
        self, site: str, creative: str, *, approved: bool, then: Callable[[], object], reject: bool = True
    ) -> None:
        """A publisher's word, until it is acknowledged; while it is not, there is no other about the same."""
        edge, judged, key = self._edge, self._record.judged, (site, creative)
        if key in self._deciding:
            return
        self._deciding.add(key)
        place = len(judged)
        judged.append(Judged(edge.now_ms, NEVER_MS, site, creative, approved))
        if approved:
            edge.world.record(h.ApprovalAsked(edge.world.scheduler.now_ns, site, creative))
        else:
            edge.world.history.undo("approve", key)

        def done() -> None:
            self._deciding.discard(key)
            judged[place] = replace(judged[place], done_ms=edge.now_ms)
            then()

        message = m.ApproveCreative(creative) if approved else m.RevokeCreative(creative, reject=reject)
        edge.say("approve" if approved else "revoke", key, EntityRef("site", site), message, done)

    def _publish(self) -> None:
        """Every publisher looks at what waits, and decides."""
        for site in self._plan.sites:
            self._edge.ask(EntityRef("site", site.site), m.GetSite(), partial(self._decide, site.site))

    def _decide(self, site: str, outcome: Any) -> None:
        if isinstance(outcome, m.SiteInfo):
            for creative in outcome.pending:
                self.judge(site, creative, approved=self._publishers.random() < APPROVED, then=nothing)

    def _revoke(self) -> None:
        """Something that a site has shown may not be shown there for a while."""
        if not self._record.sold:
            return
        sold = self._record.sold[-1 - self._publishers.randrange(min(100, len(self._record.sold)))]
        again = partial(self.judge, sold.site, sold.creative, approved=True, then=nothing)
        back_s = self._plan.size.revoke_every_s * self._publishers.uniform(0.1, 0.4)
        later = partial(self._edge.after, back_s, again)
        self.judge(sold.site, sold.creative, approved=False, then=later, reject=False)

    # ---- operators

    def _pause(self) -> None:
        plan = self._operators.choice(self._plan.campaigns)
        to, key = EntityRef("campaign", plan.campaign), (plan.campaign,)
        back_s = self._plan.size.pause_every_s * self._operators.uniform(0.05, 0.3)
        resume = partial(self._edge.say, "resume", key, to, m.SetCampaignStatus("active"), nothing)
        self._edge.say("pause", key, to, m.SetCampaignStatus("paused"), partial(self._edge.after, back_s, resume))

    def _retarget(self) -> None:
        """To half of the sites, and back."""
        plan = self._operators.choice([each for each in self._plan.campaigns if not each.sprinter])
        names = [site.site for site in self._plan.sites]
        some = tuple(sorted(self._operators.sample(names, max(1, len(names) // 2))))
        to, key = EntityRef("campaign", plan.campaign), (plan.campaign,)
        back_s = self._plan.size.retarget_every_s * self._operators.uniform(0.1, 0.4)
        back = partial(self._edge.say, "aim", key, to, m.UpdateCampaign(sites=plan.sites), nothing)
        self._edge.say("aim", key, to, m.UpdateCampaign(sites=some), partial(self._edge.after, back_s, back))

    def _another_creative(self) -> None:
        self._add_creative(self._operators.choice(self._plan.campaigns), lambda _: None)

    # ---- readers

    def _await_reader(self, site: SitePlan) -> None:
        """The next page view of a site: as often as this hour has them, at random."""
        second = self._edge.now_ms % (HOURS * HOUR_S * 1_000) / 1_000
        hour_left_s = HOUR_S - second % HOUR_S
        gap_s = self._readers.expovariate(site.views[int(second // HOUR_S)] / HOUR_S)
        if gap_s < hour_left_s:
            self._edge.after(gap_s, self._read, site)
        else:
            self._edge.after(hour_left_s, self._await_reader, site)

    def _read(self, site: SitePlan) -> None:
        self._await_reader(site)
        url, _ = self._readers.choice(site.pages)
        slots = tuple(m.SlotRequest(slot.slot, slot.width, slot.height) for slot in SLOTS)
        select = m.BatchSelect(url, site.site, slots)
        told = partial(self._told, site.site, self._edge.now_ms)
        self._edge.ask(EntityRef("adserver", site.site), select, told)

    def _told(self, site: str, asked_ms: int, outcome: Any) -> None:
        record, edge = self._record, self._edge
        if not isinstance(outcome, m.BatchSelected):
            self._count("unanswered")
            return
        if not outcome.outcomes:
            self._count(outcome.state)
        for slot in outcome.outcomes:
            winner = slot.winner
            self._count("filled" if winner is not None else slot.reason)
            won = (winner.creative, winner.price_micros, winner.request_id) if winner is not None else (slot.reason,)
            self.digest.update(msgspec.json.encode((edge.now_ms, site, slot.slot, *won)))
            if winner is not None:
                edge.world.record(h.Served(edge.world.scheduler.now_ns, site, slot.slot, winner.creative))
                record.sold.append(
                    Sold(asked_ms, edge.now_ms, site, winner.campaign, winner.creative, winner.price_micros)
                )
                self._see(site, winner)

    def _count(self, what: str) -> None:
        self._record.views[what] = self._record.views.get(what, 0) + 1

    def _see(self, site: str, winner: m.Winner) -> None:
        rng, edge = self._readers, self._edge
        if rng.random() >= SEEN:
            return
        seen_s = rng.uniform(0.3, 3)
        edge.after(seen_s, self._beacon, site, "imp", winner.impression_query)
        if rng.random() < REPEATED:
            edge.after(seen_s + rng.uniform(0, 2), self._beacon, site, "imp", winner.impression_query)
        if rng.random() < CLICKED:
            edge.after(seen_s + rng.uniform(1, 8), self._beacon, site, "click", winner.click_query)

    def _beacon(self, site: str, event: str, query: str) -> None:
        fields = dict(parse_qsl(query))
        track = m.Track(event, *(fields[name] for name in BEACON_FIELDS))
        key = (fields["camp"], fields["rid"])
        self._edge.act(event, key, EntityRef("adserver", site), track, lambda _: None, VIEW_TIMEOUT_MS)
