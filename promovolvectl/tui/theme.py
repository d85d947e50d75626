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

PLAIN: Final = ""
GOOD: Final = "$success"
ODD: Final = "$warning"
BAD: Final = "bold $error"
FAINT: Final = "dim"
HEADING: Final = "bold $primary"
STRONG: Final = "bold"
CURSOR: Final = "reverse"

_PHASE: Final = {
    Phase.LIVE: ("● live", GOOD),
    Phase.CONNECTING: ("◌ connecting", ODD),
    Phase.STALE: ("◐ STALE", ODD),
    Phase.OFFLINE: ("○ OFFLINE", BAD),
    Phase.DENIED: ("✗ DENIED", BAD),
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
