"""Which of the views of one key all replicas will hold: the one rule that reading, comparing and mending go by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple


class Claim(NamedTuple):
    """What one node holds of a key: its version, and what stands for all the rest of it (comparable between nodes)."""

    epoch: int
    hlc: int
    origin: str
    content: str


def winning(held: Mapping[str, Claim]) -> Claim | None:
    """Of what these nodes hold soundly, what all of them ought to hold; None when none holds anything.

    The greatest version. Of one version with several contents, which no rule of the protocol can make, the one that
    most hold, then its writer's own.
    """
    if not held:
        return None
    greatest = max(claim[:3] for claim in held.values())
    best = {node: claim for node, claim in held.items() if claim[:3] == greatest}
    votes = Counter(claim.content for claim in best.values())
    own = {claim.content for node, claim in best.items() if node == claim.origin}
    return max(best.values(), key=lambda claim: (votes[claim.content], claim.content in own, claim.content))
