"""A reader's pin: a corner that was folded to keep the ad. It is shown again for nothing, and nothing is learned of it.

Floors and pacing don't bind a pin, and nobody is asked for money; that the publisher has approved it always does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from node.ads.messages import Pin
from node.ads.view import CandidateView

HONOURED = "honoured"
REMOVED = "creative_removed"
NOT_HERE = "not_here"


def honoured(pin: str, before_floor: Sequence[CandidateView]) -> CandidateView | None:
    """The pinned creative among those that may be shown in its slot, floors and pacing aside."""
    return next((candidate for candidate in before_floor if candidate.creative_id == pin), None) if pin else None


def fate(pin: str, *, shown: bool, approved: bool) -> str:
    """What a reader's page is told of a pin: only what is approved no more is gone for good; else it has no place on
    this page, or another slot of it has its campaign."""
    if not pin:
        return ""
    if shown:
        return HONOURED
    return NOT_HERE if approved else REMOVED


def stale(pins: Iterable[Pin], approved: Callable[[str], bool], slots: Collection[str]) -> tuple[Pin, ...]:
    """Those that will not be shown again: their creative is not approved, or the site has no such slot."""
    return tuple(pin for pin in pins if not approved(pin.creative) or (slots and pin.slot not in slots))
