"""The replica roster: which replicas count, each under the tenure of its present stay.

One record with a growing version, written by the shard coordinator into its book under its lease (as pins and cordons
are), so that two halves of a cluster can't both change it; every node reads it from the state store when it starts and
hears of changes by gossip. A replica that counts owes acknowledgements for removals, also while its node is down: it
stays until membership removes the node or an operator does. Tenures only grow, and a replica that left is remembered
with its last one, so that a return is never taken for a stay that went on.
"""

from __future__ import annotations

import msgspec

from node.core import limits
from node.wire.registry import wire_type


class RosterReplica(msgspec.Struct, frozen=True, array_like=True):
    """A replica's stay: `since_ms` is the wall time at which it joined, or left when it is among the gone; `cause` says
    why, in words."""

    node: str
    tenure: int
    since_ms: int = 0
    cause: str = ""


@wire_type("replica.roster")
class ReplicaRoster(msgspec.Struct, frozen=True):
    """`replicas` count, in order of their names; `gone` left. Version 0: nobody ever joined."""

    version: int = 0
    replicas: tuple[RosterReplica, ...] = ()
    gone: tuple[RosterReplica, ...] = ()

    def names(self) -> frozenset[str]:
        """The nodes whose replicas count."""
        return frozenset(replica.node for replica in self.replicas)

    def tenure_of(self, node: str) -> int:
        """The tenure under which the node's replica counts; 0 when it doesn't."""
        return next((replica.tenure for replica in self.replicas if replica.node == node), 0)

    def last_tenure_of(self, node: str) -> int:
        """The node's newest tenure, of a stay that ended too; 0 when it never had one."""
        return max((r.tenure for r in (*self.replicas, *self.gone) if r.node == node), default=0)

    @property
    def needed(self) -> int:
        """How many replicas are a majority."""
        return len(self.replicas) // 2 + 1

    def caretaker_of(self, origin: str) -> str:
        """Who sees to it that the tombstones an origin wrote are acknowledged, and settles them: the origin while it
        counts, or else the first by name. While that one is down nothing could be settled anyway, since its own
        acknowledgement is among those required. "" when nobody counts."""
        names = self.names()
        return origin if origin in names else min(names, default="")


def joined(roster: ReplicaRoster, node: str, tenure: int, at_ms: int) -> ReplicaRoster | None:
    """The roster with the node's replica on it; None when it is on it under that tenure, or had a later one."""
    if tenure <= roster.last_tenure_of(node):
        return None
    others = [replica for replica in roster.replicas if replica.node != node]
    stay = RosterReplica(node, tenure, at_ms, "its replica is complete")
    gone = tuple(replica for replica in roster.gone if replica.node != node)
    return ReplicaRoster(roster.version + 1, tuple(sorted([*others, stay], key=lambda r: r.node)), gone)


def left(roster: ReplicaRoster, node: str, at_ms: int, cause: str) -> ReplicaRoster | None:
    """The roster without the node's replica; None when it is not on it. Of those gone, the newest are remembered; a
    node whose name is forgotten can return under a tenure that it once had only with the replica of that stay, whose
    file then says an older one than its wish."""
    tenure = roster.tenure_of(node)
    if not tenure:
        return None
    replicas = tuple(replica for replica in roster.replicas if replica.node != node)
    gone = sorted((*roster.gone, RosterReplica(node, tenure, at_ms, cause)), key=lambda r: r.since_ms)
    return ReplicaRoster(roster.version + 1, replicas, tuple(gone[-limits.member_names_max :]))
