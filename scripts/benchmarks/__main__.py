"""`scripts/bench [SUBJECT…] [--runs N] [--page]`: JSON on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys

from scripts import performance_page

PACKAGES = ("cbor2", "pyzmq", "lmdb", "asyncpg", "uvicorn", "numpy")
SUBJECTS = (
    *("actors", "memory", "wire", "store", "serve", "growth", "replication", "failover", "restart", "sim", "cli"),
    *("lists", "dashboard", "watched"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; all when absent")
    parser.add_argument("--runs", type=int, default=5, help="repetitions of each measurement (default 5)")
    parser.add_argument("--sites", type=_counts, metavar="N,N…", help="growth: how many sites (default 10 to 10,000)")
    parser.add_argument("--nodes", type=_counts, metavar="N,N…", help="growth: how many entity nodes (default 1,3)")
    parser.add_argument("--page", action="store_true", help="write what was measured into docs/performance.md")
    arguments = parser.parse_args()
    unknown = [subject for subject in arguments.subjects if subject not in SUBJECTS]
    if unknown or arguments.runs < 1:
        parser.error(f"subjects are {', '.join(SUBJECTS)}; runs are at least 1")
    report: dict[str, object] = {
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }
    for subject in arguments.subjects or SUBJECTS:
        sys.stderr.write(f"measuring {subject} …\n")
        sizes = {"sites": arguments.sites, "nodes": arguments.nodes} if subject == "growth" else {}
        given = {name: counts for name, counts in sizes.items() if counts}
        report[subject] = importlib.import_module(f"scripts.benchmarks.{subject}").measure(arguments.runs, **given)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    if arguments.page:
        performance_page.write(report)
    return 0


def _counts(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
