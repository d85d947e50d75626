"""What a shape is: how one kind of answer becomes rows, names and lines for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from promovolvectl.cli.tables import Column
from promovolvectl.cli.text import cell

Payload = Mapping[str, Any]
Rows = Sequence[Mapping[str, Any]]
LISTED_MAX: Final = 12


@dataclass(frozen=True, slots=True)
class Under:
    """The rows are the list under one key of the answer; machine formats filter, sort and cut that very list."""

    key: str

    def __call__(self, payload: Payload) -> Rows:
        found: Rows = payload.get(self.key) or ()
        return found


items: Final = Under("items")


@dataclass(frozen=True, slots=True)
class Detail:
    """A table below the main one, for people only."""

    title: str
    rows: Callable[[Payload], Rows]
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Summed:
    """Rows that say the same but for `each` are one row of a table, which counts them as `noun`; `total` is summed up.
    Up to `LISTED_MAX` rows stand as they are."""

    each: str
    noun: str
    total: str

    def __call__(self, rows: Rows) -> Rows:
        if len(rows) <= LISTED_MAX:
            return rows
        groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in rows:
            said = (value for key, value in row.items() if key not in (self.each, self.total))
            alike = tuple(value for value in said if not isinstance(value, list | tuple))  # lists are told below
            groups.setdefault(alike, []).append(row)
        return [self._sum(group) for group in groups.values()]

    def _sum(self, group: Rows) -> Mapping[str, Any]:
        if len(group) == 1:
            return group[0]
        total = sum(row[self.total] for row in group)
        return {**group[0], self.each: f"{len(group)} {self.noun}", self.total: total}


@dataclass(frozen=True, slots=True)
class Shape:
    """`one`: the answer is a single object, shown a field to a line. `names` feeds `-o name`. `summed`: how a table
    tells many rows that say the same; every other format has each."""

    columns: tuple[Column, ...]
    names: Callable[[Payload], Sequence[str]]
    rows: Callable[[Payload], Rows] = items
    one: bool = False
    head: Callable[[Payload], Sequence[str]] = field(default=lambda payload: ())
    details: tuple[Detail, ...] = ()
    summed: Summed | None = None


def each(prefix: str, key: str, rows: Callable[[Payload], Rows] = items) -> Callable[[Payload], Sequence[str]]:
    return lambda payload: [f"{prefix}/{row[key]}" for row in rows(payload)]


def itself(prefix: str, key: str) -> Callable[[Payload], Sequence[str]]:
    return lambda payload: [f"{prefix}/{payload.get(key) or cell(None)}"]


def whole(payload: Payload) -> Rows:
    return [payload]


def is_moment(key: str) -> bool:
    """Whether a field says when something was; all that do are named so."""
    return key in ("at", "since", "last_used") or key.endswith("_at")


def columns_of(text: str) -> tuple[Column, ...]:
    """`name!` never goes, `name?` goes first, `name+` with `wide` only, `name:form` is shown that way."""
    found = []
    for word in text.split():
        key, _, form = word.rstrip("!?+").partition(":")
        rank = 0 if word.endswith("!") else 2 if word.endswith("?") else 1
        form = form or ("time" if is_moment(key) else "")
        found.append(Column(key, rank=rank, wide=word.endswith("+"), form=form))
    return tuple(found)
