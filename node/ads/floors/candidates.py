"""Which floors a sweep tries, and which of them it keeps: arithmetic over whole micros, so that nothing drifts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from node.wire.registry import wire_type

GRID_SHARE = 10  # a tenth of the least floor is as fine as prices are told apart
GRID_MIN_MICROS = 1
LONE_PRICE_PERCENT = 80  # the cheapest price tried where all bids were equal
BELOW_BID_PERCENT = 99  # a floor stays so far below a bid that it must not price out


@wire_type("ads.floor_result")
class FloorResult(msgspec.Struct, frozen=True):
    """What one floor brought while it was held."""

    floor_micros: int
    revenue_micros: int = 0
    impressions: int = 0


def below_bid(bid_micros: int) -> int:
    """The highest floor that leaves a bid in: 1 % below it, and below it in any case."""
    return bid_micros * BELOW_BID_PERCENT // 100


def grid_of(min_floor_micros: int) -> int:
    return max(min_floor_micros // GRID_SHARE, GRID_MIN_MICROS)


def spread_floors(low: int, high: int, count: int, grid: int) -> tuple[int, ...]:
    """At most `count` floors, evenly from `low` to `high`, on the grid (halves up), without repeats, ascending.

    The grid never takes one out of the range: above `high` nobody might be left to bid.
    """
    if high <= low or count < 2:
        return (low,)
    steps = count - 1
    between = (
        (2 * (low * steps + step * (high - low)) + grid * steps) // (2 * grid * steps) * grid
        for step in range(1, steps)
    )
    return tuple(sorted({low, high, *(min(max(floor, low), high) for floor in between)}))


def floors_to_try(*, min_floor: int, high: int, low: int, count: int) -> tuple[int, ...]:
    """The candidates of a cycle, from the bids of the one before: `high` 0 when there were none, `low` 0 if unknown."""
    top = max(high, min_floor)
    bottom = min(max(min_floor, low), top)
    grid = grid_of(min_floor)
    if bottom == top > min_floor:
        bottom = max(min_floor, _round_to(grid, top * LONE_PRICE_PERCENT, 100))
    return spread_floors(bottom, top, count, grid)


def range_top(bidders: int, high: int, second: int) -> int:
    """The highest floor worth trying: below the second bid where it is known, for above it only one bidder is left."""
    return min(high, below_bid(second)) if bidders > 1 and second > 0 else high


def pick_best(results: Sequence[FloorResult], *, impressions_min: int = 0, tie_percent: int = 5) -> int:
    """The floor to keep: of those that earned nearly the most, the highest. The lowest tried where too little was seen.

    Little was seen when nothing was earned, when the best has too few impressions, or when a cheaper floor has none at
    all: a floor that nobody was shown at can't be compared. `results` is not empty.
    """
    ordered = sorted(results, key=lambda result: result.floor_micros)
    lowest = ordered[0].floor_micros
    best = max(ordered, key=lambda result: (result.revenue_micros, result.floor_micros))
    if best.revenue_micros <= 0 or best.impressions < impressions_min:
        return lowest
    if any(result.impressions == 0 for result in ordered if result.floor_micros < best.floor_micros):
        return lowest
    near = [
        result.floor_micros
        for result in ordered
        if result.revenue_micros > 0
        and result.revenue_micros * 100 >= best.revenue_micros * (100 - tie_percent)
        and result.impressions >= impressions_min
    ]
    return max(near, default=lowest)


def _round_to(grid: int, numerator: int, denominator: int) -> int:
    """`numerator / denominator` to the nearest of the grid, halves up."""
    return (2 * numerator + grid * denominator) // (2 * grid * denominator) * grid
