"""A slot's quality, guessed from where it stands, and the floor that it asks of a bidder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from node.wire.registry import wire_type

ABOVE_FOLD_SHARE = 0.35
VIEWABILITY_SHARE = 0.25
REGION_SHARE = 0.25
TEXT_SHARE = 0.15
# Of a slot that nobody has measured: nothing is known against it.
UNMEASURED = 1.0
# At least half of the raw floor, and never more than it: a good slot is no reason to ask above what was learned.
LEAST_FACTOR = 0.5
REGION_WEIGHTS: Final[Mapping[str, float]] = {
    "article": 1.0,
    "main": 1.0,
    "header": 0.7,
    "aside": 0.6,
    "footer": 0.2,
    "nav": 0.2,
}
UNKNOWN_REGION_WEIGHT = 0.5


@wire_type("ads.placement")
class Placement(msgspec.Struct, frozen=True):
    """What a page's tag measured of a slot: shares in [0, 1], and the landmark that it stands in."""

    above_fold: float = 0.0
    viewability: float = 0.0
    region: str = ""
    text_density: float = 0.0


def slot_quality(placement: Placement) -> float:
    """In [0, 1]; what a tag reports outside of it is cut."""
    return (
        ABOVE_FOLD_SHARE * _share(placement.above_fold)
        + VIEWABILITY_SHARE * _share(placement.viewability)
        + REGION_SHARE * REGION_WEIGHTS.get(placement.region.lower(), UNKNOWN_REGION_WEIGHT)
        + TEXT_SHARE * _share(placement.text_density)
    )


def effective_floor_micros(
    raw_micros: int, quality: float, override_micros: int | None = None, *, least_micros: int = 0
) -> int:
    """What a bidder is asked for: the publisher's own figure for the slot, else the raw floor by the slot's quality,
    but never less than `least_micros`."""
    if override_micros is not None:
        return override_micros
    return max(least_micros, round(raw_micros * min(1.0, LEAST_FACTOR + _share(quality))))


def _share(value: float) -> float:
    # Also what is not a number: `max` answers its first argument when the comparison fails.
    return min(max(0.0, value), 1.0)
