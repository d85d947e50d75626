"""The Nodes: a table with a cursor, and the node under it in depth."""

from __future__ import annotations

from collections.abc import Iterable

from textual import on
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input

from promovolvectl.tui import keys
from promovolvectl.tui.screens.board import Board
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line
from promovolvectl.tui.widgets.nodedetail import detail_lines
from promovolvectl.tui.widgets.nodetable import NodeTable
from promovolvectl.tui.widgets.panel import Panel


class Nodes(Board):
    """Enter opens a node, esc goes back; on small terminals an open node takes the table's place."""

    BINDINGS = keys.NODES
    CSS = """
    Nodes Body { overflow-y: hidden; }
    #table { height: 1fr; min-height: 3; padding: 0 1; }
    #pane { height: 45%; scrollbar-size-vertical: 1; }
    #filter { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
    Nodes.filtering #filter { display: block; }
    Nodes.opened #pane { height: 60%; }
    Nodes.small #pane { height: 4; }
    Nodes.small.opened #table { display: none; }
    Nodes.small.opened #pane { height: 1fr; }
    """

    class Asked(Message):
        """The person wants a node's own answer."""

        def __init__(self, node: str) -> None:
            super().__init__()
            self.node = node

    def body(self) -> Iterable[Widget]:
        yield NodeTable()
        yield VerticalScroll(Panel("detail", self._detail, name="detail"), id="pane")
        yield Input(placeholder="words to look for: name, role, state, address", id="filter")

    def show(self, state: State, now_ns: int) -> None:
        self.query_one(NodeTable).show(state, now_ns)
        super().show(state, now_ns)

    def on_mount(self) -> None:
        self.query_one(NodeTable).focus()

    @property
    def opened(self) -> bool:
        return self.has_class("opened")

    @property
    def cursor(self) -> str:
        return self.query_one(NodeTable).choice.cursor

    def action_filter(self) -> None:
        self.add_class("filtering")
        self.query_one(Input).focus()

    def action_ask(self) -> None:
        """Enter outside of the table: the open node is asked again."""
        if self.opened and self.cursor:
            self.post_message(self.Asked(self.cursor))

    def action_back(self) -> None:
        """One step: out of the filter's input, out of the open node, or the filter away."""
        field = self.query_one(Input)
        if self.focused is field or not self.opened:
            field.value = ""
            self.remove_class("filtering")
        else:
            self.remove_class("opened")
        self.query_one(NodeTable).focus()
        self.call_after_refresh(self.show_again)

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self.query_one(NodeTable).narrow_to(event.value)

    @on(Input.Submitted)
    def _keep_filter(self) -> None:
        self.query_one(NodeTable).focus()
        if not self.query_one(Input).value:
            self.remove_class("filtering")

    @on(NodeTable.Chosen)
    def _chosen(self, event: NodeTable.Chosen) -> None:
        if event.opened:
            self.add_class("opened")
            self.query_one("#pane").focus()
            self.post_message(self.Asked(event.node))
        else:
            self.query_one("#pane", VerticalScroll).scroll_home(animate=False)
        self.call_after_refresh(self.show_again)

    def _detail(self, state: State, now_ns: int, width: int, _height: int) -> list[Line]:
        return detail_lines(state, self.cursor, now_ns, width)
