"""What all our widgets are to Textual: lines of text, of which only those that changed are painted again.

Textual's own way renders the whole widget whenever a character of it changes; a heading tells an age and changes all
the time.
"""

from __future__ import annotations

from itertools import groupby

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from promovolvectl.tui.text import Line, content_of, width_of


class Lines(Widget):
    """`drawn` tells the lines at the size that it has; `again` paints those that are others than before."""

    ALLOW_SELECT = False  # the terminal's own selection copies; ours would have no key to copy with

    def __init__(self, name: str) -> None:
        super().__init__(id=name, markup=False)
        self._lines: list[Line] = []
        self._drawn_for = Size(0, 0)
        self._styles_of: dict[str, Style] = {}
        self._styled_by: tuple[object, str] = (None, "")

    def drawn(self) -> list[Line]:
        """The lines, none wider than `content_size`; nothing is remembered of an earlier size."""
        return []

    def again(self) -> None:
        """Draws, and paints the lines that changed."""
        before, after = self._lines, self.drawn()
        self._lines, self._drawn_for = after, self.content_size
        most = max(len(before), len(after))
        changed = [
            Region(0, place, self._drawn_for.width, 1)
            for place in range(most)
            if place >= len(before) or place >= len(after) or before[place] != after[place]
        ]
        if changed:
            self.refresh(*changed)

    def watch_has_focus(self, has_focus: bool) -> None:
        """A cursor looks otherwise where the keys are."""
        super().watch_has_focus(has_focus)
        if self.is_mounted:
            self.again()

    def render(self) -> Content:
        """For who asks how large it would like to be."""
        return content_of(self._lines)

    def render_line(self, y: int) -> Strip:
        if self._drawn_for != self.content_size:
            self._lines, self._drawn_for = self.drawn(), self.content_size
        if y >= len(self._lines):
            return Strip([])
        line = self._lines[y]
        segments = [
            Segment("".join(text for text, _ in pieces), self._style_of(style))
            for style, pieces in groupby(line, lambda piece: piece[1])
        ]
        return Strip([segment for segment in segments if segment.text], width_of(line))

    def _style_of(self, style: str) -> Style:
        """As the widget's colours and the theme make it."""
        base, theme = self.visual_style, self.app.theme
        if self._styled_by[0] is not base or self._styled_by[1] != theme:
            self._styles_of, self._styled_by = {}, (base, theme)
        found = self._styles_of.get(style)
        if found is None:
            found = (base + (base + self._get_style(style)) if style else base).rich_style
            self._styles_of[style] = found
        return found
