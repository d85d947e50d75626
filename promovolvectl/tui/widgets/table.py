"""A table whose cursor, marks and scrolling follow rows by their identity, whatever comes and goes around them.

It paints the rows that are seen and no others, and of those only the lines that changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rich.cells import cell_len
from textual import events
from textual.message import Message

from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.draw import paragraph
from promovolvectl.tui.origin import Origin, dimmed, heading, trusted, why_nothing
from promovolvectl.tui.rows import AS_IT_COMES, Cell, Column, Newest, Order, Row, matching, ordered
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line, fitted, padded, short
from promovolvectl.tui.widgets.lines import Lines
from promovolvectl.tui.windows import parted

_ABOVE: Final = 2  # lines above the rows: heading and column titles
_GAP: Final = 1
_WORDS_LINES_MAX: Final = 6
_GONE_MAX: Final = 24
SENTENCE: Final = 60  # a column so wide holds words and no name


@dataclass(frozen=True, slots=True)
class Look:
    """How a person looks at a table; kept while they are elsewhere. `about`: the object of the row under the cursor.
    `newest`: the cursor stays on the newest row."""

    cursor: str = ""
    about: str = ""
    order: Order = AS_IT_COMES
    marks: frozenset[str] = frozenset()
    shifted: int = 0
    newest: bool = False


@dataclass(frozen=True, slots=True)
class Filled:
    """What a table is filled with. `asked`: the words of a filter by which the cluster has narrowed the rows. `gone`:
    what is said of the row under the cursor once it is there no more; `gone_ns`: for how long, 0 until another row
    is chosen."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    origin: Origin
    empty: str = "none"
    more: str = ""
    failed: str = ""
    newest: Newest = ""
    asked: tuple[str, ...] = ()
    gone: str = "is not here any more"
    gone_ns: int = 0


@dataclass(slots=True)
class _Seen:
    state: State
    now_ns: int
    filled: Filled
    shown: list[Row] = field(default_factory=list)


class Table(Lines, can_focus=True):
    """Arrows move, enter opens; the mouse does both."""

    BINDINGS = keys.TABLE

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Opened(Message):
        """The person wants what is behind a row."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, name: str = "table") -> None:
        super().__init__(name)
        self.look = Look()
        self._seen: _Seen | None = None
        self._first = 0
        self._widths: dict[str, int] = {}
        self._place = 0
        self._gone_ns = 0  # when the chosen row was missed first

    # ---- what it shows

    def fill(self, state: State, now_ns: int, filled: Filled) -> None:
        """Shows these rows; the cursor stays on its row; when that goes on another about the same object, else on
        none."""
        order = self.look.order
        _, needle = parted(order.needle, filled.asked)
        shown = ordered(matching(filled.rows, filled.columns, needle), order)
        self._seen = _Seen(state, now_ns, filled, shown)
        self._settle()
        self._gone_ns = (self._gone_ns or now_ns) if self.row is None else 0
        self.again()

    def take(self, look: Look) -> None:
        """Another table with another look."""
        self.look = look
        self._widths = {}
        self._place = 0
        self._first = 0

    def rewind(self) -> None:
        """Other rows of the same table: the cursor begins anew."""
        self.look = replace(self.look, cursor="", about="", marks=frozenset())
        self._place = 0
        self._first = 0

    def narrow_to(self, needle: str) -> None:
        """Shows only what matches."""
        self.look = replace(self.look, order=replace(self.look.order, needle=needle))
        self._refill()

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        if self._seen is None:
            return None
        return next((row for row in self._seen.shown if row.key == self.look.cursor), None)

    @property
    def filled(self) -> Filled | None:
        return self._seen.filled if self._seen else None

    @property
    def chosen(self) -> tuple[str, ...]:
        """The marked rows that are there, else the one under the cursor."""
        if self._seen is None:
            return ()
        marked = tuple(row.key for row in self._seen.shown if row.key in self.look.marks)
        row = self.row
        return marked or ((row.key,) if row else ())

    # ---- keys and mouse

    def action_move(self, by: int) -> None:
        if self._seen and self._seen.shown:
            by -= self.row is None and by > 0  # the row that took the place of the one that went is the next one
            self._put(max(0, min(len(self._seen.shown) - 1, self._place + by)))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - _ABOVE - 1))

    def action_first(self) -> None:
        self.action_move(-len(self._seen.shown) if self._seen else 0)

    def action_last(self) -> None:
        self.action_move(len(self._seen.shown) if self._seen else 0)

    def action_shift(self, by: int) -> None:
        columns = self._seen.filled.columns if self._seen else ()
        moving = sum(not column.stays for column in columns[1:])
        self.look = replace(self.look, shifted=max(0, min(moving - 1, self.look.shifted + by)))
        self._refill()

    def action_open(self) -> None:
        if self.row is not None:
            self.post_message(self.Opened(self.look.cursor))

    def action_mark(self) -> None:
        if self.row is not None:
            self.look = replace(self.look, marks=self.look.marks ^ {self.look.cursor})
            self.action_move(1)
            self._refill()

    def action_sort(self) -> None:
        """By the next column; after the last as the rows come."""
        columns = len(self._seen.filled.columns) if self._seen else 0
        by = self.look.order.by + 1
        self._sort(replace(self.look.order, by=by if by < columns else -1))

    def action_turn(self) -> None:
        self._sort(replace(self.look.order, reverse=not self.look.order.reverse))

    def on_click(self, event: events.Click) -> None:
        place = self._first + event.y - _ABOVE
        if self._seen and event.y >= _ABOVE and place < len(self._seen.shown):
            self._put(place)
            if event.chain > 1:
                self.action_open()

    def on_mouse_scroll_down(self) -> None:
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-1)

    # ---- painting

    def _sort(self, order: Order) -> None:
        self.look = replace(self.look, order=order, newest=False)  # who sorts has a row in mind
        self._refill()

    def _refill(self) -> None:
        if self._seen is not None:
            self.fill(self._seen.state, self._seen.now_ns, self._seen.filled)

    def _put(self, place: int) -> None:
        if self._seen is None:
            return
        at_end = place == len(self._seen.shown) - 1
        # The last is where one waits for what comes; whoever goes to the first of a list has a row in mind.
        self.look = replace(self.look, newest=at_end and self._seen.filled.newest == "last")
        self._choose(place)
        self.again()

    def _choose(self, place: int) -> None:
        if self._seen is None:
            return
        row, before = self._seen.shown[place], self.look.cursor
        self._place = place
        if (row.key, row.about) != (before, self.look.about):
            self.look = replace(self.look, cursor=row.key, about=row.about)
        if row.key != before:
            self.post_message(self.Moved(row.key))

    def _settle(self) -> None:
        shown = self._seen.shown if self._seen else []
        if not shown:
            self._place = 0
            return
        if self.look.newest:
            self._choose(0 if self._newest_first() else len(shown) - 1)
            return
        found = next((n for n, row in enumerate(shown) if row.key == self.look.cursor), None)
        if found is None and self.look.about:
            found = next((n for n, row in enumerate(shown) if row.about == self.look.about), None)
        place = found if found is not None else min(self._place, len(shown) - 1)
        if found is None and self._gone():
            self._place = place
            return
        self._choose(place)

    def _newest_first(self) -> bool:
        return self._seen is not None and self._seen.filled.newest == "first"

    def _gone(self) -> bool:
        """Whether the row that was chosen is there no more, rather than filtered out: then none is chosen. The next key
        must not be about the one that took its place, which nobody has looked at."""
        rows = self._seen.filled.rows if self._seen else ()
        return bool(self.look.cursor) and all(row.key != self.look.cursor for row in rows)

    def drawn(self) -> list[Line]:
        if self._seen is None or self.size.width < 1:
            return []
        seen, width, height = self._seen, self.size.width, max(1, self.size.height)
        head = heading(self._title(), seen.filled.origin, seen.state, seen.now_ns, width)
        if seen.filled.failed:
            return [head, *_words(seen.filled.failed, width, theme.BAD)][:height]
        if not seen.filled.origin.at_ns and not seen.filled.rows:
            why = why_nothing(seen.state, seen.now_ns, seen.filled.origin)
            return [head, *_words(why, width)][:height]
        if not seen.shown:
            why = "nothing matches the filter, esc clears it" if seen.filled.rows else f"empty: {seen.filled.empty}"
            return [head, *_words(why, width)][:height]
        body = self._body(seen, width, max(1, height - _ABOVE))
        lines = [head, *body]
        if not trusted(seen.state, seen.now_ns):
            lines = [head, *map(dimmed, body)]
        return lines[:height]

    def _title(self) -> str:
        if self._seen is None:
            return ""
        filled, shown = self._seen.filled, self._seen.shown
        total = len(filled.rows)
        title = f"{filled.title} {len(shown)} of {total}" if self.look.order.needle else f"{filled.title} {total}"
        if filled.more:
            title += f" {filled.more}"
        if self.look.order.needle:
            title += f" · filter {visible(self.look.order.needle)}"
        if self.look.marks:
            title += f" · {len(self.look.marks)} marked"
        for_ns = self._seen.now_ns - self._gone_ns
        if shown and self.row is None and not (filled.gone_ns and for_ns >= filled.gone_ns):
            title += f" · {short(visible(self.look.about or self.look.cursor), _GONE_MAX)} {filled.gone}"
        elif len(shown) > max(1, self.size.height - _ABOVE):
            title += f" · row {self._place + 1}"
        return title

    def _body(self, seen: _Seen, width: int, room: int) -> list[Line]:
        shown = seen.shown
        self._first = max(0, min(self._first, self._place, len(shown) - room))
        self._first = max(self._first, self._place - room + 1)
        window = shown[self._first : self._first + room]
        columns = self._columns(seen.filled.columns, window, width)
        lines: list[Line] = [self._titles(columns)]
        for row in window:
            line: Line = [(theme.MARK if row.key in self.look.marks else " ", theme.ODD)]
            for place, column, wide in columns:
                cell = row.cells[place] if place < len(row.cells) else Cell("")
                line.append((f"{_placed(cell.text, column, wide)} ", cell.style))
            if row.key == self.look.cursor:
                text = "".join(piece for piece, _ in line)
                style = theme.CURSOR if self.has_focus else theme.RESTING
                line = [(padded(text.rstrip(), width), style)]
            lines.append(fitted(line, width))
        return lines

    def _titles(self, columns: list[tuple[int, Column, int]]) -> Line:
        line: Line = [(" ", "")]
        for place, column, wide in columns:
            sign = ""
            if place == self.look.order.by:
                sign = theme.DOWN if self.look.order.reverse else theme.UP
            line.append((f"{padded(visible(column.title) + sign, wide, right=column.right)} ", theme.FAINT))
        return line

    def _columns(self, columns: Sequence[Column], window: Sequence[Row], width: int) -> list[tuple[int, Column, int]]:
        """The columns that fit, each with its place and width: the first always, then those behind what was shifted
        out. A width only grows while the table is the same, so that nothing jumps as it scrolls."""
        for place, column in enumerate(columns):
            longest = max(
                (cell_len(visible(row.cells[place].text)) for row in window if place < len(row.cells)), default=0
            )
            wanted = min(column.width, max(cell_len(column.title) + 1, longest))
            self._widths[column.title] = max(wanted, self._widths.get(column.title, 0))
        found: list[tuple[int, Column, int]] = []
        room = width - 1
        moving = [place for place, column in enumerate(columns) if place and not column.stays]
        out = moving[: self.look.shifted]
        for place, column in enumerate(columns):
            if place in out:
                continue
            wide = min(self._widths[column.title], room - _GAP) if not found else self._widths[column.title]
            if found and room < wide + _GAP:
                if room > 12 and not column.right:  # a text may be cut, a figure may not
                    found.append((place, column, room - _GAP))
                break
            found.append((place, column, max(1, wide)))
            room -= wide + _GAP
        return found


def _words(text: str, width: int, style: str = theme.FAINT) -> list[Line]:
    """What stands where there are no rows, broken at the width."""
    return [line for part in text.splitlines() for line in paragraph(part, width, style, _WORDS_LINES_MAX)]


def _placed(text: str, column: Column, wide: int) -> str:
    """A name loses its middle where there is no room for it, a sentence its end."""
    shown = visible(text)
    if column.width >= SENTENCE and cell_len(shown) > wide:
        return "".join(piece for piece, _ in fitted([(shown, "")], wide)).ljust(wide)
    return padded(shown, wide, right=column.right)
