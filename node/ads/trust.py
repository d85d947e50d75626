"""Trust anchors: what a publisher has approved once and need not be asked about again.

Approving a creative by hand trusts its campaign and the registrable domain it lands on. Only the publisher takes trust
back: a campaign that is paused, or an advertiser without money, has done nothing wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from node.ads.domains import registrable_domain
from node.wire.registry import wire_type

Kind = Literal["campaign", "domain"]
# What a publisher does to a creative; anything else leaves trust alone.
BREAKS_TRUST = frozenset({"reject", "flag", "revoke"})


@wire_type("ads.trust_anchor")
class Anchor(msgspec.Struct, frozen=True):
    """Why something is trusted: the creative whose approval it came from."""

    kind: Kind
    value: str
    creative: str
    created_ms: int


@wire_type("ads.trust")
class Trust(msgspec.Struct, frozen=True):
    """A site's anchors, by kind and value. `enabled`: whether trusted creatives skip the queue."""

    enabled: bool = False
    anchors: Mapping[str, Anchor] = msgspec.field(default_factory=dict)

    def has(self, kind: Kind, value: str) -> bool:
        return bool(value) and _key(kind, value) in self.anchors


def approves(trust: Trust, campaign: str, landing_domain: str) -> bool:
    """Whether a candidate skips the queue. Nothing but its campaign and its landing domain counts."""
    if not trust.enabled:
        return False
    return trust.has("campaign", campaign) or trust.has("domain", registrable_domain(landing_domain))


def mint(trust: Trust, *, creative: str, campaign: str, landing_domain: str, now_ms: int) -> Trust:
    """Trust what a publisher approved by hand. An anchor that holds already keeps the creative that it came from."""
    wanted = (
        Anchor("campaign", campaign, creative, now_ms),
        Anchor("domain", registrable_domain(landing_domain), creative, now_ms),
    )
    new = {
        key: anchor
        for anchor in wanted
        if anchor.value and (key := _key(anchor.kind, anchor.value)) not in trust.anchors
    }
    return msgspec.structs.replace(trust, anchors={**trust.anchors, **new}) if new else trust


def broken_by(trust: Trust, event: str, *, campaign: str, landing_domain: str) -> Trust:
    """What an event about a creative leaves of the trust in its campaign and domain."""
    if event not in BREAKS_TRUST:
        return trust
    doomed = {_key("campaign", campaign), _key("domain", registrable_domain(landing_domain))}
    return _without(trust, doomed)


def remove(trust: Trust, kind: Kind, value: str) -> Trust:
    """Take one anchor back by hand."""
    return _without(trust, {_key(kind, value)})


def _without(trust: Trust, doomed: set[str]) -> Trust:
    kept = {key: anchor for key, anchor in trust.anchors.items() if key not in doomed}
    return trust if len(kept) == len(trust.anchors) else msgspec.structs.replace(trust, anchors=kept)


def _key(kind: Kind, value: str) -> str:
    return f"{kind}|{value}"
