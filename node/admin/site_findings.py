"""From what a site keeps, and what was counted about it, to what an operator reads: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from node.admin.protocol import explaining as x
from node.ads import messages as m
from node.ads.classifier import CLASSIFIER_VERSION
from node.ads.entities.auction_tally import BIDDER, SOMEBODY
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.site_state import SiteState, floors_of, fresh
from node.ads.floors.sweep import Sweep
from node.ads.hosts import under_domain
from node.ads.money import format_money
from node.ads.tally import HourlyCount
from node.ads.taxonomy import UNMATCHED, load_taxonomy
from node.ads.view import CandidateView
from node.core.clock import rfc3339

_NAMED_MAX: Final = 5
_LATE: Final = {BIDDER: "(the bidder itself)", SOMEBODY: "(who else bids is not known yet)"}
Campaigns = Mapping[str, CampaignState]


def category_name(category: str) -> str:
    if category in ("", UNMATCHED):
        return "pages without a category" if category else "the site's own"
    return load_taxonomy().name(category)


# ---- what must be 0


def check(name: str, found: Sequence[str] | None, count: int = -1) -> x.SiteCheck:
    """`found`: by name, some of the `count` (-1: all of them); None where it could not be found out."""
    if found is None:
        return x.SiteCheck(check=name, result="unknown", count=0, detail="did not answer")
    total = len(found) if count < 0 else count
    more = f" and {total - _NAMED_MAX} more" if total > _NAMED_MAX else ""
    detail = ", ".join(found[:_NAMED_MAX]) + more
    return x.SiteCheck(check=name, result="fail" if total else "ok", count=total, detail=detail)


def decided_and_waiting(state: SiteState) -> list[str]:
    """Creatives in the queue that the publisher has approved or rejected already."""
    return sorted(state.pending.keys() & (state.approved.keys() | state.rejected.keys()))


def not_allowed(state: SiteState, campaigns: Campaigns, pools: Mapping[str, Iterable[CandidateView]]) -> list[str]:
    """Candidates that stand in a pool, by key, and must not: each with why."""
    found: dict[str, None] = {}
    for key, candidates in pools.items():
        for candidate in candidates:
            if why := _forbidden(state, campaigns, candidate):
                found[f"{candidate.creative_id} in {key} ({why})"] = None
    return list(found)


def _forbidden(state: SiteState, campaigns: Campaigns, candidate: CandidateView) -> str:
    if state.suspended_by:
        return f"the {state.suspended_by[-1]} is suspended"
    if candidate.creative_id not in state.approved:
        return "flagged" if candidate.creative_id in state.flagged else "not approved"
    return hidden(state, campaigns, candidate.creative_id, candidate.campaign_id, candidate.landing_domain)


def hidden(state: SiteState, campaigns: Campaigns, creative: str, campaign: str, landing_domain: str) -> str:
    """Why a creative would not be served on the site, approved or not; empty where it would."""
    known = campaigns.get(campaign)
    if known is None:
        return f"there is no campaign {campaign}"
    spec = next((spec for spec in known.creatives if spec.creative == creative), None)
    if spec is None:
        return f"campaign {campaign} has no such creative"
    if known.status != "active":
        return f"campaign {campaign} is {known.status}"
    if known.advertiser_suspended:
        return f"advertiser {known.advertiser} is suspended"
    if creative in known.withdrawn:
        return f"it is {known.withdrawn[creative]}"
    if under_domain(landing_domain, frozenset(state.refused_domains)):
        return f"the site blocks {landing_domain}"
    if spec.product and spec.product in state.blocked_products:
        return f"the site blocks product {spec.product}"
    return ""


# ---- lists


def waiting(state: SiteState, campaigns: Campaigns) -> tuple[x.WaitingCreative, ...]:
    """The longest waiting first."""
    rows = sorted(state.pending.values(), key=lambda row: (row.first_seen_ms, row.creative))
    return tuple(
        x.WaitingCreative(
            creative=row.creative,
            campaign=row.campaign,
            since=rfc3339(row.first_seen_ms),
            slots=row.slots,
            hidden=hidden(state, campaigns, row.creative, row.campaign, row.landing_domain),
        )
        for row in rows
    )


def pages(
    known: Iterable[m.PageEntry],
    site: m.SiteTallies | None,
    served: m.ServeTallies | None,
    auctions: m.AuctionTallies | None,
    now_ms: int,
) -> x.SitePages:
    """Of pages as they are stored, and what is under way with them."""
    all_pages = list(known)
    counted = [page for page in all_pages if fresh(page, now_ms)]
    return x.SitePages(
        total=len(all_pages),
        fresh=len(counted),
        outdated=sum(page.version < CLASSIFIER_VERSION for page in counted),
        fallback=sum(page.fallback for page in counted),
        classifying=site.classifying if site else None,
        classifying_ms=site.classifying_ms if site else None,
        waiting=auctions.waiting if auctions else None,
        unknown_last_minute=served.unknown_last_minute if served else None,
    )


def today(served: m.ServeTallies | None) -> x.SiteDay | None:
    """None while the ad server does not tell."""
    if served is None:
        return None
    stats = served.today
    return x.SiteDay(
        filled=stats.selected,
        paced=stats.pacing_skipped,
        without_money=stats.budget_exhausted,
        without_candidates=stats.no_candidates,
        spent=format_money(stats.spend_micros),
        too_old=stats.content_too_old,
    )


def counts(
    site: m.SiteTallies | None, served: m.ServeTallies | None, auctions: m.AuctionTallies | None
) -> tuple[x.Counted, ...]:
    found: list[x.Counted] = []
    if auctions:
        found += _counted("auctions", auctions.causes)
        found += _counted("late", auctions.late)
    if served:
        found += _counted("slots", served.slots)
        found += _counted("hops", served.hops)
    if site:
        found += _counted("floors", site.floors)
        found += _counted("texts", site.classifications)
    return tuple(found)


def _counted(of: str, counted: Sequence[HourlyCount]) -> list[x.Counted]:
    total = sum(count.day for count in counted)
    return [
        x.Counted(
            of=of,
            label=_late(count.label) if of == "late" else count.label,
            this_hour=count.this_hour,
            last_hour=count.last_hour,
            day=count.day,
            day_ratio=round(count.day / total, 4) if total else 0.0,
        )
        for count in counted
    ]


def _late(label: str) -> str:
    """Who was late in which category, from `category|campaign`."""
    category, bar, campaign = label.partition("|")
    if not bar:
        return label
    return f"{category} {_LATE.get(campaign, campaign)}"


def unknown(served: m.ServeTallies | None) -> tuple[x.UnknownPage, ...]:
    return tuple(
        x.UnknownPage(url=page.url, views=page.views, last_view_at=rfc3339(page.seen_ms), nearest=page.nearest or None)
        for page in (served.unknown if served else ())
    )


def weights(auctions: m.AuctionTallies | None) -> tuple[x.CategoryWeight, ...]:
    """The most valuable category first."""
    return tuple(
        x.CategoryWeight(
            category=rank.category,
            name=category_name(rank.category),
            mean=round(rank.mean, 4),
            draw=round(rank.draw, 4),
            told_at=rfc3339(rank.told_ms),
        )
        for rank in (auctions.ranks if auctions else ())
    )


def floors(state: SiteState) -> tuple[x.LearnedFloor, ...]:
    """The site's own first."""
    learned = floors_of(state)
    return (_floor("", learned.site), *(_floor(name, sweep) for name, sweep in sorted(learned.categories.items())))


def _floor(category: str, sweep: Sweep) -> x.LearnedFloor:
    most_micros = max(sweep.high_micros, sweep.window_high_micros)
    return x.LearnedFloor(
        category=category,
        name=category_name(category),
        floor_cpm=format_money(sweep.current_micros),
        least_cpm=format_money(sweep.min_floor_micros),
        most_cpm=format_money(most_micros) if most_micros else None,
        phase=sweep.phase,
    )
