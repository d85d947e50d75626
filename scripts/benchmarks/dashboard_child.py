"""`python -m scripts.benchmarks.dashboard_child EVENTS_PER_S SCREEN FILE`: the dashboard on this terminal over a
made-up cluster. Beside FILE, with READY behind its name, stands a file once the screen shows the answers to all that it
asks. When it ends, which is not before the last key's picture, it leaves in FILE, for each key that it acted on, when
the picture with the effect of it had been written (monotonic nanoseconds, 0 for never), and how much of a core it took
from the action to there."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from textual.screen import Screen

from node.core.clock import SystemClock
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.app import Dashboard, Options
from promovolvectl.tui.start import play
from scripts.benchmarks.dashboard_feed import READY, MadeUp

LAST_PICTURE_S: Final = 1.0  # a key that changes no character has none


class Measured(Dashboard):
    """A key's effect is on the terminal once what it made dirty was handed to the compositor and displayed."""

    def __init__(self, events_per_s: int, screen: str, ready: Path) -> None:
        super().__init__(MadeUp(events_per_s), "bench", SystemClock(), Options(screen=screen))
        self.painted: list[tuple[int, int]] = []
        self._told_file = ready
        self._told_all = False
        self._leaves = False
        self._acted_cpu_ns = 0
        self._waiting: tuple[Any, Any] | None = None  # the widget and the screen that a key was about

    async def run_action(
        self, action: Any, default_namespace: Any = None, namespaces: Mapping[str, Any] | None = None
    ) -> bool:
        """Beside doing it: from now on its picture is waited for."""
        before = self.screen
        self._acted_cpu_ns = time.thread_time_ns()
        done = await super().run_action(action, default_namespace, namespaces)
        if self._leaves:
            return done
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
            if self._leaves:
                self.call_later(self._end, ExitStatus.OK)

    def paint(self) -> None:
        """What was told is in the picture that this makes."""
        super().paint()
        board = self.board
        if self._told_all or board is None or not board.is_mounted:
            return
        told = (self.state.report(query.params).tried_ns for query in board.queries(self.state))
        if self.state.connected and all(told):
            self._told_all = True
            self.call_after_refresh(self._told_file.touch)

    async def action_quit(self) -> None:
        """Not before the last key's picture."""
        self._leaves = True
        if self._waiting is None:
            self._end(ExitStatus.OK)
        else:
            self.set_timer(LAST_PICTURE_S, lambda: self._end(ExitStatus.OK))

    def _has(self, screen: Screen[Any], widget: Any, of: Any) -> bool:
        dirty = screen._dirty_widgets  # noqa: SLF001 — Textual has no public way to what a picture is about
        return screen is of and (widget is screen or widget in dirty or screen in dirty)


def main() -> None:
    events_per_s, screen, file = int(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    app = Measured(events_per_s, screen, Path(f"{file}{READY}"))
    play(app)
    if app.crash is not None:
        raise app.crash
    file.write_text(json.dumps(app.painted), encoding="utf-8")


if __name__ == "__main__":
    main()
