"""Every table and every pane as the pure functions that they are: over full, empty, absent and hostile answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from textual.binding import Binding
from tui_answers import everything
from tui_stage import HOSTILE, META, event, node, push

from node.admin.protocol.diagnosis import RateItem, RateList
from node.core.clock import SECOND
from promovolvectl.tui import keys
from promovolvectl.tui.app import BOARDS
from promovolvectl.tui.incoming import Happened, Opened, Pushed, Told
from promovolvectl.tui.rows import Cell, Column, Order, Row, matching, ordered
from promovolvectl.tui.screens.listing import Listing
from promovolvectl.tui.state import State, reduce
from promovolvectl.tui.tables.nodes import LEVEL, RATES
from promovolvectl.tui.views import Glance, Level, View, Where

T = 5_000_000_000_000
Answer = Callable[[Any], msgspec.Struct]


def begun(*names: str) -> State:
    state = State(profile="local")
    for incoming in (Opened(T, "api-1"), Pushed(T, push(*map(node, names))), Happened(event())):
        state = reduce(state, incoming)
    return state


def answered(state: State, answer: Answer, queries: tuple[Any, ...]) -> State:
    for query in queries:
        state = reduce(state, Told(T, query.params, answer(query.params), META))
    return state


def levels() -> Iterator[tuple[str, View, int, Level]]:
    for board in BOARDS:
        if issubclass(board, Listing):
            for view in board.VIEWS:
                for depth, level in enumerate(view.levels):
                    yield board.NAME, view, depth, level


LEVELS = list(levels())
each_level = pytest.mark.parametrize(
    ("view", "depth", "level"),
    [pytest.param(view, depth, level, id=f"{name}-{view.name}-{depth}") for name, view, depth, level in LEVELS],
)


def place_of(view: View, depth: int, state: State, answer: Answer) -> tuple[State, Where]:
    """The way down to a level: the first row of each table above it."""
    where: Where = ()
    for level in view.levels[:depth]:
        state = answered(state, answer, level.queries(state, where))
        where = (*where, level.rows(state, where)[0].key)
    if depth and view.levels[0].name == "shards":
        where = (*where[:-1], "1")  # entities of the shard that the answers name
    elif depth == 2:
        where = (where[0], "1")
    return state, where


@each_level
@pytest.mark.parametrize("words", [("thing",), HOSTILE], ids=["plain", "hostile"])
def test_rows_and_panes_show_what_was_told(view: View, depth: int, level: Level, words: tuple[str, ...]) -> None:
    answer = everything(words)
    state, where = place_of(view, depth, begun(*words), answer)
    for _ in range(2):  # an answer may raise the next question
        state = answered(state, answer, level.queries(state, where))
    rows = level.rows(state, where)
    columns = level.columns(state)
    assert rows
    assert len({row.key for row in rows}) == len(rows), "a row's key tells it apart"
    assert all(len(row.cells) == len(columns) for row in rows)
    level.more(state, where)
    for tab in level.tabs:
        here = (*where, rows[0].key)
        told = answered(state, answer, tab.queries(state, here))
        for width in (24, 118):
            lines = tab.draw(Glance(told, T, width), here)
            assert lines, tab.name
            text = "\n".join("".join(piece for piece, _ in line) for line in lines)
            assert "\x1b" not in text
            assert "\u202e" not in text


@each_level
def test_without_answers_there_are_no_rows_and_nothing_fails(view: View, depth: int, level: Level) -> None:
    state = State(profile="local")
    for there in (state, begun()):
        where = ("1",) * depth
        rows = level.rows(there, where)
        pushed = {"events": ["0"], "figures": ["requests", "coverage", "lag", "moving"]} if there.events else {}
        assert [row.key for row in rows] == pushed.get(level.name, [])
        level.columns(there)
        level.more(there, where)
        for tab in level.tabs:
            tab.draw(Glance(there, T, 40), (*where, "1"))


@each_level
def test_empty_answers_leave_a_reason(view: View, depth: int, level: Level) -> None:
    state = begun()
    where = ("1",) * depth
    state = answered(state, everything(empty=True), level.queries(state, where))
    if not level.pushed:
        assert not [row for row in level.rows(state, where) if level.name != "shards"]
    assert level.empty


@each_level
def test_a_pane_has_no_key_that_its_table_has(view: View, depth: int, level: Level) -> None:
    bound = [binding for binding in (*keys.TABLE, *keys.LISTING) if isinstance(binding, Binding)]
    taken = {key for binding in bound for key in binding.key.split(",")}
    assert taken
    assert not {tab.key for tab in level.tabs} & taken


ROWS = [
    Row("a", (Cell("alpha"), Cell("10 000", rank=10_000.0), Cell("● up"))),
    Row("b", (Cell("beta"), Cell("9", rank=9.0), Cell("? unreachable"))),
    Row("c", (Cell("node-10"), Cell("9", rank=9.0), Cell("● up")), "extra"),
    Row("d", (Cell("node-9"), Cell("-", rank=0.0), Cell("● up"))),
]
COLUMNS = (Column("NAME"), Column("COUNT", right=True), Column("STATE"))


@pytest.mark.parametrize(
    ("needle", "found"),
    [
        ("", "abcd"),
        ("up", "acd"),
        ("!up", "b"),
        ("up EXTRA", "c"),
        ("count>9", "a"),
        ("count<9", "d"),
        ("count=9 !beta", "c"),
        ("name!=alpha", "bcd"),
        ("state=up", "acd"),
        ("state!=UP", "b"),
        ("state=?", ""),
        ("state=p", ""),
        ("nothere=1", ""),
        ("count>x", ""),
        ("!", "abcd"),
    ],
)
def test_a_filter_meets_every_word(needle: str, found: str) -> None:
    assert "".join(row.key for row in matching(ROWS, COLUMNS, needle)) == found


def test_order_is_natural_by_rank_and_stable() -> None:
    assert "".join(row.key for row in ordered(ROWS, Order(by=0))) == "abdc"
    assert "".join(row.key for row in ordered(ROWS, Order(by=1))) == "dbca"
    assert "".join(row.key for row in ordered(ROWS, Order(by=1, reverse=True))) == "abcd"
    assert "".join(row.key for row in ordered(ROWS, Order(reverse=True))) == "dcba"
    assert len(ordered(ROWS, Order(by=7))) == len(ROWS)


def test_a_nodes_columns_are_as_wide_at_the_first_sample_as_at_the_hundredth() -> None:
    """The last column went out of sight as the chart before it grew."""
    rate = RateItem(
        node="entity-1",
        interval_ms=1000,
        rss_bytes=1,
        entities=0,
        shards=0,
        max_lag_ms=0,
        cpu_ratio=0.4,
        requests_per_s=0.0,
        messages_per_s=0.0,
        writes_per_s=0.0,
        unhandled_per_s=0.0,
        run_queue=0,
    )
    widths: set[int] = set()
    state = begun("entity-1")
    for second in range(100):
        (row,) = LEVEL.rows(state, ())
        place = next(n for n, column in enumerate(LEVEL.columns(state)) if column.title == "CPU")
        widths.add(len(row.cells[place].text))
        told = Told(T + second * SECOND, RATES.params, RateList(items=(rate,)), META)
        state = reduce(state, told)
    assert len(widths) == 1, widths
