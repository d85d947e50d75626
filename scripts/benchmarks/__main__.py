"""`scripts/bench [SUBJECT…] [--runs N]`: JSON on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import json
import os
import platform
import sys

PACKAGES = ("cbor2", "pyzmq", "lmdb", "asyncpg", "uvicorn", "numpy")
SUBJECTS = (
    *("actors", "memory", "wire", "store", "serve", "replication", "failover", "sim", "cli", "lists", "dashboard"),
    "watched",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", metavar="SUBJECT", help=f"of {', '.join(SUBJECTS)}; all when absent")
    parser.add_argument("--runs", type=int, default=5, help="repetitions of each measurement (default 5)")
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
        report[subject] = importlib.import_module(f"scripts.benchmarks.{subject}").measure(arguments.runs)
    sys.stdout.write(json.dumps(report, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
