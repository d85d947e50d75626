"""Coverage of one site: of the slots that fresh classifications say should have a pool, those that have one, and for
each other slot the reason, from what the site keeps and what its pages' last auctions found.

The reasons, and what each follows from:

- `suspended`: the site is, or its publisher;
- `classification_expired`: all pages that show the slot were judged too long ago; the slot counts as expected no more;
- `not_approved`: offers came, of creatives that wait for the publisher or that it rejected;
- `late_bidders`: an auction lacked a complete answer, and is repeated;
- `auction_pending`: no auction has ended yet, or its winners are on their way into the index;
- `below_floor`: all bids were;
- `turned_away`: the campaigns that have the pages' categories don't want the pages, or the site;
- `blocked`: all offers land on a domain, or are of a product, that the publisher blocks;
- `no_demand`: nobody bids, or not in the slot's size.

Where pages differ, the reason nearest to a filled slot is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from node.ads import messages as m
from node.ads.auction import AuctionOutcome
from node.ads.entities.site_state import FRESHNESS_WINDOW_MS, SiteState, fresh
from node.ads.keys import serve_key
from node.ads.money import format_money
from node.ads.serveindex import ServeIndex
from node.ads.taxonomy import load_taxonomy
from node.core.clock import rfc3339
from node.flows.messages import SiteCoverage

SUSPENDED: Final = "suspended"
EXPIRED: Final = "classification_expired"
NOT_APPROVED: Final = "not_approved"
LATE_BIDDERS: Final = "late_bidders"
AUCTION_PENDING: Final = "auction_pending"
BELOW_FLOOR: Final = "below_floor"
BLOCKED: Final = "blocked"
TURNED_AWAY: Final = "turned_away"
NO_DEMAND: Final = "no_demand"
NO_PAGE: Final = "no_page"  # no page shows the slot: nothing says that it should have a pool
FILLED: Final = "filled"
# The slots that fresh classifications ask for, empty ones: these reasons alone are not among them.
UNEXPECTED: Final = frozenset({EXPIRED, NO_PAGE})
PENDING: Final = frozenset({LATE_BIDDERS, AUCTION_PENDING})  # another auction may fill it any moment

Pages = Mapping[str, m.PageEntry]
Reports = Mapping[str, m.AuctionReport]
_HOUR_MS = 3_600_000


class Wanted(msgspec.Struct):
    """What a slot's fresh pages can show: the categories that a candidate may have won under, and whether one of the
    pages is matched by nobody, so that fillers may go there. `urls`: those pages; `stale`: the newest of the others."""

    urls: list[str]
    reach: set[str]
    unmatched: bool = False
    stale_ms: int = 0


def site_coverage(state: SiteState, pages: Pages, reports: Reports, index: ServeIndex, now_ms: int) -> SiteCoverage:
    """Counts the slots that the publisher declared: others are whatever somebody reported."""
    expected: list[str] = []
    missing: list[tuple[str, str]] = []
    for slot, wanted in sorted(wanted_slots(state, pages, now_ms).items()):
        filled = _filled(wanted, index, serve_key(state.site, slot))
        if wanted.urls:
            expected.append(slot)
        if not filled and (wanted.urls or wanted.stale_ms):
            missing.append((slot, slot_reason(state, slot, wanted, reports)))
    lacking = sum(reason != EXPIRED for _, reason in missing)
    pending = sum(reason in PENDING for _, reason in missing)
    present = len(expected) - lacking
    return SiteCoverage(state.site, len(expected), present, tuple(missing), tuple(expected), len(pages), pending)


def empty_slots(state: SiteState, pages: Pages, index: ServeIndex, now_ms: int) -> set[str]:
    """The declared slots that fresh pages show and that have no pool."""
    return {
        slot
        for slot, wanted in wanted_slots(state, pages, now_ms).items()
        if wanted.urls and not _filled(wanted, index, serve_key(state.site, slot))
    }


def explain_site(
    state: SiteState, pages: Pages, reports: Reports, index: ServeIndex, now_ms: int
) -> m.CoverageExplained:
    """Every declared slot: whether it has a pool, else why not and what would fill it."""
    wanted = wanted_slots(state, pages, now_ms)
    return m.CoverageExplained(
        state.site,
        tuple(
            _explained(state, spec, wanted[spec.slot], reports, index)
            for spec in sorted(state.slots, key=lambda spec: spec.slot)
        ),
    )


def wanted_slots(state: SiteState, pages: Pages, now_ms: int) -> dict[str, Wanted]:
    """By declared slot."""
    found = {spec.slot: Wanted([], set()) for spec in state.slots}
    for page in pages.values():
        is_fresh = fresh(page, now_ms)
        reach = _reach(tuple(category for category, _ in page.categories)) if is_fresh else frozenset[str]()
        for slot in page.slots:
            wanted = found.get(slot)
            if wanted is None:
                continue
            if is_fresh:
                wanted.urls.append(page.url)
                wanted.reach |= reach
                wanted.unmatched |= not reach
            else:
                wanted.stale_ms = max(wanted.stale_ms, page.classified_at_ms)
    return found


@lru_cache(maxsize=4_096)
def _reach(categories: tuple[str, ...]) -> frozenset[str]:
    return frozenset(load_taxonomy().expand_with_hops(categories))


def _filled(wanted: Wanted, index: ServeIndex, key: str) -> bool:
    view = index.read(key)
    return view is not None and any(
        candidate.category in wanted.reach or (candidate.filler and wanted.unmatched) for candidate in view.candidates
    )


# ---- reasons


def slot_reason(state: SiteState, slot: str, wanted: Wanted, reports: Reports) -> str:
    """Why a slot without a pool has none."""
    if state.suspended_by:
        return SUSPENDED
    if not wanted.urls:
        return EXPIRED if wanted.stale_ms else NO_PAGE
    found = slot_reports(slot, wanted.urls, reports)
    offered = {creative for report in found for creative in report.creatives}
    if offered - state.approved.keys() and not offered & state.approved.keys():
        return NOT_APPROVED
    if any(report.late for report in found):
        return LATE_BIDDERS
    if offered or len(found) < len(wanted.urls):
        return AUCTION_PENDING
    if any(report.rejected for report in found):
        return BELOW_FLOOR
    if any(report.blocked for report in found):
        return BLOCKED
    return TURNED_AWAY if any(report.turned_away for report in found) else NO_DEMAND


def slot_reports(slot: str, urls: Iterable[str], reports: Reports) -> list[m.SlotReport]:
    """What the last auctions of these pages found for a slot."""
    known = (reports.get(url) for url in urls)
    return [found for report in known if report is not None for found in report.slots if found.slot == slot]


def _explained(
    state: SiteState, spec: m.SlotSpec, wanted: Wanted, reports: Reports, index: ServeIndex
) -> m.SlotExplained:
    key = serve_key(state.site, spec.slot)
    if wanted.urls and _filled(wanted, index, key):
        view = index.read(key)
        count = len(view.candidates) if view else 0
        seen = max(
            (report.outcome for report in slot_reports(spec.slot, wanted.urls, reports)),
            key=lambda outcome: outcome.bidders,
            default=None,
        )
        why = f"{_many(count, 'candidate')} in its pool{_bids(seen)}"
        return m.SlotExplained(spec.slot, FILLED, why, "", len(wanted.urls))
    reason = slot_reason(state, spec.slot, wanted, reports)
    why, fix = _words(reason, state, spec, wanted, slot_reports(spec.slot, wanted.urls, reports))
    reach = tuple(sorted(wanted.reach)) if reason == NO_DEMAND else ()
    return m.SlotExplained(spec.slot, reason, why, fix, len(wanted.urls), reach)


def _bids(seen: AuctionOutcome | None) -> str:
    """What the last auctions saw at most of pages that show a slot."""
    if seen is None or not seen.bidders:
        return ""
    best, price = format_money(seen.max_micros), format_money(seen.clearing_micros)
    return f"; {_many(seen.bidders, 'campaign')} bid for it, {best} at most, which by bids alone clears at {price}"


def _words(
    reason: str, state: SiteState, spec: m.SlotSpec, wanted: Wanted, found: Sequence[m.SlotReport]
) -> tuple[str, str]:
    """Why, and what would fill the slot, in an operator's words."""
    size, pages = f"{spec.width}x{spec.height}", _many(len(wanted.urls), "page")
    match reason:
        case "suspended" if state.terms.suspended:
            why = f"publisher {state.publisher} is suspended, so nothing is auctioned for its sites"
            return why, f"POST /v1/internal/publishers/{state.publisher}/resume at a node's HTTP API"
        case "suspended":
            return "the site is suspended, so nothing is auctioned for it", f"promovolvectl site resume {state.site}"
        case "no_page":
            return (
                "no classified page shows this slot",
                "a page that has it, classified: its tag posts text and slots to /v1/classify-page. Of a page that is "
                "classified already, a page view is enough",
            )
        case "classification_expired":
            at = rfc3339(wanted.stale_ms)
            window = FRESHNESS_WINDOW_MS // _HOUR_MS
            return (
                f"the newest page with this slot was judged at {at}, more than {window} h ago",
                "the page's text again, which its tag posts to /v1/classify-page: a page view alone is not enough",
            )
        case "not_approved":
            return _not_approved(state, found)
        case "late_bidders":
            late = max(report.late for report in found)
            return f"{_many(late, 'category', 'categories')} did not answer completely; the auction is repeated", ""
        case "auction_pending":
            waiting = len(wanted.urls) - len(found)
            if waiting > 0:
                return f"not auctioned yet: {waiting} of {pages}", f"promovolvectl replay start --site {state.site}"
            again = f"if this lasts: promovolvectl replay start --site {state.site}"
            return "the auction's winners are on their way into the index", again
        case "below_floor":
            best = max(report.best_rejected_micros for report in found)
            floor = max(report.floor_micros for report in found)
            rejected = max(report.rejected for report in found)
            return (
                f"{_many(rejected, 'campaign')} bid below the floor of {format_money(floor)}; "
                f"the best bids {format_money(best)}",
                f"a bid of {format_money(floor)}, or promovolvectl site update {state.site} "
                f"--floor-cpm {format_money(best)}",
            )
        case "blocked":
            blocked = max(report.blocked for report in found)
            return (
                f"all that is offered is of blocked domains or products: {_many(blocked, 'creative')}",
                f"other demand, or promovolvectl site update {state.site} --unblock-domain DOMAIN",
            )
        case "turned_away":
            away = sorted({each for report in found for each in report.turned_away})
            return (
                f"no campaign with the categories of its {pages} wants to be there: "
                + _names([f"{each.campaign} ({each.reason})" for each in away]),
                "other demand, or another targeting: promovolvectl campaign show " + away[0].campaign,
            )
        case _:
            others = max((report.other_sizes for report in found), default=0)
            if others:
                return f"no creative of {size} is offered, {others} of other sizes are", f"a creative of {size}"
            return f"no campaign bids on the categories of its {pages}", "a campaign that targets one of them"


def _not_approved(state: SiteState, found: Sequence[m.SlotReport]) -> tuple[str, str]:
    offered = list(dict.fromkeys(creative for report in found for creative in report.creatives))
    waiting = [creative for creative in offered if creative not in state.rejected]
    if not waiting:
        return f"what is offered was rejected: {_names(offered)}", "another creative"
    return (
        f"{_many(len(waiting), 'winner')} not yet approved by the publisher: {_names(waiting)}",
        f"promovolvectl creative approve {waiting[0]} --site {state.site}",
    )


def _many(count: int, one: str, many: str = "") -> str:
    return f"{count} {one}" if count == 1 else f"{count} {many or one + 's'}"


def _names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
