"""Every key of the dashboard, in one place. The footer and the help are made from these, never written twice.

Letters, digits, arrows, enter and escape only: other combinations are eaten by terminals and multiplexers.
"""

from __future__ import annotations

from typing import Final

from textual.binding import Binding, BindingType

APP: Final[list[BindingType]] = [
    Binding("1", "board('overview')", "Overview", id="board.overview"),
    Binding("2", "board('nodes')", "Nodes", id="board.nodes"),
    Binding("r", "refresh", "Refresh", id="refresh", tooltip="Reconnect now, or ask again"),
    Binding("question_mark", "help", "Keys", id="help", key_display="?"),
    Binding("q", "quit", "Quit", id="quit", priority=False),
    Binding("ctrl+c", "quit", "Quit", id="quit.interrupt", show=False, priority=True),
]

SCROLL: Final[list[BindingType]] = [
    Binding("down,j", "scroll_down", "Scroll down", show=False, id="scroll.down"),
    Binding("up,k", "scroll_up", "Scroll up", show=False, id="scroll.up"),
]

NODES: Final[list[BindingType]] = [
    Binding("enter", "ask", "Ask again", id="nodes.ask", show=False),
    Binding("tab", "app.focus_next", "Table or detail", id="nodes.pane", show=False),
    Binding("slash", "filter", "Filter", id="nodes.filter", key_display="/"),
    Binding("escape", "back", "Back", id="nodes.back", key_display="esc"),
]

TABLE: Final[list[BindingType]] = [
    Binding("enter", "open", "Detail", id="table.open"),
    Binding("down,j", "move(1)", "Next", show=False, id="table.next"),
    Binding("up,k", "move(-1)", "Previous", show=False, id="table.previous"),
    Binding("pagedown", "page(1)", "Page down", show=False, id="table.page_down"),
    Binding("pageup", "page(-1)", "Page up", show=False, id="table.page_up"),
    Binding("home,g", "first", "First", show=False, id="table.first"),
    Binding("end,G", "last", "Last", show=False, id="table.last"),
]

HELP: Final[list[BindingType]] = [
    Binding("escape,question_mark,q,enter", "dismiss", "Close", id="help.close", key_display="esc"),
]
