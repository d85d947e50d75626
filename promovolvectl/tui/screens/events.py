"""Events as they come, those that the nodes keep, and the nodes' logs."""

from __future__ import annotations

from promovolvectl.tui.screens.listing import Listing, bindings_of
from promovolvectl.tui.tables import events


class Events(Listing):
    """The cursor stays on the newest line until it is moved up; on the last line it follows again."""

    NAME = "events"
    VIEWS = events.VIEWS
    BINDINGS = bindings_of(events.VIEWS)
    CSS = """
    Events #pane { height: 6; }
    """
