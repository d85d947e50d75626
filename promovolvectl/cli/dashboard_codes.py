"""Codes of the dashboard, in a terminal and in a browser."""

from __future__ import annotations

from typing import Final

from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import ErrorCode

_ENTRIES: Final[tuple[tuple[str, ExitStatus, str, str], ...]] = (
    (
        "E-NO-TERMINAL",
        ExitStatus.USAGE,
        "The dashboard draws on a terminal, and input or output is not one, or can't be redrawn (TERM=dumb).",
        "'promovolvectl dashboard --once' writes one picture; scripts use 'cluster watch -o jsonl'.",
    ),
    (
        "E-NOT-INSTALLED",
        ExitStatus.LOCAL_FILE,
        "A part that is installed on its own is not there: textual-serve, which 'dashboard --web' needs.",
        "pip install 'promovolvectl[web]' by the Python of the hint, or scripts/environment web where the sources are.",
    ),
    (
        "E-LISTEN",
        ExitStatus.LOCAL_FILE,
        "The dashboard can't listen for browsers on this address and port.",
        "Name an address of this machine with --bind, and a port that is free, or none, with --port.",
    ),
)
DASHBOARD_CODES: Final = tuple(
    ErrorCode(code=code, exit=int(exit_), meaning=meaning, help=help_) for code, exit_, meaning, help_ in _ENTRIES
)
