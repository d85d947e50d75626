"""One page view's slots together: in which order they choose, and who steps back for whom.

Within a batch no campaign and no creative appears twice. Campaigns that won the same page a moment ago step back where
somebody else is there. Honoured pins were chosen before anything was drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from node.ads.decide import NOBODY, SlotDecision
from node.ads.messages import SlotRequest


def slot_order(slots: Sequence[SlotRequest], rng: np.random.Generator) -> list[int]:
    """Pinned slots by area, the largest first; then the others, shuffled, so that none is always served last."""
    pinned = [index for index, slot in enumerate(slots) if slot.pin]
    pinned.sort(key=lambda index: (-slots[index].width * slots[index].height, index))
    others = [index for index, slot in enumerate(slots) if not slot.pin]
    if len(others) > 1:
        others = [others[place] for place in rng.permutation(len(others)).tolist()]
    return pinned + others


def choose_all(decisions: Sequence[SlotDecision], order: Sequence[int], back: Mapping[str, str] = NOBODY) -> None:
    """Give each slot its best candidate such that nobody is used twice; `back`: campaigns that step back, and why.

    A creative pinned in two slots is honoured in the first of them.
    """
    campaigns: set[str] = set()
    creatives: set[str] = set()
    for decision in (decisions[index] for index in order):
        pinned = decision.pinned
        if pinned is not None and pinned.candidate.campaign_id not in campaigns:
            decision.chosen = pinned
            campaigns.add(pinned.candidate.campaign_id)
            creatives.add(pinned.candidate.creative_id)
    for decision in (decisions[index] for index in order):
        if decision.chosen is not None:
            continue
        decision.chosen = decision.next_choice(campaigns, creatives, back)
        if decision.chosen is not None:
            campaigns.add(decision.chosen.candidate.campaign_id)
            creatives.add(decision.chosen.candidate.creative_id)


def choose_again(decision: SlotDecision, decisions: Sequence[SlotDecision], back: Mapping[str, str] = NOBODY) -> None:
    """Another candidate for one slot, after a refusal; the other slots keep theirs."""
    others = [d.chosen.candidate for d in decisions if d is not decision and d.chosen is not None]
    decision.chosen = decision.next_choice(
        {candidate.campaign_id for candidate in others}, {candidate.creative_id for candidate in others}, back
    )


def impressed(decisions: Sequence[SlotDecision]) -> list[str]:
    """The creatives that a batch teaches something about: those that won. A pin that was honoured says nothing."""
    chosen = [decision.chosen for decision in decisions]
    return [choice.candidate.creative_id for choice in chosen if choice is not None and not choice.pinned]
