"""What a screen is made of, as data: views of tables, tables that lead to others, panes that follow the cursor.

All functions here are given the state and where the person is: the keys that were entered, from the outermost table to
the row under the cursor. They return rows or lines and ask nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Column, Newest, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line

Where = tuple[str, ...]


class Glance(NamedTuple):
    """What is drawn: the state, at a moment (monotonic ns), on so many columns."""

    state: State
    now_ns: int
    width: int


def no_queries(_state: State, _where: Where) -> tuple[Query, ...]:
    """For what is pushed, or drawn from what others asked."""
    return ()


@dataclass(frozen=True, slots=True)
class Tab:
    """A pane about the row under the cursor, chosen by `key`. `empty` says why there may be no lines."""

    key: str
    name: str
    draw: Callable[[Glance, Where], list[Line]]
    queries: Callable[[State, Where], tuple[Query, ...]] = no_queries
    empty: str = "the cluster has told nothing of this"


@dataclass(frozen=True, slots=True)
class Level:
    """A table. `columns` may depend on what was told, as replicas do. The first query's answer is the table's source;
    without queries it is the pushed status. `empty` says why there may be no rows. `onward`: what the next page begins
    behind, empty at the last; `asked`: the words of a filter that go to the cluster, such as `node` of `node=api-1`.
    `newest`: where new rows come; the cursor begins there, and stays until it is moved. `leads`: whether there is
    something to be told of what is within that row; of one that leads nowhere its pane tells."""

    name: str
    columns: Callable[[State], tuple[Column, ...]]
    rows: Callable[[State, Where], Sequence[Row]]
    queries: Callable[[State, Where], tuple[Query, ...]] = no_queries
    tabs: tuple[Tab, ...] = ()
    empty: str = "none"
    more: Callable[[State, Where], str] = field(default=lambda _state, _where: "")
    onward: Callable[[State, Where], str] = field(default=lambda _state, _where: "")
    asked: tuple[str, ...] = ()
    pushed: bool = False
    newest: Newest = ""
    leads: Callable[[State, str], bool] = field(default=lambda _state, _key: True)


@dataclass(frozen=True, slots=True)
class View:
    """A table and those that its rows lead to, outermost first."""

    name: str
    levels: tuple[Level, ...]


def fixed(*columns: Column) -> Callable[[State], tuple[Column, ...]]:
    """Columns that are always the same."""
    return lambda _state: columns


def source_of(level: Level, state: State, where: Where) -> msgspec.Struct | None:
    """The question whose answer the table shows; None for what is pushed."""
    queries = level.queries(state, where)
    return queries[0].params if queries and not level.pushed else None
