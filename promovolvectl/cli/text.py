"""Data as text: control characters made visible, widths as a terminal counts them, sizes and times for people."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from promovolvectl.client.visible import visible

_BEYOND_JSON: Final = re.compile("[\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
EMPTY: Final = "-"


def coverage(expected: int | None, present: int | None, ratio: float | None, unknown_sites: int | None = 0) -> str:
    """Filled slots of those that should be, and the ratio: `?` for what is not known, and why it is not."""
    part, of = ("?" if value is None else str(value) for value in (present, expected))
    share = "?" if ratio is None else f"{ratio:.3f}"
    if unknown_sites is None:
        return f"{part}/{of} ({share}): the state store does not say which sites there are"
    sites = "1 site does not tell of its" if unknown_sites == 1 else f"{unknown_sites} sites do not tell of their"
    return f"{part}/{of} ({share})" + (f": {sites} slots" if unknown_sites else "")


def json_safe(text: str) -> str:
    """JSON with what it leaves as it is, but a terminal may obey, escaped: C1 controls, DEL and direction marks."""
    return _BEYOND_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def cell(value: Any) -> str:
    """One value of a table: `-` for nothing, `yes`/`no`, thin numbers, lists with commas."""
    if value is None or value == "" or value == [] or value == ():
        return EMPTY
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) < 1e15 else f"{value:g}"
    if isinstance(value, dict):
        return ",".join(f"{key}={cell(item)}" for key, item in value.items()) or EMPTY
    if isinstance(value, (list, tuple)):
        return ",".join(cell(item) for item in value)
    return visible(str(value))


def scalar(value: Any) -> str:
    """One value for scripts: as JSON would have it, without the quotes."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return ",".join(f"{key}={scalar(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(scalar(item) for item in value)
    return visible(str(value))


def width_of(text: str) -> int:
    """Columns that the text takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def shorten(text: str, width: int) -> str:
    """The text in at most `width` columns: its middle goes, since both ends of a name tell things apart."""
    if width_of(text) <= width:
        return text
    if width <= 3:
        return text[:width]
    head = (width - 1 + 1) // 2
    tail = width - 1 - head
    return text[:head] + "…" + (text[-tail:] if tail else "")


def natural(value: Any) -> tuple[Any, ...]:
    """A sort key by which `node-10` follows `node-9`, numbers sort as numbers and nothing comes last."""
    if value is None or value == "":
        return (2,)
    if isinstance(value, (int, float)):
        return (0, value)
    parts = re.split(r"(\d+)", cell(value))
    return (1, *((0, int(part), "") if part.isdigit() else (1, 0, part.casefold()) for part in parts))


def size(count: int) -> str:
    """Bytes for people, in IEC units."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(amount) < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def version(parts: Mapping[str, Any] | None) -> str:
    """A version as `47/123456/node-1`, in the order in which versions are compared."""
    return f"{parts['epoch']}/{parts['hlc']}/{visible(str(parts['origin']))}" if parts else ""


def span(seconds: float) -> str:
    """A length of time for people, two units at most."""
    if seconds < 0.95:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 10:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    for unit, length, lower, lower_length in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= length:
            rest = whole % length // lower_length
            return f"{whole // length}{unit}{f'{rest}{lower}' if rest else ''}"
    return f"{whole}s"


def moment(then: str, times: str, now: str) -> str:
    """A moment, RFC 3339 in UTC, for people: as it is, in this machine's zone, as its distance from `now`, or in
    seconds since 1970. What can't be read is shown as it is."""
    if times == "utc":
        return visible(then)
    try:
        at = datetime.fromisoformat(then)
        if times == "relative":
            gone = (datetime.fromisoformat(now) - at).total_seconds()
            return f"{span(gone)} ago" if gone >= 0 else f"in {span(-gone)}"
    except (ValueError, TypeError):
        return visible(then)
    if times == "unix":
        return f"{at.timestamp():.3f}"
    here = at.astimezone()
    return f"{here:%Y-%m-%d %H:%M:%S}.{here.microsecond // 1000:03d}{here:%z}"
