"""Serving: how much, how evenly; which slots are empty and why; how campaigns spend."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from node.admin.protocol.diagnosis import RateList
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import fact, flow
from promovolvectl.tui.queries import Query
from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.state import State
from promovolvectl.tui.tables import serving
from promovolvectl.tui.tables.nodes import RATES
from promovolvectl.tui.text import Line, count, padded
from promovolvectl.tui.widgets.panel import Panel
from promovolvectl.tui.widgets.sparkline import chart, sparkline

_CHART_LINES_MIN = 2
_DECIDES = "decides "  # where the site is held, whichever node's front a request came to


def _filled(ratio: float | None) -> tuple[str, str]:
    return ("?", theme.ODD) if ratio is None else (f"{ratio:.1%}", theme.GOOD if ratio >= 1 else theme.ODD)


def traffic(state: State, _now_ns: int, width: int, height: int) -> list[Line]:
    """Requests a second of the whole cluster as a chart, and of the nodes whose sites they were for."""
    status = state.status
    if status is None:
        return []
    rates = state.told(RATES.params, RateList)
    told = rates.items if rates else ()
    facts = [
        fact("requests, whole cluster", f"{status.requests_per_s:.1f}/s", theme.STRONG),
        fact("served", count(status.served_count)),
        fact("slots filled", *_filled(status.coverage.ratio)),
        fact("messages", f"{sum(row.messages_per_s for row in told):.0f}/s"),
        fact("replica writes", f"{sum(row.writes_per_s for row in told):.1f}/s"),
    ]
    lost = sum(row.unhandled_per_s for row in told)
    facts.append(fact("unhandled", f"{lost:.1f}/s", theme.BAD if lost else theme.GOOD))
    lines = flow(facts, width)
    busiest = sorted(told, key=lambda row: (-row.requests_per_s, row.node))
    beside = max(1, height - len(lines) - _CHART_LINES_MIN)
    serving_nodes = busiest if len(busiest) <= beside else busiest[: beside - 1]
    rest = busiest[len(serving_nodes) :]
    room = max(_CHART_LINES_MIN, min(6, height - len(lines) - len(serving_nodes) - bool(rest)))
    lines += chart(state.series.of("requests"), width, room, lambda value: f"{value:.0f}/s")
    for row in serving_nodes:
        points = state.series.of(f"requests/{row.node}")
        label = padded(visible(row.node), 16)
        lines.append(
            [
                (f"{label} ", ""),
                (_DECIDES, theme.FAINT),
                (f"{row.requests_per_s:7.1f}/s ", theme.STRONG),
                (sparkline(points, max(4, width - 30 - len(_DECIDES))), theme.CHART),
            ]
        )
    if rest:
        words = f"… {len(rest)} more nodes, together {sum(row.requests_per_s for row in rest):.1f}/s"
        lines.append([(f"{words}: v shows all figures", theme.FAINT)])
    return lines


class Serving(Listing):
    """The pane explains the newest decision about the slot under the cursor."""

    NAME = "serving"
    VIEWS = serving.VIEWS
    BINDINGS = bindings_of(serving.VIEWS)
    CSS = """
    Serving #lead { height: 11; }
    Serving.medium #lead { height: 7; }
    """

    def lead(self) -> Iterable[Widget]:
        yield Panel("traffic", traffic, name="lead")

    def queries(self, state: State) -> tuple[Query, ...]:
        return (*super().queries(state), RATES)
