"""A screen of tables: views, rows that lead to other tables, and a pane about the row under the cursor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len
from textual import events, on
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.actions import Action, Focus
from promovolvectl.tui.draw import paragraph
from promovolvectl.tui.origin import Origin, answered
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Column, Row
from promovolvectl.tui.screens.board import Board
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line, padded, short
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, source_of
from promovolvectl.tui.widgets.keybar import KeyBar
from promovolvectl.tui.widgets.panel import Panel
from promovolvectl.tui.widgets.places import Places
from promovolvectl.tui.widgets.table import Filled, Look, Table
from promovolvectl.tui.windows import Window, parted

_OF_MAX = 32
_WHOLE_LINES_MAX = 20
SETTLE_S = 0.25  # a cursor that has rested so long is worth a question


def bindings_of(views: tuple[View, ...], actions: tuple[Action, ...] = ()) -> list[BindingType]:
    """The keys of a screen, from what it is made of."""
    panes: dict[str, list[str]] = {}  # a key may choose one pane in a table and another in the next
    for tab in (tab for view in views for level in view.levels for tab in level.tabs):
        names = panes.setdefault(tab.key, [])
        names += [tab.name] if tab.name not in names else []
    found: list[BindingType] = [*keys.LISTING]
    if len(views) > 1:
        found += keys.views(view.name for view in views)
    found += keys.tabs((key, ", ".join(names)) for key, names in panes.items())
    found += [keys.change(action.key, action.name, action.title, action.about) for action in actions]
    return found


class Listing(Board):
    """Enter goes in, esc goes back; cursor, order and filter of a table survive coming back to it."""

    class Changes(Message):
        """The person wants a change: its dialog is opened, or why there is none is said."""

        def __init__(self, action: Action) -> None:
            super().__init__()
            self.action = action

    VIEWS: ClassVar[tuple[View, ...]] = ()
    ACTIONS: ClassVar[tuple[Action, ...]] = ()
    DEFAULT_CSS = """
    Listing Body { overflow-y: hidden; }
    Listing #places { display: none; height: 1; padding: 0 1; }
    Listing.placed #places { display: block; }
    Listing Table { height: 1fr; min-height: 3; padding: 0 1; }
    Listing #lead { height: auto; max-height: 10; }
    Listing.small #lead { display: none; }
    Listing #pane { height: 45%; scrollbar-size-vertical: 1; }
    Listing.paneless #pane { display: none; }
    Listing #filter { display: none; height: 1; border: none; padding: 0 1; background: $panel; }
    Listing.filtering #filter { display: block; }
    Listing.small #pane { display: none; }
    Listing.zoomed #pane { display: block; height: 1fr; }
    Listing.zoomed Table, Listing.zoomed #lead { display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = Table()
        self._places = Places()
        self._pane = Panel("detail", self._detail, origin=self._detail_origin, name="detail")
        self._at = 0
        self._where: dict[str, Where] = {}
        self._looks: dict[tuple[str, Where], Look] = {}
        self._pages: dict[tuple[str, Where], tuple[str, ...]] = {}
        self._tabs: dict[str, str] = {}
        self._settling: Timer | None = None
        self._named: dict[str, str] = {}

    # ---- what it is made of

    def body(self) -> Iterable[Widget]:
        yield self._places
        yield from self.lead()
        yield self.table
        yield Input(placeholder="word  !word  column=text  column>number", id="filter")
        yield VerticalScroll(self._pane, id="pane")

    def lead(self) -> Iterable[Widget]:
        """What stands above the table."""
        return ()

    @property
    def view(self) -> View:
        return self.VIEWS[self._at]

    @property
    def where(self) -> Where:
        """The keys that were entered."""
        return self._where.get(self.view.name, ())

    @property
    def level(self) -> Level:
        return self.view.levels[len(self.where)]

    @property
    def tab(self) -> Tab | None:
        chosen = self._tabs.get(self.level.name, "")
        return next((tab for tab in self.level.tabs if tab.key == chosen), next(iter(self.level.tabs), None))

    @property
    def place(self) -> Where:
        """Where the person is, down to the row under the cursor."""
        cursor = self.cursor
        return (*self.where, cursor) if cursor else self.where

    @property
    def cursor(self) -> str:
        """The key of the row under the cursor; empty when that row has gone, or none was told yet."""
        row = self.table.row
        return row.key if row is not None else ""

    @property
    def rowless(self) -> bool:
        """Whether there is no row that a pane could be about."""
        return self.table.row is None

    @property
    def _untold(self) -> bool:
        """Whether the table stands empty because nobody told of it, and says why: a pane would say the same again."""
        filled = self.table.filled
        return self.rowless and filled is not None and not (filled.rows or filled.origin.at_ns)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The marked rows, else the one under the cursor."""
        return self.table.chosen

    @property
    def focus_of_change(self) -> Focus:
        """What a change would be about."""
        return Focus(self.view.name, self.place, self.chosen)

    def _windowed(self, state: State) -> State:
        """The state as somebody sees it who looks at this page of the table."""
        terms, _ = parted(self.table.look.order.needle, self.level.asked)
        return replace(state, window=Window(self._pages.get((self.view.name, self.where), ()), terms))

    def queries(self, state: State) -> tuple[Query, ...]:
        state = self._windowed(state)
        found = list(self.level.queries(state, self.where))
        tab = self.tab
        if tab is not None and self.cursor:
            found += tab.queries(state, self.place)
        return tuple(found)

    # ---- showing

    def show(self, state: State, now_ns: int) -> None:
        state = self._windowed(state)
        self._seen = (state, now_ns)
        self._fill(state, now_ns)
        self._name_changes(state)
        self.set_class(len(self.VIEWS) > 1 or bool(self.where), "placed")
        self.set_class(self.tab is None or self._untold, "paneless")
        self._places.show(tuple(view.name for view in self.VIEWS), self.view.name, self.where)
        self._pane.title = self._pane_title()
        super().show(state, now_ns)

    def on_mount(self) -> None:
        self.table.take(Look(newest=bool(self.level.newest)))
        self.rest()

    def rest(self) -> None:
        """The keys go to what is seen."""
        self.rests_on.focus()

    @property
    def rests_on(self) -> Widget:
        return self.table

    def go(self, view: str, where: Where) -> None:
        """Opens a view with the cursor on the last of `where`, inside of what the others name."""
        names = [each.name for each in self.VIEWS]
        self._keep()
        self._at = names.index(view) if view in names else self._at
        inside = where[:-1][: len(self.view.levels) - 1]
        self._where[self.view.name] = inside
        if where:
            self._looks[(self.view.name, inside)] = Look(cursor=where[-1])
        self._enter()

    # ---- keys

    def action_view(self) -> None:
        self._keep()
        self._at = (self._at + 1) % len(self.VIEWS)
        self._enter()

    def action_tab(self, key: str) -> None:
        self._tabs[self.level.name] = key
        self.query_one("#pane", VerticalScroll).scroll_home(animate=False)
        self.post_message(self.Seeks())

    def action_pane(self) -> None:
        self.toggle_class("zoomed")
        if self.has_class("zoomed"):
            self.query_one("#pane").focus()
        else:
            self.rest()
        self.call_after_refresh(self.show_again)

    def action_turn_page(self, by: int) -> None:
        if self._seen is None:
            return
        window, onward = self._seen[0].window, self.level.onward(self._seen[0], self.where)
        if (by > 0 and not onward) or (by < 0 and not window.pages):
            self.post_message(self.Refused("there is no page after this" if by > 0 else "this is the first page"))
            return
        self._turn_to(window.onward(onward) if by > 0 else window.back())

    def action_filter(self) -> None:
        self.add_class("filtering")
        self.query_one(Input).focus()

    def action_back(self) -> None:
        """One step: out of the filter, out of the large pane, out of the table, or the filter away."""
        field = self.query_one(Input)
        if self.focused is field or field.value:
            field.value = ""
            self.remove_class("filtering")
        elif self.has_class("zoomed"):
            self.remove_class("zoomed")
        elif self.where:
            self._keep()
            self._where[self.view.name] = self.where[:-1]
            self._enter()
            return
        self.rest()
        self.call_after_refresh(self.show_again)

    def action_copy_cell(self) -> None:
        if self.cursor:
            self._copy(self.cursor, short(visible(self.cursor), _OF_MAX))

    def action_copy_row(self) -> None:
        table = self.table
        if table.row is not None and table.filled is not None:
            titles = [column.title for column in table.filled.columns]
            cells = {title.lower(): cell.text for title, cell in zip(titles, table.row.cells, strict=False)}
            row = json.dumps({"key": table.row.key, **cells}, ensure_ascii=False)
            self._copy(row, f"the row {short(visible(table.row.key), _OF_MAX)}")

    def _copy(self, text: str, called: str) -> None:
        """Whether the terminal takes it nobody says: what is known is that it was sent."""
        self.app.copy_to_clipboard(text)
        self.post_message(self.Done(f"sent to the terminal's clipboard: {called}"))

    def steps_to(self, view: str) -> tuple[str, ...]:
        """The keys that lead from what this screen shows to the rows of a view."""
        names = [each.name for each in self.VIEWS]
        turns = (names.index(view) - self._at) % len(names)
        return (*("v",) * turns, *("esc",) * len(self._where.get(view, ())))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "tab":
            return any(tab.key == parameters[0] for tab in self.level.tabs)
        if action == "change" and self.locked:
            return None
        return super().check_action(action, parameters)

    def described(self, binding: Binding) -> str:
        """What the key does to the row under the cursor, where that depends on it."""
        return self._named.get(binding.action, super().described(binding))

    def _name_changes(self, state: State) -> None:
        focus = self.focus_of_change
        named = {f"change('{each.name}')": each.now(state, focus) for each in self.ACTIONS if each.now}
        if named != self._named:
            self._named = named
            self.query_one(KeyBar).again()

    def action_change(self, name: str) -> None:
        self.post_message(self.Changes(next(each for each in self.ACTIONS if each.name == name)))

    def on_key(self, event: events.Key) -> None:
        """A key that is dimmed says why."""
        action = next((each for each in self.ACTIONS if each.key == event.character), None)
        if action is not None and self.locked:
            event.stop()
            self.post_message(self.Refused(f"{action.title}: {self.locked}"))

    @on(Input.Changed, "#filter")
    def _narrow(self, event: Input.Changed) -> None:
        table = self.table
        before, _ = parted(table.look.order.needle, self.level.asked)
        terms, _ = parted(event.value, self.level.asked)
        table.narrow_to(event.value)
        if terms != before:
            self._turn_to(Window(terms=terms))

    @on(Input.Submitted, "#filter")
    def _keep_filter(self) -> None:
        self.rest()
        if not self.query_one(Input).value:
            self.remove_class("filtering")

    @on(Table.Opened)
    def _opened(self, event: Table.Opened) -> None:
        leads = self._seen is None or self.level.leads(self._seen[0], event.key)
        if len(self.where) + 1 < len(self.view.levels) and leads:
            self._keep()
            self._where[self.view.name] = (*self.where, event.key)
            self._enter()
        else:
            self.action_pane()
            self.post_message(self.Seeks())

    @on(Table.Moved)
    def _moved(self) -> None:
        self.query_one("#pane", VerticalScroll).scroll_home(animate=False)
        self._settle()
        if self._seen is not None:
            self._name_changes(self._seen[0])
        self._pane.show_again()  # the table has painted its own cursor

    # ---- within

    def _settle(self) -> None:
        """What is wanted now is asked when the keys rest."""
        if self._settling is not None:
            self._settling.stop()
        self._settling = self.set_timer(SETTLE_S, lambda: self.post_message(self.Seeks()))

    def _turn_to(self, window: Window) -> None:
        self._pages[(self.view.name, self.where)] = window.pages
        self.table.rewind()
        self.show_again()
        self._settle()

    def _keep(self) -> None:
        self._looks[(self.view.name, self.where)] = self.table.look

    def _enter(self) -> None:
        """The table of where the person is now, as it was left."""
        look = self._looks.get((self.view.name, self.where), Look(newest=bool(self.level.newest)))
        self.table.take(look)
        field = self.query_one(Input)
        with field.prevent(Input.Changed):
            field.value = look.order.needle
        self.set_class(bool(look.order.needle), "filtering")
        self.remove_class("zoomed")
        self.show_again()
        self.rest()
        self.post_message(self.Seeks())
        self.refresh_bindings()

    def _fill(self, state: State, now_ns: int) -> None:
        level, where = self.level, self.where
        failed = ""
        try:
            columns, rows, more = level.columns(state), level.rows(state, where), level.more(state, where)
        except Exception as error:  # a table's fault must not end the dashboard
            columns, rows, more = (), (), ""
            failed = f"this table failed: {type(error).__name__}: {error}"
        origin = answered(state, source_of(level, state, where))
        title = f"{level.name} {short(visible(where[-1]), _OF_MAX)}:" if where else level.name
        filled = Filled(title, columns, rows, origin, level.empty, more, failed, level.newest, level.asked)
        self.table.fill(state, now_ns, filled)

    def _pane_title(self) -> str:
        tab = self.tab
        if tab is None:
            return "about"
        others = "  ".join(f"{each.key} {each.name}" for each in self.level.tabs if each is not tab)
        return f"{tab.name}   {others}".rstrip()

    def _detail(self, state: State, now_ns: int, width: int, _height: int) -> list[Line]:
        tab = self.tab
        if tab is None and self.table.row is not None and self.table.filled is not None:
            return _whole(self.table.filled.columns, self.table.row, width)
        if tab is None or not self.cursor or self.rowless:
            return [[("empty: nothing is selected: up and down choose a row", theme.FAINT)]]
        return tab.draw(Glance(state, now_ns, width), self.place) or [[(f"empty: {tab.empty}", theme.FAINT)]]

    def _detail_origin(self, state: State) -> Origin:
        tab = self.tab
        queries = tab.queries(state, self.place) if tab is not None and self.cursor else ()
        return answered(state, queries[0].params if queries else source_of(self.level, state, self.where))


def _whole(columns: Sequence[Column], row: Row, width: int) -> list[Line]:
    """Each cell of a row as it is, however long: where no question tells more of it than its table does."""
    lines: list[Line] = []
    beside = max((cell_len(column.title) for column in columns), default=0) + 1
    for column, cell in zip(columns, row.cells, strict=False):
        told = paragraph(cell.text.strip(), max(10, width - beside), cell.style, _WHOLE_LINES_MAX)
        titles = (visible(column.title), *("",) * len(told))
        lines += [[(padded(title, beside), theme.FAINT), *line] for title, line in zip(titles, told, strict=False)]
    return lines
