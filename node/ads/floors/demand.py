"""One learner: what the bids of an auction make of a floor. Few bids say more than any sweep could find out.

Only demand that the publisher has approved teaches: `Demand` counts campaigns with an approved creative on the site,
those whose bids the floor has rejected among them. What merely waits for approval pays nothing and must move nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from node.ads.floors.candidates import below_bid, range_top
from node.ads.floors.sweep import DEFAULT, FloorCycle, Sweep, SweepSettings, cleared, observe, set_floor, tick
from node.wire.registry import wire_type


@wire_type("ads.floor_demand")
class Demand(msgspec.Struct, frozen=True):
    """The bids of approved campaigns in one auction, rejected ones included; 0 for a bid that there is not."""

    bidders: int = 0
    rejected: int = 0
    high_micros: int = 0
    second_micros: int = 0
    low_micros: int = 0


class Lesson(msgspec.Struct, frozen=True):
    """The learner after a tick, the floor that applies now, and the sweep that has ended, if one has."""

    state: Sweep
    floor_micros: int
    cycle: FloorCycle | None = None


def demand_of(bids: Iterable[tuple[str, int, bool]]) -> Demand:
    """The demand of an auction from its bids, each as (campaign, CPM micros, whether the floor rejected it). Of a
    campaign that bids several times the highest counts."""
    best: dict[str, tuple[int, bool]] = {}
    for campaign, cpm_micros, rejected in bids:
        known, known_rejected = best.get(campaign, (0, True))
        best[campaign] = (max(known, cpm_micros), known_rejected and rejected)
    ordered = sorted((cpm_micros for cpm_micros, _ in best.values()), reverse=True)
    if not ordered:
        return Demand()
    second = ordered[1] if len(ordered) > 1 else 0
    return Demand(len(best), sum(rejected for _, rejected in best.values()), ordered[0], second, ordered[-1])


def bid_derived(bidders: int, bid_micros: int, min_floor_micros: int) -> int | None:
    """The floor under an only bidder: just below its bid. None where there is not exactly one bid."""
    if bidders != 1 or bid_micros <= 0:
        return None
    return max(below_bid(bid_micros), min_floor_micros)


def saw(state: Sweep, demand: Demand) -> Sweep:
    """The sweep after an auction: between two ticks there may be many."""
    if demand.bidders < 1 or demand.high_micros <= 0:
        return state
    top = range_top(demand.bidders, demand.high_micros, demand.second_micros)
    return observe(state, top, min(top, demand.low_micros))


def learn(state: Sweep, demand: Demand, settings: SweepSettings = DEFAULT) -> Lesson:
    """One tick of a learner, by its newest auction.

    Nobody left to bid: the least floor, with nothing remembered. One: just below its bid. More: the sweep's candidate,
    but never so high that the second bid is priced out.
    """
    if demand.bidders <= demand.rejected or demand.high_micros <= 0:
        fresh = cleared(state)
        return Lesson(fresh, fresh.current_micros)
    lone = bid_derived(demand.bidders, demand.high_micros, state.min_floor_micros)
    if lone is not None:
        # What a sweep was about to find out, it found out for another market than the next one will be.
        return Lesson(set_floor(cleared(state), lone), lone)
    ticked = tick(state, settings)
    held = ticked.state
    wanted = _candidate(held)
    if demand.second_micros > 0:
        wanted = min(wanted, below_bid(demand.second_micros))
    floor = max(wanted, held.min_floor_micros)
    return Lesson(set_floor(held, floor), floor, ticked.cycle)


def _candidate(state: Sweep) -> int:
    """What the sweep itself would have: the floor in force may be lower, for the sake of a second bid."""
    if state.phase == "sweep":
        return state.results[state.index].floor_micros
    return state.winner_micros if state.winner_micros is not None else state.current_micros
