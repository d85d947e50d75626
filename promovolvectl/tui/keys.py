"""Every key of the dashboard, in one place. The footer and the help are made from these, never written twice.

Letters, digits, arrows, enter and escape only: other combinations are eaten by terminals and multiplexers. What changes
something has an upper-case letter and only opens a dialog.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from textual.binding import Binding, BindingType

# key, screen, title: in the order of the digits on a keyboard
SCREENS: Final = (
    ("1", "overview", "Overview"),
    ("2", "nodes", "Nodes"),
    ("3", "shards", "Shards"),
    ("4", "serveindex", "ServeIndex"),
    ("5", "replays", "Replays"),
    ("6", "serving", "Serving"),
    ("7", "operations", "Operations"),
    ("8", "events", "Events"),
    ("9", "entities", "Entities"),
    ("0", "doctor", "Doctor"),
)
# where the titles have no room
SHORT: Final = {
    "overview": "Over",
    "serveindex": "Index",
    "replays": "Repl",
    "serving": "Serve",
    "operations": "Ops",
    "events": "Event",
    "entities": "Entity",
    "shards": "Shard",
}

APP: Final[list[BindingType]] = [
    *(
        Binding(key, f"board('{name}')", title, show=False, id=f"board.{name}", tooltip=f"Screen {title}")
        for key, name, title in SCREENS
    ),
    Binding("question_mark", "help", "Keys", id="help", key_display="?"),
    Binding(
        "colon",
        "command_palette",
        "Commands",
        id="palette",
        key_display=":",
        tooltip="Go anywhere, or change something, by name",
    ),
    Binding("f", "freeze", "Freeze", show=False, id="freeze", tooltip="Freeze the picture; data go on"),
    Binding("r", "refresh", "Refresh", show=False, id="refresh", tooltip="Reconnect now, or ask again"),
    Binding("t", "times", "Times", show=False, id="times", tooltip="Times as UTC, or as ages"),
    Binding("i", "mouse", "Mouse", show=False, id="mouse", tooltip="Select text with the mouse, or click"),
    Binding("L", "lock", "Lock", show=False, id="lock", tooltip="Lock and unlock: nothing can be changed"),
    Binding("P", "profiles", "Profiles", show=False, id="profiles", tooltip="Another cluster"),
    Binding("q", "quit", "Quit", id="quit", priority=False),
    Binding("ctrl+c", "quit", "Quit", id="quit.interrupt", show=False, priority=True),
]

SCROLL: Final[list[BindingType]] = [
    Binding("down,j", "scroll_down", "Scroll down", show=False, id="scroll.down"),
    Binding("up,k", "scroll_up", "Scroll up", show=False, id="scroll.up"),
    Binding("tab", "app.focus_next", "Next pane", show=False, id="scroll.pane"),
]

DOOR: Final[list[BindingType]] = [Binding("enter", "open", "Open", id="door.open")]

LISTING: Final[list[BindingType]] = [
    Binding("slash", "filter", "Filter", id="list.filter", key_display="/"),
    Binding("escape,backspace", "back", "Back", id="list.back", key_display="esc"),
    Binding("tab", "app.focus_next", "Table or pane", id="list.pane", show=False),
    Binding("right_square_bracket", "turn_page(1)", "Next page", id="list.next", key_display="]", show=False),
    Binding("left_square_bracket", "turn_page(-1)", "Page before", id="list.before", key_display="[", show=False),
    Binding("z", "pane", "Larger pane", id="list.zoom", show=False, tooltip="The pane as large as the screen"),
]

TABLE: Final[list[BindingType]] = [
    Binding("enter", "open", "Open", id="table.open"),
    Binding("down,j", "move(1)", "Next", show=False, id="table.next"),
    Binding("up,k", "move(-1)", "Previous", show=False, id="table.previous"),
    Binding("right", "shift(1)", "Columns to the right", show=False, id="table.right"),
    Binding("left", "shift(-1)", "Columns to the left", show=False, id="table.left"),
    Binding("pagedown", "page(1)", "Page down", show=False, id="table.page_down"),
    Binding("pageup", "page(-1)", "Page up", show=False, id="table.page_up"),
    Binding("home,g", "first", "First", show=False, id="table.first"),
    Binding("end,J", "last", "Last", show=False, id="table.last"),
    Binding("space", "mark", "Mark", show=False, id="table.mark"),
    Binding("s", "sort", "Sort by the next column", show=False, id="table.sort"),
    Binding("S", "turn", "Reverse the order", show=False, id="table.turn"),
    Binding("y", "screen.copy_cell", "Copy the row's name", show=False, id="table.copy"),
    Binding("Y", "screen.copy_row", "Copy the row", show=False, id="table.copy_row"),
]

GRID: Final[list[BindingType]] = [
    Binding("enter", "open", "Open", id="grid.open"),
    Binding("down,j", "move(16)", "Down", show=False, id="grid.down"),
    Binding("up,k", "move(-16)", "Up", show=False, id="grid.up"),
    Binding("right", "move(1)", "Right", show=False, id="grid.right"),
    Binding("left", "move(-1)", "Left", show=False, id="grid.left"),
]

HELP: Final[list[BindingType]] = [
    Binding("escape,question_mark,enter", "dismiss", "Close", id="help.close", key_display="esc"),
    # At once: the field that has the keys would take home and end for itself.
    Binding("down", "scroll(1)", "Down", id="help.down", show=False, priority=True),
    Binding("up", "scroll(-1)", "Up", id="help.up", show=False, priority=True),
    Binding("pagedown", "page(1)", "Page down", id="help.page_down", show=False, priority=True),
    Binding("pageup", "page(-1)", "Page up", id="help.page_up", show=False, priority=True),
    Binding("home", "first", "First", id="help.first", show=False, priority=True),
    Binding("end", "last", "Last", id="help.last", show=False, priority=True),
]

PROFILES: Final[list[BindingType]] = [
    Binding("escape,P", "stay", "Stay here", id="profiles.stay", key_display="esc"),
]

DIALOG: Final[list[BindingType]] = [
    Binding("escape", "cancel", "Cancel", id="dialog.cancel", key_display="esc"),
    # At once: over a slow line keys come in one burst, and what follows must reach the field that these lead to.
    Binding("tab,down", "next", "Next field", id="dialog.next", priority=True),
    Binding("shift+tab,up", "previous", "Previous field", id="dialog.previous", show=False, priority=True),
    Binding("y", "copy", "Copy the command", id="dialog.copy"),
    Binding("pagedown", "page(1)", "Page down", id="dialog.page_down", show=False),
    Binding("pageup", "page(-1)", "Page up", id="dialog.page_up", show=False),
]


# Of the line of keys, where it has no room for all of them: which go first, and which never does.
GIVEN_UP: Final = ("palette", "list.back", "list.filter", "list.view", "quit")
TELLS_ALL: Final = "help"


def change(key: str, name: str, title: str, about: str) -> Binding:
    """A key that opens a dialog about a change."""
    return Binding(key, f"change('{name}')", title, id=f"change.{name}", tooltip=about)


def tabs(panes: Iterable[tuple[str, str]]) -> list[BindingType]:
    """Keys that choose what the pane tells."""
    return [
        Binding(key, f"tab('{key}')", name.capitalize(), show=False, id=f"tab.{key}", tooltip=f"Pane: {name}")
        for key, name in panes
    ]


def views(names: Iterable[str]) -> list[BindingType]:
    """The key that goes through a screen's tables."""
    return [Binding("v", "view", "View", id="list.view", tooltip=f"Another table: {', '.join(names)}")]
