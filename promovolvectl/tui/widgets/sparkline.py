"""Charts in text: a row of bars, and a chart of several lines with its scale. Zero based; gaps are shown as gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from promovolvectl.tui import theme
from promovolvectl.tui.text import Line, padded

_BARS: Final = "▁▂▃▄▅▆▇█"
_PARTS: Final = " ▁▂▃▄▅▆▇█"
Points = Sequence[float | None]


def sparkline(points: Points, width: int, top: float | None = None) -> str:
    """The newest `width` points, the newest at the right; what is not known is blank. `top`: the full bar's value, the
    greatest point's if not given."""
    newest = list(points)[-width:] if width > 0 else []
    known = [point for point in newest if point is not None]
    most = max(known, default=0.0) if top is None else top
    bars = "".join(" " if point is None else _BARS[_level(point, most)] for point in newest)
    return bars.rjust(width)


def chart(points: Points, width: int, height: int, scale: Callable[[float], str]) -> list[Line]:
    """The newest points as columns over `height` lines, at the left the scale: the greatest value, half of it, zero."""
    height = max(2, height)
    known = [point for point in points if point is not None]
    top = max(known, default=0.0)
    marks = {0: scale(top), height - 1: scale(0.0)}
    if height >= 5:
        marks[height // 2] = scale(top * (height - 1 - height // 2) / (height - 1))
    left = max(len(mark) for mark in marks.values())
    room = max(1, width - left - 2)
    newest = [*(None for _ in range(room - len(points))), *points][-room:]
    lines: list[Line] = []
    for row in range(height):
        base = height - 1 - row
        bars = "".join(_part(point, top, base, height) for point in newest)
        lines.append([(f"{padded(marks.get(row, ''), left, right=True)} ┤", theme.FAINT), (bars, theme.CHART)])
    return lines


def _part(point: float | None, top: float, base: int, height: int) -> str:
    """What of a column stands in the line that is `base` lines above the lowest."""
    if point is None:
        return " "
    eighths = round(point / top * height * 8) if top > 0 and point > 0 else 0
    if base == 0:
        eighths = max(1, eighths)
    return _PARTS[max(0, min(8, eighths - base * 8))]


def _level(point: float, top: float) -> int:
    if top <= 0 or point <= 0:
        return 0
    return min(len(_BARS) - 1, max(1, round(point / top * (len(_BARS) - 1))))
