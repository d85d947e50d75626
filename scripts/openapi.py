"""Writes docs/openapi.json from the table of routes: `python -m scripts.openapi`."""

from __future__ import annotations

import sys
from pathlib import Path

from node.http.openapi import encoded
from node.http.routes import EVERY
from scripts import generated

TARGET = generated.ROOT / "docs" / "openapi.json"


def pages() -> dict[Path, str]:
    """The document as it should be."""
    return {TARGET: encoded(EVERY).decode()}


if __name__ == "__main__":
    sys.exit(generated.main("openapi", __doc__, pages, sys.argv[1:]))
