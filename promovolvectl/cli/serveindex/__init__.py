"""`serveindex …`: the replicated index, read, compared, mended, written out and read in."""

from __future__ import annotations

from promovolvectl.cli.serveindex import comparing, moving, reading, removing
from promovolvectl.cli.serveindex.noun import app

__all__ = ["app", "comparing", "moving", "reading", "removing"]
