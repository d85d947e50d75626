"""The randomness port: whoever draws is given one of these, so that a seed decides everything."""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from typing import Protocol, TypeVar

T = TypeVar("T")


class Rng(Protocol):
    """The part of the standard library's generator that the machinery uses; `random.Random(seed)` fulfils it."""

    def random(self) -> float:
        """A float in [0, 1)."""
        ...

    def randrange(self, start: int, stop: int | None = None, step: int = 1, /) -> int:
        """An integer below `start`, or in [start, stop)."""
        ...

    def getrandbits(self, k: int, /) -> int:
        """An integer of `k` random bits."""
        ...

    def choice(self, seq: Sequence[T], /) -> T:
        """One element of a sequence that is not empty."""
        ...

    def shuffle(self, x: MutableSequence[T], /) -> None:
        """Reorders in place."""
        ...
