"""What a site's settings say to a page view: whether it is served, above which floors, and what no pool may hold."""

from __future__ import annotations

from collections.abc import Callable

from node.ads import messages as m
from node.ads.edits import SiteEdit, forbidden_by_site
from node.ads.floors.quality import LEAST_FACTOR, UNMEASURED, effective_floor_micros
from node.ads.hosts import same_host
from node.ads.pricing import floor_for


def refusal(settings: m.SiteSettings, host: str) -> str:
    """Why the site serves nothing to a page of this host at all; empty when it does."""
    if settings.suspended:
        return "suspended"
    return "" if same_host(host, settings.host) else "host_refused"


def floor_by_category(settings: m.SiteSettings, slot: str) -> Callable[[str], int]:
    """The floor of a category in a slot: the publisher's for the slot, else what the category has learned, else the
    site's; of what was learned so much as the slot is worth, but never less than the publisher's."""
    site_wide = max(settings.floor_micros, settings.learned_floor_micros)
    own, quality = settings.slot_floors.get(slot), settings.qualities.get(slot, UNMEASURED)
    whole = own is not None or quality >= 1.0 - LEAST_FACTOR

    def floor(category: str) -> int:
        raw = floor_for(
            category,
            category_floors_micros=settings.category_floors,
            site_floor_micros=site_wide,
            slot_floor_micros=own,
        )
        return raw if whole else effective_floor_micros(raw, quality, least_micros=settings.floor_micros)

    return floor


def resized(before: m.SiteSettings, after: m.SiteSettings) -> tuple[str, ...]:
    """Slots that are not there any more as they were: what stands in their pools was won by another size."""
    kept = frozenset(after.slots)
    return tuple(slot.slot for slot in before.slots if slot not in kept)


def forbidden(settings: m.SiteSettings) -> tuple[SiteEdit, ...]:
    """The edits that clear the site's pools of what its settings leave no room for."""
    return forbidden_by_site(
        approved=settings.approved,
        floor_micros=min((settings.floor_micros, *settings.slot_floors.values())),
        blocked_domains=settings.blocked_domains,
        blocked_products=settings.blocked_products,
        suspended=settings.suspended,
    )
