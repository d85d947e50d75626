"""Data becomes text and nothing else; widths are what a terminal counts."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from tui_stage import HOSTILE, HOSTILE_SHOWN

from promovolvectl.client.visible import visible
from promovolvectl.tui.text import (
    clock_time,
    content_of,
    count,
    fitted,
    lag,
    natural,
    padded,
    short,
    size,
    span,
    width_of,
    wrapped,
)
from promovolvectl.tui.widgets.sparkline import chart, sparkline


@pytest.mark.parametrize(("data", "as_shown"), list(zip(HOSTILE, HOSTILE_SHOWN, strict=True)))
def test_hostile_names_are_shown_as_they_are(data: str, as_shown: str) -> None:
    assert visible(data) == as_shown
    content = content_of([[(visible(data), "bold")]])
    assert content.plain == as_shown
    assert [str(span_.style) for span_ in content.spans] == ["bold"]


@given(st.text())
def test_nothing_that_drives_a_terminal_is_left(data: str) -> None:
    assert not any(
        ord(char) < 32 or 127 <= ord(char) < 160 or char in "\u2028\u2029\u202e\u2066" for char in visible(data)
    )


@given(st.text().map(visible), st.integers(2, 40))
def test_shortened_and_padded_text_keeps_its_width(data: str, width: int) -> None:
    assert cell_len(short(data, width)) <= width
    assert cell_len(padded(data, width)) == width
    assert cell_len(padded(data, width, right=True)) == width
    assert width_of(fitted([(data, "a"), (data, "b")], width)) <= width


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Mn", "Me", "Cf"])), st.integers(2, 30), st.integers(1, 5))
@example("0 000", 2, 2)
def test_wrapped_lines_fit(data: str, width: int, most: int) -> None:
    lines = wrapped(data, width, most)
    assert len(lines) <= most
    assert all(cell_len(line) <= width for line in lines)


def test_wrapping_loses_no_word() -> None:
    words = "no answer; replica: 3 of 32 maps differ averyveryverylongword end"
    assert "".join(wrapped(words, 12, 99)).replace(" ", "") == words.replace(" ", "")
    assert wrapped(words, 12, 2)[-1].endswith("…")


def test_figures_for_people() -> None:
    assert count(38112) == "38 112"
    assert [size(900), size(1536), size(880 << 20)] == ["900 B", "1.5 KiB", "880 MiB"]
    assert [span(0.4), span(62), span(9 * 86400 + 4 * 3600)] == ["0.4s", "1m2s", "9d4h"]
    assert [lag(12), lag(38_000)] == ["12ms", "38s"]
    assert clock_time("2026-11-29T14:03:07.113Z") == "14:03:07"
    assert clock_time("[red]when") == "[red]whe"
    assert sorted(["node-10", "node-9", "api"], key=natural) == ["api", "node-9", "node-10"]


def test_bars_start_at_zero_and_what_is_not_known_is_blank() -> None:
    assert sparkline([], 3) == "   "
    assert sparkline([0, 0], 3) == " ▁▁"
    assert sparkline([0, 50, 100], 3) == "▁▅█"
    assert sparkline([1, 1000], 2) == "▂█", "little is more than nothing"
    assert sparkline(range(100), 4)[-1] == "█"


def test_a_gap_is_blank_in_bars_and_in_charts() -> None:
    assert sparkline([100, None, 100], 3) == "█ █"
    lines = ["".join(text for text, _ in line) for line in chart([0, 10, None, 5], 12, 2, lambda value: f"{value:.0f}")]
    assert lines == ["10 ┤     █  ", " 0 ┤    ▁█ █"]
