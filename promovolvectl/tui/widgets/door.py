"""A panel that leads somewhere: it can be chosen, shows that it is, and opens the screen that tells more."""

from __future__ import annotations

from collections.abc import Callable

from textual.message import Message

from promovolvectl.tui import keys, theme
from promovolvectl.tui.origin import Origin, heading, pushed
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line
from promovolvectl.tui.widgets.panel import Draw, Panel


class Door(Panel, can_focus=True):
    """`leads` names the screen, or the object, behind it."""

    BINDINGS = keys.DOOR

    class Opened(Message):
        """The person wants what is behind a panel."""

        def __init__(self, leads: str) -> None:
            super().__init__()
            self.leads = leads

    def __init__(
        self, title: str, draw: Draw, *, leads: str, origin: Callable[[State], Origin] = pushed, name: str
    ) -> None:
        super().__init__(title, draw, origin=origin, name=name)
        self._leads = leads

    def watch_has_focus(self, has_focus: bool) -> None:
        """Its heading tells whether the keys are here."""
        self.show_again()
        super().watch_has_focus(has_focus)

    def action_open(self) -> None:
        self.post_message(self.Opened(self._leads))

    def _head(self, origin: Origin, state: State, now_ns: int, width: int) -> Line:
        if not self.has_focus:
            return super()._head(origin, state, now_ns, width)
        return heading(f"{self.title} ⏎ {self._leads}", origin, state, now_ns, width, theme.CURSOR)
