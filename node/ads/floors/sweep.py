"""The sweep: hold each candidate floor for some ticks, keep the one that earned the most, begin again.

init (choose candidates from the bids of the last cycle) -> sweep (hold each) -> exploit (keep the winner) -> init.
A bid that falls in mid-cycle is seen at the next change of candidate: those above the highest bid of the hold that ends
are skipped.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from node.ads.floors.candidates import FloorResult, floors_to_try, pick_best
from node.wire.registry import wire_type

Phase = Literal["init", "sweep", "exploit"]


class SweepSettings(msgspec.Struct, frozen=True):
    """How many floors a cycle tries, for how many ticks each, and for how many the winner is kept."""

    candidates: int = 8
    hold_ticks: int = 4
    exploit_ticks: int = 60
    impressions_min: int = 3
    tie_percent: int = 5


DEFAULT: Final = SweepSettings()


@wire_type("ads.floor_cycle")
class FloorCycle(msgspec.Struct, frozen=True):
    """What one whole sweep found. `before_micros`: the winner of the sweep before it, None for the first."""

    floor_micros: int
    before_micros: int | None
    results: tuple[FloorResult, ...]

    @property
    def revenue_micros(self) -> int:
        return sum(result.revenue_micros for result in self.results)

    @property
    def impressions(self) -> int:
        return sum(result.impressions for result in self.results)

    @property
    def is_no_op(self) -> bool:
        """Nothing was decided that did not hold already: not worth a row in a journal."""
        return self.before_micros == self.floor_micros


@wire_type("ads.floor_sweep")
class Sweep(msgspec.Struct, frozen=True):
    """`current_micros` is the floor in force. `index` is the candidate held, `ticks` how long it, or the winner, still
    is. `high_micros` and `low_micros` bound this cycle's bids, `window_high_micros` those of the hold; 0: none seen.
    `winner_micros` and `before_micros` are the last two decisions."""

    min_floor_micros: int
    current_micros: int
    phase: Phase = "init"
    results: tuple[FloorResult, ...] = ()
    index: int = 0
    ticks: int = 0
    high_micros: int = 0
    low_micros: int = 0
    window_high_micros: int = 0
    winner_micros: int | None = None
    before_micros: int | None = None

    @property
    def candidates(self) -> tuple[int, ...]:
        return tuple(result.floor_micros for result in self.results)


class Tick(msgspec.Struct, frozen=True):
    """A tick's outcome: `floor_micros` when a floor is set, `cycle` when a sweep that was ended is on record."""

    state: Sweep
    floor_micros: int | None = None
    cycle: FloorCycle | None = None


def open_sweep(min_floor_micros: int, initial_micros: int = 0) -> Sweep:
    return Sweep(min_floor_micros, max(min_floor_micros, initial_micros))


def set_min(state: Sweep, min_floor_micros: int) -> Sweep:
    """Another least floor, in force at once; a lower one leaves the floor in force as it is."""
    current = max(state.current_micros, min_floor_micros)
    return msgspec.structs.replace(state, min_floor_micros=min_floor_micros, current_micros=current)


def set_floor(state: Sweep, floor_micros: int) -> Sweep:
    return msgspec.structs.replace(state, current_micros=max(floor_micros, state.min_floor_micros))


def cleared(state: Sweep) -> Sweep:
    """Back to the least floor, with nothing learned."""
    return open_sweep(state.min_floor_micros)


def observe(state: Sweep, high_micros: int, low_micros: int = 0) -> Sweep:
    """Bids seen in an auction: the highest floor worth trying (`range_top`), and the lowest bid, 0 if unknown."""
    lows = [low for low in (state.low_micros, low_micros) if low > 0]
    return msgspec.structs.replace(
        state,
        high_micros=max(state.high_micros, high_micros),
        low_micros=min(lows, default=0),
        window_high_micros=max(state.window_high_micros, high_micros),
    )


def credit(state: Sweep, revenue_micros: int, impressions: int = 1) -> Sweep:
    """Impressions that were paid under the candidate held. Outside a sweep nothing is compared."""
    if state.phase != "sweep":
        return state
    held = state.results[state.index]
    earned = FloorResult(
        held.floor_micros, held.revenue_micros + revenue_micros, held.impressions + max(impressions, 0)
    )
    results = (*state.results[: state.index], earned, *state.results[state.index + 1 :])
    return msgspec.structs.replace(state, results=results)


def tick(state: Sweep, settings: SweepSettings = DEFAULT) -> Tick:
    """One step of the schedule."""
    match state.phase:
        case "init":
            return _begin(state, settings)
        case "sweep":
            if state.ticks > 1:
                return Tick(msgspec.structs.replace(state, ticks=state.ticks - 1))
            return _advance(state, settings)
        case "exploit":
            left = state.ticks - 1
            return Tick(msgspec.structs.replace(state, ticks=left, phase="exploit" if left > 0 else "init"))


def _begin(state: Sweep, settings: SweepSettings) -> Tick:
    ended = None
    if state.results and state.winner_micros is not None:
        ended = FloorCycle(state.winner_micros, state.before_micros, state.results)
    floors = floors_to_try(
        min_floor=state.min_floor_micros,
        high=state.high_micros,
        low=state.low_micros,
        count=settings.candidates,
    )
    begun = msgspec.structs.replace(
        state,
        phase="sweep",
        results=tuple(FloorResult(floor) for floor in floors),
        index=0,
        ticks=settings.hold_ticks,
        high_micros=0,
        low_micros=0,
        window_high_micros=0,
    )
    return _set(begun, floors[0], ended)


def _advance(state: Sweep, settings: SweepSettings) -> Tick:
    # Where this hold saw no auction, the cycle's highest bid is all there is to go by; without any, all are tried.
    highest = state.window_high_micros or state.high_micros
    following = [
        index
        for index in range(state.index + 1, len(state.results))
        if not highest or state.results[index].floor_micros <= highest
    ]
    if following:
        held = msgspec.structs.replace(state, index=following[0], ticks=settings.hold_ticks, window_high_micros=0)
        return _set(held, held.results[held.index].floor_micros)
    winner = pick_best(state.results, impressions_min=settings.impressions_min, tie_percent=settings.tie_percent)
    winner = max(winner, state.min_floor_micros)
    decided = msgspec.structs.replace(
        state,
        phase="exploit",
        ticks=settings.exploit_ticks,
        winner_micros=winner,
        before_micros=state.winner_micros,
        window_high_micros=0,
    )
    return _set(decided, winner)


def _set(state: Sweep, floor_micros: int, cycle: FloorCycle | None = None) -> Tick:
    floor = max(floor_micros, state.min_floor_micros)
    return Tick(msgspec.structs.replace(state, current_micros=floor), floor, cycle)
