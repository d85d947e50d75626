from hypothesis import given
from hypothesis import strategies as st

from node.ads.auction import Offer, fan_out, order_offers, rank_categories, summarize
from node.ads.taxonomy import load_taxonomy


def offer(
    creative: str, campaign: str, cpm: int, *, approved: bool = False, category: str = "483", hops: int = 0
) -> Offer:
    return Offer(creative, campaign, "adv", category, cpm, "a", "l", "d", "image/png", 300, 250, approved, hops)


OFFERS = st.lists(
    st.builds(
        offer,
        st.sampled_from([f"c{n}" for n in range(8)]),
        st.sampled_from(["A", "B", "C"]),
        st.integers(1, 5),
        approved=st.booleans(),
        hops=st.integers(0, 2),
    ),
    max_size=20,
)


def test_categories_are_ranked_by_confidence_times_weight() -> None:
    ranked = rank_categories([("a", 0.9), ("b", 0.5), ("c", 0.4), ("d", 0.3)], {"d": 1.0, "a": 0.1})
    assert [category for category, _ in ranked] == ["d", "b", "c"]
    assert rank_categories([("b", 0.5), ("a", 0.5)], {}) == (("a", 0.5), ("b", 0.5))
    assert rank_categories([("a", 0.2), ("a", 0.8)], {}) == (("a", 0.8),)


def test_fan_out_asks_the_nearest_first() -> None:
    assert fan_out(load_taxonomy(), ["96", "483"]) == {"483": 0, "96": 0, "90": 1, "52": 2}


def test_the_best_of_each_campaign_stands_first() -> None:
    ordered = order_offers(
        [offer("a1", "A", 5), offer("a2", "A", 4), offer("b1", "B", 2), offer("c1", "C", 2, approved=True)]
    )
    assert [o.creative_id for o in ordered] == ["a1", "c1", "b1", "a2"]


def test_a_creative_keeps_its_nearest_category() -> None:
    ordered = order_offers([offer("a1", "A", 5, category="52", hops=2), offer("a1", "A", 5, category="96")])
    assert [(o.creative_id, o.category) for o in ordered] == [("a1", "96")]


@given(OFFERS, st.randoms(use_true_random=False))
def test_ordering_loses_no_creative_and_ignores_arrival(offers: list[Offer], shuffler: object) -> None:
    ordered = order_offers(offers)
    assert sorted(o.creative_id for o in ordered) == sorted({o.creative_id for o in offers})
    leaders = {o.campaign_id for o in ordered[: len({o.campaign_id for o in ordered})]}
    assert leaders == {o.campaign_id for o in ordered}
    unique = list({o.creative_id: o for o in offers}.values())
    reversed_order = order_offers(list(reversed(unique)))
    assert [o.creative_id for o in reversed_order] == [o.creative_id for o in order_offers(unique)]


def test_second_price_diagnostics() -> None:
    seen = summarize(
        [offer("a", "A", 5_000_000), offer("b", "B", 3_000_000), offer("b2", "B", 1_000_000)], floor_micros=7
    )
    assert (seen.bidders, seen.max_micros, seen.second_max_micros, seen.min_micros) == (
        2,
        5_000_000,
        3_000_000,
        3_000_000,
    )
    assert seen.clearing_micros == 3_003_000
    assert summarize([offer("a", "A", 5)], floor_micros=2).clearing_micros == 2
    assert summarize([offer("a", "A", 5_000), offer("b", "B", 5_000)], floor_micros=2).clearing_micros == 5_000
    assert summarize([], floor_micros=2).bidders == 0
