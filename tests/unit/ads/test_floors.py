"""Floors: the rows F1 to F42 of the vectors, and the laws that they are examples of."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads.floors import site_floors as sf
from node.ads.floors.candidates import FloorResult, below_bid, floors_to_try, pick_best, range_top, spread_floors
from node.ads.floors.demand import Demand, bid_derived, learn, saw
from node.ads.floors.sweep import (
    FloorCycle,
    Sweep,
    SweepSettings,
    Tick,
    cleared,
    credit,
    observe,
    open_sweep,
    set_floor,
    set_min,
    tick,
)
from node.wire.codec import CODEC

CENT = 10_000
UNIT = 1_000_000


def micros(*units: float) -> tuple[int, ...]:
    return tuple(round(unit * UNIT) for unit in units)


def results(rows: dict[float, tuple[float, int]]) -> list[FloorResult]:
    return [FloorResult(*micros(floor, revenue), seen) for floor, (revenue, seen) in rows.items()]


@pytest.mark.parametrize(
    ("low", "high", "count", "grid", "expected"),
    [
        (1.0, 1.0, 5, 0.01, (1.0,)),  # F2
        (1.0, 5.0, 1, 0.01, (1.0,)),  # F2
        (0.10, 0.12, 8, 0.01, (0.10, 0.11, 0.12)),  # F3
        (3.0, 5.0, 8, 0.05, (3.0, 3.3, 3.55, 3.85, 4.15, 4.45, 4.7, 5.0)),  # F37
        (10.0, 12.0, 8, 0.01, (10.0, 10.29, 10.57, 10.86, 11.14, 11.43, 11.71, 12.0)),  # F38
    ],
)
def test_f2_f3_f37_f38_candidates(low: float, high: float, count: int, grid: float, expected: Sequence[float]) -> None:
    assert spread_floors(*micros(low, high), count, *micros(grid)) == micros(*expected)


def test_f1_ten_candidates_from_end_to_end() -> None:
    floors = spread_floors(*micros(0.10, 10.0), 10, CENT)
    assert (len(floors), floors[0], floors[-1]) == (10, 100_000, 10 * UNIT)


@pytest.mark.parametrize(
    ("rows", "least", "expected"),
    [
        ({0.50: (1.0, 100), 1.00: (3.0, 100), 2.00: (2.0, 100)}, 0, 1.00),  # F4
        ({0.50: (2.0, 100), 1.00: (2.0, 100), 2.00: (2.0, 100)}, 0, 2.00),  # F5
        ({1.17: (0, 0), 1.43: (0.0014, 1), 1.50: (0, 0)}, 3, 1.17),  # F6
        ({1.17: (0.0024, 2), 1.43: (0.0070, 5), 1.50: (0.0030, 2)}, 3, 1.43),  # F7
        ({4.00: (0.467, 96), 5.67: (0.661, 109), 7.00: (0.321, 46)}, 3, 5.67),  # F9
        ({1.00: (0.50, 100), 5.00: (0.49, 1)}, 3, 1.00),  # F10
        ({5.00: (10, 100), 6.00: (12, 100), 7.00: (15, 100)}, 3, 7.00),  # F12
        ({1.00: (0, 0), 2.00: (5.0, 50)}, 3, 1.00),  # a cheaper floor that nobody was shown at
    ],
)
def test_f4_f12_the_winner_of_a_sweep(rows: dict[float, tuple[float, int]], least: int, expected: float) -> None:
    """F4, F5, F6, F7, F9, F10, F12: and a cheaper floor at which nobody was shown."""
    assert (pick_best(results(rows), impressions_min=least),) == micros(expected)


@pytest.mark.parametrize(
    ("bidders", "bid", "least", "expected"),
    [
        (1, 5.0, 0.10, 4.95),  # F13
        (1, 10.0, 0.10, 9.90),  # F14
        (1, 0.05, 0.10, 0.10),  # F15
        (2, 5.0, 0.10, None),  # F16
        (3, 7.0, 0.10, None),
        (1, 0.0, 0.10, None),
        (0, 0.0, 0.10, None),
    ],
)
def test_f13_f16_a_lone_bidder(bidders: int, bid: float, least: float, expected: float | None) -> None:
    """F13, F14, F15, F16."""
    bid_micros, min_micros = micros(bid, least)
    assert bid_derived(bidders, bid_micros, min_micros) == (None if expected is None else micros(expected)[0])


@pytest.mark.parametrize(
    ("bidders", "high", "second", "expected"),
    [(3, 12, 10, 9.90), (1, 12, 0, 12.0), (3, 12, 0, 12.0), (2, 10, 20, 10.0)],
)
def test_f17_f19_the_range_ends_below_the_second_bid(bidders: int, high: int, second: int, expected: float) -> None:
    assert (range_top(bidders, high * UNIT, second * UNIT),) == micros(expected)


class Run:
    """A sweep under way, in units."""

    def __init__(self, settings: SweepSettings, least: float, *, initial: float = 0, seed: float = 0) -> None:
        self.settings = settings
        self.state = open_sweep(*micros(least, initial))
        if seed:
            self.see(seed)

    def see(self, high: float, low: float = 0) -> None:
        self.state = observe(self.state, *micros(high, low))

    def earn(self, *units: float) -> None:
        for revenue in micros(*units):
            self.state = credit(self.state, revenue)

    def tick(self) -> Tick:
        ticked = tick(self.state, self.settings)
        self.state = ticked.state
        return ticked

    def emit(self, *earned: float) -> float | None:
        self.earn(*earned)
        floor = self.tick().floor_micros
        return None if floor is None else floor / UNIT


def quick(candidates: int, *, hold: int = 1, exploit: int = 2, least: int = 1) -> SweepSettings:
    return SweepSettings(candidates, hold, exploit, least)


def test_f20_one_whole_cycle() -> None:
    run = Run(quick(3), 1.0, seed=5.0)
    assert [run.emit(*earned) for earned in ((), (0.10,), (0.50, 0.50), (0.20,), (), (), ())] == [
        1.0,
        3.0,
        5.0,
        3.0,
        None,
        None,
        1.0,
    ]


def test_f21_what_a_cycle_leaves_on_record_also_after_a_restart() -> None:
    run = Run(quick(3, exploit=1), 1.0, seed=5.0)
    for earned in ((), (0.10,), (0.50, 0.50), (0.20,), ()):
        run.emit(*earned)
    restored = CODEC.decode_record(CODEC.encode_record(run.state))
    cycle = run.tick().cycle
    assert cycle is not None
    assert (cycle.floor_micros, cycle.before_micros) == (3 * UNIT, None)
    assert (cycle.revenue_micros, cycle.impressions) == (1_300_000, 4)
    assert [r.floor_micros for r in cycle.results] == list(micros(1, 3, 5))
    assert [r.impressions for r in cycle.results] == [1, 2, 1]
    assert isinstance(restored, Sweep)
    assert tick(restored, run.settings).cycle == cycle


def test_f22_f23_the_least_floor_binds_what_was_learned() -> None:
    run = Run(quick(4), 1.0, seed=10.0)
    run.emit()
    for earned in (10.0, 1.0, 1.0):
        run.emit(earned)
    run.state = set_min(run.state, 5 * UNIT)
    chosen = run.emit(1.0)
    assert chosen is not None
    assert chosen >= 5.0
    assert set_min(set_floor(open_sweep(100_000), 2 * UNIT), 5 * UNIT).current_micros == 5 * UNIT


def test_f24_a_reset_forgets_everything() -> None:
    run = Run(quick(3), 1.0, initial=50.0, seed=50.0)
    assert run.state.current_micros == 50 * UNIT
    run.state = cleared(run.state)
    assert (run.state.current_micros, run.state.high_micros, run.state.low_micros) == (UNIT, 0, 0)
    assert run.emit() == 1.0


def test_f25_each_candidate_is_held() -> None:
    run = Run(quick(2, hold=3, least=3), 1.0, seed=2.0)
    earned = ((), (0.10,), (0.20,), (0.30,), (0.05,), (0.05,), (0.05,))
    assert [run.emit(*each) for each in earned] == [1.0, None, None, 2.0, None, None, 1.0]


def cycle_after(run: Run, bids: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """The candidates of the cycle after one in which these bids were seen in every hold."""
    run.emit()
    for _ in range(100):
        for high, low in bids:
            run.see(high, low)
        if run.tick().state.phase == "init":
            run.emit()
            return run.state.candidates
    raise AssertionError("the cycle never ended")


def test_f26_a_lower_market_lowers_the_next_cycle() -> None:
    run = Run(quick(3), 0.10, seed=8.0)
    assert tick(run.state, run.settings).state.candidates[-1] == 8 * UNIT
    candidates = cycle_after(run, [(2.0, 0)])
    assert (len(candidates), candidates[-1]) == (3, 2 * UNIT)


def test_f27_f28_the_range_is_that_of_the_bids() -> None:
    wide = cycle_after(Run(quick(3), 0.10, seed=8.0), [(8.0, 4.0), (4.0, 4.0)])
    assert (wide[0], wide[-1]) == micros(4, 8)
    narrow = cycle_after(Run(quick(3), 0.10, seed=8.0), [(1.50, 1.17)])
    assert (narrow[0], narrow[-1], len(narrow)) == (*micros(1.17, 1.50), 3)


@pytest.mark.parametrize(
    ("least", "high", "low", "count", "expected"),
    [
        (0.25, 6.0, 0, 2, (0.25, 6.0)),  # F29
        (0.10, 0, 0, 3, (0.10,)),  # F32
        (0.10, 5.0, 5.0, 4, (4.0, 4.33, 4.67, 5.0)),  # F33
    ],
)
def test_f29_f32_f33_odd_ranges(least: float, high: float, low: float, count: int, expected: Sequence[float]) -> None:
    least_micros, high_micros, low_micros = micros(least, high, low)
    assert floors_to_try(min_floor=least_micros, high=high_micros, low=low_micros, count=count) == micros(*expected)


def test_f30_a_bid_cut_ends_the_sweep_at_the_next_advance() -> None:
    run = Run(quick(5), 0.10, seed=10.0)
    run.emit()
    run.see(1.0)
    assert run.emit() == 0.10
    assert run.state.phase == "exploit"


def test_a_bid_cut_is_not_invisible_until_the_cycle_ends() -> None:
    """TR18, OP27. Bids fell from 12 to 10 in mid-cycle, and the sweep went on probing 10.29 to 12 for hours."""
    run = Run(quick(8, hold=4), 0.10, seed=12.0)
    run.see(12.0, 10.0)
    run.emit()
    assert run.state.candidates[-1] == 12 * UNIT
    for _ in range(4):
        run.see(10.0, 10.0)
        run.tick()
    assert run.state.phase == "exploit"
    assert run.state.current_micros <= 10 * UNIT


def test_f34_f35_a_decision_that_changes_nothing_is_not_journaled() -> None:
    run = Run(quick(8, hold=4, least=3), 20.0)
    rows = [cycle for cycle in (run.tick().cycle for _ in range(60)) if cycle is not None and not cycle.is_no_op]
    assert [(row.floor_micros, row.before_micros) for row in rows] == [(20 * UNIT, None)]
    assert [FloorCycle(now, before, ()).is_no_op for now, before in ((20, None), (24, 20), (20, 20))] == [
        False,
        False,
        True,
    ]


def test_f36_impressions_are_counted_whole() -> None:
    run = Run(quick(2), 1.0, seed=2.0)
    run.emit()
    run.earn(*[0.001] * 10)
    assert (run.state.results[0].impressions, run.state.results[0].revenue_micros) == (10, 10_000)


def converge(mix: dict[float, float], ticks: int, *, impressions: int = 60) -> float:
    """A lone bidder in each of some disjoint categories: everybody at or above the floor pays the floor."""
    run = Run(SweepSettings(), 0.50, initial=0.50)
    for _ in range(ticks):
        floor = run.state.current_micros
        for bid, share in mix.items():
            if bid * UNIT >= floor:
                for _ in range(round(impressions * share)):
                    run.state = credit(run.state, floor // 1_000)
        run.see(max(mix), min(mix))
        run.tick()
    assert run.state.winner_micros is not None
    return run.state.winner_micros / UNIT


THIRDS = {3.0: 1 / 3, 4.0: 1 / 3, 5.0: 1 / 3}


@pytest.mark.parametrize(
    ("mix", "expected", "served", "realised", "optimum"),
    [
        (THIRDS, 3.0, {3.0, 4.0, 5.0}, 3.0, 4.0),  # F39
        ({3.0: 0.1, 4.0: 0.1, 5.0: 0.8}, 5.0, {5.0}, 4.0, 4.7),  # F40
    ],
)
def test_f39_f40_one_floor_for_three_markets(
    mix: dict[float, float], expected: float, served: set[float], realised: float, optimum: float
) -> None:
    """What an impression brings, and would bring if each of the markets had its own floor."""
    floor = converge(mix, 600)
    assert floor == pytest.approx(expected, abs=0.01)
    assert {bid for bid in mix if bid >= floor} == served
    assert sum(floor * mix[bid] for bid in served) == pytest.approx(realised, abs=0.01)
    assert sum(share * converge({bid: 1.0}, 400) for bid, share in mix.items()) == pytest.approx(optimum, abs=0.01)


def test_f42_each_category_learns_its_own_floor() -> None:
    assert [converge({bid: 1.0}, 400) for bid in (3.0, 4.0, 5.0)] == pytest.approx([3.0, 4.0, 5.0], abs=0.01)
    assert converge(THIRDS, 400) == pytest.approx(3.0, abs=0.01), "one floor for all of them"


# ---- learners, from what auctions see


def demand(*bids: float, rejected: int = 0) -> Demand:
    ordered = sorted(micros(*bids), reverse=True)
    second = ordered[1] if len(ordered) > 1 else 0
    return Demand(len(ordered), rejected, max(ordered, default=0), second, min(ordered, default=0))


def settle(state: Sweep, seen: Demand, ticks: int) -> list[int]:
    floors = []
    for _ in range(ticks):
        lesson = learn(saw(state, seen), seen)
        state = lesson.state
        floors.append(lesson.floor_micros)
    return floors


def test_a_sweep_never_probes_above_the_second_bid() -> None:
    """TR17, OP26."""
    floors = settle(open_sweep(100_000), demand(12, 10, 10), 200)
    assert max(floors) <= 9_900_000
    assert len(set(floors)) > 3, "it does sweep"


def test_a_floor_is_never_at_or_above_the_only_bid() -> None:
    """TR16."""
    assert set(settle(open_sweep(100_000, 50 * UNIT), demand(5), 5)) == {4_950_000}


def test_a_floor_that_rejects_everybody_goes_back_to_the_least() -> None:
    state = open_sweep(100_000, 8 * UNIT)
    for nobody in (demand(5, rejected=1), demand()):
        lesson = learn(state, nobody)
        assert (lesson.floor_micros, lesson.state) == (100_000, open_sweep(100_000))


@given(
    st.lists(st.lists(st.integers(0, 40), min_size=0, max_size=4), min_size=1, max_size=60),
    st.integers(1, 10),
    st.integers(0, 50),
)
def test_floors_obey_their_bounds_whatever_is_bid(ticks: list[list[int]], least: int, initial: int) -> None:
    state = open_sweep(least * UNIT, initial * UNIT)
    settings = quick(4, hold=1, exploit=2)
    for bids in ticks:
        seen = demand(*bids)
        lesson = learn(saw(state, seen), seen, settings)
        state = credit(lesson.state, 1_000)
        assert lesson.floor_micros == state.current_micros >= state.min_floor_micros
        alone = [bid for bid in bids if bid > 0]
        if len(alone) == 1 == len(bids):
            assert lesson.floor_micros < seen.high_micros or lesson.floor_micros == state.min_floor_micros
        if len(alone) > 1:
            assert lesson.floor_micros <= max(below_bid(seen.second_micros), state.min_floor_micros)


@given(st.integers(1, 10**8), st.integers(0, 10**8), st.integers(0, 10**8), st.integers(1, 12))
def test_candidates_stay_in_their_range(least: int, high: int, low: int, count: int) -> None:
    floors = floors_to_try(min_floor=least, high=high, low=low, count=count)
    assert 1 <= len(floors) <= max(count, 1)
    assert list(floors) == sorted(set(floors))
    assert least <= floors[0]
    assert floors[-1] <= max(high, least)


# ---- a site's learners together


def test_an_impression_teaches_its_own_category_or_else_the_site() -> None:
    state = sf.open_floors(100_000, 500_000)
    two = {"483": demand(5, 4), sf.SITE_WIDE: demand(5, 4)}
    state = sf.tick_floors(sf.see_auction(state, two), two).state
    state = sf.credit_impression(sf.credit_impression(state, "483", 3_000), "596", 2_000)
    assert state.categories["483"].results[0].revenue_micros == 3_000
    assert state.site.results[0].revenue_micros == 2_000
    assert set(state.categories) == {"483"}


def test_floors_are_pushed_only_when_they_change() -> None:
    """An unchanged floor that was pushed had the whole site auctioned once a minute."""
    one = {"483": demand(5), sf.SITE_WIDE: demand(5)}
    first = sf.tick_floors(sf.see_auction(sf.open_floors(100_000, 500_000), one), one)
    assert first.pushed
    again = sf.tick_floors(sf.see_auction(first.state, one), one)
    assert not again.pushed
    assert again.state.category_floors_micros == {"483": 4_950_000}


def test_a_category_that_no_auction_reported_on_keeps_its_floor() -> None:
    one = {"483": demand(5)}
    state = sf.tick_floors(sf.see_auction(sf.open_floors(100_000, 500_000), one), one).state
    assert sf.tick_floors(state, {}).state == state
    assert sf.tick_floors(state, {"483": demand()}).state.category_floors_micros == {"483": 100_000}


def test_v33_observations_are_bounded_newest_first() -> None:
    seen: tuple[sf.FloorObservation, ...] = ()
    for n in range(101):
        seen = sf.note(seen, sf.FloorObservation(n, "", Demand(), "init", n))
    assert (len(seen), seen[0].at_ms, seen[-1].at_ms) == (100, 100, 1)


def test_states_are_never_changed_in_place() -> None:
    state = sf.open_floors(100_000, 500_000)
    before = msgspec.structs.replace(state)
    sf.see_auction(state, {"483": demand(5, 4)})
    assert state == before
