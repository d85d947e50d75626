"""Figures over time: a row for each that the cluster tells, and the one under the cursor as a chart.

Latency and the share of requests that were filled are not among them: no answer of a node holds either.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import fact, flow
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.series import EVERY_NS
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.nodes import RATES
from promovolvectl.tui.text import Line, natural, span
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, fixed
from promovolvectl.tui.widgets.sparkline import chart, sparkline

_RECENT: Final = 40
_CHART_LINES: Final = 8


class Unit(NamedTuple):
    """What a figure is, how many of it one stands for, and what is written behind it."""

    means: str
    times: float = 1.0
    sign: str = ""

    def words(self, value: float) -> str:
        """The figure as it is read."""
        scaled = value * self.times
        return f"{scaled:,.{0 if abs(scaled) >= 100 or scaled == int(scaled) else 1}f}".replace(",", " ") + self.sign


# In the order of rows: what people are served first.
UNITS: Final = {
    "requests": Unit("page views", sign="/s"),
    "served": Unit("ads served", sign="/s"),
    "coverage": Unit("slots filled", 100, "%"),
    "lag": Unit("the replica that is furthest behind", sign=" ms"),
    "moving": Unit("shards on their way"),
    "messages": Unit("messages that entities handled", sign="/s"),
    "writes": Unit("writes of replicas", sign="/s"),
    "unhandled": Unit("messages dropped, refused or left as dead letters", sign="/s"),
    "cpu": Unit("of a core", 100, "%"),
    "spent": Unit("spent today"),
}
_PLACES: Final = {name: place for place, name in enumerate(UNITS)}


def unit_of(name: str) -> Unit:
    """Of a series such as `requests` or `cpu/entity-1`."""
    return UNITS.get(name.partition("/")[0], Unit(name))


def _rows(state: State, _where: Where) -> list[Row]:
    found: list[Row] = []
    for name in sorted(state.series.by_name, key=_order):
        unit, points = unit_of(name), state.series.of(name)
        known = [point for point in points if point is not None]
        if not known:
            continue
        last = points[-1] or 0.0
        cells = (
            Cell(name),
            Cell(unit.words(last), theme.STRONG, last),
            Cell(unit.words(min(known)), theme.FAINT, min(known)),
            Cell(unit.words(max(known)), theme.FAINT, max(known)),
            Cell(sparkline(points, _RECENT), theme.CHART),
            Cell(unit.means, theme.FAINT),
        )
        found.append(Row(name, cells))
    return found


def _order(name: str) -> tuple[bool, int, tuple[tuple[int, int, str], ...]]:
    """The cluster's own first, then those of nodes and campaigns."""
    kind, _, of = name.partition("/")
    return bool(of), _PLACES.get(kind, len(_PLACES)), natural(name)


def chart_of(state: State, name: str, width: int) -> list[Line]:
    """One series with its scale, its units and how long it goes back; nothing while nothing is known of it."""
    points = state.series.of(name)
    known = [point for point in points if point is not None]
    if not known:
        return []
    unit = unit_of(name)
    facts = [
        fact(name, unit.means, theme.STRONG),
        fact("now", unit.words(points[-1]) if points[-1] is not None else "unknown"),
        fact("least", unit.words(min(known))),
        fact("most", unit.words(max(known))),
        fact("goes back", f"{span(len(points) * EVERY_NS / 1e9)}, scale from 0"),
    ]
    return flow(facts, width) + chart(points, width, _CHART_LINES, unit.words)


def _chart(glance: Glance, where: Where) -> list[Line]:
    lines = chart_of(glance.state, where[-1], glance.width)
    return lines or [[(f"empty: nothing was told of {visible(where[-1])}", theme.FAINT)]]


def _queries(_state: State, _where: Where) -> tuple[Query, ...]:
    return (RATES,)


VIEW: Final = View(
    "figures",
    (
        Level(
            "figures",
            fixed(
                Column("FIGURE", 28),
                Column("NOW", 10, right=True),
                Column("LEAST", 10, right=True),
                Column("MOST", 10, right=True),
                Column("RECENT", _RECENT),
                Column("OF WHAT", 50),
            ),
            _rows,
            _queries,
            (Tab("a", "chart", _chart),),
            empty="nothing was told yet",
            pushed=True,
        ),
    ),
)
