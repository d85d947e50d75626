"""CSV for scripts and spreadsheets: RFC 4180, with line breaks as the terminal's, and nothing that anything obeys."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Final

from promovolvectl.client.visible import visible

_FORMULAS: Final = ("=", "+", "-", "@")


def csv_rows(rows: Iterable[Sequence[str]]) -> str:
    """The rows as CSV. Controls are made visible; text that a spreadsheet would take for a formula (OWASP, "CSV
    injection") has a quotation mark before it. Numbers stay as they are."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(text) for text in row] for row in rows)
    return out.getvalue()


def _cell(text: str) -> str:
    shown = visible(text)
    return f"'{shown}" if len(shown) > 1 and shown.startswith(_FORMULAS) and not _number(shown) else shown


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
