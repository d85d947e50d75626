"""The Overview: is it well, who is there, is it serving, what needs eyes, what happened."""

from __future__ import annotations

from collections.abc import Iterable

from textual import on
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from node.admin.protocol import GetShards, ListOperations
from node.core.clock import SECOND
from promovolvectl.tui import attention, keys
from promovolvectl.tui.destinations import destination_of
from promovolvectl.tui.origin import answered, pushed
from promovolvectl.tui.queries import Query
from promovolvectl.tui.screens.board import Board, Body
from promovolvectl.tui.state import State
from promovolvectl.tui.widgets import figures, shardmap
from promovolvectl.tui.widgets.door import Door
from promovolvectl.tui.widgets.table import Filled, Table

MAP = Query(GetShards(), every_s=5, topics=("shard.", "coordinator.", "node."))
DOCTOR = "doctor"
OPERATIONS = Query(ListOperations(), every_s=3)
_WELL_NS = 30 * SECOND  # for so long it is said that what was chosen is well


class Overview(Board):
    """Two columns where there is room, one that scrolls where there is not; the shard map only on large terminals."""

    NAME = "overview"
    BINDINGS = keys.SCROLL
    CSS = """
    #columns { height: auto; }
    #left { width: 56%; height: auto; }
    #right { width: 44%; height: auto; }
    #lower { height: auto; }
    #map { display: none; width: 62; height: 19; }
    #happened { width: 1fr; height: auto; }
    #attention { height: 5; padding: 0 1; }
    #events { height: 6; }
    Overview.small #columns { layout: vertical; }
    Overview.small #left, Overview.small #right { width: 100%; }
    Overview.medium Body, Overview.large Body { overflow-y: auto; }
    Overview.medium #events { height: 1fr; min-height: 3; }
    Overview.medium #lower, Overview.medium #happened { height: 1fr; min-height: 9; }
    Overview.medium #attention { height: 1fr; min-height: 4; max-height: 8; }
    Overview.large #map { display: block; }
    Overview.large #lower, Overview.large #happened { height: 1fr; min-height: 19; }
    Overview.large #attention { height: 1fr; min-height: 5; }
    Overview.large #events { height: 1fr; }
    #members { max-height: 10; }
    Overview.large #members { max-height: 14; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = Table("attention")

    def body(self) -> Iterable[Widget]:
        yield Horizontal(
            Vertical(
                Door("members", figures.members, leads="nodes", name="members"),
                Door("control", figures.control, leads="doctor", name="control"),
                id="left",
            ),
            Vertical(
                Door("serving", figures.serving, leads="serving", name="serving"),
                Door("serve index", figures.serveindex, leads="serveindex", name="serveindex"),
                Door("shards", shardmap.shard_bars, leads="shards", name="shards"),
                id="right",
            ),
            id="columns",
        )
        yield Horizontal(
            Door(
                "shard map",
                shardmap.shard_map,
                leads="shards",
                origin=lambda state: answered(state, MAP.params),
                name="map",
            ),
            Vertical(
                self.table,
                Door(
                    "operations",
                    figures.running,
                    leads="operations",
                    origin=lambda state: answered(state, OPERATIONS.params),
                    name="running",
                ),
                Door("events", figures.events, leads="events", name="events"),
                id="happened",
            ),
            id="lower",
        )

    @property
    def rests_on(self) -> Widget:
        return self.table

    def queries(self, state: State) -> tuple[Query, ...]:
        return (OPERATIONS, MAP) if self.has_class("large") else (OPERATIONS,)

    def show(self, state: State, now_ns: int) -> None:
        filled = Filled(
            "attention",
            attention.COLUMNS,
            attention.rows(state),
            pushed(state),
            "nothing needs attention",
            gone="needs no attention any more",  # as a rule it is well again: the object itself is there
            gone_ns=_WELL_NS,
        )
        self.table.fill(state, now_ns, filled)
        super().show(state, now_ns)

    def on_mount(self) -> None:
        self.table.focus(scroll_visible=False)

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        """To the object; where no screen shows that kind, to what the doctor says of it."""
        about = attention.object_of(event.key)
        self.post_message(self.Follows(about if destination_of(about) else DOCTOR))

    @on(Door.Opened)
    def _entered(self, event: Door.Opened) -> None:
        self.post_message(self.Follows(event.leads))

    def action_scroll_down(self) -> None:
        self.query_one(Body).scroll_down(animate=False)

    def action_scroll_up(self) -> None:
        self.query_one(Body).scroll_up(animate=False)
