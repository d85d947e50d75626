"""Answers about the ServeIndex that are put together here; apart from `kinds.py`, which needs no protocol."""

from __future__ import annotations

import msgspec

from node.admin.protocol import DumpRow


class ServeIndexDump(msgspec.Struct, frozen=True, kw_only=True):
    """One replica's entries. With a `file` they are in there, and `items` is empty."""

    node: str
    entries_count: int
    items: tuple[DumpRow, ...]
    file: str = ""
    bytes: int = 0
