"""Patterns of types that no fact, or no event, can have are refused and not answered with nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import node.ads.facts  # its types are registered
from node.admin.type_patterns import EVENT_AREAS, expect_fact_types, expect_topics
from node.core.errors import BadInput

SOURCE = Path(node.ads.facts.__file__).parents[1]


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


@pytest.mark.parametrize("pattern", ["shard.*", "shard.moved", "*", "*.moved", "node.*cordoned", "n*.up", "shard*"])
def test_a_pattern_that_fits_events_of_an_area_is_taken(pattern: str) -> None:
    expect_topics([pattern])


@pytest.mark.parametrize(
    ("pattern", "meant"), [("banana", ""), ("shard", "shard.*"), ("shards.*", "shard.*"), ("", ""), ("x*", "")]
)
def test_an_event_of_an_area_that_there_is_not_is_a_mistake(pattern: str, meant: str) -> None:
    with pytest.raises(BadInput) as refused:
        expect_topics(["node.*", pattern])
    assert repr(pattern) in refused.value.message
    assert not meant or refused.value.hint == f"--type '{meant}'"


def test_the_areas_are_those_of_all_events_that_are_emitted() -> None:
    emitted = re.compile(r'emit\(\s*f?"([a-z_]+)\.')
    told = re.compile(r'"([a-z]+)\.[a-z_]+"|f"([a-z]+)\.\{')
    found = {name for file in SOURCE.rglob("*.py") for name in emitted.findall(file.read_text())}
    words = told.findall((SOURCE / "engine" / "events.py").read_text())
    found |= {plain or computed for plain, computed in words}
    assert found == set(EVENT_AREAS)
