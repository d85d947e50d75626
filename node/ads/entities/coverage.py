"""Coverage of one site: of the slots that fresh classifications say should have a pool, those that have one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from node.ads import messages as m
from node.ads.keys import serve_key
from node.ads.selection import eligible_for_page
from node.ads.serveindex import ServeIndex
from node.ads.taxonomy import load_taxonomy
from node.flows.messages import SiteCoverage

NOT_APPROVED = "not_approved"
NO_DEMAND = "no_demand"
BELOW_FLOOR = "below_floor"
AUCTION_PENDING = "auction_pending"
LATE_BIDDERS = "late_bidders"


def site_coverage(
    site: str,
    declared: frozenset[str],
    fresh: Iterable[m.PageEntry],
    pending: Iterable[m.PendingCreative],
    reports: Mapping[str, tuple[int, int, int]],
    index: ServeIndex,
) -> SiteCoverage:
    """Counts the slots that the publisher declared: others are whatever somebody reported. `reports` holds the last
    auction of each slot: offers, bids below the floor, late bidders."""
    taxonomy = load_taxonomy()
    wanted: dict[str, list[frozenset[str]]] = {}
    for page in fresh:
        reach = frozenset(taxonomy.expand_with_hops(category for category, _ in page.categories))
        for slot in declared.intersection(page.slots):
            wanted.setdefault(slot, []).append(reach)
    waiting = {slot for creative in pending for slot in creative.slots}
    missing = tuple(
        (slot, _reason(slot, waiting, reports))
        for slot, reaches in sorted(wanted.items())
        if not _has_pool(index, serve_key(site, slot), reaches)
    )
    return SiteCoverage(site, len(wanted), len(wanted) - len(missing), missing)


def _has_pool(index: ServeIndex, key: str, reaches: list[frozenset[str]]) -> bool:
    view = index.read(key)
    if view is None:
        return False
    return any(
        eligible_for_page(candidate, reach, page_matched=bool(reach))
        for reach in reaches
        for candidate in view.candidates
    )


def _reason(slot: str, waiting: set[str], reports: Mapping[str, tuple[int, int, int]]) -> str:
    if slot in waiting:
        return NOT_APPROVED
    report = reports.get(slot)
    if report is None:
        return AUCTION_PENDING
    offers, rejected, late = report
    if late:
        return LATE_BIDDERS
    if offers:
        return AUCTION_PENDING
    return BELOW_FLOOR if rejected else NO_DEMAND
