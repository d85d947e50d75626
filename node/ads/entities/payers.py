"""Who must promise an ad's money before it is shown, and what their answers come to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from node.ads import explain
from node.ads import messages as m
from node.core.ids import EntityRef


def payers(campaign: str, advertiser: str) -> tuple[tuple[str, EntityRef], ...]:
    """Both are asked at once, by name."""
    return (("campaign", EntityRef("campaign", campaign)), ("advertiser", EntityRef("advertiser", advertiser)))


def objection(outcome: Any) -> str:
    """Why a payer's answer is not a yes; empty when it is."""
    if not isinstance(outcome, m.Reserved):
        return explain.NO_ANSWER
    if outcome.outcome == m.NOT_ACTIVE:
        return explain.NOT_ACTIVE
    return "" if outcome.outcome in ("reserved", "repeated") else explain.BUDGET


def verdict(objections: Mapping[str, str]) -> str:
    """What the objections of all payers come to: one that said no explains more than one that said nothing."""
    told = (explain.NOT_ACTIVE, explain.BUDGET, explain.NO_ANSWER)
    return next((reason for reason in told if reason in objections.values()), "")
