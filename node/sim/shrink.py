"""A smaller run that fails in the same way: fault classes, disturbances, hosts, client operations and time are left out
one after the other, for as long as the same invariant still breaks.

Greedy, and from coarse to fine (delta debugging: Zeller and Hildebrandt, 2002), within a budget of runs: what comes out
is small, not smallest. Every run is a whole run from its recipe, so the result replays by its token alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from node.sim.recipe import Recipe
from node.sim.run import Result

RUNS_MAX: Final = 120
AFTER_MS: Final = 200  # how long after the violation the fault phase goes on: the checkers look every now and then

Run = Callable[[Recipe], Result]


class Shrinker:
    """`found` is the smallest failing result so far; `runs` how many were spent."""

    def __init__(self, failed: Result, run: Run, runs_max: int = RUNS_MAX) -> None:
        if failed.violation is None:
            raise ValueError("only a run that failed can be made smaller")
        self.found = failed
        self.runs = 0
        self._invariant = failed.violation.invariant
        self._run = run
        self._runs_max = runs_max

    def shrink(self) -> Result:
        """Until nothing more can be left out, or the budget is spent."""
        before: Recipe | None = None
        while before != self.found.recipe and self.runs < self._runs_max:
            before = self.found.recipe
            self._time()
            self._classes()
            self._disturbances()
            self._hosts()
            self._operations()
        return self.found

    def _try(self, recipe: Recipe) -> bool:
        if self.runs >= self._runs_max or recipe == self.found.recipe:
            return False
        self.runs += 1
        result = self._run(recipe)
        if result.violation is None or result.violation.invariant != self._invariant:
            return False
        self.found = result
        return True

    def _time(self) -> None:
        """End the fault phase where it failed, or earlier."""
        violation, recipe = self.found.violation, self.found.recipe
        if violation is None:
            return
        at_ms = violation.at_ns // 1_000_000 + AFTER_MS
        if at_ms < recipe.healed_ms:
            self._try(dataclasses.replace(recipe, until_ms=at_ms))
        for part in (2, 4):
            until_ms = self.found.recipe.healed_ms * (part - 1) // part
            self._try(dataclasses.replace(self.found.recipe, until_ms=max(1_000, until_ms)))

    def _classes(self) -> None:
        for name in sorted(self.found.recipe.classes):
            recipe = self.found.recipe
            self._try(dataclasses.replace(recipe, classes=recipe.classes - {name}))

    def _disturbances(self) -> None:
        tags = [d.tag for d in self.found.knobs.disturbances]
        size = len(tags)
        while size:
            for chunk in _chunks(tags, size):
                recipe = self.found.recipe
                self._try(dataclasses.replace(recipe, without=recipe.without | set(chunk)))
            tags = [d.tag for d in self.found.knobs.disturbances]
            size = min(size - 1, max(1, len(tags) // 2) if size > 1 else 0)

    def _hosts(self) -> None:
        if self.found.recipe.topology:
            return  # whoever names the hosts wants to know of these
        # The first two are the seeds; a cluster of one shows little.
        for number in range(self.found.recipe.nodes, 2, -1):
            recipe = self.found.recipe
            self._try(dataclasses.replace(recipe, without_hosts=recipe.without_hosts | {f"n{number}"}))

    def _operations(self) -> None:
        made = sum(self.found.ops.values())
        least, most = 0, self.found.recipe.ops_max or made
        while most - least > max(1, made // 32):
            middle = (least + most) // 2
            if self._try(dataclasses.replace(self.found.recipe, ops_max=max(1, middle))):
                most = middle
            else:
                least = middle


def _chunks(tags: Sequence[str], size: int) -> list[Sequence[str]]:
    return [tags[at : at + size] for at in range(0, len(tags), size)]
