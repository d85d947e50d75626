"""Every key that works where it was asked, made from the bindings themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import ActiveBinding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from promovolvectl.tui import keys, theme
from promovolvectl.tui.text import Line, content_of, padded

_OWN: Final = ("change.", "tab.", "list.view")  # of bindings that only this screen has
_NOTHING: Final = "no key here is called so; ':' goes to screens, objects and themes by name"


class _Told(NamedTuple):
    """`also`: what it is called where it isn't spelled out, by which it is found as well."""

    names: list[str]
    words: str
    also: list[str]
    enabled: bool


def help_lines(bindings: Iterable[ActiveBinding], needle: str = "") -> list[Line]:
    """A line for each action with all keys that do it, the screen's own first; those that can't be used now are dimmed.
    Where none is called so, that is said."""
    found: dict[tuple[str, str], _Told] = {}
    for active in sorted(bindings, key=lambda each: not (each.binding.id or "").startswith(_OWN)):
        binding = active.binding
        if binding.id:  # ours; what a widget brings along is left away
            words = binding.tooltip or binding.description
            told = found.setdefault((binding.action, words), _Told([], words, [], active.enabled))
            name = binding.key_display or binding.key
            if name not in told.names:
                told.names.append(name)
            told.also.extend((binding.description, binding.id, binding.key))
    lines: list[Line] = [
        [
            (padded(" ".join(told.names), 18), theme.STRONG if told.enabled else theme.FAINT),
            (told.words, "" if told.enabled else theme.FAINT),
        ]
        for told in found.values()
        if needle.strip().casefold() in " ".join((*told.names, told.words, *told.also)).casefold()
    ]
    return lines or [[(_NOTHING, theme.FAINT)]]


class Help(ModalScreen[None]):
    """Typing narrows it; arrows go through what has no room; escape and enter close it."""

    BINDINGS = keys.HELP
    AUTO_FOCUS: ClassVar[str | None] = "#find"
    CSS = """
    Help { align: center middle; }
    #frame { width: 64; max-width: 100%; height: 100%; padding: 1 2; background: $panel; }
    #keys { height: 1fr; scrollbar-gutter: stable; }
    #find { height: 1; border: none; padding: 0; background: $surface; }
    """

    def __init__(self, bindings: Iterable[ActiveBinding]) -> None:
        super().__init__()
        self._found = list(bindings)

    def compose(self) -> ComposeResult:
        with Vertical(id="frame"):
            yield Static(
                content_of(
                    [[("Keys", theme.HEADING), ("  ↓ ↑ scroll · a change is made by Commit only", theme.FAINT)]]
                ),
                markup=False,
            )
            yield Input(placeholder="type to find", id="find")
            with VerticalScroll(id="keys", can_focus=False):
                yield Static(content_of(help_lines(self._found)), markup=False, id="found")

    @on(Input.Changed)
    def _narrow(self, event: Input.Changed) -> None:
        self.query_one("#found", Static).update(content_of(help_lines(self._found, event.value)))
        self._keys.scroll_home(animate=False)

    @property
    def _keys(self) -> VerticalScroll:
        return self.query_one("#keys", VerticalScroll)

    def action_scroll(self, lines: int) -> None:
        self._keys.scroll_relative(y=lines, animate=False)

    def action_page(self, by: int) -> None:
        self._keys.scroll_relative(y=by * max(1, self._keys.size.height - 1), animate=False)

    def action_first(self) -> None:
        self._keys.scroll_home(animate=False)

    def action_last(self) -> None:
        self._keys.scroll_end(animate=False)

    @on(Input.Submitted)
    async def action_dismiss(self, result: None = None) -> None:
        self.dismiss(None)
