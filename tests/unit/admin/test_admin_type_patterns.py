"""Patterns of types that no fact, or no event, can have are refused and not answered with nothing."""

from __future__ import annotations

import pytest

import node.ads.facts  # noqa: F401 - its types are registered
from node.admin.type_patterns import expect_fact_types, expect_topics, strange_topics
from node.core.errors import BadInput


@pytest.mark.parametrize("pattern", ["click", "creative_*", "*", "c?ick", "[ci]*"])
def test_a_pattern_that_fits_some_type_of_fact_is_taken(pattern: str) -> None:
    expect_fact_types([pattern])


@pytest.mark.parametrize(
    ("pattern", "meant"), [("banana", ""), ("clicks", "click"), ("impresion", "impression"), ("fact.click", "click")]
)
def test_a_fact_of_a_type_that_there_is_not_is_a_mistake(pattern: str, meant: str) -> None:
    """`facts list --type banana` was empty, with 0."""
    with pytest.raises(BadInput) as refused:
        expect_fact_types(["click", pattern])
    assert repr(pattern) in refused.value.message
    assert not meant or f"Did you mean {meant!r}" in refused.value.message


@pytest.mark.parametrize(
    "pattern", ["shard.*", "shard.moved", "*", "*.moved", "node.*cordoned", "n*.up", "shard*", "replica.older_copy"]
)
def test_a_pattern_that_fits_some_event_is_taken(pattern: str) -> None:
    expect_topics([pattern])


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("banana", ""),
        ("shard", "shard.*"),
        ("shards.*", "shard.*"),
        ("shard.mooved", "shard.moved"),
        ("shard.banana.*", "shard.*"),
        ("node.weakly-up", "node.weakly_up"),
        ("shards.moved", "shard.moved"),
        ("moved", "shard.moved"),
        ("fence", "shard.fenced"),
        ("shard.banana", "shard.*"),
        ("", ""),
        ("x*", ""),
    ],
)
def test_an_event_that_there_is_not_is_a_mistake(pattern: str, meant: str) -> None:
    """`events --type shard.mooved` was empty, with 0: only what stands before the dot was looked at."""
    with pytest.raises(BadInput) as refused:
        expect_topics(["node.*", pattern])
    assert repr(pattern) in refused.value.message
    assert (f"Did you mean {meant!r}" in refused.value.message) == bool(meant)
    assert not meant or refused.value.hint == f"--type '{meant}'"


def test_what_there_is_in_an_area_is_told_with_it() -> None:
    with pytest.raises(BadInput, match=r"there are: coordinator.elected, coordinator.lost\."):
        expect_topics(["coordinator.banana"])


def test_an_event_of_a_later_release_is_found_where_one_was_seen() -> None:
    expect_topics(["shard.split", "shard.moved"], {"shard.split"})
    assert strange_topics(["shard.split", "shard.moved"]) == ("shard.split",)
    with pytest.raises(BadInput):
        expect_topics(["shard.split"], {"shard.melted"})
