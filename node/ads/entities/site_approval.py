"""What a publisher's word on a creative makes of a site, and of the trust that comes of it: states, and facts to keep.

The same state is answered when nothing changes. Approving by hand trusts the creative's campaign and the domain it
lands on; what is trusted so skips the queue, where the site wants that. Rejecting, flagging
and revoking break that trust.
"""

from __future__ import annotations

import msgspec

from node.ads import messages as m
from node.ads import trust as tr
from node.ads.entities.site_state import SiteState, approve, flag, forget, queue, revoke, unflag
from node.ads.facts import CreativeApproved, CreativeFlagged, CreativeRevoked
from node.core import limits

Order = (
    m.ApproveCreative | m.RevokeCreative | m.ForgetCreative | m.FlagCreative | m.UnflagCreative | m.RemoveTrustAnchor
)
Facts = tuple[CreativeApproved | CreativeRevoked | CreativeFlagged, ...]
Decided = tuple[SiteState, Facts]


def decide(state: SiteState, order: Order, now_ms: int) -> Decided:
    """Raises BadInput where the site has approved, or rejected, as many as it may."""
    match order:
        case m.ApproveCreative(creative):
            return _approved(state, creative, now_ms)
        case m.RevokeCreative(creative, reject):
            after = revoke(state, creative, now_ms, reject=reject)
            return _distrusted(state, after, creative, "reject" if reject else "revoke"), (
                CreativeRevoked(state.site, creative, reject),
            )
        case m.FlagCreative(creative, reason):
            after = flag(state, creative, reason, now_ms)
            return _distrusted(state, after, creative, "flag"), (CreativeFlagged(state.site, creative, reason),)
        case m.UnflagCreative(creative):
            return unflag(state, creative), (CreativeFlagged(state.site, creative, ""),)
        case m.ForgetCreative(creative):
            was = creative in state.approved
            return forget(state, creative), (CreativeRevoked(state.site, creative, False),) if was else ()
        case m.RemoveTrustAnchor(kind, value):
            return _trusting(state, tr.remove(state.trust, "domain" if kind == "domain" else "campaign", value)), ()


def admit(state: SiteState, creatives: tuple[m.PendingCreative, ...], now_ms: int) -> Decided:
    """Creatives that won somewhere: those that are trusted are approved at once, the others wait."""
    return sweep(queue(state, creatives), now_ms)


def sweep(state: SiteState, now_ms: int) -> Decided:
    """Approve what waits and is trusted, as far as the site may approve more; it mints no trust of its own."""
    room = limits.approved_creatives_max - len(state.approved)
    trusted = [
        creative
        for creative in state.pending.values()
        if tr.approves(state.trust, creative.campaign, creative.landing_domain)
    ][: max(room, 0)]
    for creative in trusted:
        state = approve(state, creative.creative, now_ms)
    return state, tuple(CreativeApproved(state.site, c.creative, c.campaign, auto=True) for c in trusted)


def _approved(state: SiteState, creative: str, now_ms: int) -> Decided:
    waiting = state.pending.get(creative)
    after = approve(state, creative, now_ms)
    if after is state:
        return state, ()
    fact = CreativeApproved(state.site, creative, waiting.campaign if waiting else "")
    if waiting is None:
        return after, (fact,)
    trust = tr.mint(
        after.trust,
        creative=creative,
        campaign=waiting.campaign,
        landing_domain=waiting.landing_domain,
        now_ms=now_ms,
    )
    swept, facts = sweep(_trusting(after, trust), now_ms)
    return swept, (fact, *facts)


def _distrusted(before: SiteState, after: SiteState, creative: str, event: str) -> SiteState:
    """`after` without the trust in whom the creative is from, as far as that is known."""
    origin = before.origin_of(creative)
    if origin is None:
        return after
    campaign, domain = origin
    return _trusting(after, tr.broken_by(after.trust, event, campaign=campaign, landing_domain=domain))


def _trusting(state: SiteState, trust: tr.Trust) -> SiteState:
    return state if trust is state.trust else msgspec.structs.replace(state, trust=trust)
