"""From entities' answers and states to the shapes that an operator reads."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import msgspec

from node.admin import protocol as p
from node.admin.protocol import publishers
from node.admin.protocol.domain import SlotQuality
from node.admin.protocol.serving import ExplainedTurnedAway
from node.admin.targets import moment
from node.ads import messages as m
from node.ads.budget import roll_over
from node.ads.classifier import CLASSIFIER_VERSION, Classification
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.campaign_state import info_of as campaign_info
from node.ads.entities.site_conduct import DAY_MS
from node.ads.entities.site_state import FRESHNESS_WINDOW_MS, SiteState
from node.ads.entities.site_views import info_of
from node.ads.explain import ServeDecision
from node.ads.money import format_money
from node.ads.serveindex import PoolVersion
from node.ads.taxonomy import load_taxonomy
from node.ads.view import ServeView
from node.core.clock import rfc3339
from node.core.hlc import hlc_wall_ms


def site(info: m.SiteInfo) -> p.SiteShow:
    return p.SiteShow(
        site=info.site,
        host=info.host,
        publisher=info.publisher,
        verified_host=info.host,
        slots=tuple(p.Slot(slot=s.slot, width=s.width, height=s.height) for s in info.slots),
        pages_fresh=info.pages_fresh,
        suspended=info.suspended,
        floor_cpm=format_money(info.floor_micros),
        approved=info.approved,
        pending=info.pending,
        changed=info.changed,
        rejected=info.rejected,
        blocked_domains=info.blocked_domains,
        blocked_products=info.blocked_products,
        learned_floor_cpm=format_money(max(info.learned_floor_micros, info.floor_micros)),
        category_floors=tuple(
            p.CategoryFloor(category=category, name=load_taxonomy().name(category), floor_cpm=format_money(floor))
            for category, floor in sorted(info.category_floors.items())
        ),
        paced=info.paced,
        auto_approve=info.auto_approve,
        trusted=tuple(anchor.replace("|", " ", 1) for anchor in info.trusted),
        slot_floors=tuple(
            p.SlotFloor(slot=slot, floor_cpm=format_money(floor)) for slot, floor in sorted(info.slot_floors.items())
        ),
        flagged=tuple(f"{creative}: {reason}" for creative, reason in sorted(info.flagged.items())),
        slot_qualities=tuple(
            SlotQuality(slot=slot, quality=quality) for slot, quality in sorted(info.qualities.items())
        ),
        suspicions=tuple(_suspicion(each) for each in info.suspicions),
        timezone=info.timezone,
        margin=format_money(info.margin_ppm),
        pages_fallback=info.pages_fallback,
        suspended_by=info.suspended_by,
        publisher_domains=info.publisher_domains,
        audience=tuple(place for place, hops in info.audience if not hops),
    )


def publisher(info: m.PublisherInfo) -> publishers.PublisherShow:
    return publishers.PublisherShow(
        publisher=info.publisher,
        suspended=info.suspended,
        sites=tuple(publishers.PublisherSite(site=site, host=host) for site, host in sorted(info.sites.items())),
        blocked_domains=info.blocked_domains,
        untold=info.untold,
        changed=info.changed,
    )


def _suspicion(found: m.Suspicion) -> str:
    day, flag = rfc3339(found.day * DAY_MS)[:10], found.flag
    return f"{day}: {flag.signal.replace('_', ' ')} {flag.severity:.2f}, odd above {flag.threshold:g}"


def site_of_state(state: SiteState, pages: Iterable[m.PageEntry], now_ms: int) -> p.SiteShow:
    return site(info_of(state, pages, now_ms))


def scores(categories: tuple[tuple[str, float], ...]) -> tuple[p.CategoryScore, ...]:
    taxonomy = load_taxonomy()
    return tuple(
        p.CategoryScore(
            id=category,
            name=taxonomy.name(category),
            confidence=round(confidence, 4),
            path=" > ".join(taxonomy.path(category)),
        )
        for category, confidence in categories
    )


def page(entry: m.PageEntry, now_ms: int) -> p.PageItem:
    return p.PageItem(
        url=entry.url,
        classified_at=rfc3339(entry.classified_at_ms),
        fresh=entry.classified_at_ms > now_ms - FRESHNESS_WINDOW_MS,
        categories=scores(entry.categories),
        places=tuple(place for place, hops in entry.places if not hops),
        provider=entry.provider,
        fallback=entry.fallback,
        outdated=entry.version < CLASSIFIER_VERSION,
    )


def classification(found: Classification, elapsed_ms: float) -> p.ClassificationShow:
    return p.ClassificationShow(
        categories=scores(found.categories),
        provider=found.provider,
        elapsed_ms=round(elapsed_ms, 3),
        fallback=found.fallback,
        places=found.places,
    )


def advertiser(info: m.AdvertiserInfo, creatives: int) -> p.AdvertiserShow:
    return p.AdvertiserShow(
        advertiser=info.advertiser,
        name=info.name,
        status=info.status,
        daily_budget=format_money(info.daily_budget_micros),
        spent_today=format_money(info.spent_micros),
        timezone=info.timezone,
        campaigns=info.campaigns,
        creatives=creatives,
        changed=info.changed,
    )


def advertiser_of_state(state: AdvertiserState, creatives: int, now_ms: int) -> p.AdvertiserShow:
    today = roll_over(state.budget, now_ms=now_ms)
    info = m.AdvertiserInfo(
        state.advertiser,
        state.name,
        state.status,
        today.daily_budget_micros,
        today.spent_micros,
        today.timezone,
        state.campaigns,
    )
    return advertiser(info, creatives)


def campaign(info: m.CampaignInfo) -> p.CampaignShow:
    return p.CampaignShow(
        campaign=info.campaign,
        advertiser=info.advertiser,
        name=info.name,
        status=info.status,
        max_cpm=format_money(info.max_cpm_micros),
        daily_budget=format_money(info.daily_budget_micros),
        spent_today=format_money(info.spent_micros),
        reserved=format_money(info.reserved_micros),
        impressions_count=info.impressions,
        clicks_count=info.clicks,
        categories=info.categories,
        creatives=tuple(spec.creative for spec in info.creatives),
        changed=info.changed,
        standing=info.standing,
        sites=info.targeting.sites,
        places=info.targeting.places,
        blocked_categories=info.targeting.blocked_categories,
        start_at=moment(info.targeting.start_ms),
        end_at=moment(info.targeting.end_ms),
        unmatched=info.targeting.unmatched,
        ctas_count=info.ctas,
        folds_count=info.folds,
        audience=info.targeting.audience,
    )


def campaign_of_state(state: CampaignState, now_ms: int) -> p.CampaignShow:
    escrow_micros = roll_over(state.budget, now_ms=now_ms).escrow_micros
    return campaign(campaign_info(state, now_ms, promised_micros=escrow_micros))


def creative(
    spec: m.CreativeSpec, campaign: CampaignState | m.CampaignInfo, sites: tuple[str, ...], *, changed: bool = False
) -> p.CreativeShow:
    return p.CreativeShow(
        creative=spec.creative,
        campaign=campaign.campaign,
        advertiser=campaign.advertiser,
        asset_url=spec.asset_url,
        landing_url=spec.landing_url,
        width=spec.width,
        height=spec.height,
        mime=spec.mime,
        approved_sites=sites,
        changed=changed,
        product=spec.product,
        status=campaign.withdrawn.get(spec.creative, "active"),
    )


def explanation(decision: ServeDecision) -> p.ServeExplanation:
    """One decision as it was recorded; nothing is computed again."""
    auction = decision.auction
    pool = decision.pool
    return p.ServeExplanation(
        site=decision.site_id,
        slot=decision.slot_id,
        page=decision.page_url,
        served=bool(decision.winner),
        winner=decision.winner or None,
        price=format_money(decision.price_micros) if decision.winner else None,
        floor=format_money(decision.floor_micros),
        runner_up=decision.runner_up or None,
        candidates=tuple(
            p.ExplainedCandidate(
                creative=c.creative_id,
                campaign=c.campaign_id,
                cpm=format_money(c.cpm_micros),
                score=c.score,
                ctr_mean=c.ctr_mean,
                fold_mean=c.fold_mean,
                hops=c.ancestor_hops,
                outcome=c.outcome,
                reason=c.reason,
                mean_engagement=c.mean_engagement,
                mean_score=c.mean_score,
            )
            for c in decision.candidates
        ),
        auction=p.ExplainedAuction(
            at=rfc3339(auction.at_ms),
            trigger=auction.trigger,
            categories=auction.page_categories,
            page=auction.page_url,
            fallback=auction.fallback,
        )
        if auction
        else None,
        pool=_pool(pool, decision.at_ms) if pool else None,
        request_id=decision.request_id,
        at=rfc3339(decision.at_ms),
        why=_why(decision),
        page_places=decision.page_places,
        turned_away=tuple(
            ExplainedTurnedAway(campaign=each.campaign, reason=each.reason) for each in decision.turned_away
        ),
        bid_weight=decision.bid_weight,
    )


def probed(decision: ServeDecision) -> p.ServeExplanation:
    """A decision that nobody asked for: it has no request."""
    would = decision.reason.replace("_", " ") if not decision.winner else f"would be served: {_why(decision)}"
    return msgspec.structs.replace(explanation(decision), request_id="", why=would)


def undecided(
    info: m.SiteInfo, slot: str, view: ServeView | None, version: PoolVersion | None, now_ms: int
) -> p.ServeExplanation:
    """A slot that nobody asked for yet: what stands in its pool and why nothing else does."""
    why = "no request for this slot is remembered; its pool is below"
    if view is None:
        waiting = f"; waiting for approval: {', '.join(info.pending)}" if info.pending else ""
        why = f"the slot has no pool{waiting}; {_elsewhere(info.site)}"
    candidates = tuple(
        p.ExplainedCandidate(
            creative=c.creative_id,
            campaign=c.campaign_id,
            cpm=format_money(c.cpm_micros),
            score=0.0,
            ctr_mean=0.0,
            fold_mean=0.0,
            hops=c.ancestor_hops,
            outcome="in_pool",
            reason="",
        )
        for c in (view.candidates if view else ())
    )
    return p.ServeExplanation(
        site=info.site,
        slot=slot,
        page="",
        served=False,
        winner=None,
        price=None,
        floor=format_money(info.floor_micros),
        runner_up=None,
        candidates=candidates,
        auction=None,
        pool=_pool(version, now_ms) if version else None,
        why=why,
    )


def _pool(version: PoolVersion, at_ms: int) -> p.ExplainedPool:
    """As old as it was at that moment, which of a decision is its own: it did not age since."""
    written_ms = hlc_wall_ms(version.hlc)
    return p.ExplainedPool(
        version=p.EntryVersion(epoch=version.epoch, hlc=version.hlc, origin=version.origin),
        age_s=max(0, at_ms - written_ms) / 1_000,
        origin=version.origin,
    )


def _elsewhere(site: str) -> str:
    """Why a pool is empty is the auctions' business."""
    return f"'promovolvectl coverage explain {site}' tells why, and what would fill it"


def _undeclared(site: str, slot: str) -> str:
    """A page may ask for any slot, so its name is quoted for a shell: nobody auctions one that the site has not."""
    declared = shlex.join(("promovolvectl", "site", "update", site, "--slot", f"{slot}:WxH"))
    return f"the page asks for a slot that {site} does not declare; {declared} declares it, or the page's tag is wrong"


def _why(decision: ServeDecision) -> str:
    if not decision.winner:
        why = decision.reason.replace("_", " ")
        if decision.reason == "unknown_slot":
            return f"{why}; {_undeclared(decision.site_id, decision.slot_id)}"
        return f"{why}; {_elsewhere(decision.site_id)}" if decision.reason == "no_pool" else why
    price = format_money(decision.price_micros)
    if decision.runner_up:
        return f"{decision.winner} drew the best score; {decision.runner_up}, its rival, sets the price {price}"
    return f"{decision.winner} drew the best score; no rival in its category, so it pays the floor {price}"
