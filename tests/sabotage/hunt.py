"""Plants each patch of this directory into a copy of the tree, runs seeds until one fails, shrinks it, and replays it.

`python -m tests.sabotage.hunt [NAME…] [--seeds 500] [--nodes 5] [--jobs N]`. A line for each fault; exit 1
when one was not found, or its shrunk seed did not fail again in the same way.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SHRINK_RUNS = 20


@dataclass(frozen=True)
class Found:
    """`invariant` is empty when no seed failed; `replayed` says whether the shrunk token failed alike."""

    name: str
    seed: int = 0
    invariant: str = ""
    token: str = ""
    replayed: bool = False

    @property
    def ok(self) -> bool:
        return bool(self.invariant) and self.replayed

    def __str__(self) -> str:
        if not self.invariant:
            return f"{self.name}: NOT FOUND"
        return (
            f"{self.name}: {self.invariant} at seed {self.seed}, {self.token} {'fails alike' if self.ok else 'HOLDS'}"
        )


def names() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.patch"))


def plant(name: str, tree: Path) -> None:
    """A copy of the product in `tree`, with the fault in it. Raises CalledProcessError where the patch does not fit."""
    shutil.copytree(ROOT / "node", tree / "node", ignore=shutil.ignore_patterns("__pycache__"))
    command = ["patch", "--batch", "--forward", "--fuzz=0", "-p1", "-i", str(HERE / f"{name}.patch")]
    subprocess.run(command, cwd=tree, check=True, capture_output=True, text=True)


def simulate(tree: Path, *arguments: str) -> dict:
    """What the simulator in `tree` says; it must say something."""
    done = subprocess.run(
        [sys.executable, "-m", "node.sim", *arguments, "--json"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-2_000:])
    return json.loads(done.stdout)


def hunt(name: str, *, seeds: int, nodes: int, first: int = 1, jobs: int = 0, shrink_runs: int = SHRINK_RUNS) -> Found:
    """Plant one fault, find it, shrink it, replay it."""
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory)
        plant(name, tree)
        size = ("--seeds", str(seeds), "--first", str(first), "--nodes", str(nodes), "--jobs", str(jobs))
        found = simulate(tree, "run", *size, "--shrink", "--shrink-runs", str(shrink_runs))
        if not found["runs"]:
            return Found(name)
        failed, shrunk = found["runs"][0], found["shrunk"][0]
        again = simulate(tree, "replay", shrunk["token"])["runs"][0]
        alike = again["violation"] == shrunk["violation"] and again["trace"] == shrunk["trace"]
        return Found(name, failed["seed"], failed["violation"]["invariant"], shrunk["token"], alike)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/sabotage", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; all when absent")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=0, help="processes; as many as there are cores when absent")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in names()]
    if unknown:
        parser.error(f"{unknown[0]} is none of {', '.join(names())}")
    found = []
    for name in arguments.names or names():
        found.append(hunt(name, seeds=arguments.seeds, nodes=arguments.nodes, jobs=arguments.jobs))
        sys.stdout.write(f"{found[-1]}\n")
        sys.stdout.flush()
    return 0 if all(each.ok for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
