"""The ad core's port to what every node knows of names beside the ServeIndex: local reads, one writer for each name."""

from __future__ import annotations

from typing import Protocol


class Registry(Protocol):
    """Numbers from 0 by name, each for a while: what is over reads as absent."""

    def get(self, name: str) -> int | None: ...

    def find(self, name: str) -> tuple[int, int] | None:
        """The number and the wall time at which it is over."""
        ...

    def set(self, name: str, number: int, until_ms: int) -> None:
        """Write under the fencing epoch of the name's shard, until a wall time. A node that lost the shard writes
        nothing; what is so already is not written again."""
        ...

    def clear(self, name: str) -> None:
        """Take a number back before its time; where there is none, nothing is written."""
        ...
