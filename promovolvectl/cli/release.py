"""The release, read from what was installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final


def _installed() -> str:
    try:
        return version("promovolvectl")
    except PackageNotFoundError:
        return "0+source"


VERSION: Final = _installed()
