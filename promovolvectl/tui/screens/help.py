"""Every key that works where it was asked, made from the bindings themselves."""

from __future__ import annotations

from collections.abc import Iterable

from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from promovolvectl.tui import keys, theme
from promovolvectl.tui.text import Line, content_of, padded


def help_lines(bindings: Iterable[ActiveBinding]) -> list[Line]:
    """A line for each action with all keys that do it."""
    found: dict[tuple[str, str], list[str]] = {}
    for active in bindings:
        binding = active.binding
        if binding.id:  # ours; what a widget brings along is left away
            words = binding.tooltip or binding.description
            names = found.setdefault((binding.action, words), [])
            name = binding.key_display or binding.key
            if name not in names:
                names.append(name)
    return [[(padded(" ".join(names), 18), theme.STRONG), (words, "")] for (_, words), names in found.items()]


class Help(ModalScreen[None]):
    """Closed by every key one would try."""

    BINDINGS = keys.HELP
    CSS = """
    Help { align: center middle; }
    #keys { width: 60; max-width: 100%; height: auto; max-height: 100%; padding: 1 2; background: $panel; }
    """

    def __init__(self, bindings: Iterable[ActiveBinding]) -> None:
        super().__init__()
        self._lines = help_lines(bindings)

    def compose(self) -> ComposeResult:
        lines: list[Line] = [
            [("Keys", theme.HEADING), ("  read-only: nothing here changes the cluster", theme.FAINT)],
            [],
            *self._lines,
        ]
        with VerticalScroll(id="keys"):
            yield Static(content_of(lines), markup=False)

    async def action_dismiss(self, result: None = None) -> None:
        self.dismiss(result)
