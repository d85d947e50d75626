"""Exit statuses: section 2 of the command line's contract. Scripts rely on the numbers; they never change."""

from __future__ import annotations

import enum


class ExitStatus(enum.IntEnum):
    """What a command ended with."""

    OK = 0
    BUG = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    REFUSED = 5
    NOT_CONFIRMED = 6
    NOT_ALLOWED = 7
    UNREACHABLE = 8
    TIMED_OUT = 9
    UNHEALTHY = 10
    PARTIAL = 12
    DIFFERS = 13
    MISMATCH = 14
    FAILED = 15
    UNUSABLE_CONFIG = 16
    LOCAL_FILE = 17
    HANGUP = 129
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143
