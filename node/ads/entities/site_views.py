"""What a site tells of itself: to its ad server, to its auctioneer, to an operator."""

from __future__ import annotations

from collections.abc import Iterable

from node.ads import messages as m
from node.ads.entities.site_state import BID_WEIGHT, FRESHNESS_WINDOW_MS, SiteState, floors_of, fresh


def settings_of(state: SiteState, pages: Iterable[m.PageEntry]) -> m.SiteSettings:
    """Everything an ad server needs."""
    return m.SiteSettings(
        state.site,
        state.host,
        state.publisher,
        state.all_slots,
        state.floor_micros,
        BID_WEIGHT,
        bool(state.suspended_by),
        tuple(state.approved),
        state.secret,
        FRESHNESS_WINDOW_MS,
        tuple(pages),
        state.refused_domains,
        state.blocked_products,
        floors_of(state).floor_micros,
        floors_of(state).category_floors_micros,
        state.paced,
        state.traffic,
        state.slot_floors,
        state.qualities,
        state.timezone,
        state.margin_ppm,
    )


def lesson_of(
    state: SiteState, pages: Iterable[m.PageEntry], trigger: str, *, force: bool = False, all_pages: bool = False
) -> m.RestoreClassifications:
    """Everything an auctioneer needs, with these pages; `all_pages`: there are no others that are fresh."""
    return m.RestoreClassifications(
        tuple(pages),
        state.all_slots,
        floors_of(state).floor_micros,
        trigger,
        force,
        all_pages,
        state.refused_domains,
        state.blocked_products,
        bool(state.suspended_by),
        tuple(state.approved),
        floors_of(state).category_floors_micros,
        state.slot_floors,
        state.qualities,
        state.floor_micros,
        state.audience,
    )


def info_of(state: SiteState, pages: Iterable[m.PageEntry], now_ms: int, *, changed: bool = True) -> m.SiteInfo:
    """What an operator may see."""
    living = [page for page in pages if fresh(page, now_ms)]
    return m.SiteInfo(
        state.site,
        state.host,
        state.publisher,
        state.slots,
        state.floor_micros,
        bool(state.suspended_by),
        len(living),
        tuple(sorted(state.approved)),
        tuple(sorted(state.pending)),
        changed,
        tuple(sorted(state.rejected)),
        state.blocked_domains,
        state.blocked_products,
        floors_of(state).floor_micros,
        floors_of(state).category_floors_micros,
        state.paced,
        state.trust.enabled,
        tuple(sorted(state.trust.anchors)),
        state.flagged,
        state.slot_floors,
        state.conduct.suspicions,
        state.qualities,
        state.timezone,
        state.margin_ppm,
        sum(page.fallback for page in living),
        state.suspended_by,
        state.terms.blocked_domains,
        state.audience,
    )
