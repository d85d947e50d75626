"""Serving: the rows T18 to T41 of the vectors, by the pure rules that decide them."""

from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads import explain, freshness, pins
from node.ads import messages as m
from node.ads.batch import choose_again, choose_all, impressed, slot_order
from node.ads.creative_stats import RollingStats
from node.ads.decide import SlotDecision, decide_slot, outcomes, why_empty
from node.ads.entities.site_terms import floor_by_category
from node.ads.page_winners import WINNER_TTL_MS, PageWinners
from node.ads.selection import COLD, CreativeStats
from node.ads.serve_stats import Filled, ServeStats, count_batch, count_paced, count_stale
from node.ads.slot_plan import Rules, plan_slot
from node.ads.view import CandidateView, ServeView
from node.core.limits import page_winners_pages_max

UNIT = 1_000_000
HOUR_MS = 3_600_000
MINUTE_MS = 60_000
NOW = 1_000 * HOUR_MS


def candidate(
    creative: str, *, campaign: str = "", cpm: float = 3.0, category: str = "483", size: tuple[int, int] = (300, 250)
) -> CandidateView:
    return CandidateView(
        creative, campaign or f"campaign-{creative}", "adv", "", "", "", "", *size, category, round(cpm * UNIT), NOW
    )


def view(*candidates: CandidateView) -> ServeView:
    return ServeView(candidates, NOW, NOW + HOUR_MS)


def rules(**changed: Callable[[str], bool] | bool | set[str]) -> Rules:
    given_ = {"approved": lambda _: True, "blocked": lambda _: False, "left_of": lambda _: None, "bid_weight": 0.5}
    return Rules(**(given_ | changed))  # type: ignore[arg-type]


def decide(
    pool: ServeView,
    *,
    slot: str = "top",
    pin: str = "",
    floor_of: Callable[[str], int] = lambda _: UNIT // 2,
    with_rules: Rules | None = None,
) -> SlotDecision:
    reach = dict.fromkeys((c.category for c in pool.candidates), 0)
    request = m.SlotRequest(slot, 300, 250, pin)
    known = with_rules or rules()
    plan = plan_slot(request, pool, reach, floor_of, known)
    return decide_slot(request, plan, lambda _: COLD, known, np.random.default_rng(3))


def floors(site: float, categories: dict[str, float] | None = None, slot: float | None = None) -> Callable[[str], int]:
    """As a site's settings say them, of the slot `top`."""
    settings = m.SiteSettings(
        "s", "s", "p", (), round(site * UNIT), 0.5, False, (), b"", 0, (),
        category_floors={name: round(floor * UNIT) for name, floor in (categories or {}).items()},
        slot_floors={} if slot is None else {"top": round(slot * UNIT)},
    )  # fmt: skip
    return floor_by_category(settings, "top")


def cleared(pool: ServeView, floor_of: Callable[[str], int]) -> float | None:
    """What the winner would pay, in units; None without one."""
    decision = decide(pool, floor_of=floor_of)
    choose_all([decision], [0])
    return None if decision.chosen is None else decision.chosen.price_micros / UNIT


@pytest.mark.parametrize(
    ("cpm", "floor_of", "price"),
    [
        (3.0, floors(0, {"483": 1}), 1.0),  # T29
        (3.0, floors(0, {"483": 4}), None),
        (1.0, floors(5, slot=1), 1.0),  # T31
        (1.0, floors(5, slot=0.75), 0.75),
        (1.0, floors(5), None),
        (1.75, floors(0.5), 0.5),  # T35
    ],
)
def test_t29_t31_t35_a_sole_candidate_pays_the_floor_that_binds_it(
    cpm: float, floor_of: Callable[[str], int], price: float | None
) -> None:
    assert cleared(view(candidate("a", cpm=cpm)), floor_of) == price


@pytest.mark.parametrize(
    ("floor_of", "prices"),
    [
        (floors(1), (1.0, 1.0, 1.0)),
        (floors(1, {"1": 1, "2": 2, "3": 3}), (1.0, 2.0, 3.0)),
        (floors(3), (None, None, 3.0)),
    ],
)
def test_t34_floors_bind_by_category(floor_of: Callable[[str], int], prices: tuple[float | None, ...]) -> None:
    """A lone bid in each of three categories."""
    pools = [view(candidate(f"c{n}", cpm=n, category=str(n))) for n in (1, 2, 3)]
    assert tuple(cleared(pool, floor_of) for pool in pools) == prices


def winner(decision: SlotDecision) -> str:
    return decision.chosen.candidate.creative_id if decision.chosen is not None else ""


def test_a_slot_that_the_site_has_not_is_no_slot_without_a_pool() -> None:
    for slots, why in ((frozenset({"top"}), "no_pool"), (frozenset({"side"}), "unknown_slot"), (None, "no_pool")):
        known = msgspec.structs.replace(rules(), slots=slots)
        request = m.SlotRequest("top", 1, 1)
        plan = plan_slot(request, None, {}, lambda _: 0, known)
        empty = decide_slot(request, plan, lambda _: COLD, known, np.random.default_rng(3))
        assert why_empty(empty) == why


def test_t18_minutes_are_buckets() -> None:
    stats = RollingStats()
    for _ in range(2):
        stats.record("c", MINUTE_MS, folds=1)
    assert stats.of("c", MINUTE_MS) == CreativeStats(0, 0, 2)
    stats.record("c", MINUTE_MS + 1, impressions=2, clicks=1)
    stats.record("c", MINUTE_MS * 2 - 1, folds=-1)
    assert stats.of("c", MINUTE_MS) == CreativeStats(2, 1, 1)
    assert stats.of("c", 61 * MINUTE_MS) == COLD


@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([[Filled(2 * UNIT)]], ServeStats(selected=1, spend_micros=2_000)),  # T19
        ([[Filled(0, pinned=True)]], ServeStats(selected=1)),  # T20
        ([[Filled(2 * UNIT), Filled(0, pinned=True)]], ServeStats(selected=2, spend_micros=2_000)),  # T21
        ([[None, None]], ServeStats(no_candidates=1)),  # T22
        ([[Filled(0, pinned=True), Filled(0, pinned=True)]], ServeStats(selected=2)),
        ([[Filled(2 * UNIT)], [Filled(3 * UNIT)]], ServeStats(selected=2, spend_micros=5_000)),  # T23
    ],
)
def test_t19_t23_a_batch_is_booked_at_what_is_charged(batches: list[list[Filled | None]], expected: ServeStats) -> None:
    """T19, T20, T21, T22, T23."""
    stats = ServeStats()
    for slots in batches:
        stats = count_batch(stats, slots, NOW + 5 * HOUR_MS)
    paid = sum(slot is not None and not slot.pinned for slots in batches for slot in slots)
    hour = (NOW // HOUR_MS + 5) % 24
    assert stats.hourly == tuple(paid if index == hour else 0 for index in range(24))
    assert (stats.selected, stats.spend_micros, stats.no_candidates) == (
        expected.selected,
        expected.spend_micros,
        expected.no_candidates,
    )


def test_a_free_pin_is_not_booked_at_its_bid() -> None:
    """TR31, OP44."""
    stats = count_batch(ServeStats(), [Filled(5 * UNIT, pinned=True)], NOW)
    assert (stats.spend_micros, sum(stats.hourly)) == (0, 0)


def test_page_views_without_an_ad_are_told_apart() -> None:
    stats = count_stale(count_paced(count_paced(ServeStats(), hard_stop=True), hard_stop=False))
    assert (stats.budget_exhausted, stats.pacing_skipped, stats.content_too_old) == (1, 1, 1)


# ---- freshness


@pytest.mark.parametrize(
    ("age_ms", "window_ms", "wanted"),
    [
        (None, HOUR_MS, True),  # T24
        (10 * MINUTE_MS, HOUR_MS, False),  # T25
        (2 * HOUR_MS, HOUR_MS, True),
        (3 * HOUR_MS, HOUR_MS, True),  # T26
        (3 * HOUR_MS, 0, False),
    ],
)
def test_t24_t26_when_text_is_wanted(age_ms: int | None, window_ms: int, wanted: bool) -> None:
    """T24, T25, T26."""
    classified_at_ms = None if age_ms is None else NOW - age_ms
    assert (freshness.reclassify_in_ms(classified_at_ms, NOW, window_ms) <= 0) is wanted
    if age_ms is None:
        assert freshness.reclassify_in_ms(None, NOW, window_ms) == 0


@pytest.mark.parametrize(("expired", "at", "taken"), [(5, 5, False), (5, 4, False), (5, 6, True), (None, 5, True)])
def test_t27_only_a_newer_classification_clears_an_expiry(expired: int | None, at: int, taken: bool) -> None:
    assert freshness.accepts(expired, at) is taken


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(1, 10**9))
def test_what_is_fresh_can_be_auctioned_and_what_is_not_asks_for_text(at: int, age: int, window: int) -> None:
    """TR12. Restoring, cleaning up and the token of a reply follow one predicate, or they would chase each other."""
    assert freshness.is_fresh(at, at + age, window) == (age < window)
    assert freshness.is_fresh(at, at + age, window) == (freshness.reclassify_in_ms(at, at + age, window) > 0)


def test_a_publishers_window_is_held_to_a_day_and_a_week() -> None:
    assert [freshness.window_ms(hours * HOUR_MS) // HOUR_MS for hours in (0, 1, 24, 100, 1_000)] == [
        48,
        24,
        24,
        100,
        168,
    ]


# ---- a batch


def test_t28_only_winners_teach() -> None:
    pool = view(candidate("a"))
    first, pinned, empty = decide(pool), decide(view(candidate("b")), pin="b"), decide(view())
    fallen = decide(view(candidate("c")), pin="gone")
    choose_all([first, pinned, empty, fallen], [1, 0, 2, 3])
    assert [winner(d) for d in (first, pinned, empty, fallen)] == ["a", "b", "", "c"]
    assert impressed([first, pinned, empty]) == ["a"]
    assert impressed([fallen]) == ["c"]


def test_t38_each_refused_candidate_is_tried_once() -> None:
    decision = decide(view(*(candidate(name) for name in "abc")))
    choose_all([decision], [0])
    tried = []
    while decision.chosen is not None:
        tried.append(winner(decision))
        decision.refused[tried[-1]] = explain.BUDGET
        choose_again(decision, [decision])
    assert sorted(tried) == ["a", "b", "c"]


@pytest.mark.parametrize(("names", "expected"), [("a", "a"), ("ab", "b")])
def test_t40_who_won_the_page_a_moment_ago_steps_back(names: str, expected: str) -> None:
    decision = decide(view(*(candidate(name) for name in names)))
    choose_all([decision], [0], {"campaign-a": explain.RECENT_ON_PAGE})
    assert winner(decision) == expected
    told = {row.creative_id: row.reason for row in outcomes(decision)}
    assert told["a"] in (("",) if names == "a" else (explain.RECENT_ON_PAGE, explain.OUTSCORED))


def test_t41_a_pin_needs_no_floor_no_pace_and_no_money() -> None:
    pool = view(candidate("a"), candidate("b", cpm=0.1))
    held = rules(served=False, left_of=lambda _: 0)
    decision = decide(pool, pin="b", with_rules=held)
    choose_all([decision], [0], {"campaign-b": explain.RECENT_ON_PAGE})
    assert decision.chosen is not None
    assert (winner(decision), decision.chosen.price_micros, decision.chosen.pinned) == ("b", 0, True)
    rows = {row.creative_id: (row.outcome, row.reason) for row in outcomes(decision)}
    assert rows == {"a": (explain.FILTERED, explain.PACED), "b": (explain.WON, explain.PINNED)}


def test_t41_a_pin_that_is_gone_gives_way_to_the_auction() -> None:
    decision = decide(view(candidate("a")), pin="gone")
    choose_all([decision], [0])
    assert winner(decision) == "a"
    fates = [pins.fate("gone", shown=False, approved=approved) for approved in (False, True)]
    assert fates == [pins.REMOVED, pins.NOT_HERE]
    assert pins.fate("a", shown=True, approved=True) == pins.HONOURED
    assert pins.fate("", shown=False, approved=False) == ""


def test_an_unapproved_pin_is_never_shown() -> None:
    decision = decide(view(candidate("a")), pin="a", with_rules=rules(approved=lambda _: False))
    choose_all([decision], [0])
    assert decision.chosen is None


def test_a_pin_locks_its_campaign_for_the_other_slots() -> None:
    both = view(candidate("a", campaign="one"), candidate("b", campaign="one"), candidate("c"))
    pinned, other = decide(both, slot="s1", pin="a"), decide(both, slot="s2")
    choose_all([other, pinned], [1, 0])
    assert (winner(pinned), winner(other)) == ("a", "c")


def test_a_page_view_that_is_not_served_shows_nothing_but_pins() -> None:
    decision = decide(view(candidate("a")), with_rules=rules(served=False))
    choose_all([decision], [0])
    assert decision.chosen is None
    ahead = decide(view(candidate("a"), candidate("b")), with_rules=rules(paced_out={"campaign-a"}))
    choose_all([ahead], [0])
    assert winner(ahead) == "b"


def test_pinned_slots_choose_first_the_largest_of_them_first() -> None:
    slots = [
        m.SlotRequest("s0", 300, 250),
        m.SlotRequest("s1", 300, 250, "a"),
        m.SlotRequest("s2", 970, 250, "b"),
        m.SlotRequest("s3", 300, 600),
    ]
    orders = {tuple(slot_order(slots, np.random.default_rng(seed))) for seed in range(20)}
    assert orders == {(2, 1, 0, 3), (2, 1, 3, 0)}


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=12), st.integers(1, 4), st.integers(0, 99))
def test_nobody_is_used_twice_in_a_batch(pool: list[tuple[int, int]], slots: int, seed: int) -> None:
    shared = view(*{f"c{n}": candidate(f"c{n}", campaign=f"k{k}") for n, k in pool}.values())
    decisions = [decide(shared, slot=f"s{n}", pin="c0" if n == seed % 4 else "") for n in range(slots)]
    choose_all(decisions, slot_order([d.request for d in decisions], np.random.default_rng(seed)))
    chosen = [d.chosen.candidate for d in decisions if d.chosen is not None]
    assert len({c.creative_id for c in chosen}) == len({c.campaign_id for c in chosen}) == len(chosen)
    assert len(chosen) == min(slots, len({c.campaign_id for c in shared.candidates}))


def test_winners_of_a_page_are_remembered_for_a_while() -> None:
    winners = PageWinners()
    winners.won("p", ["a"], 0)
    winners.won("p", ["b"], 1_000)
    winners.won("q", [], 1_000)
    assert winners.recent("p", 1_000) == {"a", "b"}
    assert winners.recent("p", WINNER_TTL_MS) == {"b"}
    assert winners.recent("q", 1_000) == frozenset()
    winners.sweep(2 * WINNER_TTL_MS)
    for n in range(page_winners_pages_max + 1):
        winners.won(f"p{n}", ["a"], 0)
    assert winners.recent("p0", 1) == frozenset()
    assert winners.recent("p1", 1) == {"a"}
