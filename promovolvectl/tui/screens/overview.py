"""The Overview: is it well, who is there, is it serving, what is wrong, what happened."""

from __future__ import annotations

from collections.abc import Iterable

from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from promovolvectl.tui import keys
from promovolvectl.tui.screens.board import Board, Body
from promovolvectl.tui.state import State
from promovolvectl.tui.widgets import figures, shardmap
from promovolvectl.tui.widgets.panel import Panel


class Overview(Board):
    """Two columns where there is room, one that scrolls where there is not; the shard map only on large terminals."""

    BINDINGS = keys.SCROLL
    CSS = """
    #columns { height: auto; }
    #left { width: 56%; height: auto; }
    #right { width: 44%; height: auto; }
    #lower { height: auto; }
    #map { display: none; width: 62; height: 19; }
    #happened { width: 1fr; height: auto; }
    #events { height: 6; }
    Overview.small #columns { layout: vertical; }
    Overview.small #left, Overview.small #right { width: 100%; }
    Overview.medium Body, Overview.large Body { overflow-y: auto; }
    Overview.medium #events { height: 1fr; min-height: 3; }
    Overview.medium #lower, Overview.medium #happened { height: 1fr; min-height: 6; }
    Overview.large #map { display: block; }
    Overview.large #lower, Overview.large #happened { height: 1fr; min-height: 19; }
    Overview.large #events { height: 1fr; }
    #members { max-height: 10; }
    Overview.large #members { max-height: 14; }
    Overview #faults { max-height: 6; }
    Overview.large #faults { max-height: 12; }
    """

    def body(self) -> Iterable[Widget]:
        yield Horizontal(
            Vertical(
                Panel("members", figures.members, name="members"),
                Panel("control", figures.control, name="control"),
                id="left",
            ),
            Vertical(
                Panel("serving", figures.serving, name="serving"),
                Panel("serve index", figures.serveindex, name="serveindex"),
                Panel("shards", shardmap.shard_bars, name="shards"),
                id="right",
            ),
            id="columns",
        )
        yield Horizontal(
            Panel(
                "shard map",
                shardmap.shard_map,
                at_ns=lambda state: state.shards_at_ns,
                why_empty=_why_no_map,
                name="map",
            ),
            Vertical(
                Panel("faults", figures.faults, why_empty=lambda state: state.problem, name="faults"),
                Panel("events", figures.events, name="events"),
                id="happened",
            ),
            id="lower",
        )

    def action_scroll_down(self) -> None:
        self.query_one(Body).scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        self.query_one(Body).scroll_up(animate=False)


def _why_no_map(state: State) -> str:
    return f"not told: {state.shards_problem}" if state.shards_problem else ""
