"""Plants each patch of this directory into a copy of the tree, runs seeds until one fails, shrinks it, and replays it.

`python -m tests.sabotage.hunt [NAME…] [--seeds 500] [--nodes 5] [--jobs N]`. A line for each fault, and on stderr how
far each is meanwhile; exit 1 when one was not found, or its shrunk seed did not fail again in the same way. As many
faults at once as there are processes: only looking for a seed can be shared by several, and shrinking takes longer.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SHRINK_RUNS = 20
SEEDS_A_WORD = 5  # between two words of how far a hunt is
Tell = Callable[[str], None]


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


def simulate(tree: Path, *arguments: str, on_run: Callable[[int, bool], None]) -> dict:
    """What the simulator in `tree` says; it must say something. `on_run` is told of each run that is done: how many
    there are, and whether everything held in it."""
    with tempfile.TemporaryFile("w+") as said:  # a pipe would fill up while the other one is read
        running = subprocess.Popen(
            [sys.executable, "-m", "node.sim", *arguments, "--json", "--progress"],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=said,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert running.stderr is not None
        errors = []
        with running:
            for line in running.stderr:
                match line.split():
                    case [count, _, held] if count.isdigit() and held in ("0", "1"):
                        on_run(int(count), held == "1")
                    case _:
                        errors.append(line)
        if running.returncode not in (0, 1):
            raise RuntimeError("".join(errors)[-2_000:])
        said.seek(0)
        return json.load(said)


def hunt(
    name: str,
    *,
    seeds: int,
    nodes: int,
    first: int = 1,
    jobs: int = 0,
    shrink_runs: int = SHRINK_RUNS,
    tell: Tell = lambda _: None,
) -> Found:
    """Plant one fault, find it, shrink it, replay it; `tell` gets a line now and then."""

    def on_run(count: int, held: bool) -> None:
        if not held:
            tell(f"{name}: fails at seed {first + count - 1}; shrinking it by up to {shrink_runs} runs")
        elif count % SEEDS_A_WORD == 0:
            tell(f"{name}: {count} of {seeds} seeds hold")

    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory)
        plant(name, tree)
        tell(f"{name}: planted, looking for it in up to {seeds} seeds from {first} on")
        size = ("--seeds", str(seeds), "--first", str(first), "--nodes", str(nodes), "--jobs", str(jobs))
        found = simulate(tree, "run", *size, "--shrink", "--shrink-runs", str(shrink_runs), on_run=on_run)
        if not found["runs"]:
            return Found(name)
        failed, shrunk = found["runs"][0], found["shrunk"][0]
        tell(f"{name}: replaying {shrunk['token']}")
        again = simulate(tree, "replay", shrunk["token"], on_run=lambda *_: None)["runs"][0]
        alike = again["violation"] == shrunk["violation"] and again["trace"] == shrunk["trace"]
        return Found(name, failed["seed"], failed["violation"]["invariant"], shrunk["token"], alike)


def hunt_all(wanted: list[str], *, seeds: int, nodes: int, processes: int, tell: Tell, say: Tell) -> bool:
    """Hunts each, several at once; `say` gets the line of each, in their order, as soon as those before it are done."""
    at_once = max(1, min(processes, len(wanted)))

    def one(name: str) -> Found:
        return hunt(name, seeds=seeds, nodes=nodes, jobs=max(1, processes // at_once), tell=tell)

    with ThreadPoolExecutor(at_once) as hunters:
        good = []
        for number, found in enumerate(hunters.map(one, wanted), start=1):
            say(str(found))
            tell(f"{number} of {len(wanted)} done")
            good.append(found.ok)
    return all(good)


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
    good = hunt_all(
        arguments.names or names(),
        seeds=arguments.seeds,
        nodes=arguments.nodes,
        processes=arguments.jobs or os.cpu_count() or 1,
        tell=lambda line: _line(sys.stderr, line),
        say=lambda line: _line(sys.stdout, line),
    )
    return 0 if good else 1


def _line(to: TextIO, line: str) -> None:
    to.write(f"{line}\n")
    to.flush()


if __name__ == "__main__":
    sys.exit(main())
