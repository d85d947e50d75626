"""Which of two releases is newer: vectors, and that it is an order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.app_version import parse, version_key
from node.core.errors import BadInput

# Oldest first.
IN_ORDER = (
    "2026-11-28", "2026-11-29", "dev", "0.9", "1.1.9", "1.2.0.dev4", "1.2-M1", "1.2-M2", "1.2.0rc1", "1.2",
    "1.2+3-0a1b2c", "1.2.0+10-0a1b2c", "1.2.1", "1.10.0", "2-RC1", "2",
)  # fmt: skip


def test_releases_are_in_the_order_in_which_they_are_made() -> None:
    keys = [version_key(text) for text in IN_ORDER]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(("one", "other"), [("1.2", "1.2.0"), ("2", "2.0.0"), ("1.2+3-a", "1.2.0+3.b")])
def test_what_is_not_said_is_nothing(one: str, other: str) -> None:
    assert parse(one) == parse(other)


@pytest.mark.parametrize("text", ["1.2.3.4", "", "dev", "1..2", "1.2-", "1.2+abc", "-1", "1.2 ", "1" * 10, "٣.1"])
def test_what_is_no_release_is_refused_and_older_than_any(text: str) -> None:
    with pytest.raises(BadInput, match="three numbers"):
        parse(text)
    assert version_key(text) < version_key("0")


@given(st.lists(st.one_of(st.sampled_from(IN_ORDER), st.text(max_size=8)), max_size=6))
def test_any_texts_can_be_ordered(texts: list[str]) -> None:
    assert sorted(map(version_key, texts)) == sorted(map(version_key, reversed(texts)))
