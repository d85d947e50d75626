"""What membership can be told: times, split-brain strategy, and who this cluster is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from node.core.clock import MS, SECOND
from node.core.errors import BadInput
from node.core.hashing import HASH_VERSION, MAP_COUNT, SHARD_COUNT
from node.core.ids import ROLES
from node.gossip.strategies import RULES
from node.wire.envelope import PROTOCOL


@dataclass(frozen=True, slots=True)
class MembershipSettings:
    """All times in nanoseconds. Raises BadInput for values that contradict each other.

    `acceptable_pause_ns`: silence that is no failure (collection, a busy host); too small flaps, too large is slow to
    notice. Heartbeats are never taken to be more regular than `deviation_min_ns`, nor less than `deviation_max_ns`
    (the minimum where that is greater), which bounds how late a dead node is noticed. `stable_after_ns`: how long a
    view must stand still before a split is decided; at the latest twice that after the first unreachability.
    `form_wait_ns`: how long a first seed listens for a living cluster before it forms one; it must exceed the
    transport's reconnect ceiling, or a restarted first seed would not hear the others. `gossip_behind_ns`: the pace of
    gossip while somebody is not known to hold the present state. `quorum`: counted members that a side needs under
    `static-quorum`, 0 under every other strategy. `majority_role`: the role whose members count; empty for all.
    """

    heartbeat_ns: int = SECOND
    threshold: float = 12.0
    acceptable_pause_ns: int = 4 * SECOND
    deviation_min_ns: int = 100 * MS
    deviation_max_ns: int = 150 * MS
    stable_after_ns: int = 7 * SECOND
    gossip_ns: int = SECOND
    gossip_behind_ns: int = 250 * MS
    neighbours: int = 5
    join_retry_ns: int = SECOND
    join_retry_max_ns: int = 10 * SECOND
    form_wait_ns: int = 5 * SECOND
    leave_wait_ns: int = 10 * SECOND
    weakly_up_after_ns: int = 7 * SECOND
    strategy: str = "keep-majority"
    quorum: int = 0
    majority_role: str = "entity"

    def __post_init__(self) -> None:
        intervals = (self.heartbeat_ns, self.gossip_ns, self.gossip_behind_ns, self.join_retry_ns, self.stable_after_ns)
        if min(*intervals, self.neighbours) <= 0:
            raise BadInput("membership", "intervals and the number of neighbours must be above zero")
        if self.acceptable_pause_ns < 2 * self.heartbeat_ns:
            raise BadInput("acceptable_pause", "must be at least two heartbeats, or one lost packet is a failure")
        if self.stable_after_ns < self.acceptable_pause_ns:
            raise BadInput("stable_after", "must not be below acceptable_pause, or a split is decided while it shows")
        if self.join_retry_max_ns < self.join_retry_ns:
            raise BadInput("join_retry_max", "must not be below join_retry")
        if self.threshold <= 0:
            raise BadInput("threshold", "must be above zero")
        if self.strategy not in RULES:
            given = f"{self.strategy!r} is no rule" if self.strategy else "a cluster needs a rule for split brains"
            raise BadInput("split_brain.strategy", f"{given}: choose one of {', '.join(RULES)}")
        if self.majority_role and self.majority_role not in ROLES:
            text = f"{self.majority_role!r} is not one of {', '.join(ROLES)}, nor empty for all"
            raise BadInput("split_brain.role", text)
        if (self.strategy == "static-quorum") != (self.quorum > 0):
            text = "static-quorum needs one, above zero" if self.quorum <= 0 else "only static-quorum has one"
            raise BadInput("split_brain.quorum", text)

    @property
    def counted_max(self) -> int | None:
        """More counted members than this could be two quorums at once; None where the rule has no such bound."""
        return 2 * self.quorum - 1 if self.strategy == "static-quorum" else None


def tuned(base: MembershipSettings, given: Mapping[str, float | str | None]) -> MembershipSettings:
    """A profile with what a node's settings say instead: times under their names with `_ms`, the rest as they are
    called here; None leaves the profile's. Raises BadInput where the result contradicts itself."""
    changes: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None:
            stem = name.removesuffix("_ms")
            changes[name if stem == name else f"{stem}_ns"] = value if stem == name else int(float(value) * MS)
    return replace(base, **changes)


DEFAULT: Final = MembershipSettings()
# For the processes of one machine, where a silence of a second and a half is a dead process.
FAST: Final = MembershipSettings(
    heartbeat_ns=200 * MS,
    acceptable_pause_ns=1_500 * MS,
    stable_after_ns=2 * SECOND,
    gossip_behind_ns=50 * MS,
    join_retry_ns=300 * MS,
    join_retry_max_ns=2 * SECOND,
    form_wait_ns=3 * SECOND,
    leave_wait_ns=5 * SECOND,
    weakly_up_after_ns=3 * SECOND,
)
PROFILES: Final = {"default": DEFAULT, "fast": FAST}


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """Which cluster this node belongs to. `id` may be empty on a node that has not read it from the state store.
    `agreed` are the settings that must be equal on all nodes; see `identity`."""

    name: str
    id: str
    agreed: dict[str, str] = field(default_factory=dict)


def identity(
    name: str,
    cluster_id: str,
    settings: MembershipSettings,
    *,
    tombstone_min_age_ms: int,
    extra: dict[str, str] | None = None,
) -> ClusterIdentity:
    """The identity with every setting that must agree, under the names that an operator knows."""
    agreed = {
        "protocol": str(PROTOCOL),
        "shard_count": str(SHARD_COUNT),
        "map_count": str(MAP_COUNT),
        "hash_version": HASH_VERSION,
        "tombstone_min_age_ms": str(tombstone_min_age_ms),
        "heartbeat_ms": str(settings.heartbeat_ns // MS),
        "split_brain.strategy": settings.strategy,
        "split_brain.quorum": str(settings.quorum),
        "split_brain.role": settings.majority_role,
        "split_brain.stable_after_ms": str(settings.stable_after_ns // MS),
    }
    return ClusterIdentity(name, cluster_id, agreed | (extra or {}))


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first thing that two nodes don't agree on, with both values."""

    key: str
    joiner: str
    member: str


def compare(joiner: ClusterIdentity, member: ClusterIdentity) -> Mismatch | None:
    """What keeps a joiner out, or None. An empty cluster id on either side is unknown, not different."""
    if joiner.name != member.name:
        return Mismatch("cluster.name", joiner.name, member.name)
    if joiner.id and member.id and joiner.id != member.id:
        return Mismatch("cluster.id", joiner.id, member.id)
    for key in sorted(joiner.agreed.keys() | member.agreed.keys()):
        theirs, ours = joiner.agreed.get(key, "absent"), member.agreed.get(key, "absent")
        if theirs != ours:
            return Mismatch(key, theirs, ours)
    return None
