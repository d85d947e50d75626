"""The shards as a map of 16 by 16 that a cursor goes over."""

from __future__ import annotations

from typing import Final

from textual import events

from node.admin.protocol import ShardList
from promovolvectl.client.visible import visible
from promovolvectl.tui import keys, theme
from promovolvectl.tui.draw import paragraph
from promovolvectl.tui.origin import Origin, answered, dimmed, heading, trusted, why_nothing
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.shards import MAP
from promovolvectl.tui.text import Line, fitted, number_of
from promovolvectl.tui.widgets.lines import Lines
from promovolvectl.tui.widgets.shardmap import SIDE, legend, letters_of, sign_of
from promovolvectl.tui.widgets.table import Table

_ABOVE: Final = 2
_LEFT: Final = 4


class ShardGrid(Lines, can_focus=True):
    """Says the same as a table does when the cursor moves, and when a shard is opened."""

    BINDINGS = keys.GRID

    def __init__(self) -> None:
        super().__init__("grid")
        self.cursor = 0
        self._first = 0  # row that is seen
        self._above = _ABOVE  # lines above it
        self._seen: tuple[State, int] | None = None

    def show(self, state: State, now_ns: int) -> None:
        self._seen = (state, now_ns)
        self.again()

    def put(self, shard: int) -> None:
        """The cursor on a shard."""
        self.cursor = max(0, min(SIDE * SIDE - 1, shard))
        self.again()

    def action_move(self, by: int) -> None:
        after = self.cursor + by
        if 0 <= after < SIDE * SIDE:
            self.cursor = after
            self.post_message(Table.Moved(str(after)))
            self.again()

    def action_open(self) -> None:
        self.post_message(Table.Opened(str(self.cursor)))

    def on_click(self, event: events.Click) -> None:
        row, column = event.y - self._above + self._first, (event.x - 1 - _LEFT) // 2
        if event.y >= self._above and row < SIDE and 0 <= column < SIDE:
            self.cursor = row * SIDE + column
            self.post_message(Table.Moved(str(self.cursor)))
            self.again()

    def drawn(self) -> list[Line]:
        if self._seen is None or self.size.width < 1:
            return []
        state, now_ns = self._seen
        origin = answered(state, MAP.params)
        width, height = self.size.width, max(1, self.size.height)
        told = state.told(MAP.params, ShardList)
        head = heading(f"shards {len(told.items) if told else ''}".strip(), origin, state, now_ns, width)
        if told is None:
            why = why_nothing(state, now_ns, origin).splitlines()
            return [head, *(line for part in why for line in paragraph(part, width, theme.FAINT))]
        body = self._body(state, told, origin, width, height - 1)
        return [head, *(body if trusted(state, now_ns) else map(dimmed, body))][:height]

    def _body(self, state: State, told: ShardList, origin: Origin, width: int, height: int) -> list[Line]:
        """The rows that have room, those around the cursor among them."""
        problem: list[Line] = (
            [[(f"! {visible(' '.join(origin.problem.split()))}", theme.ODD)]] if origin.problem else []
        )
        self._above = _ABOVE + len(problem)
        room = max(1, min(SIDE, height - 1 - len(problem)))
        here = self.cursor // SIDE
        self._first = max(0, min(self._first, here, SIDE - room))
        self._first = max(self._first, here - room + 1)
        letters = letters_of(state, told.items)
        by_number = {item.shard: item for item in told.items}
        lines: list[Line] = [[("    " + " ".join(f"{column:X}" for column in range(SIDE)), theme.FAINT)]]
        for row in range(self._first, self._first + room):
            line: Line = [(f" {row:X}x ", theme.FAINT)]
            for column in range(SIDE):
                number = row * SIDE + column
                item = by_number.get(number)
                sign, style = sign_of(item, letters)
                here = number == self.cursor
                line.append((sign, f"{style} {theme.CURSOR}".strip() if here else style))
                line.append(("'" if item is not None and item.pinned else " ", theme.FAINT))
            lines.append(line)
        beside = self._beside(told, letters)
        for place, more in enumerate(beside):
            if place + 1 < len(lines):
                lines[place + 1] = [*lines[place + 1], ("  ", ""), *more]
        return [fitted(line, width) for line in [*problem, *lines]]

    def _beside(self, told: ShardList, letters: dict[str, str]) -> list[Line]:
        item = next((each for each in told.items if each.shard == self.cursor), None)
        if item is None:
            return legend(told.items, letters)
        lines: list[Line] = [
            [(f"shard {item.shard} ", theme.STRONG), (f"0x{item.shard:02X}", theme.FAINT)],
            [("owner ", theme.FAINT), (visible(item.node or "none"), "" if item.node else theme.BAD)],
            [(f"{visible(item.state)}  epoch {item.epoch}  {number_of(item.entities, 'entity', 'entities')}", "")],
        ]
        if item.pinned:
            lines.append([("pinned", theme.ODD)])
        if item.why:
            lines.append([(visible(item.why), theme.ODD)])
        return [*lines, [], *legend(told.items, letters), [("'", theme.FAINT), (" pinned", theme.FAINT)]]
