"""What those have in common that write files from the code: `--help` tells, `--check` compares, and without either what
differs is written.

A tidy test compares every file of theirs with what would be written, so that none is out of date unnoticed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
Made = Callable[[], Mapping[Path, str]]


def stale(made: Mapping[Path, str]) -> list[Path]:
    """The files that do not hold what they should, byte for byte."""
    return [path for path, text in made.items() if not path.exists() or path.read_bytes() != text.encode()]


def main(name: str, doc: str | None, made: Made, argv: list[str]) -> int:
    """The command `python -m scripts.NAME`. Its exit status: 1 when `--check` found a file that is out of date."""
    parser = argparse.ArgumentParser(
        prog=f"python -m scripts.{name}", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, say what is out of date, exit 1 if any is")
    check = parser.parse_args(argv).check
    texts = made()
    differing = stale(texts)
    for path in differing:
        if not check:
            path.write_bytes(texts[path].encode())
        says = f"is out of date: python -m scripts.{name}" if check else "written"
        sys.stdout.write(f"{path.relative_to(ROOT)} {says}\n")
    return 1 if check and differing else 0
