"""A row of bars for a series: zero based, gaps as gaps, the scale printed beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_BARS: Final = "▁▂▃▄▅▆▇█"


def sparkline(points: Sequence[float], width: int) -> str:
    """The newest `width` points, the newest at the right; what is not known yet is blank."""
    newest = list(points)[-width:] if width > 0 else []
    top = max(newest, default=0.0)
    bars = "".join(_BARS[_level(point, top)] for point in newest)
    return bars.rjust(width)


def _level(point: float, top: float) -> int:
    if top <= 0 or point <= 0:
        return 0
    return min(len(_BARS) - 1, max(1, round(point / top * (len(_BARS) - 1))))
