"""What flows need to know of the cluster that they run in."""

from __future__ import annotations

from typing import Protocol


class Cluster(Protocol):
    """As the node sees it on which the flow runs."""

    def coordinator_node(self) -> str | None:
        """The node that coordinates shards, None while nobody is known to."""
        ...

    def is_member(self, node: str, incarnation: int) -> bool: ...

    def reachable(self, node: str) -> bool: ...

    def how_ended(self, node: str, incarnation: int) -> str:
        """`left` when it went in good order, else why it was put out; empty when that is not known any more."""
        ...

    def why_not_placed(self) -> str:
        """Which shards do not run where they belong, in words; empty when all do."""
        ...
