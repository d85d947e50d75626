"""Who is in a simulated market: sites with the visitors of each hour, campaigns with their budgets, from one seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from node.ads import messages as m
from node.core.clock import MS, SECOND
from node.sim.scheduler import START_WALL_MS

HOUR_S: Final = 3_600
DAY_S: Final = 86_400
HOURS: Final = 24
WEEK_MS: Final = 7 * DAY_S * 1_000
MONDAY_MS: Final = 4 * DAY_S * 1_000  # the first after 1970
ZONES: Final = ("UTC", "Asia/Tokyo", "America/New_York")
# From the shipped taxonomy, each a tree of its own: an auction asks no more bidders than there are categories.
CATEGORIES: Final = ("150", "1", "42", "132", "210", "274", "422", "483", "653")
PAGES: Final = 3
PAGE_CATEGORIES: Final = 2
SLOTS: Final = (m.SlotSpec("top", 300, 250), m.SlotSpec("side", 300, 250))
FLOOR_MICROS: Final = 500_000
CPM_MICROS: Final = (1_500_000, 4_000_000)
# Visitors by the UTC hour: a quiet night, a busy noon and evening.
TRAFFIC: Final = (2, 1, 1, 1, 2, 4, 8, 12, 14, 14, 15, 18, 22, 18, 14, 14, 15, 18, 22, 24, 20, 12, 8, 4)
# One site in ten does not pace, and one campaign in ten runs there alone, with little money: it runs out every day.
UNPACED_SHARE: Final = 0.1
SPRINTER_SHARE: Final = 0.15  # of the others' budget
CAMPAIGNS_PER_ADVERTISER: Final = 4


@dataclass(frozen=True, slots=True)
class Size:
    """`views`: page views of a site in a day, on average; `impressions`: what a campaign's daily budget pays for, or
    nearly. The run begins `before_s` before a Monday's first moment in UTC. `fault_every_s`: from one fault to the
    next; 0: none. The others say how often operators and publishers do something, in seconds."""

    nodes: int = 3
    sites: int = 20
    campaigns: int = 60
    seconds: int = 7 * DAY_S
    views: int = 700
    impressions: int = 250
    before_s: int = 0
    fault_every_s: int = 6 * HOUR_S
    pause_every_s: int = 3 * HOUR_S
    retarget_every_s: int = 8 * HOUR_S
    creative_every_s: int = 6 * HOUR_S
    revoke_every_s: int = 12 * HOUR_S
    publish_every_s: int = 10 * 60
    profile: str = "default"

    @property
    def begin_ns(self) -> int:
        """The virtual time at which the run starts."""
        to_monday_ms = (MONDAY_MS - START_WALL_MS) % WEEK_MS
        return to_monday_ms * MS - self.before_s * SECOND


# A quarter of an hour around a midnight: what a test has time for. Budgets run out within minutes.
SLICE: Final = Size(
    sites=4,
    campaigns=9,
    seconds=18 * 60,
    views=120_000,
    impressions=100,
    before_s=10 * 60,
    fault_every_s=5 * 60,
    pause_every_s=150,
    retarget_every_s=200,
    creative_every_s=180,
    revoke_every_s=170,
    publish_every_s=20,
    profile="fast",
)


@dataclass(frozen=True, slots=True)
class SitePlan:
    """`pages`: urls with their categories; `views`: how many page views come in each UTC hour, on average."""

    site: str
    pages: tuple[tuple[str, tuple[str, ...]], ...]
    views: tuple[float, ...]
    paced: bool


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """`sites`: the only ones that it wants; empty: any. `sprinter`: its money is soon gone."""

    campaign: str
    advertiser: str
    zone: str
    category: str
    cpm_micros: int
    budget_micros: int
    sites: tuple[str, ...]
    sprinter: bool


@dataclass(frozen=True, slots=True)
class Plan:
    size: Size
    sites: tuple[SitePlan, ...]
    campaigns: tuple[CampaignPlan, ...]

    @property
    def zones(self) -> dict[str, str]:
        """By campaign."""
        return {each.campaign: each.zone for each in self.campaigns}

    @property
    def paced(self) -> frozenset[str]:
        """The campaigns whose spend is to follow what is expected."""
        return frozenset(each.campaign for each in self.campaigns if not each.sprinter)

    @property
    def traffic(self) -> tuple[float, ...]:
        """Page views by the UTC hour, of all sites together."""
        return tuple(sum(site.views[hour] for site in self.sites) for hour in range(HOURS))


def draw(size: Size, derive: Callable[[str], random.Random]) -> Plan:
    """`derive` makes a generator for a name, from the seed."""
    rng = derive("market/plan")
    unpaced = max(1, round(size.sites * UNPACED_SHARE))
    sites = tuple(_site(size, rng, number, paced=number >= unpaced) for number in range(size.sites))
    hasty = tuple(site.site for site in sites if not site.paced)
    return Plan(size, sites, tuple(_campaigns(size, rng, hasty)))


def _site(size: Size, rng: random.Random, number: int, *, paced: bool) -> SitePlan:
    name = f"site{number}.example"
    first = number * PAGES * PAGE_CATEGORIES
    wanted = CATEGORIES[: -(-size.campaigns // len(ZONES))]
    pages = tuple(
        (f"https://{name}/{page}", _cyclic(wanted, first + page * PAGE_CATEGORIES, PAGE_CATEGORIES))
        for page in range(PAGES)
    )
    # Readers of one country: sites differ in how large they are and how lively each hour is, not in when it is night.
    weights = [weight * rng.uniform(0.75, 1.25) for weight in TRAFFIC]
    scale = size.views * rng.uniform(0.6, 1.4) / sum(weights)
    return SitePlan(name, pages, tuple(weight * scale for weight in weights), paced)


def _campaigns(size: Size, rng: random.Random, hasty: tuple[str, ...]) -> list[CampaignPlan]:
    sprinters = max(len(ZONES), round(size.campaigns * UNPACED_SHARE))
    found: list[CampaignPlan] = []
    for number in range(size.campaigns):
        sprinter = number < sprinters
        zone = ZONES[number % len(ZONES)]
        cpm = rng.randrange(CPM_MICROS[0], CPM_MICROS[1], 10_000)
        paid_for = size.impressions * (SPRINTER_SHARE if sprinter else 1.0)
        # Prices clear below the bid: a budget at half of it pays for about as many impressions as are wanted.
        budget = round(paid_for * cpm / 1_000 * 0.6)
        advertiser = f"adv{number % len(ZONES)}-{number // (len(ZONES) * CAMPAIGNS_PER_ADVERTISER)}"
        category = CATEGORIES[number // len(ZONES) % len(CATEGORIES)]
        sites = hasty if sprinter else ()
        found.append(CampaignPlan(f"c{number}", advertiser, zone, category, cpm, budget, sites, sprinter))
    return found


def _cyclic(items: Sequence[str], first: int, count: int) -> tuple[str, ...]:
    return tuple(items[(first + place) % len(items)] for place in range(count))
