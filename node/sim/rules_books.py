"""I7 of the books: what campaigns and advertisers count themselves is what the log of facts says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState, counted
from node.ads.reconcile import Counters, Difference
from node.sim import verdict
from node.sim.verdict import Verdict
from node.store.port import StoredFact


def books_true(states: Iterable[msgspec.Struct], facts: Sequence[StoredFact], now_ns: int) -> Verdict:
    """Both as the store has them at one instant. An advertiser may not have been told of all yet, and of no more."""
    counters = Counters(settled_ms=0)
    counters.add(facts)
    found: list[Difference] = []
    campaigns: list[str] = []
    for state in states:
        match state:
            case CampaignState():
                campaigns.append(state.campaign)
                found += counters.campaign(state.campaign, counted(state))
            case AdvertiserState():
                found += counters.advertiser(state.advertiser, sum(state.charged.values()))
            case _:
                pass
    found += counters.strangers(campaigns)
    words = [f"{one.object}: {one.kind} {one.found}, by the facts {one.expected}" for one in found]
    return verdict.of("I7", now_ns, words, unknown="" if facts else "no facts")
