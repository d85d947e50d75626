"""A part of a screen: a heading with source and age, and lines that a pure function draws from the state.

A panel redraws only when its lines changed. One that fails shows its error in its own place; the rest goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.state import Phase, State, age_s, phase
from promovolvectl.tui.text import Line, content_of, fitted, padded, span, width_of

# The lines for a state at a moment (monotonic ns), at most so many columns wide and lines high.
Draw = Callable[[State, int, int, int], list[Line]]
LINES_MAX = 500  # of a panel that grows with what it shows


class Panel(Widget):
    """`draw` makes the body; `at_ns` tells when what it draws came, 0 for never."""

    def __init__(
        self,
        title: str,
        draw: Draw,
        *,
        at_ns: Callable[[State], int] = lambda state: state.status_at_ns,
        why_empty: Callable[[State], str] = lambda _: "",
        name: str,
    ) -> None:
        super().__init__(id=name, markup=False)
        self._title = title
        self._draw = draw
        self._at_ns = at_ns
        self._why_empty = why_empty
        self._seen: tuple[State, int] | None = None
        self._lines: list[Line] = []
        self._laid_out = 0

    def show(self, state: State, now_ns: int) -> None:
        """Draws the state; nothing is painted when that changes no character."""
        self._seen = (state, now_ns)
        if self.styles.is_auto_height:
            wanted = len(self._lines_for(Size(self.content_size.width, LINES_MAX)))
            # Compared with what the layout used, not with what was asked for: a request that was lost is made again.
            if wanted not in (0, self._laid_out):
                self.refresh(layout=True)
        lines = self._lines_for(self.content_size)
        if lines != self._lines:
            self._lines = lines
            self.refresh()

    def render(self) -> Content:
        self._lines = self._lines_for(self.content_size)
        return content_of(self._lines)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        self._laid_out = len(self._lines_for(Size(width, LINES_MAX)))
        return self._laid_out

    def _lines_for(self, size: Size) -> list[Line]:
        if self._seen is None or size.width < 1:
            return []
        state, now_ns = self._seen
        height = max(1, size.height)
        try:
            body = self._body(state, now_ns, size.width, height - 1)
        except Exception as error:  # a panel's fault must not end the dashboard
            body = [[(f"this panel failed: {type(error).__name__}: {visible(str(error))}", theme.BAD)]]
        head = heading(self._title, state, self._at_ns(state), now_ns, size.width)
        return [head, *(fitted(line, size.width) for line in body)][:height]

    def _body(self, state: State, now_ns: int, width: int, height: int) -> list[Line]:
        if not self._at_ns(state):
            why = self._why_empty(state) or why_nothing(state, now_ns)
            return [[(visible(line), theme.FAINT)] for line in why.splitlines()]
        lines = self._draw(state, now_ns, width, height)
        if phase(state, now_ns) in (Phase.LIVE, Phase.CONNECTING):
            return lines
        # What may be wrong by now is dimmed, whatever it says.
        return [dimmed(line) for line in lines]


def dimmed(line: Line) -> Line:
    """The line as something that is not known to hold any more."""
    return [(text, style if "dim" in style else f"{style} dim".strip()) for text, style in line]


def heading(title: str, state: State, at_ns: int, now_ns: int, width: int) -> Line:
    """`── title ───── source · age ─`, the source first to go when there is no room."""
    current = phase(state, now_ns)
    source = visible(state.meta.observed_by) if state.meta else ""
    age = span(age_s(at_ns, now_ns)) if at_ns else "nothing yet"
    ages_style = theme.FAINT if current is Phase.LIVE else theme.ODD
    for told in (f" {source} · {age} " if source and at_ns else f" {age} ", f" {age} ", ""):
        left: Line = [("─ ", theme.FAINT), (title, theme.HEADING), (" ", "")]
        room = width - width_of(left) - width_of([(told, "")]) - 1
        if room >= 1:
            return [*left, ("─" * room, theme.FAINT), (told, ages_style), ("─", theme.FAINT)]
    return [(padded(title, width), theme.HEADING)]


def why_nothing(state: State, now_ns: int) -> str:
    """Why there is no data, in words."""
    match phase(state, now_ns):
        case Phase.DENIED:
            return "not permitted: the cluster does not know this key"
        case Phase.OFFLINE:
            return "no data: no node has answered yet"
        case _:
            return "loading: waiting for the first answer"
