"""What a site keeps, and what its publisher's decisions make of it: pure functions from state to state.

Each answers the same object when nothing changes, so that only real changes are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from node.ads import messages as m
from node.ads.budget import check_timezone
from node.ads.edits import SiteEdit
from node.ads.entities.site_conduct import Conduct
from node.ads.floors.quality import Placement, slot_quality
from node.ads.floors.site_floors import SiteFloors, open_floors
from node.ads.freshness import WINDOW_DEFAULT_MS, is_fresh
from node.ads.pacing.shape import TrafficShape
from node.ads.trust import Trust
from node.core import limits
from node.core.errors import BadInput
from node.wire.registry import wire_type

FRESHNESS_WINDOW_MS = WINDOW_DEFAULT_MS
BID_WEIGHT = 0.5
QUALITY_STEP = 0.1

T = TypeVar("T")
# Of a creative that waits, whom the rules of an edit name.
OWNERS: Final[Mapping[str, Callable[[m.PendingCreative], str]]] = {
    "campaign": lambda creative: creative.campaign,
    "creative": lambda creative: creative.creative,
    "advertiser": lambda creative: creative.advertiser,
}


@wire_type("state.site")
class SiteState(msgspec.Struct, frozen=True):
    """`slots` are those that the publisher declared; `observed` are further ones that page tags reported: they are
    auctioned and served, but anybody can report them, so they count for nothing. `approved` and `rejected` map a
    creative to when. The pages are on as many `shelves` (`page_shelf`); those in `pages` are from before there were
    any, and go there when the site starts. `floors` are learned above the publisher's `floor_micros`;
    `slot_floors` are the publisher's own, in place of any other. `paced`: page views go without an ad where that makes
    budgets last their day; `traffic` is when visitors come, as the ad server has learned it. `origins` say of approved
    creatives whose they are (campaign, landing domain); `flagged` maps a creative to why, and such a one is rejected
    too. `conduct`: how its days went, and which were odd. `qualities`: of the slots that page tags have
    measured. `token` is what the site's tag carries, empty before anybody has asked for it. `timezone` tells the
    publisher's days; `margin_ppm`, in millionths, what of a price stays with the platform. `terms` are the publisher's
    for all its sites: they come on top of the site's own. `leaving`: it is being deleted.
    `audience`: where its readers are, by the publisher's word, with distance 0, and what that lies in."""

    site: str
    host: str
    publisher: str
    slots: tuple[m.SlotSpec, ...]
    floor_micros: int
    secret: bytes
    pages: dict[str, m.PageEntry] = msgspec.field(default_factory=dict)
    approved: dict[str, int] = msgspec.field(default_factory=dict)
    pending: dict[str, m.PendingCreative] = msgspec.field(default_factory=dict)
    suspended: bool = False
    observed: tuple[m.SlotSpec, ...] = ()
    rejected: dict[str, int] = msgspec.field(default_factory=dict)
    blocked_domains: tuple[str, ...] = ()
    blocked_products: tuple[str, ...] = ()
    shelves: int = 0
    floors: SiteFloors | None = None
    paced: bool = False
    traffic: TrafficShape | None = None
    slot_floors: dict[str, int] = msgspec.field(default_factory=dict)
    trust: Trust = msgspec.field(default_factory=Trust)
    origins: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    flagged: dict[str, str] = msgspec.field(default_factory=dict)
    conduct: Conduct = Conduct()
    qualities: dict[str, float] = msgspec.field(default_factory=dict)
    token: str = ""
    timezone: str = "UTC"
    margin_ppm: int = 0
    terms: m.PublisherTerms = m.PublisherTerms()
    leaving: bool = False
    audience: tuple[tuple[str, int], ...] = ()

    @property
    def suspended_by(self) -> tuple[str, ...]:
        """On what account nothing is served: the site's own, its publisher's, its deletion's."""
        why = {"site": self.suspended, "publisher": self.terms.suspended, "deletion": self.leaving}
        return tuple(name for name, holds in why.items() if holds)

    @property
    def refused_domains(self) -> tuple[str, ...]:
        """Where no ad may land: blocked for the site or for all of the publisher's."""
        return tuple(sorted({*self.blocked_domains, *self.terms.blocked_domains}))

    @property
    def all_slots(self) -> tuple[m.SlotSpec, ...]:
        return (*self.slots, *self.observed)

    def origin_of(self, creative: str) -> tuple[str, str] | None:
        """Whose an approved or waiting creative is: its campaign and the domain it lands on; None if not known."""
        waiting = self.pending.get(creative)
        return self.origins.get(creative) if waiting is None else (waiting.campaign, waiting.landing_domain)


def fresh(page: m.PageEntry, now_ms: int) -> bool:
    """Whether the page's classification still counts."""
    return is_fresh(page.classified_at_ms, now_ms, FRESHNESS_WINDOW_MS)


# ---- approval


def queue(state: SiteState, creatives: tuple[m.PendingCreative, ...]) -> SiteState:
    """Creatives that won somewhere wait for the publisher, who is not asked again about what it has decided."""
    pending = dict(state.pending)
    for creative in creatives:
        if creative.creative in state.approved or creative.creative in state.rejected:
            continue
        known = pending.get(creative.creative)
        if known is not None:
            slots = tuple(sorted({*known.slots, *creative.slots}))
            creative = msgspec.structs.replace(known, slots=slots[: limits.pending_slots_max])
        elif len(pending) >= limits.pending_creatives_max:
            continue
        pending[creative.creative] = creative
    return state if pending == state.pending else msgspec.structs.replace(state, pending=pending)


def leave_queue(state: SiteState, withdrawn: Iterable[SiteEdit]) -> SiteState:
    """What was taken back waits no more; where it is offered again, it waits again."""
    gone = [(OWNERS[edit.rule], frozenset(edit.values)) for edit in withdrawn]
    left = {
        name: creative
        for name, creative in state.pending.items()
        if not any(owner(creative) in values for owner, values in gone)
    }
    return state if len(left) == len(state.pending) else msgspec.structs.replace(state, pending=left)


def approve(state: SiteState, creative: str, now_ms: int) -> SiteState:
    """Raises BadInput where the site has approved as many as it may."""
    if creative in state.approved and creative not in state.pending:
        return state
    if len(state.approved) >= limits.approved_creatives_max:
        text = f"the site has approved {limits.approved_creatives_max} creatives, which is the most"
        raise BadInput("creative", text)
    origin = state.origin_of(creative)
    return msgspec.structs.replace(
        state,
        approved={**state.approved, creative: now_ms},
        pending=_without(state.pending, creative),
        rejected=_without(state.rejected, creative),
        flagged=_without(state.flagged, creative),
        origins=state.origins if origin is None else {**state.origins, creative: origin},
    )


def revoke(state: SiteState, creative: str, now_ms: int, *, reject: bool) -> SiteState:
    """Take an approval back. A rejected creative leaves the queue for good; raises BadInput where the site has rejected
    as many as it may."""
    known = creative in state.approved
    if not reject:
        return _unapproved(state, creative) if known else state
    if creative in state.rejected and not known:
        return state
    if len(state.rejected) >= limits.rejected_creatives_max:
        text = f"the site has rejected {limits.rejected_creatives_max} creatives, which is the most"
        raise BadInput("creative", text)
    return msgspec.structs.replace(
        _unapproved(state, creative),
        pending=_without(state.pending, creative),
        rejected={**state.rejected, creative: now_ms},
    )


def flag(state: SiteState, creative: str, reason: str, now_ms: int) -> SiteState:
    """Reject a creative and say why; raises BadInput as `revoke` does."""
    rejected = revoke(state, creative, now_ms, reject=True)
    if rejected.flagged.get(creative) == reason:
        return rejected
    return msgspec.structs.replace(rejected, flagged={**rejected.flagged, creative: reason})


def unflag(state: SiteState, creative: str) -> SiteState:
    """Take a flag back: the creative may wait for approval again, which is not an approval."""
    if creative not in state.flagged:
        return state
    return msgspec.structs.replace(
        state, flagged=_without(state.flagged, creative), rejected=_without(state.rejected, creative)
    )


def forget(state: SiteState, creative: str) -> SiteState:
    """The creative is no more: neither approved nor waiting nor rejected."""
    known = creative in state.approved or creative in state.pending or creative in state.rejected
    if not known:
        return state
    return msgspec.structs.replace(
        _unapproved(state, creative),
        pending=_without(state.pending, creative),
        rejected=_without(state.rejected, creative),
        flagged=_without(state.flagged, creative),
    )


def _unapproved(state: SiteState, creative: str) -> SiteState:
    return msgspec.structs.replace(
        state, approved=_without(state.approved, creative), origins=_without(state.origins, creative)
    )


def update(state: SiteState, order: m.UpdateSite) -> SiteState:
    """Raises BadInput where more would be blocked than a site may, for a slot that there is not, more of them than a
    site has or none at all, and for a timezone that is none."""
    state, before = _declared(state, order), state
    domains = _edited(state.blocked_domains, order.block_domains, order.unblock_domains)
    products = _edited(state.blocked_products, order.block_products, order.unblock_products)
    if max(len(domains), len(products)) > limits.site_blocks_max:
        raise BadInput("block", f"a site blocks at most {limits.site_blocks_max} domains and as many products")
    names = {slot.slot for slot in state.all_slots}
    unknown = [slot for slot, _ in order.slot_floors if slot not in names]
    if unknown:
        raise BadInput("slot", f"the site has no slot {unknown[0]!r}")
    slot_floors = {**state.slot_floors, **dict(order.slot_floors)}
    updated = msgspec.structs.replace(
        state,
        slot_floors={
            slot: floor
            for slot, floor in slot_floors.items()
            if slot not in order.clear_slot_floors and slot not in order.drop_slots
        },
        floor_micros=state.floor_micros if order.floor_micros is None else order.floor_micros,
        suspended=state.suspended if order.suspended is None else order.suspended,
        paced=state.paced if order.paced is None else order.paced,
        timezone=check_timezone(order.timezone) if order.timezone else state.timezone,
        margin_ppm=state.margin_ppm if order.margin_ppm is None else order.margin_ppm,
        audience=state.audience if order.audience is None else order.audience,
        blocked_domains=domains,
        blocked_products=products,
        trust=_trusting(state.trust, order),
    )
    if updated.floor_micros != state.floor_micros:
        # What was learned above another least floor was learned of another market.
        updated = msgspec.structs.replace(updated, floors=None)
    return before if updated == before else updated


def _declared(state: SiteState, order: m.UpdateSite) -> SiteState:
    """With other slots. One that page tags had reported is declared from now on, if it is named."""
    if not order.slots and not order.drop_slots:
        return state
    slots = {slot.slot: slot for slot in state.slots}
    unknown = [slot for slot in order.drop_slots if slot not in slots]
    if unknown:
        raise BadInput("slot", f"the site has no slot {unknown[0]!r}")
    slots |= {slot.slot: slot for slot in order.slots}
    kept = tuple(slot for name, slot in slots.items() if name not in order.drop_slots)
    if not 1 <= len(kept) <= limits.site_slots_max:
        raise BadInput("slots", f"a site has between 1 and {limits.site_slots_max} slots")
    observed = tuple(slot for slot in state.observed if slot.slot not in slots)
    return msgspec.structs.replace(state, slots=kept, observed=observed)


def agree(state: SiteState, terms: m.PublisherTerms) -> SiteState:
    """What its publisher says for all of its sites holds here."""
    return state if terms == state.terms else msgspec.structs.replace(state, terms=terms)


def floors_of(state: SiteState) -> SiteFloors:
    """The floors in force: the publisher's own until something was learned."""
    return state.floors or open_floors(state.floor_micros, state.floor_micros)


def _trusting(trust: Trust, order: m.UpdateSite) -> Trust:
    kept = {name: anchor for name, anchor in trust.anchors.items() if name not in order.distrust}
    enabled = trust.enabled if order.auto_approve is None else order.auto_approve
    return Trust(enabled, kept)


def _edited(known: tuple[str, ...], added: tuple[str, ...], taken: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({*known, *added} - set(taken)))


def _without(items: dict[str, T], name: str) -> dict[str, T]:
    return {key: item for key, item in items.items() if key != name}


# ---- slots


def measure(state: SiteState, placements: Mapping[str, Placement]) -> SiteState:
    """The state with what a tag measured of its slots; small differences from page to page are no news."""
    names = {slot.slot for slot in state.all_slots}
    found = {slot: round(slot_quality(placed), 2) for slot, placed in placements.items() if slot in names}
    news = {slot: quality for slot, quality in found.items() if _differs(state.qualities.get(slot), quality)}
    return msgspec.structs.replace(state, qualities={**state.qualities, **news}) if news else state


def _differs(known: float | None, quality: float) -> bool:
    return known is None or abs(known - quality) >= QUALITY_STEP


def observe(state: SiteState, reported: tuple[m.SlotSpec, ...]) -> tuple[m.SlotSpec, ...]:
    """The observed slots with those of `reported` that the site does not know yet, as far as there is room."""
    names = {slot.slot for slot in state.all_slots}
    room = max(len(state.observed), limits.site_slots_max - len(state.slots))
    return (*state.observed, *(slot for slot in reported if slot.slot not in names))[:room]
