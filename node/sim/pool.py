"""Many runs on all cores. Each worker is an interpreter of its own; results come in the order of the recipes."""

from __future__ import annotations

import functools
import logging
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence

from node.sim.recipe import Recipe
from node.sim.run import Result, run
from node.sim.topology import Topology


def results(recipes: Sequence[Recipe], hosts: Topology | None, jobs: int) -> Iterator[Result]:
    """`jobs`: processes, 0 for one per core; with one, everything runs here."""
    one = functools.partial(run, topology=hosts)
    workers = min(jobs or os.cpu_count() or 1, len(recipes))
    if workers == 1:
        yield from map(one, recipes)
        return
    # Fresh interpreters: a fork would share what has been imported and cached, and its order, with this one.
    with multiprocessing.get_context("spawn").Pool(workers, _begin) as pool:
        yield from pool.imap(one, recipes, chunksize=1)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; the first process ends the others
    be_quiet()


def be_quiet() -> None:
    """Nodes of a simulation do not log: their warnings are what is being tried."""
    logging.getLogger("node").setLevel(logging.CRITICAL)
