"""The line above a table: the screen's views, and the way that led here."""

from __future__ import annotations

from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.text import Line, fitted, short
from promovolvectl.tui.views import Where
from promovolvectl.tui.widgets.lines import Lines


def places_line(views: tuple[str, ...], current: str, where: Where, width: int) -> Line:
    """Views, the current one strong, and the keys that were entered."""
    line: Line = []
    for name in views:
        line += [(" | ", theme.FAINT)] if line else []
        line.append((name, theme.HEADING if name == current else theme.FAINT))
    if len(views) > 1:
        line.append(("  v", theme.STRONG))
    for key in where:
        line += [(f" {theme.INTO} ", theme.FAINT), (short(visible(key), 32), theme.STRONG)]
    if where:
        line += [("  esc", theme.STRONG), (" back", theme.FAINT)]
    return fitted(line, width)


class Places(Lines):
    """One line; it has nothing to be pressed."""

    def __init__(self) -> None:
        super().__init__("places")
        self._told: tuple[tuple[str, ...], str, Where] = ((), "", ())

    def show(self, views: tuple[str, ...], current: str, where: Where) -> None:
        self._told = (views, current, where)
        self.again()

    def drawn(self) -> list[Line]:
        return [places_line(*self._told, self.size.width)]
