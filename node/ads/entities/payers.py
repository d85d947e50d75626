"""Who must promise an ad's money before it is shown, and what their answers come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from node.ads import explain
from node.ads import messages as m
from node.ads.decide import SlotDecision
from node.core.ids import EntityRef

SILENT_MS = 1_000
_ANSWERS: Final = {
    m.NOT_ACTIVE: explain.NOT_ACTIVE,
    m.WITHDRAWN: explain.WITHDRAWN,
    m.NOT_DUE: explain.PACED,
    "reserved": "",
    "repeated": "",
}


def payers(campaign: str, advertiser: str) -> tuple[tuple[str, EntityRef], ...]:
    """Both are asked at once, by name."""
    return (("campaign", EntityRef("campaign", campaign)), ("advertiser", EntityRef("advertiser", advertiser)))


def objection(outcome: Any) -> str:
    """Why a payer's answer is not a yes; empty when it is."""
    if not isinstance(outcome, m.Reserved):
        return explain.NO_ANSWER
    return _ANSWERS.get(outcome.outcome, explain.BUDGET)


def verdict(objections: Mapping[str, str]) -> str:
    """What the objections of all payers come to: one that said no explains more than one that said nothing, and what
    holds for all of a campaign more than what holds for one creative."""
    told = (explain.NOT_ACTIVE, explain.BUDGET, explain.PACED, explain.WITHDRAWN, explain.NO_ANSWER)
    return next((reason for reason in told if reason in objections.values()), "")


class Candidate(Protocol):
    """As a pool has it, or a decision that is remembered."""

    @property
    def creative_id(self) -> str: ...
    @property
    def campaign_id(self) -> str: ...


def refused_with(refused: Candidate, reason: str, pool: Iterable[Candidate]) -> dict[str, str]:
    """Whom of a pool the refusal of one candidate speaks of, with the reason: all creatives of its campaign, but for
    what holds for this one alone."""
    if reason == explain.WITHDRAWN:
        return {refused.creative_id: reason}
    return {each.creative_id: reason for each in pool if each.campaign_id == refused.campaign_id}


class SilentPayers:
    """Campaigns that have just not answered are still tried, after all others: a page view can't wait for them."""

    def __init__(self) -> None:
        self._until_ms: dict[str, int] = {}

    def said_nothing(self, campaign: str, now_ms: int) -> None:
        self._until_ms[campaign] = now_ms + SILENT_MS

    def asked_last(self, decisions: Iterable[SlotDecision], now_ms: int) -> dict[str, str]:
        """Puts them last in what was drawn; who steps back, and why."""
        if not self._until_ms:
            return {}
        self._until_ms = {name: until for name, until in self._until_ms.items() if until > now_ms}
        for decision in decisions:
            pool = decision.pool
            decision.order.sort(key=lambda index: pool[index].campaign_id in self._until_ms)
        return dict.fromkeys(self._until_ms, explain.NO_ANSWER)
