"""The clients: operators who create, publishers who approve, pages that send text and ask for ads, beacons.

They do through `Engine.ask` what the admin server and the HTTP edge do. Each goes on until it is told no for good, and
writes down what it asked and what it was told.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from node.ads import messages as m
from node.core.clock import MS
from node.core.hashing import shard_of
from node.core.ids import EntityRef, Ref
from node.sim import history as h
from node.sim.host import Host
from node.sim.load import Load, Rates
from node.sim.outcomes import judge
from node.sim.world import World

# From the shipped taxonomy: two trees, with children, so that auctions fan out to ancestors.
CATEGORIES = ("150", "151", "179", "181")
SITES = 3
CAMPAIGNS = 5
ADVERTISERS = ("adv0", "adv1")
PAGES_PER_SITE = 2
SLOT = m.SlotSpec("top", 728, 90)
TIMEOUT_MS = 5_000
RETRY_MS = 600
SERVE_TIMEOUT_MS = 2_000
# Few and small, so that a run is no slower for it; a story that wants load makes its own.
PROBED = Rates(asks=2, tries=6, works=0.5, puts=1.5, poison=0.04)
PROBES = 8
PAUSE_EVERY_MS = 12_000
PAUSED_MS_MAX = 6_000
BEACON_FIELDS = ("url", "slot", "cid", "v", "b", "tok", "camp", "adv", "cpm", "rid")


class Workload:
    """Starts all clients; `stop` lets nothing new begin."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = world.scheduler.derive("workload")
        self._stopped = False
        self._probing: Load | None = None
        self.sites = tuple(f"site{n}.example" for n in range(SITES))
        campaigns = (f"camp{n}" for n in range(CAMPAIGNS))
        probes = (f"p{n}" for n in range(PROBES))
        world.shards_in_use = tuple(shard_of(each) for each in (*self.sites, *campaigns, *ADVERTISERS, *probes))

    def begin(self) -> None:
        for number, site in enumerate(self.sites):
            self._after(1_000 + 300 * number, self._create_site, site)
            self._after(9_000 + 500 * number, self._publish, site)
            for page in range(PAGES_PER_SITE):
                self._after(4_000 + 700 * page, self._classify, site, f"https://{site}/{page}")
        for advertiser in ADVERTISERS:
            self._after(1_000, self._create_advertiser, advertiser)
        for number in range(CAMPAIGNS):
            self._after(2_000 + 4_000 * number, self._create_campaign, number)
        for number in range(self._world.knobs.crowd):
            self._after(3_000 + 10 * number, self._create_advertiser, f"crowd{number}")
        self._after(PAUSE_EVERY_MS, self._pause_campaign)
        self._after(5_000, self._visit)
        self._after(4_000, self._probe)

    def stop(self) -> None:
        self._stopped = True
        if self._probing is not None:
            self._probing.stop()

    # ---- asking

    def _after(self, delay_ms: int, what: Callable[..., object], *args: Any) -> None:
        jitter_ms = self._rng.randrange(1 + delay_ms // 4)
        self._world.scheduler.after((delay_ms + jitter_ms) * MS, self._unless_stopped, what, args)

    def _unless_stopped(self, what: Callable[..., object], args: tuple[Any, ...]) -> None:
        if not self._stopped:
            what(*args)

    def _any_host(self) -> Host:
        hosts = list(self._world.hosts.values())
        return hosts[self._rng.randrange(len(hosts))]

    def _op(
        self,
        verb: str,
        key: tuple[str, ...],
        to: Ref,
        message: msgspec.Struct,
        then: Callable[[h.Op, Any], object],
        timeout_ms: int = TIMEOUT_MS,
    ) -> None:
        world = self._world
        host = self._any_host()
        op = world.history.begin(verb, key, host.name, world.scheduler.now_ns)

        def ended(outcome: Any) -> None:
            op.ended_ns = world.scheduler.now_ns
            op.outcome, op.detail, op.answer = judge(outcome)
            world.trace.add(f"client {op.verb} {'/'.join(op.key)} at {op.node}: {op.outcome.value} {op.detail}")
            then(op, outcome)

        world.ask(host, to, message, timeout_ms, ended)

    def _until_ok(
        self, verb: str, key: tuple[str, ...], to: Ref, message: msgspec.Struct, then: Callable[[], object]
    ) -> None:
        """An operator with a script: the same again until it is acknowledged."""

        def ended(op: h.Op, _outcome: Any) -> None:
            if op.outcome is h.Outcome.OK:
                then()
            else:
                self._after(RETRY_MS, self._until_ok, verb, key, to, message, then)

        self._op(verb, key, to, message, ended)

    def _probe(self) -> None:
        self._probing = Load(self._world, replace(PROBED, notes=self._world.knobs.notes_per_s), "p", PROBES)

    # ---- operators

    def _create_site(self, site: str) -> None:
        message = m.CreateSite(site, site, f"pub-{site.partition('.')[0]}", (SLOT,), 100_000)
        self._until_ok("create_site", (site,), EntityRef("site", site), message, _nothing)

    def _create_advertiser(self, advertiser: str) -> None:
        message = m.CreateAdvertiser(advertiser, advertiser, 60_000_000, "UTC")
        self._until_ok("create_advertiser", (advertiser,), EntityRef("advertiser", advertiser), message, _nothing)

    def _create_campaign(self, number: int) -> None:
        campaign, advertiser = f"camp{number}", ADVERTISERS[number % len(ADVERTISERS)]
        # Every other budget is worth a few impressions, so that it runs out.
        small = number % 2 == 1
        budget = 20_000 if small else 50_000_000
        categories = tuple(dict.fromkeys((CATEGORIES[number % len(CATEGORIES)], CATEGORIES[0])))
        bid = 2_000_000 + 500_000 * number
        create = m.CreateCampaign(campaign, advertiser, campaign, bid, budget, categories, "UTC")
        to = EntityRef("campaign", campaign)

        def attach() -> None:
            owner = EntityRef("advertiser", advertiser)
            self._until_ok("attach", (advertiser, campaign), owner, m.AttachCampaign(campaign), creative)

        def creative() -> None:
            name = f"{campaign}-a"
            spec = m.CreativeSpec(
                name,
                f"https://cdn.example/{name}.png",
                f"https://{advertiser}.example/{name}",
                SLOT.width,
                SLOT.height,
                "image/png",
            )

            def offered() -> None:
                if not small:
                    self._world.history.offered[name] = frozenset(categories)

            self._until_ok("add_creative", (campaign, name), to, m.AddCreative(spec), offered)

        self._until_ok("create_campaign", (campaign,), to, create, attach)

    def _pause_campaign(self) -> None:
        """Its candidates leave the pools of all sites, and come back by auctions. Resumed whatever happens, or its
        pages would stay uncovered."""
        self._after(PAUSE_EVERY_MS, self._pause_campaign)
        campaign = f"camp{self._rng.randrange(CAMPAIGNS)}"
        to = EntityRef("campaign", campaign)

        def resume() -> None:
            self._op("resume", (campaign,), to, m.SetCampaignStatus("active"), resumed)

        def resumed(op: h.Op, _outcome: Any) -> None:
            if op.outcome is not h.Outcome.OK and "there is no campaign" not in op.detail:
                self._world.scheduler.after(RETRY_MS * MS, resume)

        def paused(_op: h.Op, _outcome: Any) -> None:
            self._world.scheduler.after(self._rng.randrange(PAUSED_MS_MAX) * MS, resume)

        self._op("pause", (campaign,), to, m.SetCampaignStatus("paused"), paused)

    # ---- publishers

    def _publish(self, site: str) -> None:
        """Look at what waits for approval, and approve most of it."""

        def looked(_op: h.Op, outcome: Any) -> None:
            if isinstance(outcome, m.SiteInfo):
                for creative in outcome.pending:
                    if self._rng.random() < 0.7:
                        self._approve(site, creative)
            self._after(2_500, self._publish, site)

        self._op("get_site", (site,), EntityRef("site", site), m.GetSite(), looked)

    def _approve(self, site: str, creative: str) -> None:
        world = self._world
        world.record(h.ApprovalAsked(world.scheduler.now_ns, site, creative))
        self._op("approve", (site, creative), EntityRef("site", site), m.ApproveCreative(creative), _nothing_of)

    # ---- pages

    def _classify(self, site: str, url: str) -> None:
        text = " ".join(self._rng.sample(CATEGORIES, 2))

        def ended(op: h.Op, _outcome: Any) -> None:
            self._after(RETRY_MS if op.outcome is not h.Outcome.OK else 20_000, self._classify, site, url)

        self._op("classify", (site, url), EntityRef("site", site), m.ClassifyPage(url, text), ended)

    def _visit(self) -> None:
        self._after(int(1_000 / self._world.knobs.serves_per_s), self._visit)
        site = self._rng.choice(self.sites)
        url = f"https://{site}/{self._rng.randrange(PAGES_PER_SITE)}"
        request = m.SlotRequest(SLOT.slot, SLOT.width, SLOT.height)
        select = m.BatchSelect(url, site, (request,))

        def served(_op: h.Op, outcome: Any) -> None:
            if not isinstance(outcome, m.BatchSelected):
                return
            world = self._world
            for slot in outcome.outcomes:
                if slot.winner is not None:
                    world.record(h.Served(world.scheduler.now_ns, site, slot.slot, slot.winner.creative))
                    self._see(site, slot.winner)

        self._op("serve", (site, url), EntityRef("adserver", site), select, served, SERVE_TIMEOUT_MS)

    def _see(self, site: str, winner: m.Winner) -> None:
        """Most winners are seen, some are reported twice, a few are clicked."""
        draw = self._rng.random()
        if draw < 0.8:
            self._after(300, self._beacon, site, "imp", winner.impression_query)
        if draw < 0.15:
            self._after(400, self._beacon, site, "imp", winner.impression_query)
        if 0.1 < draw < 0.2:
            self._after(800, self._beacon, site, "click", winner.click_query)

    def _beacon(self, site: str, event: str, query: str) -> None:
        fields = dict(parse_qsl(query))
        track = m.Track(event, *(fields[name] for name in BEACON_FIELDS))
        key = (fields["camp"], fields["rid"])
        self._op(event, key, EntityRef("adserver", site), track, _nothing_of, SERVE_TIMEOUT_MS)


def _nothing() -> None:
    """What follows is nobody's business."""


def _nothing_of(_op: h.Op, _outcome: Any) -> None:
    """The outcome is written down; nothing follows."""
