"""Site-wide edits of the ServeIndex: each an order to the site's ad server, applied to every key of the site by one
function from view to view.

An order names a rule of `RULES` and its values; the rules are predicates of candidates, and there is no other code path
for any of them. All of them can be repeated: what was edited is left alone. An edit that leaves nothing of a view
answers None, which means: remove the key; one that changes nothing answers the same object, so that only real changes
are written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec

from node.ads.hosts import under_domain
from node.ads.pricing import passes_floor
from node.ads.view import CandidateView, Predicate, ServeView, auctions_in_use
from node.core.errors import BadInput
from node.wire.registry import wire_type

Change = Callable[[CandidateView], CandidateView | None]


@wire_type("ads.site_edit")
class SiteEdit(msgspec.Struct, frozen=True):
    """Drop what `rule` says of `values`, but for the creatives of `keep`.

    `floor_micros` is what "below-floor" compares with; `until_ms` of "extend" is when the views of these campaigns
    expire, at the earliest."""

    rule: str
    values: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    floor_micros: int = 0
    until_ms: int = 0


# ---- orders, in the words of those who give them


def drop_campaign(campaign: str, *, keep: Iterable[str] = ()) -> SiteEdit:
    return SiteEdit("campaign", (campaign,), tuple(keep))


def drop_creatives(creatives: Iterable[str]) -> SiteEdit:
    return SiteEdit("creative", tuple(creatives))


def drop_advertiser(advertiser: str) -> SiteEdit:
    return SiteEdit("advertiser", (advertiser,))


def block_domains(domains: Iterable[str]) -> SiteEdit:
    return SiteEdit("domain", tuple(sorted(domains)))


def block_products(products: Iterable[str]) -> SiteEdit:
    return SiteEdit("product", tuple(sorted(products)))


def drop_below_floor(floor_micros: int) -> SiteEdit:
    return SiteEdit("below-floor", floor_micros=floor_micros)


def keep_creatives(creatives: Iterable[str]) -> SiteEdit:
    """Drop every other one: what is approved no more."""
    return SiteEdit("all", keep=tuple(creatives))


def purge_site() -> SiteEdit:
    return SiteEdit("all")


def extend_campaign(campaign: str, until_ms: int) -> SiteEdit:
    """Keep an exhausted campaign's place until its next budget: nothing is dropped, its views live on."""
    return SiteEdit("extend", (campaign,), until_ms=until_ms)


def forbidden_by_site(
    *,
    approved: Iterable[str],
    floor_micros: int,
    blocked_domains: Collection[str],
    blocked_products: Collection[str],
    suspended: bool,
) -> tuple[SiteEdit, ...]:
    """What a site's own settings leave no room for, whichever of them changed and whoever missed it."""
    if suspended:
        return (purge_site(),)
    edits = [keep_creatives(approved), drop_below_floor(floor_micros)]
    if blocked_domains:
        edits.append(block_domains(blocked_domains))
    if blocked_products:
        edits.append(block_products(blocked_products))
    return tuple(edits)


def of_campaign_standing(
    campaign: str, standing: str, until_ms: int, withdrawn: tuple[str, ...] = ()
) -> tuple[SiteEdit, ...]:
    """What a campaign's change means for the pools that it stands in. One that has spent its day's budget keeps its
    places: it is refused its reservations, and is back the moment that its next day begins."""
    gone = (drop_creatives(withdrawn),) if withdrawn else ()
    match standing:
        case "active":
            return gone
        case "exhausted":
            return (*gone, extend_campaign(campaign, until_ms))
        case _:
            return (drop_campaign(campaign),)


# ---- rules


def of_campaigns(campaigns: Collection[str]) -> Predicate:
    return lambda candidate: candidate.campaign_id in campaigns


def of_creatives(creatives: Collection[str]) -> Predicate:
    return lambda candidate: candidate.creative_id in creatives


def of_advertisers(advertisers: Collection[str]) -> Predicate:
    return lambda candidate: candidate.advertiser_id in advertisers


def of_domains(domains: Collection[str]) -> Predicate:
    """Landing on one of the domains or below it."""
    return lambda candidate: under_domain(candidate.landing_domain, domains)


def of_products(products: Collection[str]) -> Predicate:
    return lambda candidate: candidate.product in products


def below_floor(floor_micros: int) -> Predicate:
    return lambda candidate: not passes_floor(candidate.cpm_micros, floor_micros)


def _nothing(_candidate: CandidateView) -> bool:
    return False


def _everything(_candidate: CandidateView) -> bool:
    return True


RULES: Final[Mapping[str, Callable[[SiteEdit], Predicate]]] = {
    "campaign": lambda edit: of_campaigns(frozenset(edit.values)),
    "creative": lambda edit: of_creatives(frozenset(edit.values)),
    "advertiser": lambda edit: of_advertisers(frozenset(edit.values)),
    "domain": lambda edit: of_domains(frozenset(edit.values)),
    "product": lambda edit: of_products(frozenset(edit.values)),
    "below-floor": lambda edit: below_floor(edit.floor_micros),
    "all": lambda _edit: _everything,
    "extend": lambda _edit: _nothing,
}


# ---- application


def edit_view(view: ServeView, change: Change, *, now_ms: int, expires_at_ms: int = 0) -> ServeView | None:
    """Apply `change` to every candidate; it answers the candidate to keep, or None to drop it. The view lives until
    `expires_at_ms` if that is later than its own time."""
    changed = tuple(kept for kept in map(change, view.candidates) if kept is not None)
    if not changed:
        return None
    if changed == view.candidates and expires_at_ms <= view.expires_at_ms:
        return view
    return msgspec.structs.replace(
        view,
        candidates=changed,
        version_ms=now_ms,
        expires_at_ms=max(expires_at_ms, view.expires_at_ms),
        auctions=auctions_in_use(view.auctions, changed),
    )


def dropping(predicate: Predicate, *, keep_creatives: Collection[str] = ()) -> Change:
    """A change that drops what matches, except creatives in `keep_creatives`."""

    def change(candidate: CandidateView) -> CandidateView | None:
        doomed = predicate(candidate) and candidate.creative_id not in keep_creatives
        return None if doomed else candidate

    return change


def editor(edits: Iterable[SiteEdit], *, now_ms: int) -> Callable[[ServeView], ServeView | None]:
    """All of them as one function from view to view. Raises BadInput for a rule that is none."""
    steps = [(_change_of(edit), frozenset(edit.values), edit.until_ms) for edit in edits]

    def edited(view: ServeView) -> ServeView | None:
        for change, campaigns, until_ms in steps:
            extends = until_ms and any(candidate.campaign_id in campaigns for candidate in view.candidates)
            after = edit_view(view, change, now_ms=now_ms, expires_at_ms=until_ms if extends else 0)
            if after is None:
                return None
            view = after
        return view

    return edited


def doomed(edits: Iterable[SiteEdit]) -> Predicate:
    """Whether any of these drops a candidate."""
    steps = [(RULES[edit.rule](edit), frozenset(edit.keep)) for edit in edits]
    return lambda candidate: any(rule(candidate) and candidate.creative_id not in keep for rule, keep in steps)


def _change_of(edit: SiteEdit) -> Change:
    rule = RULES.get(edit.rule)
    if rule is None:
        raise BadInput("rule", f"{edit.rule[:40]!r} is no rule of a site-wide edit")
    return dropping(rule(edit), keep_creatives=frozenset(edit.keep))
