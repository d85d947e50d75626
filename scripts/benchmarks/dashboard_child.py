"""`python -m scripts.benchmarks.dashboard_child EVENTS_PER_S SCREEN FILE`: the dashboard on this terminal over a
made-up cluster. When it ends it leaves in FILE, for each key that it acted on, when the picture with the effect of it
had been written (monotonic nanoseconds, 0 for never), and how much of a core it took from the action to there."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual.screen import Screen

from node.core.clock import SystemClock
from promovolvectl.tui.app import Dashboard, Options
from promovolvectl.tui.start import play
from scripts.benchmarks.dashboard_feed import MadeUp


class Measured(Dashboard):
    """A key's effect is on the terminal once what it made dirty was handed to the compositor and displayed."""

    def __init__(self, events_per_s: int, screen: str) -> None:
        super().__init__(MadeUp(events_per_s), "bench", SystemClock(), Options(screen=screen))
        self.painted: list[tuple[int, int]] = []
        self._acted_cpu_ns = 0
        self._waiting: tuple[Any, Any] | None = None  # the widget and the screen that a key was about

    async def run_action(
        self, action: Any, default_namespace: Any = None, namespaces: Mapping[str, Any] | None = None
    ) -> bool:
        """Beside doing it: from now on its picture is waited for."""
        before = self.screen
        self._acted_cpu_ns = time.thread_time_ns()
        done = await super().run_action(action, default_namespace, namespaces)
        self.painted.append((0, 0))
        self._waiting = (self.screen if self.screen is not before else self.focused, self.screen)
        return done

    def _display(self, screen: Screen[Any], renderable: Any) -> None:
        wanted = self._waiting
        shown = wanted is not None and self._has(screen, *wanted)
        super()._display(screen, renderable)
        if shown and renderable is not None:
            self.painted[-1] = (time.monotonic_ns(), time.thread_time_ns() - self._acted_cpu_ns)
            self._waiting = None

    def _has(self, screen: Screen[Any], widget: Any, of: Any) -> bool:
        dirty = screen._dirty_widgets  # noqa: SLF001 — Textual has no public way to what a picture is about
        return screen is of and (widget is screen or widget in dirty or screen in dirty)


def main() -> None:
    events_per_s, screen, file = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    app = Measured(events_per_s, screen)
    play(app)
    if app.crash is not None:
        raise app.crash
    file.write_text(json.dumps(app.painted), encoding="utf-8")


if __name__ == "__main__":
    main()
