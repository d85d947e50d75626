"""The sections of a node's settings that overrule its profile: times of membership, and the rule for split brains.

Whether values fit each other is judged where they are used, in `node.gossip.settings`, before anything is opened.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

_DAY_MS = 86_400_000


def _time(description: str, example: int) -> int | None:
    field: int | None = Field(default=None, ge=1, le=_DAY_MS, description=description, examples=[example])
    return field


class MembershipSection(BaseModel):
    """Times in milliseconds that overrule the profile's; a key that is left out is the profile's. What stands here is
    the profile `default`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    heartbeat_ms: int | None = _time("between two heartbeats to one peer; the same on all nodes", 1_000)
    threshold: float | None = Field(
        default=None, ge=0.1, le=100, description="suspicion (phi) of a peer that is unreachable", examples=[12.0]
    )
    acceptable_pause_ms: int | None = _time("silence that is no failure; at least two heartbeats", 4_000)
    deviation_min_ms: int | None = _time("heartbeats are never taken to be more regular than this", 100)
    deviation_max_ms: int | None = _time(
        "nor less regular: it bounds how late a dead node is noticed; raise the pause for a bad network", 150
    )
    stable_after_ms: int | None = _time(
        "how long a view stands still before a split is decided; the same on all nodes", 7_000
    )
    gossip_ms: int | None = _time("between two rounds of gossip while all hold the same", 1_000)
    gossip_behind_ms: int | None = _time("between two rounds while somebody may hold less", 250)
    neighbours: int | None = Field(default=None, ge=1, le=64, description="how many peers a node watches", examples=[5])
    join_retry_ms: int | None = _time("between the first requests to be let in", 1_000)
    join_retry_max_ms: int | None = _time("and between later ones", 10_000)
    form_wait_ms: int | None = _time("how long a first seed listens for a living cluster before it forms one", 5_000)
    leave_wait_ms: int | None = _time("how long a leaving node waits for the others to know", 10_000)
    weakly_up_after_ms: int | None = _time("a joiner takes part after so long without agreement", 7_000)


class SplitBrainSection(BaseModel):
    """Which side of a split goes on. The same on all nodes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: str = Field(
        default="keep-majority",
        description="keep-majority, static-quorum, keep-oldest, lease-majority or down-all; never none",
    )
    quorum: int = Field(
        default=0, ge=0, le=1_000, description="static-quorum: counted members a side needs; 0 with any other"
    )
    role: str = Field(default="entity", description="the role whose members count; empty for all")
