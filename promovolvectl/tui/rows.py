"""Tables as data: columns, rows with an identity, and which rows are shown in which order. Nothing here draws."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from promovolvectl.tui.text import natural

Newest = Literal["", "first", "last"]  # where the newest row of a table is
ROWS_MAX: Final = 1_000  # longer lists are paged by the node that has them


class Cell(NamedTuple):
    """Text and style; `rank` is what it sorts by where the text would mislead, as a size in words does."""

    text: str
    style: str = ""
    rank: float | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """At most `width` columns of a terminal; figures stand at the right. `stays`: it names the row, so that it is seen
    however far the others are shifted; the first column always does."""

    title: str
    width: int = 24
    right: bool = False
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """`key` tells it apart from all others, whatever happens to its cells. `words`: what else a filter finds it by.
    `about`: the object that it is about, where several may be about one, at once or one after the other."""

    key: str
    cells: tuple[Cell, ...]
    words: str = ""
    about: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """Which rows in which order. `by` is a column's place, -1 for the order in which the rows come."""

    needle: str = ""
    by: int = -1
    reverse: bool = False


AS_IT_COMES: Final = Order()
_TERM: Final = re.compile(r"(?P<column>[\w.-]+)(?P<op>!=|=|>|<)(?P<value>.*)")


def matching(rows: Sequence[Row], columns: Sequence[Column], needle: str) -> list[Row]:
    """Rows that meet every word: `word` is found somewhere, `!word` nowhere, `column=text`, `column!=text`,
    `column>n`, `column<n` by that column. A column that is not there meets nothing."""
    tests = [_test(word, columns) for word in needle.split()]
    return [row for row in rows if all(test(row) for test in tests)]


def ordered(rows: Sequence[Row], order: Order) -> list[Row]:
    """Sorted by a column; rows that are alike there stay in the order in which they come."""
    if order.by < 0:
        return list(reversed(rows)) if order.reverse else list(rows)

    def rank(row: Row) -> tuple[object, ...]:
        if order.by >= len(row.cells):
            return (2,)
        cell = row.cells[order.by]
        return (0, cell.rank) if cell.rank is not None else (1, natural(cell.text))

    return sorted(rows, key=rank, reverse=order.reverse)


def _test(word: str, columns: Sequence[Column]) -> Callable[[Row], bool]:
    term = _TERM.fullmatch(word)
    if term is None:
        wanted = word.removeprefix("!").casefold()
        excludes = word.startswith("!") and bool(wanted)
        return lambda row: (wanted in _searched(row)) is not excludes
    name, op, value = term["column"].casefold(), term["op"], term["value"].casefold()
    place = next((n for n, column in enumerate(columns) if column.title.casefold() == name), None)

    def test(row: Row) -> bool:
        if place is None or place >= len(row.cells):
            return False
        cell = row.cells[place]
        if op in ("=", "!="):
            return (value in _named(cell.text.strip().casefold())) is (op == "=")
        try:
            found = cell.rank if cell.rank is not None else float(cell.text.replace(" ", "").rstrip("%"))
            return found > float(value) if op == ">" else found < float(value)
        except ValueError:
            return False

    return test


def _named(text: str) -> tuple[str, ...]:
    """What a cell may be called: its text, also without the mark that stands before a state (● up)."""
    mark, blank, rest = text.partition(" ")
    marked = bool(blank) and not any(char.isalnum() for char in mark)
    return (text, rest.strip()) if marked else (text,)


def _searched(row: Row) -> str:
    return " ".join((row.key, row.words, *(cell.text for cell in row.cells))).casefold()
