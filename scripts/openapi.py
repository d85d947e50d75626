"""Writes docs/openapi.json from the table of routes.

`python -m scripts.openapi` replaces the file; a test compares it with what this would write.
"""

from __future__ import annotations

import sys
from pathlib import Path

from node.http.openapi import encoded
from node.http.routes import EVERY

TARGET = Path(__file__).parents[1] / "docs" / "openapi.json"

if __name__ == "__main__":
    TARGET.write_bytes(encoded(EVERY))
    sys.stderr.write(f"wrote {TARGET}\n")
