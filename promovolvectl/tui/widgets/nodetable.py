"""The nodes as a table with a cursor that follows a node by its name, whatever comes and goes around it."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.widget import Widget

from node.admin.protocol import NodeRow
from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.state import Phase, State, phase
from promovolvectl.tui.text import Line, content_of, count, fitted, lag, natural, padded, size, span, width_of
from promovolvectl.tui.widgets.figures import state_words
from promovolvectl.tui.widgets.panel import heading, why_nothing

_NAME_MAX = 28
_ROLES_MAX = 26
# name, width, right-aligned; the last ones are the first to go when there is no room
_COLUMNS = (("STATE", 13, False), ("SHARDS", 6, True), ("ENTITIES", 8, True), ("LAG", 7, True), ("RSS", 8, True))
_WIDER = (("CPU", 5, True), ("UP", 6, True), ("ADDRESS", 21, False))


@dataclass(frozen=True, slots=True)
class Choice:
    """What the table shows of the nodes: those that match, and which one the cursor is on."""

    needle: str = ""
    cursor: str = ""


def matching(rows: tuple[NodeRow, ...], needle: str) -> list[NodeRow]:
    """The rows in which every word of the needle is found, by natural order of names."""
    words = needle.casefold().split()
    found = [row for row in rows if all(word in _searched(row) for word in words)]
    return sorted(found, key=lambda row: natural(row.name))


def _searched(row: NodeRow) -> str:
    return " ".join((row.name, state_words(row), row.status, *row.roles, row.address)).casefold()


def table_lines(state: State, choice: Choice, now_ns: int, width: int, height: int) -> tuple[list[Line], list[str]]:
    """Heading, column titles and as many rows as fit around the cursor; and the names of those rows."""
    everything = state.status.nodes if state.status else ()
    rows = matching(everything, choice.needle)
    title = f"nodes {len(rows)} of {len(everything)}"
    if choice.needle:
        title += f" · filter {visible(choice.needle)}"
    head = heading(title, state, state.status_at_ns, now_ns, width)
    if state.status is None:
        return [head, [(why_nothing(state, now_ns), theme.FAINT)]][:height], []
    if not rows:
        why = "no node matches the filter, esc clears it" if everything else "empty: the cluster has no members"
        return [head, [(why, theme.FAINT)]][:height], []
    names = min(_NAME_MAX, max(4, *(width_of([(visible(row.name), "")]) for row in rows)))
    columns = _columns(rows, width - 2 - names)
    titles = "  " + padded("NODE", names) + "".join(f" {padded(name, w, right=right)}" for name, w, right in columns)
    room = max(1, height - 2)
    place = next((n for n, row in enumerate(rows) if row.name == choice.cursor), 0)
    first = max(0, min(place - room // 2, len(rows) - room))
    shown_rows = rows[first : first + room]
    faint = phase(state, now_ns) not in (Phase.LIVE, Phase.CONNECTING)
    lines: list[Line] = [head, [(titles, theme.FAINT)]]
    for row in shown_rows:
        line = _row(row, names, columns, faint=faint)
        if row.name == choice.cursor:
            text = "".join(piece for piece, _ in line)
            line = [(padded(text.rstrip(), width), theme.CURSOR)]
        lines.append(line)
    return [fitted(line, width) for line in lines], [row.name for row in shown_rows]


def _columns(rows: list[NodeRow], room: int) -> list[tuple[str, int, bool]]:
    roles = min(_ROLES_MAX, max(5, *(len(",".join(row.roles)) for row in rows)))
    found: list[tuple[str, int, bool]] = []
    for column in (*_COLUMNS, ("ROLES", roles, False), *_WIDER):
        if room >= column[1] + 1:
            found.append(column)
            room -= column[1] + 1
    return found


def _row(row: NodeRow, names: int, columns: list[tuple[str, int, bool]], *, faint: bool) -> Line:
    mark, style = theme.node_sign(row.status, reachable=row.reachable, ready=row.ready)
    heard = bool(row.pid)
    values = {
        "STATE": state_words(row),
        "SHARDS": str(row.shards) if row.shards else "-",
        "ENTITIES": count(row.entities) if heard else "?",
        "LAG": lag(row.max_lag_ms) if heard else "?",
        "RSS": size(row.rss_bytes) if heard else "?",
        "ROLES": visible(",".join(row.roles)),
        "CPU": f"{row.cpu_ratio:.0%}" if heard else "?",
        "UP": span(row.uptime_s) if heard else "?",
        "ADDRESS": visible(row.address),
    }
    plain = theme.FAINT if faint else ""
    line: Line = [(f"{mark} ", theme.FAINT if faint else style), (padded(visible(row.name), names), plain)]
    for name, width, right in columns:
        alarming = name == "STATE" and mark != "●" and not faint
        line.append((f" {padded(values[name], width, right=right)}", style if alarming else plain))
    return line


class NodeTable(Widget, can_focus=True):
    """Up and down move, enter opens; the mouse does both."""

    BINDINGS = keys.TABLE

    class Chosen(Message):
        """The cursor is on another node. `opened`: the person wants to see all of it."""

        def __init__(self, node: str, *, opened: bool = False) -> None:
            super().__init__()
            self.node = node
            self.opened = opened

    def __init__(self) -> None:
        super().__init__(id="table", markup=False)
        self.choice = Choice()
        self._seen: tuple[State, int] | None = None
        self._lines: list[Line] = []
        self._names: list[str] = []

    def show(self, state: State, now_ns: int) -> None:
        self._seen = (state, now_ns)
        self._settle()
        lines, self._names = table_lines(state, self.choice, now_ns, self.size.width, self.size.height)
        if lines != self._lines:
            other_height = len(lines) != len(self._lines)
            self._lines = lines
            self.refresh(layout=other_height)

    def render(self) -> Content:
        if self._seen is None:
            return Content("")
        state, now_ns = self._seen
        self._lines, self._names = table_lines(state, self.choice, now_ns, self.size.width, self.size.height)
        return content_of(self._lines)

    def narrow_to(self, needle: str) -> None:
        """Shows only what matches."""
        self.choice = Choice(needle, self.choice.cursor)
        self._redraw()

    def action_move(self, by: int) -> None:
        rows = self._rows()
        if rows:
            place = next((n for n, row in enumerate(rows) if row.name == self.choice.cursor), 0)
            self._put(rows[max(0, min(len(rows) - 1, place + by))].name)

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 3))

    def action_first(self) -> None:
        self.action_move(-len(self._rows()))

    def action_last(self) -> None:
        self.action_move(len(self._rows()))

    def action_open(self) -> None:
        if self.choice.cursor:
            self.post_message(self.Chosen(self.choice.cursor, opened=True))

    def on_click(self, event: events.Click) -> None:
        place = event.y - 2
        if 0 <= place < len(self._names):
            self._put(self._names[place])
            if event.chain > 1:
                self.action_open()

    def on_mouse_scroll_down(self) -> None:
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        self.action_move(-1)

    def _rows(self) -> list[NodeRow]:
        status = self._seen[0].status if self._seen else None
        return matching(status.nodes, self.choice.needle) if status else []

    def _put(self, name: str) -> None:
        if name != self.choice.cursor:
            self.choice = Choice(self.choice.needle, name)
            self.post_message(self.Chosen(name))
            self._redraw()

    def _settle(self) -> None:
        """The cursor stays on its node; when that is gone or filtered away it goes to the first."""
        rows = self._rows()
        if rows and all(row.name != self.choice.cursor for row in rows):
            self.choice = Choice(self.choice.needle, rows[0].name)
            self.post_message(self.Chosen(rows[0].name))

    def _redraw(self) -> None:
        if self._seen is not None:
            self.show(*self._seen)
