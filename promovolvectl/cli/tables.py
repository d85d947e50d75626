"""Rows as aligned text. Off a terminal nothing is cut, coloured or wrapped; on one, columns go before letters do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from promovolvectl.cli.terminal import Terminal
from promovolvectl.cli.text import EMPTY, cell, moment, shorten, size, span, version, width_of

# What a field is named by where the cell says the unit itself, as `312ms` does.
_SAID: Final[Mapping[str, str]] = {"seconds": "_s", "ms": "_ms", "bytes": "_bytes"}
_GAP: Final = "  "
_CELL_MIN: Final = 6
_RESET: Final = "\x1b[0m"
_BOLD: Final = "\x1b[1m"
# A state's colour, its sign and the sign where only ASCII can be shown: colour never carries the meaning alone.
_STATES: Final[Mapping[str, tuple[str, str, str]]] = {
    "up": ("32", "●", "[UP]"),
    "running": ("32", "●", "[UP]"),
    "healthy": ("32", "●", "[OK]"),
    "done": ("32", "✓", "[OK]"),
    "active": ("32", "●", "[UP]"),
    "yes": ("32", "", ""),
    "ok": ("32", "✓", "[OK]"),
    "whole": ("32", "✓", "[OK]"),
    "answered": ("32", "✓", "[OK]"),
    "warn": ("33", "!", "[!]"),
    "cut": ("33", "!", "[!]"),
    "partly": ("33", "!", "[!]"),
    "fail": ("31", "✗", "[!!]"),
    "left_out": ("31", "✗", "[!!]"),
    "missing": ("31", "?", "[??]"),
    "joining": ("33", "◐", "[..]"),
    "weakly-up": ("33", "◐", "[..]"),
    "moving": ("33", "◐", "[..]"),
    "draining": ("33", "◐", "[DR]"),
    "leaving": ("33", "◐", "[DR]"),
    "exiting": ("33", "◐", "[DR]"),
    "waiting": ("33", "◌", "[..]"),
    "degraded": ("33", "◐", "[!!]"),
    "down": ("31", "○", "[DN]"),
    "failed": ("31", "✗", "[!!]"),
    "unhealthy": ("31", "✗", "[!!]"),
    "unallocated": ("31", "○", "[DN]"),
    "unreachable": ("31", "?", "[??]"),
    "unknown": ("33", "?", "[??]"),
    "cancelled": ("33", "-", "[--]"),
}


@dataclass(frozen=True, slots=True)
class Column:
    """`key` is the field and, in capitals, the heading. `rank` 0 stays longest when room is short; `wide` columns
    appear with `-o wide` only. `form`: how a person is shown it (`bytes`, `seconds`, `ms`, `state`, `ratio`,
    `slots`, `names`, `count`, `counts`, `version`, `time`)."""

    key: str
    rank: int = 1
    wide: bool = False
    form: str = ""
    title: str = ""

    @property
    def heading(self) -> str:
        name = self.title or self.key.removesuffix(_SAID.get(self.form, ""))
        return name.upper().replace("_", " ")


def shown(value: Any, form: str, terminal: Terminal) -> str:
    """One cell for people."""
    if form == "state":
        word = cell(value)
        _, sign, plain = _STATES.get(word, ("", "", ""))
        if not terminal.tty or not sign:
            return word
        return f"{sign if terminal.unicode else plain} {word}"
    if form == "time" and value:
        return moment(str(value), terminal.times, terminal.now)
    if form == "slots" and value:
        return cell([f"{item['slot']}:{item['width']}x{item['height']}" for item in value])
    if form == "version":
        return version(value) or EMPTY
    if form == "count":
        return str(len(value or ()))
    if form == "counts" and value:
        return cell([f"{item['count']} {item['name']}" for item in value])
    if form == "names" and value:
        return cell([item["name"] for item in value])
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return cell(value)
    match form:
        case "bytes":
            return size(int(value))
        case "seconds":
            return span(float(value))
        case "ms":
            return f"{value:g} ms"
        case "ratio":
            return f"{value:.3f}"
        case _:
            return cell(value)


def layout(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[Column],
    terminal: Terminal,
    *,
    headings: bool = True,
    whole: bool = False,
) -> list[str]:
    """The lines of a table. `whole` (for `wide`) keeps every letter even when the terminal is narrower."""
    texts = [[shown(row.get(column.key), column.form, terminal) for column in columns] for row in rows]
    titles = [column.heading for column in columns]
    widths = [
        max([width_of(line[index]) for line in texts] + ([len(titles[index])] if headings else [1]))
        for index in range(len(columns))
    ]
    kept = list(range(len(columns)))
    if terminal.width and not whole:
        kept, widths = _fit(columns, widths, terminal.width)
    right = [bool(rows) and all(_is_number(row.get(column.key)) for row in rows) for column in columns]
    lines: list[str] = []
    if headings:
        line = _line([titles[i] for i in kept], [widths[i] for i in kept], [right[i] for i in kept])
        lines.append(f"{_BOLD}{line}{_RESET}" if terminal.colour else line)
    for texts_of_row in texts:
        cells = [shorten(texts_of_row[i], widths[i]) for i in kept]
        line = _line(cells, [widths[i] for i in kept], [right[i] for i in kept])
        lines.append(_coloured(line, cells, [columns[i] for i in kept]) if terminal.colour else line)
    return lines


def fields(row: Mapping[str, Any], columns: Sequence[Column], terminal: Terminal) -> list[str]:
    """One object, a field to a line."""
    width = max((len(column.heading) for column in columns), default=0)
    lines = []
    for column in columns:
        text = shown(row.get(column.key), column.form, terminal)
        if terminal.colour and column.form == "state":
            text = _coloured(text, [text], [column])
        lines.append(f"{column.heading:<{width}}{_GAP}{text}")
    return lines


def _fit(columns: Sequence[Column], widths: list[int], room: int) -> tuple[list[int], list[int]]:
    """Which columns stay and how wide: the least important go first, then the widest of the rest shrink."""
    kept = list(range(len(columns)))

    def taken() -> int:
        return sum(widths[i] for i in kept) + len(_GAP) * (len(kept) - 1)

    while taken() > room and len(kept) > 2:
        worst = max(kept, key=lambda i: (columns[i].rank, i))
        if columns[worst].rank == 0:
            break
        kept.remove(worst)
    widths = list(widths)
    while taken() > room:
        widest = max(kept, key=lambda i: widths[i])
        if widths[widest] <= _CELL_MIN:
            break
        widths[widest] -= 1
    return kept, widths


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = []
    for text, width, to_right in zip(cells, widths, right, strict=True):
        pad = " " * max(0, width - width_of(text))
        padded.append(pad + text if to_right else text + pad)
    return _GAP.join(padded).rstrip()


def _coloured(line: str, cells: Sequence[str], columns: Sequence[Column]) -> str:
    for text, column in zip(cells, columns, strict=True):
        if column.form == "state":
            colour = _STATES.get(text.split(" ")[-1], ("", "", ""))[0]
            if colour:
                return line.replace(text, f"\x1b[{colour}m{text}{_RESET}", 1)
    return line


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))
