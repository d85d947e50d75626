import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.admin.targets import no_category
from node.ads.auction import decayed_score
from node.ads.taxonomy import Category, Taxonomy, load_taxonomy

TAXONOMY = load_taxonomy()
IDS = sorted(category.id for category in TAXONOMY)


def test_it_is_content_taxonomy_3_0() -> None:
    assert len(TAXONOMY) == 704
    names = {"483": "Sports", "596": "Technology & Computing", "52": "Business and Finance", "653": "Travel"}
    names |= {"210": "Food & Drink", "1": "Automotive", "JLBCU7": "Entertainment"}
    assert {i: TAXONOMY.name(i) for i in names} == names
    assert sum(category.parent is None for category in TAXONOMY) == 37


def test_q7_hops_of_a_deep_category() -> None:
    assert TAXONOMY.expand_with_hops({"96"}) == {"96": 0, "90": 1, "52": 2}
    assert TAXONOMY.expand_with_hops({"96", "52"}) == {"96": 0, "90": 1, "52": 0}
    assert TAXONOMY.path("96") == ["Business and Finance", "Industries", "Food Industry"]


def test_q6_decay_per_hop() -> None:
    assert [decayed_score(1.0, hops) for hops in (0, 1, 2)] == pytest.approx([1.0, 0.7, 0.49])
    assert decayed_score(0.9, 0, suggested=True) == 1.0


@pytest.mark.parametrize(
    ("legacy", "current"),
    [("IAB17", "483"), ("IAB19", "596"), ("IAB2", "1"), ("IAB3", "52"), ("IAB20", "653"), ("IAB17-3", "483")],
)
def test_v21_legacy_ids(legacy: str, current: str) -> None:
    assert TAXONOMY.normalize(legacy) == current
    assert TAXONOMY.normalize(f" {legacy.lower()} ") == current


@pytest.mark.parametrize("unknown", ["IAB24", "IAB99-1", "no-such", "IABx", "999999"])
def test_v21_unknown_ids_pass_through(unknown: str) -> None:
    assert TAXONOMY.normalize(unknown) == unknown
    assert TAXONOMY.expand_with_hops({unknown}) == {unknown: 0}
    assert TAXONOMY.keep_most_specific({unknown}) == {unknown}
    assert TAXONOMY.path(unknown) == [unknown]


def test_v21_keep_most_specific() -> None:
    assert TAXONOMY.keep_most_specific({"497", "496", "483"}) == {"497"}


@given(st.sets(st.sampled_from(IDS), max_size=6))
def test_specific_categories_reach_everything_that_was_dropped(ids: set[str]) -> None:
    kept = TAXONOMY.keep_most_specific(ids)
    reach = TAXONOMY.expand_with_hops(kept)
    assert ids <= set(reach)
    assert all(reach[category_id] == 0 for category_id in kept)
    assert not any(above in kept for category_id in kept for above in TAXONOMY.ancestors(category_id))


def test_a_broken_tree_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown or a cycle"):
        Taxonomy([Category("a", "A", "b"), Category("b", "B", "a")])


def test_who_types_a_name_for_an_id_is_told_the_ids_of_that_name() -> None:
    assert [category.id for category in TAXONOMY.nearest("travel")][:1] == ["653"]
    assert TAXONOMY.nearest("sportz")[0].id == "483"
    assert TAXONOMY.nearest("") == TAXONOMY.nearest("q" * 40) == []
    refused = no_category("categories", "travel", "--category")
    assert refused.hint == "--category 653"
    assert "by name there is 653 (Travel)" in refused.message
    assert no_category("blocked_categories", "q" * 80, "--block-category").hint == "--block-category 653"
