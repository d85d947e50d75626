"""A part of a screen: a heading with source and age, and lines that a pure function draws from the state.

A panel redraws only when its lines changed. One that fails shows its error in its own place; the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Size

from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import paragraph
from promovolvectl.tui.origin import Origin, dimmed, heading, pushed, trusted, why_nothing
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line, fitted
from promovolvectl.tui.widgets.lines import Lines

# The lines for a state at a moment (monotonic ns), at most so many columns wide and lines high.
Draw = Callable[[State, int, int, int], list[Line]]
LINES_MAX = 500  # of a panel that grows with what it shows


class Panel(Lines):
    """`draw` makes the body; `origin` tells where what it draws comes from. `bare`: it says itself when it has
    nothing. `title` may be changed while it is shown."""

    def __init__(
        self,
        title: str,
        draw: Draw,
        *,
        origin: Callable[[State], Origin] = pushed,
        name: str,
        bare: bool = False,
    ) -> None:
        super().__init__(name)
        self.title = title
        self._draw = draw
        self._origin = origin
        self._bare = bare
        self._seen: tuple[State, int] | None = None
        self._made: dict[Size, list[Line]] = {}
        self._laid_out = 0

    def show(self, state: State, now_ns: int) -> None:
        """Draws the state; nothing is painted when that changes no character."""
        self._seen = (state, now_ns)
        self._made.clear()
        if self.styles.is_auto_height:
            wanted = len(self._lines_for(Size(self.content_size.width, LINES_MAX)))
            # Compared with what the layout used, not with what was asked for: a request that was lost is made again.
            if wanted not in (0, self._laid_out):
                self.refresh(layout=True)
        self.again()

    def show_again(self) -> None:
        """Draws what was drawn before, for another title or size."""
        if self._seen is not None:
            self.show(*self._seen)

    def drawn(self) -> list[Line]:
        return self._lines_for(self.content_size)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._laid_out = len(self._lines_for(Size(width, LINES_MAX)))
        return self._laid_out

    def _lines_for(self, size: Size) -> list[Line]:
        """Made once for what is shown; where all lines have room, more room makes no others."""
        if self._seen is None or size.width < 1:
            return []
        whole = self._made.get(Size(size.width, LINES_MAX), ())
        if whole and len(whole) <= size.height:
            return list(whole)
        if size not in self._made:
            self._made[size] = self._lines_at(*self._seen, size)
        return self._made[size]

    def _lines_at(self, state: State, now_ns: int, size: Size) -> list[Line]:
        height = max(1, size.height)
        try:
            origin = self._origin(state)
            body = self._body(state, now_ns, origin, Size(size.width, height - 1))
        except Exception as error:  # a panel's fault must not end the dashboard
            origin = pushed(state)
            body = [[(f"this panel failed: {type(error).__name__}: {visible(str(error))}", theme.BAD)]]
        head = self._head(origin, state, now_ns, size.width)
        return [head, *(fitted(line, size.width) for line in body)][:height]

    def _head(self, origin: Origin, state: State, now_ns: int, width: int) -> Line:
        return heading(self.title, origin, state, now_ns, width)

    def _body(self, state: State, now_ns: int, origin: Origin, size: Size) -> list[Line]:
        if not origin.at_ns and not self._bare:
            why = why_nothing(state, now_ns, origin)
            # Advice stands at its end: it is broken, not cut.
            return [line for part in why.splitlines() for line in paragraph(part, size.width, theme.FAINT)]
        lines = self._draw(state, now_ns, size.width, size.height)
        if origin.problem and not self._bare:
            why = f"! not told again: {' '.join(origin.problem.split())}"
            lines = [*paragraph(why, size.width, theme.ODD, 3), *map(dimmed, lines)]
        # What may be wrong by now is dimmed, whatever it says.
        return lines if trusted(state, now_ns) else [dimmed(line) for line in lines]
