"""What a page is told of one slot: the winner with its signed beacons, or why there is none."""

from __future__ import annotations

from node.ads import messages as m
from node.ads.decide import SlotDecision, why_empty
from node.ads.entities.beacons import Beacon, fold_proof, queries
from node.ads.pins import fate


def slot_outcome(site: str, url: str, decision: SlotDecision, secret: bytes, now_ms: int) -> m.SlotOutcome:
    """Wall milliseconds; the beacons are signed with the publisher's secret."""
    choice = decision.chosen
    pin = decision.request.pin
    told = fate(pin, shown=choice is not None and choice.pinned, approved=decision.rules.approved(pin))
    if choice is None:
        return m.SlotOutcome(decision.request.slot, None, why_empty(decision), told)
    candidate = choice.candidate
    beacon = Beacon(site, url, decision.request.slot, candidate, choice.price_micros, decision.request_id, now_ms)
    impression, click, cta = queries(beacon, secret)
    return m.SlotOutcome(
        decision.request.slot,
        m.Winner(
            candidate.creative_id,
            candidate.campaign_id,
            candidate.advertiser_id,
            candidate.asset_url,
            candidate.landing_url,
            candidate.mime,
            candidate.width,
            candidate.height,
            candidate.category,
            choice.price_micros,
            decision.request_id,
            impression,
            click,
            fold_proof(beacon, secret),
            cta,
        ),
        pin=told,
    )
