"""Lines out of data: facts that flow, paragraphs, bars. Everything that comes from others goes through `visible`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from node.admin.protocol import Counter
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.rows import Cell
from promovolvectl.tui.text import Line, count, natural, padded, size, span, width_of, wrapped


def fact(name: str, value: str, style: str = "") -> Line:
    """A name, faint, and what it is."""
    return [(f"{visible(name)} ", theme.FAINT), (visible(value), style)]


def flow(parts: Iterable[Line], width: int) -> list[Line]:
    """Parts one after the other, two columns apart, a new line where the next has no room."""
    lines: list[Line] = []
    for part in parts:
        if lines and width_of(lines[-1]) + 2 + width_of(part) <= width:
            lines[-1] = [*lines[-1], ("  ", ""), *part]
        else:
            lines.append(list(part))
    return lines


def paragraph(text: str, width: int, style: str = "", lines_max: int = 6) -> list[Line]:
    """Text of others, broken at the width."""
    return [[(line, style)] for line in wrapped(visible(text), width, lines_max)]


def title(text: str, more: str = "") -> Line:
    """A heading within a pane."""
    return [(text, theme.HEADING), (f"  {more}" if more else "", theme.FAINT)]


def counters(name: str, found: Sequence[Counter], width: int) -> list[Line]:
    """In columns, zeros left out: what never happened is no news."""
    counted = sorted((row for row in found if row.count), key=lambda row: natural(row.name))
    if not counted:
        return [[(name, theme.HEADING), (" all zero", theme.FAINT)]]
    names = min(34, max(width_of([(visible(row.name), "")]) for row in counted))
    figures = max(len(count(row.count)) for row in counted)
    beside = max(1, (width + 2) // (names + figures + 3))
    deep = -(-len(counted) // beside)
    lines: list[Line] = [[(name, theme.HEADING)]]
    for number in range(deep):
        line: Line = []
        for row in counted[number::deep]:
            line += [("  ", "")] if line else []
            line.append((f"{padded(visible(row.name), names)} ", theme.FAINT))
            line.append((padded(count(row.count), figures, right=True), theme.STRONG))
        lines.append(line)
    return lines


def grid(headings: Sequence[str], rows: Sequence[Sequence[object]], width: int) -> list[Line]:
    """A small table of cells or what can be written: columns as wide as they need, the last cut at the edge."""
    titles = [visible(heading) for heading in headings]
    cells = [[cell if isinstance(cell, Cell) else Cell(str(cell)) for cell in row] for row in rows]
    widths = [
        max([width_of([(heading, "")]), *(width_of([(visible(row[n].text), "")]) for row in cells if n < len(row))])
        for n, heading in enumerate(titles)
    ]
    lines: list[Line] = [
        [(f"{padded(heading, wide)}  ", theme.FAINT) for heading, wide in zip(titles, widths, strict=True)]
    ]
    for row in cells:
        lines.append(
            [(f"{padded(visible(cell.text), wide)}  ", cell.style) for cell, wide in zip(row, widths, strict=False)]
        )
    return lines


def bar(ratio: float | None, width: int) -> str:
    """A bar of eighths, from zero to one; none of what is not known."""
    if ratio is None:
        return " " * width
    eighths = round(max(0.0, min(1.0, ratio)) * width * 8)
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (" ▏▎▍▌▋▊▉"[rest] if rest else "")).ljust(width)


def figure(number: int | None) -> Cell:
    """A count that sorts as one; one that is not known comes before."""
    if number is None:
        return Cell("?", theme.ODD, -1.0)
    return Cell(count(number), rank=float(number))


def dash_if_none(number: int) -> Cell:
    """A count; nothing is a dash."""
    return Cell(count(number), rank=float(number)) if number else Cell("-", theme.FAINT, 0.0)


def amount(octets: int) -> Cell:
    """Bytes that sort as such."""
    return Cell(size(octets), rank=float(octets)) if octets else Cell("-", theme.FAINT, 0.0)


def lasting(seconds: float) -> Cell:
    """A length of time."""
    return Cell(span(seconds), rank=seconds)


def ratio_cell(ratio: float | None) -> Cell:
    """Of one, good only when whole."""
    if ratio is None:
        return Cell("?", theme.ODD, -1.0)
    return Cell(f"{ratio:.3f}", theme.GOOD if ratio >= 1.0 else theme.ODD, ratio)


def moment(at: str | None, now: str, *, ages: bool) -> str:
    """A moment as time of day in UTC, or as its age; what can't be read stays as it is."""
    if not at:
        return "-"
    try:
        then = datetime.fromisoformat(at)
        if ages and now:
            return f"{span((datetime.fromisoformat(now) - then).total_seconds())} ago"
        today = not now or datetime.fromisoformat(now).date() == then.date()
        return then.strftime("%H:%M:%S" if today else "%m-%d %H:%M:%S")
    except (ValueError, TypeError):
        return visible(at)
