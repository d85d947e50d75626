"""Every key that works where it was asked, made from the bindings themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from promovolvectl.tui import keys, theme
from promovolvectl.tui.text import Line, content_of, padded


def help_lines(bindings: Iterable[ActiveBinding], needle: str = "") -> list[Line]:
    """A line for each action with all keys that do it; those that can't be used now are dimmed."""
    found: dict[tuple[str, str], tuple[list[str], bool]] = {}
    for active in bindings:
        binding = active.binding
        if binding.id:  # ours; what a widget brings along is left away
            words = binding.tooltip or binding.description
            names, _ = found.setdefault((binding.action, words), ([], active.enabled))
            name = binding.key_display or binding.key
            if name not in names:
                names.append(name)
    return [
        [
            (padded(" ".join(names), 18), theme.STRONG if enabled else theme.FAINT),
            (words, "" if enabled else theme.FAINT),
        ]
        for (_, words), (names, enabled) in found.items()
        if needle.casefold() in f"{' '.join(names)} {words}".casefold()
    ]


class Help(ModalScreen[None]):
    """Typing narrows it; escape and enter close it."""

    BINDINGS = keys.HELP
    AUTO_FOCUS: ClassVar[str | None] = "#find"
    CSS = """
    Help { align: center middle; }
    #frame { width: 64; max-width: 100%; height: auto; max-height: 100%; padding: 1 2; background: $panel; }
    #keys { height: auto; max-height: 1fr; }
    #find { height: 1; border: none; padding: 0; background: $surface; }
    """

    def __init__(self, bindings: Iterable[ActiveBinding]) -> None:
        super().__init__()
        self._found = list(bindings)

    def compose(self) -> ComposeResult:
        with Vertical(id="frame"):
            yield Static(
                content_of(
                    [[("Keys", theme.HEADING), ("  a change shows its plan first; Commit there makes it", theme.FAINT)]]
                ),
                markup=False,
            )
            yield Input(placeholder="type to find", id="find")
            with VerticalScroll(id="keys", can_focus=False):
                yield Static(content_of(help_lines(self._found)), markup=False, id="found")

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self.query_one("#found", Static).update(content_of(help_lines(self._found, event.value)))

    @on(Input.Submitted)
    async def action_dismiss(self, result: None = None) -> None:
        self.dismiss(None)
