"""The line of keys below a screen: what can be pressed where the keys go now, made from the bindings themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from rich.cells import cell_len
from textual import events
from textual.binding import Binding

from promovolvectl.tui import keys, theme
from promovolvectl.tui.text import Line, fitted, width_of
from promovolvectl.tui.widgets.lines import Lines

_GAP = "  "


class Shown(NamedTuple):
    """A key as it stands in the line. `name`: its binding's; `words`: what it does."""

    name: str
    key: str
    sign: str
    words: str
    enabled: bool


def kept(found: Sequence[Shown], width: int) -> list[Shown]:
    """Those that have room, whole and in their order: a key that is cut says nothing. What is known everywhere goes
    first, then from the end; `?` stays, since it tells of all others."""
    left = list(found)
    others = [each.name for each in reversed(found) if each.name not in (*keys.GIVEN_UP, keys.TELLS_ALL)]
    for name in (*keys.GIVEN_UP, *others):
        if sum(cell_len(f"{each.sign} {each.words}{_GAP}") for each in left) - len(_GAP) <= width:
            break
        left = [each for each in left if each.name != name]
    return left


class _Place(NamedTuple):
    """Where a key stands in the line: from `begin` to before `end`."""

    begin: int
    end: int
    key: str


@runtime_checkable
class Describes(Protocol):
    """A screen that knows what a key does to what is chosen on it."""

    def described(self, binding: Binding) -> str: ...


class KeyBar(Lines):
    """One widget for all keys: Textual's own footer is one for each, and is laid out anew with every screen."""

    DEFAULT_CSS = "KeyBar { height: 1; width: 1fr; padding: 0 1; background: $panel; }"

    def __init__(self) -> None:
        super().__init__("keys")
        self._places: list[_Place] = []

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.again())

    def drawn(self) -> list[Line]:
        line: Line = []
        self._places = []
        for each in kept(self._all(), self.size.width):
            line += [(_GAP, "")] if line else []
            begin = width_of(line)
            line.append((each.sign, theme.HEADING if each.enabled else theme.FAINT))
            line.append((f" {each.words}", "" if each.enabled else theme.FAINT))
            self._places.append(_Place(begin, width_of(line), each.key))
        return [fitted(line, self.size.width)]

    def _all(self) -> list[Shown]:
        return [
            Shown(binding.id or "", binding.key, self.app.get_key_display(binding), self._described(binding), enabled)
            for binding, enabled in self._bindings_shown()
        ]

    def _described(self, binding: Binding) -> str:
        screen = self.screen
        return screen.described(binding) if isinstance(screen, Describes) else binding.description

    def _bindings_shown(self) -> list[tuple[Binding, bool]]:
        found: dict[str, tuple[Binding, bool]] = {}
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show:
                found.setdefault(binding.action, (binding, enabled))
        return list(found.values())

    def on_click(self, event: events.Click) -> None:
        """As if the key was pressed."""
        at = event.x - 1
        key = next((place.key for place in self._places if place.begin <= at < place.end), None)
        if key is not None:
            self.app.simulate_key(key)
