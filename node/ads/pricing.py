"""What a winner pays. Posterior means only: a price can be recomputed from what was recorded, draws cannot.

`clearing = clamp((runner-up's mean score / winner's mean engagement) ^ (1 / bid weight), floor, winner's bid)`:
the bid with which the winner would just have tied with its runner-up, were both judged by their means.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from node.ads.money import to_micros, to_units


def clearing_cpm(
    winner_engagement: float, winner_cpm: float, runner_up_score: float | None, *, bid_weight: float, floor: float
) -> float:
    """The clearing CPM in currency units; the floor when there is no rival to price against.

    A floor above the bid never lifts the price over it: such a candidate should have been refused by
    `passes_floor`, and nobody pays more than they bid.
    """
    ceiling = max(winner_cpm, 0.0)
    if runner_up_score is None or runner_up_score <= 0 or winner_engagement <= 0 or bid_weight <= 0:
        return min(floor, ceiling)
    ratio = runner_up_score / winner_engagement
    # Compared first: a tiny bid weight makes the power overflow long before the clamp could act.
    if ratio >= math.pow(max(ceiling, 1.0), bid_weight):
        return ceiling
    tie = math.pow(ratio, 1.0 / bid_weight)
    return min(max(tie, floor), ceiling)


def clearing_micros(
    winner_engagement: float,
    winner_cpm_micros: int,
    runner_up_score: float | None,
    *,
    bid_weight: float,
    floor_micros: int,
) -> int:
    """`clearing_cpm` in micros, rounded to the nearest, still between floor and bid."""
    price = clearing_cpm(
        winner_engagement,
        to_units(winner_cpm_micros),
        runner_up_score,
        bid_weight=bid_weight,
        floor=to_units(floor_micros),
    )
    return min(max(to_micros(price), min(floor_micros, winner_cpm_micros)), winner_cpm_micros)


def floor_for(
    category: str, *, category_floors_micros: Mapping[str, int], site_floor_micros: int, slot_floor_micros: int | None
) -> int:
    """The floor that binds a candidate: the slot's override, else its category's, else the site's."""
    if slot_floor_micros is not None:
        return slot_floor_micros
    return category_floors_micros.get(category, site_floor_micros)


def passes_floor(cpm_micros: int, floor_micros: int) -> bool:
    """Whether a bid may compete: a bid equal to the floor may."""
    return cpm_micros >= floor_micros
