"""Writes docs/cli.md from the tree of commands: `python -m scripts.cli_reference`."""

from __future__ import annotations

from pathlib import Path

from promovolvectl.cli.reference import markdown
from promovolvectl.cli.walk import leaves

REFERENCE = Path(__file__).parents[1] / "docs" / "cli.md"


def main() -> None:
    REFERENCE.write_text(markdown(tuple(leaves())), encoding="utf-8")


if __name__ == "__main__":
    main()
