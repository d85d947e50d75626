"""The only way in which data becomes text on the screen.

Names, reasons and errors come from others. They are never read as markup, and a character that would drive the
terminal, reorder or hide text is written out. What is drawn is a list of lines, each a list of (text, style) pieces;
styles are ours, never data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from promovolvectl.client.visible import visible

Piece = tuple[str, str]
Line = list[Piece]
T = TypeVar("T")


def width_of(line: Sequence[Piece]) -> int:
    """Columns on a terminal."""
    return sum(cell_len(text) for text, _ in line)


def short(text: str, width: int) -> str:
    """At most `width` columns: the middle goes, since both ends of a name tell things apart."""
    if cell_len(text) <= width:
        return text
    if width < 2:
        return text[: max(0, width)]
    head = width // 2
    tail = width - 1 - head
    end = text
    while tail and cell_len(end) > tail:
        end = end[1:]
    return set_cell_size(text, head).rstrip() + "…" + (end if tail else "")


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Exactly `width` columns, ours or data's made shorter."""
    text = short(text, width)
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def fitted(line: Sequence[Piece], width: int) -> Line:
    """The line cut to `width` columns, `…` where something is missing."""
    if width_of(line) <= width:
        return list(line)
    found: Line = []
    left = width - 1
    for text, style in line:
        if cell_len(text) > left:
            found.append((set_cell_size(text, max(0, left)).rstrip() + "…", style))
            break
        found.append((text, style))
        left -= cell_len(text)
    return found


def wrapped(text: str, width: int, lines_max: int) -> list[str]:
    """Text broken at `width` columns into at most `lines_max` lines; the last one tells that there is more."""
    width = max(1, width)
    found: list[str] = []
    current = ""
    for word in re.findall(r"\s+|\S+", text):
        while cell_len(current + word) > width:
            room = width - cell_len(current)
            if current and (cell_len(word) <= width or room < cell_len(word[:1])):
                found += [current.rstrip()] if current.strip() else []
                current, word = "", word.lstrip()
                continue
            cut = max(1, sum(1 for end in range(1, len(word) + 1) if cell_len(word[:end]) <= room))
            found.append(current + word[:cut])
            current, word = "", word[cut:]
        current += word
    if current.strip():
        found.append(current.rstrip())
    if len(found) > lines_max:
        found = [*found[: lines_max - 1], short(found[lines_max - 1] + " …", width)]
    return found


def content_of(lines: Sequence[Sequence[Piece]]) -> Content:
    """Lines as what a widget draws. Nothing in them is parsed."""
    pieces: list[tuple[str, str]] = []
    for number, line in enumerate(lines):
        if number:
            pieces.append(("\n", ""))
        pieces.extend((text, style) for text, style in line if text)
    return Content.assemble(*pieces)


def count(number: int) -> str:
    """Grouped for people: 38 112."""
    return f"{number:,}".replace(",", " ")


def number_of(number: int, one: str, many: str = "") -> str:
    """`1 page`, `38 112 pages`. `many`: where an `s` does not make it."""
    return f"{count(number)} {one if number == 1 else many or f'{one}s'}"


def size(amount: float) -> str:
    """Bytes in IEC units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def span(seconds: float) -> str:
    """A length of time, two units at most; tenths below ten seconds."""
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f}s"
    whole = int(seconds)
    for unit, length, lower, lower_length in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= length:
            rest = whole % length // lower_length
            return f"{whole // length}{unit}{f'{rest}{lower}' if rest else ''}"
    return f"{whole}s"


def lag(milliseconds: int) -> str:
    """Milliseconds while they are few, then as `span`."""
    return f"{milliseconds}ms" if milliseconds < 10_000 else span(milliseconds / 1000)


def known(value: T | None, shown: Callable[[T], str]) -> str:
    """What a node says of itself, `?` where it says nothing."""
    return "?" if value is None else shown(value)


def clock_time(at: str) -> str:
    """The time of day, UTC, of an RFC 3339 moment; what can't be read is shown as it is."""
    try:
        return datetime.fromisoformat(at).strftime("%H:%M:%S")
    except ValueError:
        return visible(at)[:8]


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key by which node-10 follows node-9."""
    return tuple(
        (0, int(part), "") if part.isascii() and part.isdigit() else (1, 0, part.casefold())
        for part in re.split(r"([0-9]+)", name)
    )
