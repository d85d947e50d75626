"""One removal under way: who has it on disk, who doesn't take it, and what its caller knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replica_views import Certificate, HeldAt, PendingRemoval
from node.gossip.version import Version

# Whoever asked told an earlier start of this node, or another owner: the audit log knows.
NOT_KNOWN: Final = "?"


@dataclass(slots=True)
class Removal:
    """`asked_by`: empty for the key's own ad server. `held`: who has it on disk, by name; `outcome`: what its caller
    was told last."""

    key: str
    version: Version
    asked_ms: int
    asked_by: str
    held: dict[str, HeldAt] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    durable: bool = False
    attempts: int = 0
    next_ns: int | None = None
    majority_ms: int = 0
    last_serve_ms: int = 0
    outcome: str = ""

    def voters(self, roster: ReplicaRoster) -> frozenset[str]:
        """Who of the roster has it, each under its tenure."""
        return frozenset(
            r.node for r in roster.replicas if (held := self.held.get(r.node)) is not None and held.tenure == r.tenure
        )

    def told(self, roster: ReplicaRoster, now_ns: int) -> PendingRemoval:
        """While it is pending, for an operator."""
        voters = self.voters(roster)
        return PendingRemoval(
            self.key,
            self.version,
            self.asked_ms,
            self.asked_by,
            self.attempts,
            roster.needed,
            tuple(sorted(voters)),
            tuple(sorted(roster.names() - voters)),
            tuple(sorted(self.refused.items())),
            max(0, (self.next_ns or now_ns) - now_ns) // 1_000_000,
        )

    def certificate(self, roster: ReplicaRoster) -> Certificate:
        """What is known of it now."""
        return Certificate(
            self.key,
            self.version,
            self.asked_ms,
            self.asked_by,
            roster.version,
            roster.needed,
            tuple(sorted(self.held.values())),
            self.majority_ms,
            self.last_serve_ms,
        )
