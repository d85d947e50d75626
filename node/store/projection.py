"""What is derived from the log of facts: a named consumer, how far it has come, and the rows it has made.

Offset and rows change in one transaction, and only from the offset that the consumer believes it stands at. So each
fact has its effect exactly once, whatever is killed or run twice: a second runner is told where the first one is.
"""

from __future__ import annotations

import msgspec


class ProjectionRow(msgspec.Struct, frozen=True):
    """One derived record of a consumer; an empty body in a change removes it."""

    key: str
    body: bytes


class ReadConsumer(msgspec.Struct, frozen=True):
    """→ Consumer: the offset that a consumer stands at (0 before its first advance) and those of the rows `keys` that
    there are, in the order of their keys."""

    name: str
    keys: tuple[str, ...] = ()


class ListProjection(msgspec.Struct, frozen=True):
    """Rows of a consumer behind the key `after`, in the order of their bytes. → ProjectionPage."""

    name: str
    after: str = ""
    limit: int = 500


class AdvanceConsumer(msgspec.Struct, frozen=True):
    """Write the effects of the facts up to `offset`. → Advanced; Conflict, with the offset it stands at, when that is
    not `expected`; StoreFailed `E-BAD-OFFSET` for an offset that goes back or is ahead of the log."""

    name: str
    expected: int
    offset: int
    rows: tuple[ProjectionRow, ...] = ()


class Consumer(msgspec.Struct, frozen=True):
    offset: int
    rows: tuple[ProjectionRow, ...]


class ProjectionPage(msgspec.Struct, frozen=True):
    """A page as of `offset`: pages of one listing are of one state only when their offsets are equal."""

    offset: int
    rows: tuple[ProjectionRow, ...]
    more: bool


class Advanced(msgspec.Struct, frozen=True):
    """Durable: the consumer stands at `offset`, its rows say so."""

    offset: int
