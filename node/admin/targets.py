"""A campaign's targeting as an operator orders it, every value checked; each raises BadInput that names its field."""

from __future__ import annotations

import asyncio
from datetime import datetime

import msgspec

from node.admin import protocol as p
from node.ads import messages as m
from node.ads.keys import site_id
from node.ads.places import load_gazetteer, place_reach
from node.ads.targeting import Targeting, timed
from node.ads.taxonomy import load_taxonomy
from node.core.clock import rfc3339
from node.core.errors import BadInput
from node.core.limits import campaign_sites_max, candidate_targets_max

LAST_S = 253_402_300_799  # the last second of the year 9999: no later time can be written


async def ready_for(order: p.CreateCampaign | p.UpdateCampaign | p.UpdateSite) -> None:
    """Reads the table of places, where the order names some and it was not read yet: not on the event loop."""
    if order.audience or (not isinstance(order, p.UpdateSite) and order.places):
        await asyncio.to_thread(load_gazetteer)


def targeting_of(order: p.CreateCampaign) -> Targeting:
    return timed(
        Targeting(
            blocked_categories=_categories(order.blocked_categories),
            sites=_sites(order.sites),
            places=_places(order.places),
            start_ms=time_of(order.start_at, "start_at"),
            end_ms=time_of(order.end_at, "end_at"),
            unmatched=order.unmatched,
            audience=_places(order.audience, "audience"),
        )
    )


def with_targets(message: m.UpdateCampaign, order: p.UpdateCampaign) -> m.UpdateCampaign:
    """The message with what the order says of the targeting."""
    return msgspec.structs.replace(
        message,
        sites=None if order.sites is None else _sites(order.sites),
        places=None if order.places is None else _places(order.places),
        blocked_categories=None if order.blocked_categories is None else _categories(order.blocked_categories),
        start_ms=None if order.start_at is None else time_of(order.start_at, "start_at"),
        end_ms=None if order.end_at is None else time_of(order.end_at, "end_at"),
        unmatched=order.unmatched,
        audience=None if order.audience is None else _places(order.audience, "audience"),
    )


def audience_of(codes: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Places where readers are, with all that they lie in, each with its distance."""
    known = _places(codes, "audience")
    return tuple(place_reach(load_gazetteer(), known).items()) if known else ()


def targets_shown(targeting: Targeting) -> dict[str, str]:
    """Each part in words, for a plan."""
    return {
        "sites": ", ".join(targeting.sites) or "any",
        "places": ", ".join(targeting.places) or "any",
        "audience": ", ".join(targeting.audience) or "any",
        "blocked categories": ", ".join(targeting.blocked_categories) or "none",
        "start": moment(targeting.start_ms) or "at once",
        "end": moment(targeting.end_ms) or "never",
        "pages without a category": "yes" if targeting.unmatched else "no",
    }


def moment(wall_ms: int) -> str | None:
    return rfc3339(wall_ms) if wall_ms else None


def _sites(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(names) > campaign_sites_max:
        raise BadInput("sites", f"a campaign names at most {campaign_sites_max} sites")
    return tuple(dict.fromkeys(site_id(name, "sites") for name in names))


def _places(codes: tuple[str, ...], field: str = "places") -> tuple[str, ...]:
    gazetteer = load_gazetteer() if codes else ()
    for code in codes:
        if code not in gazetteer:
            hint = "JP (ISO 3166-1), JP-14 (ISO 3166-2) or GN1860672 (GeoNames)"
            raise BadInput(field, f"{code[:40]!r} is no place of the gazetteer", hint=hint)
    return _few(field, codes)


def _categories(given: tuple[str, ...]) -> tuple[str, ...]:
    taxonomy = load_taxonomy()
    found = tuple(taxonomy.normalize(category) for category in given)
    for category in found:
        if category not in taxonomy:
            raise no_category("blocked_categories", category, "--block-category")
    return _few("blocked_categories", found)


def no_category(field: str, given: str, flag: str) -> BadInput:
    """Refuses what is no id of a category; who gave a name is told the ids of those that are called so."""
    near = load_taxonomy().nearest(given)
    named = ", ".join(f"{each.id} ({each.name})" for each in near)
    text = f"{given[:40]!r} is no id of the IAB Content Taxonomy 3.0" + (f"; by name there is {named}" if near else "")
    return BadInput(field, text, hint=f"{flag} {near[0].id if near else '653'}")


def _few(field: str, codes: tuple[str, ...]) -> tuple[str, ...]:
    kept = tuple(dict.fromkeys(codes))
    if len(kept) > candidate_targets_max:
        raise BadInput(field, f"at most {candidate_targets_max} are named")
    return kept


def time_of(text: str, field: str) -> int:
    """Wall milliseconds; 0 for no text."""
    if not text:
        return 0
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or not 0 < at.timestamp() <= LAST_S:
        raise BadInput(field, f"{text[:40]!r} is no time of RFC 3339 with its zone", hint="2026-12-01T00:00:00Z")
    return round(at.timestamp() * 1_000)
