"""The colours, and what they mean. Each meaning has a sign of its own, so that none is told by colour alone."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

from promovolvectl.tui.state import Phase

DARK: Final = Theme(
    name="promo-dark",
    primary="#6cb6ff",
    secondary="#8ddb8c",
    accent="#6cb6ff",
    foreground="#d3dae3",
    background="#0f1419",
    surface="#151b22",
    panel="#1d2630",
    success="#6bc46d",
    warning="#daaa3f",
    error="#f47067",
    dark=True,
)
LIGHT: Final = Theme(
    name="promo-light",
    primary="#0550ae",
    secondary="#116329",
    accent="#0550ae",
    foreground="#1f2328",
    background="#ffffff",
    surface="#f6f8fa",
    panel="#e4e9ef",
    success="#116329",
    warning="#7d4e00",
    error="#b3111d",
    dark=False,
)
HIGH_CONTRAST: Final = Theme(
    name="high-contrast",
    primary="#71b7ff",
    secondary="#26cd4d",
    accent="#71b7ff",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#222222",
    success="#26cd4d",
    warning="#f0b72f",
    error="#ff9492",
    dark=True,
)
MONO: Final = Theme(
    name="mono",
    primary="#d0d0d0",
    secondary="#d0d0d0",
    accent="#d0d0d0",
    foreground="#d0d0d0",
    background="#000000",
    surface="#101010",
    panel="#202020",
    success="#d0d0d0",
    warning="#d0d0d0",
    error="#ffffff",
    dark=True,
)
THEMES: Final = {theme.name: theme for theme in (DARK, LIGHT, HIGH_CONTRAST, MONO)}

PLAIN: Final = ""
GOOD: Final = "$success"
ODD: Final = "$warning"
BAD: Final = "bold $error"
FAINT: Final = "dim"
HEADING: Final = "bold $primary"
STRONG: Final = "bold"
CURSOR: Final = "reverse"
RESTING: Final = "bold on $panel"  # the cursor of a table that does not have the keys
CHART: Final = "$primary"
INTO: Final = "→"
MARK: Final = "✓"
UP: Final = "▲"
DOWN: Final = "▼"

_PHASE: Final = {
    Phase.LIVE: ("● live", GOOD),
    Phase.CONNECTING: ("◌ connecting", ODD),
    Phase.STALE: ("◐ STALE", ODD),
    Phase.OFFLINE: ("○ OFFLINE", BAD),
    Phase.DENIED: ("✗ DENIED", BAD),
    Phase.FROZEN: ("‖ frozen", ODD),
}
_ENDED: Final = {
    "running": ("◐", ODD),
    "cancelling": ("◐", ODD),
    "staged": ("◌", PLAIN),
    "waiting": ("·", FAINT),
    "done": ("✓", GOOD),
    "failed": ("✗", BAD),
    "cancelled": ("-", FAINT),
}


def sign_of(phase: Phase) -> tuple[str, str]:
    """The words and the style of a connection's state."""
    return _PHASE[phase]


def node_sign(status: str, *, reachable: bool, ready: bool) -> tuple[str, str]:
    """The mark and the style of a node's state."""
    if not reachable:
        return "?", BAD
    if status != "up":
        return "◐", ODD
    return ("●", GOOD) if ready else ("◌", ODD)


def health_sign(state: str) -> tuple[str, str]:
    """The mark and the style of a health state; one that we don't know is odd, never good."""
    return {"healthy": ("●", GOOD), "degraded": ("◐", ODD), "unhealthy": ("✗", BAD)}.get(state, ("?", ODD))


def work_sign(state: str) -> tuple[str, str]:
    """The mark and the style of how far work is: an operation's, a plan's, a replay's state."""
    return _ENDED.get(state, ("?", ODD))


def grade_sign(grade: str) -> tuple[str, str]:
    """The mark and the style of a finding; `unknown` is never good, a `note` is no alarm."""
    found = {"ok": ("✓", GOOD), "note": ("·", FAINT), "warn": ("!", ODD), "fail": ("✗", BAD)}
    return found.get(grade, ("?", ODD))
