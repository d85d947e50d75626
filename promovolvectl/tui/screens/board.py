"""What all screens share: title and health above, node strip and keys below, breakpoints, one line when tiny."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from promovolvectl.tui.queries import Query
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line
from promovolvectl.tui.views import Where
from promovolvectl.tui.widgets.keybar import KeyBar
from promovolvectl.tui.widgets.lines import Lines
from promovolvectl.tui.widgets.panel import Panel
from promovolvectl.tui.widgets.topbar import Bar, tiny_line

# Columns and lines at which a screen changes its layout; below the first pair one line is all there is room for.
TINY = (40, 10)
MEDIUM = (78, 22)
LARGE = (110, 36)
LAYOUTS = ("tiny", "small", "medium", "large")


def layout_of(width: int, height: int) -> str:
    """Which of the layouts fits."""
    if width < TINY[0] or height < TINY[1]:
        return "tiny"
    if width < MEDIUM[0] or height < MEDIUM[1]:
        return "small"
    return "medium" if width < LARGE[0] or height < LARGE[1] else "large"


class Tiny(Lines):
    """The one line for a terminal too small for a screen."""

    def __init__(self) -> None:
        super().__init__("tiny")
        self._seen: tuple[State, int] | None = None

    def show(self, state: State, now_ns: int) -> None:
        self._seen = (state, now_ns)
        if self.display:
            self.again()

    def drawn(self) -> list[Line]:
        return [tiny_line(*self._seen, self.size.width)] if self._seen else []


class Body(VerticalScroll, can_focus=False):
    """A screen's own part; it scrolls where it does not fit."""


class Board(Screen[None]):
    """A screen is a function of the state: it is shown one, and says what else it would like to know."""

    AUTO_FOCUS: ClassVar[str | None] = ""
    NAME: ClassVar[str] = ""
    DEFAULT_CSS = """
    Bar { height: 1; width: 1fr; padding: 0 1; }
    #title { background: $panel; }
    #strip { background: $surface; }
    #screens { background: $surface; }
    Panel { height: auto; padding: 0 1; }
    #tiny { display: none; height: 1; }
    Body { height: 1fr; scrollbar-size-vertical: 1; }
    Board.tiny #tiny { display: block; }
    Board.tiny Bar, Board.tiny Body, Board.tiny KeyBar { display: none; }
    Board.small #screens { display: none; }
    """

    class Seeks(Message):
        """What the screen wants to know is something else now."""

    class Refused(Message):
        """What the person wants can't be done now, and why."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    class Done(Message):
        """What a key did that nothing on the screen shows."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    class Follows(Message):
        """The person wants to see an object: `about` as events name it, `noun/name`."""

        def __init__(self, about: str) -> None:
            super().__init__()
            self.about = about

    def __init__(self) -> None:
        super().__init__()
        self.locked = ""
        self._seen: tuple[State, int] | None = None
        self._shown: tuple[Tiny | Bar | Panel, ...] = ()
        self._held: Widget | None = None
        self._stand_in: Widget | None = None

    def forbid(self, why: str) -> None:
        """Why nothing can be changed now; empty when it can. Keys for changes are dimmed meanwhile."""
        if why != self.locked:
            self.locked = why
            self.refresh_bindings()

    def described(self, binding: Binding) -> str:
        """What the line of keys says of a key now."""
        return binding.description

    def body(self) -> Iterable[Widget]:
        """The screen's own widgets."""
        return ()

    @property
    def rests_on(self) -> Widget | None:
        """What has the keys where the person has chosen nothing else."""
        return None

    def queries(self, state: State) -> tuple[Query, ...]:
        """What it needs beside what is pushed; asked only while it is seen."""
        return ()

    def go(self, view: str, where: Where) -> None:
        """Shows what is at a place, where the screen has places."""

    def steps_to(self, view: str) -> tuple[str, ...]:
        """The keys that lead from what it shows to one of its views; none where it has no views."""
        return ()

    def compose(self) -> ComposeResult:
        yield Tiny()
        yield Bar("title")
        yield Bar("health")
        yield Body(*self.body(), id="body")
        yield Bar("strip")
        yield Bar("screens", self.NAME)
        yield KeyBar()

    def show(self, state: State, now_ns: int) -> None:
        """Draws the state wherever it changed."""
        self._seen = (state, now_ns)
        # What a screen is made of never changes; looking for it at each picture costs more than drawing it.
        self._shown = self._shown or (self.query_one(Tiny), *self.query(Bar), *self.query(Panel))
        for each in self._shown:
            each.show(state, now_ns)

    def on_resize(self, event: events.Resize) -> None:
        wanted = layout_of(event.size.width, event.size.height)
        if not self.has_class(wanted):
            self._hold_keys()
        for name in LAYOUTS:
            self.set_class(name == wanted, name)
        self.call_after_refresh(self._laid_out)

    def _hold_keys(self) -> None:
        """What is hidden loses the keys, and Textual gives them to nobody: it is remembered who had them. Who has got
        them since for want of room is no choice of the person's."""
        if self._held is None or self.focused is not self._stand_in:
            self._held = self.focused
        self._stand_in = None
        self.set_focus(None)

    def _laid_out(self) -> None:
        """The keys go back to where they were, or, while that has no room, to what is seen."""
        if self.focused is None and not self.has_class("tiny"):
            held, self._stand_in = self._held, None
            if held is not None and _has_room(held):
                self._held = None
                self.set_focus(held, scroll_visible=False)
            elif self.rests_on is not None:
                self._stand_in = self.rests_on
                self.set_focus(self.rests_on, scroll_visible=False)
        self.show_again()

    def show_again(self) -> None:
        """Draws what was drawn before, for other sizes."""
        if self._seen is not None:
            self.show(*self._seen)


def _has_room(widget: Widget) -> bool:
    """Whether neither it nor anything that it is within is hidden."""
    return all(each.display for each in widget.ancestors_with_self if isinstance(each, Widget))
