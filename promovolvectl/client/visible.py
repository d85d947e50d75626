"""Data made harmless for a terminal: names, reasons and errors come from others."""

from __future__ import annotations

import re
from typing import Final

# C0, DEL, C1, line separators, and marks that hide text or turn its direction: a row must stay a row
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    """The text as it is, each character that would drive the terminal, reorder or hide text as its escape."""
    if text.isprintable():  # none of the above is; nearly all text that there is
        return text
    return _SURROGATE.sub("\ufffd", _CONTROL.sub(lambda found: repr(found.group())[1:-1], text))
