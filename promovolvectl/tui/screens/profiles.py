"""Other clusters: every profile of this person, and the way to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.text import content_of, number_of


class Known(NamedTuple):
    """A profile as it is listed."""

    name: str
    cluster: str
    nodes: int


class Profiles(ModalScreen[str | None]):
    """Ends with the name of the profile that was chosen. Looking asks nobody, so that a dead cluster costs no time."""

    BINDINGS = keys.PROFILES
    CSS = """
    Profiles { align: center middle; }
    #frame { width: 64; max-width: 100%; height: auto; max-height: 80%; padding: 1 2; background: $panel; }
    """

    def __init__(self, known: Sequence[Known], current: str) -> None:
        super().__init__()
        self._known = known
        self._current = current

    def compose(self) -> ComposeResult:
        with Vertical(id="frame"):
            yield Static(
                content_of([[("Profiles", theme.HEADING), ("  enter switches, esc stays", theme.FAINT)]]), markup=False
            )
            yield OptionList(*(Option(self._line(each)) for each in self._known), markup=False)

    def _line(self, each: Known) -> Content:
        here = "● " if each.name == self._current else "  "
        words = f"  {visible(each.cluster or 'not met yet')}, {number_of(each.nodes, 'node')}"
        return content_of([[(here, theme.GOOD), (visible(each.name), theme.STRONG), (words, theme.FAINT)]])

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._known[event.option_index].name)

    def action_stay(self) -> None:
        self.dismiss(None)
