"""The program's name and its release, read from what was installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

PROGRAM: Final = "promovolvectl"
COMPLETING: Final = "_PROMOVOLVECTL_COMPLETE"


def _installed() -> str:
    try:
        return version(PROGRAM)
    except PackageNotFoundError:
        return "0+source"


VERSION: Final = _installed()
