"""What a failure at PostgreSQL means: whether it may have happened, whether to try again, and its words.

One rule decides definiteness: a transaction whose COMMIT was never sent did not happen, nor did one whose COMMIT the
server answered with an error. A connection that was lost after COMMIT was sent leaves it open.
"""

from __future__ import annotations

import enum
from typing import Final

from node.core.errors import OperatingError
from node.store.port import StoreFailed


class Stage(enum.Enum):
    """How far a transaction had come; the driver of a connection keeps it."""

    CONNECTING = enum.auto()
    WORKING = enum.auto()
    COMMITTING = enum.auto()


class StoreWentBack(OperatingError):
    """The database knows less than it did: a fail-over to a replica that was behind, or a restored backup."""

    def __init__(self, what: str, found: int, known: int) -> None:
        super().__init__(
            "E-STORE-WENT-BACK",
            f"the database says {what} {found}, it had said {known}: acknowledged writes are missing from it",
            hint="stop the nodes, find the server that has them, and start again on it",
        )


# By SQLSTATE, or its first two characters.
_AGAIN: Final = {"40001", "40P01", "23505"}  # serialisation failure, deadlock, lost race for a new row
_GONE: Final = {"57P01", "57P02", "57P05", "25P03"}  # the server ended the session
_CODES: Final = {
    "25006": "E-STORE-READ-ONLY",
    "53100": "E-STORE-FULL",
    "53200": "E-STORE-BUSY",
    "53300": "E-STORE-BUSY",
    "55P03": "E-STORE-BLOCKED",
    "57014": "E-STORE-TIMEOUT",
    "57P03": "E-STORE-UNREACHABLE",
    "28": "E-STORE-DENIED",
    "3D": "E-STORE-DENIED",
    "42501": "E-STORE-DENIED",
}


def sqlstate_of(error: BaseException) -> str:
    """The server's five characters, or nothing when it was not the server who spoke."""
    return str(getattr(error, "sqlstate", None) or "")


def lost(error: BaseException) -> bool:
    """Whether the connection is gone, and with it what the server would have said."""
    state = sqlstate_of(error)
    return isinstance(error, OSError) or state in _GONE or state.startswith("08")


def worth_another_try(error: BaseException, stage: Stage) -> bool:
    """Whether the transaction certainly did not happen and may succeed at once if it is run again."""
    if sqlstate_of(error) in _AGAIN:
        return True
    return lost(error) and stage is Stage.WORKING  # an idle connection was killed; the next one may work


def failure(error: BaseException, stage: Stage, *, reads_only: bool) -> StoreFailed:
    """The answer to every request of a batch that failed so."""
    if isinstance(error, OperatingError):
        return StoreFailed(error.code, error.message, definite=error.definite)
    state = sqlstate_of(error)
    gone = lost(error)
    definite = reads_only or stage is not Stage.COMMITTING or not gone
    code = _CODES.get(state) or _CODES.get(state[:2]) or ("E-STORE-UNREACHABLE" if gone else "E-STORE")
    words = " ".join(str(error).split()) or type(error).__name__
    return StoreFailed(code, f"PostgreSQL: {words}" + (f" (SQLSTATE {state})" if state else ""), definite=definite)
