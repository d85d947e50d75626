"""Log lines: what is said of others, in their words, stays on its line and drives no terminal."""

from __future__ import annotations

import logging


class LogLines(logging.Formatter):
    """Writes what can't be printed in a message as its escape; a traceback follows its message as it is."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        record.message = visible(record.message)
        return super().formatMessage(record)


def visible(text: str) -> str:
    """The text with each character that is not printable (controls, marks of direction, line ends) as its escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
