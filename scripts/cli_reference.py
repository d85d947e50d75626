"""Writes docs/cli.md from the tree of commands: `python -m scripts.cli_reference`."""

from __future__ import annotations

import sys
from pathlib import Path

from promovolvectl.cli.reference import markdown
from promovolvectl.cli.walk import leaves
from scripts import generated

REFERENCE = generated.ROOT / "docs" / "cli.md"


def pages() -> dict[Path, str]:
    """The page as it should be."""
    return {REFERENCE: markdown(tuple(leaves()))}


if __name__ == "__main__":
    sys.exit(generated.main("cli_reference", __doc__, pages, sys.argv[1:]))
