"""Campaigns that would bid on an empty slot's pages if they did not rest: who, why, and what wakes them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from node.ads.budget import BudgetState, roll_over
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.money import impression_cost_micros

NAMED_MAX = 3


def resting(
    campaigns: Iterable[CampaignState], advertisers: Mapping[str, AdvertiserState], reach: frozenset[str], now_ms: int
) -> tuple[str, str]:
    """In an operator's words, the best bid first, and the command that wakes that one; both empty when none rests."""
    found: list[tuple[str, str]] = []
    for campaign in sorted(campaigns, key=lambda one: (-one.max_cpm_micros, one.campaign)):
        rest = _rest(campaign, advertisers.get(campaign.advertiser), now_ms)
        if rest is not None and not reach.isdisjoint(campaign.categories):
            found.append(rest)
    more = f"; and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    return ("; ".join(text for text, _ in found[:NAMED_MAX]) + more, found[0][1]) if found else ("", "")


def _rest(campaign: CampaignState, advertiser: AdvertiserState | None, now_ms: int) -> tuple[str, str] | None:
    """Why it does not bid, and what helps; None of one that does, or never will."""
    name = campaign.campaign
    if campaign.status == "deleted" or (advertiser is not None and advertiser.status == "deleted"):
        return None
    if campaign.status != "active":
        return f"campaign {name} is {campaign.status}", f"promovolvectl campaign resume {name}"
    if campaign.advertiser_suspended or (advertiser is not None and advertiser.status != "active"):
        above = campaign.advertiser
        return f"campaign {name} rests: advertiser {above} is suspended", f"promovolvectl advertiser resume {above}"
    if not campaign.creatives:
        return f"campaign {name} has no creative", f"promovolvectl creative create CREATIVE --campaign {name}"
    if not campaign.active_creatives:
        paused = campaign.creatives[0].creative
        return f"no creative of campaign {name} is active", f"promovolvectl creative resume {paused}"
    cost = impression_cost_micros(campaign.max_cpm_micros)
    if _left(campaign.budget, now_ms) < cost:
        raised = f"promovolvectl campaign update {name} --daily-budget AMOUNT"
        return f"campaign {name} has spent its day's budget", raised
    if advertiser is not None and _left(advertiser.budget, now_ms) < cost:
        above = campaign.advertiser
        text = f"campaign {name} rests: advertiser {above} has spent its day's budget"
        return text, f"promovolvectl advertiser update {above} --daily-budget AMOUNT"
    return None


def _left(budget: BudgetState, now_ms: int) -> int:
    today = roll_over(budget, now_ms=now_ms)
    return today.daily_budget_micros - today.spent_micros
