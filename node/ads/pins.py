"""A reader's pin: a corner that was folded to keep the ad. It is shown again for nothing, and nothing is learned of it.

Floors and pacing don't bind a pin, and nobody is asked for money; that the publisher has approved it always does.
"""

from __future__ import annotations

from collections.abc import Sequence

from node.ads.view import CandidateView

REMOVED = "creative_removed"


def honoured(pin: str, before_floor: Sequence[CandidateView]) -> CandidateView | None:
    """The pinned creative among those that may be shown in its slot, floors and pacing aside."""
    return next((candidate for candidate in before_floor if candidate.creative_id == pin), None) if pin else None


def refusal(*, approved: bool) -> str:
    """What a reader's page is told of a pin that was not honoured: only what is approved no more is gone for good."""
    return "" if approved else REMOVED
