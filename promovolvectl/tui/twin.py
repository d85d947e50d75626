"""What stands on the screen, as text: for scripts, for screen readers, for tests that can be read."""

from __future__ import annotations

from typing import Any

from textual.app import App


def screen_text(app: App[Any]) -> str:
    """The characters of the screen that is seen, a line each, without trailing blanks."""
    width, height = app.size
    strips = app.screen._compositor.render_strips()  # noqa: SLF001 — Textual has no public way to its own picture
    lines = ["".join(segment.text for segment in strip).ljust(width) for strip in strips]
    return "\n".join(line.rstrip() for line in lines[:height])
