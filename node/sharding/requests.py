"""What operators' tools ask of the acting coordinator, from any node, and what it answers.

Each request is answered once: by its reply when what it wants is durable, or by `Declined`. A node that doesn't
coordinate declines with `not_coordinator`; the asker looks who does and asks again.
"""

from __future__ import annotations

from typing import Final

import msgspec

from node.gossip.replica_roster import ReplicaRoster
from node.sharding.book import Cordon, History, Pin, Plan
from node.wire.registry import wire_type


@wire_type("sharding.stage")
class Stage(msgspec.Struct, frozen=True):
    """Make a plan and keep it under `id`; the same id again answers with the plan that is there.

    `verb`: move, pin, unpin (`shards`), cordon, uncordon, drain (`node`), restart (of all, or of `node`), rebalance, or
    repair (`repairs`: shard and kind of fault). `entities`: how many live in a shard, as far as the asker knows.
    `force`: make it although something that usually forbids it holds. `broken` and `notes`: what the asker, who knows
    of more than shards, found that it would break, and what is to be known of it. `least_ms`: how long it takes at
    least, for what it does beside moving shards.
    """

    id: str
    verb: str
    shards: tuple[int, ...] = ()
    node: str = ""
    repairs: tuple[tuple[int, str], ...] = ()
    entities: tuple[tuple[int, int], ...] = ()
    force: bool = False
    reason: str = ""
    broken: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    least_ms: int = 0


@wire_type("sharding.commit")
class Commit(msgspec.Struct, frozen=True):
    """Carry the plan `id` out on behalf of `operation`. → PlanView."""

    id: str
    operation: str
    reason: str = ""


@wire_type("sharding.cancel")
class Cancel(msgspec.Struct, frozen=True):
    """What has moved stays, what moves ends, the rest does not start. → PlanView."""

    id: str


@wire_type("sharding.discard")
class Discard(msgspec.Struct, frozen=True):
    """Forget a plan that isn't being carried out. → PlanView, as it was."""

    id: str


@wire_type("sharding.plans_get")
class GetPlans(msgspec.Struct, frozen=True):
    """→ PlanViews: the plan of that id, or all of them."""

    id: str = ""


@wire_type("sharding.placing_get")
class GetPlacing(msgspec.Struct, frozen=True):
    """→ Placing."""


@wire_type("sharding.history_get")
class GetHistory(msgspec.Struct, frozen=True):
    """→ History of one shard."""

    shard: int


@wire_type("sharding.roster_join")
class JoinReplicas(msgspec.Struct, frozen=True):
    """Put the node's replica on the roster under that tenure: it is complete. → ReplicaRoster."""

    node: str
    tenure: int


@wire_type("sharding.roster_leave")
class LeaveReplicas(msgspec.Struct, frozen=True):
    """Take the node's replica off the roster, of whatever tenure it is. What returns takes over from the others.
    → ReplicaRoster."""

    node: str
    cause: str


@wire_type("sharding.roster_get")
class GetReplicas(msgspec.Struct, frozen=True):
    """→ ReplicaRoster."""


Request = (
    Stage | Commit | Cancel | Discard | GetPlans | GetPlacing | GetHistory | JoinReplicas | LeaveReplicas | GetReplicas
)


@wire_type("sharding.plan_view")
class PlanView(msgspec.Struct, frozen=True):
    """A plan and how far it is: `moved`, `moving`, `waiting` and `dropped` are shards, in the plan's order. `before`
    and `after` count shards per node. `blockers` say in words what the moving ones wait for. `changed` false: what was
    asked for had been done already."""

    plan: Plan
    moved: tuple[int, ...] = ()
    moving: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    blockers: tuple[str, ...] = ()
    before: tuple[tuple[str, int], ...] = ()
    after: tuple[tuple[str, int], ...] = ()
    changed: bool = True


@wire_type("sharding.plan_views")
class PlanViews(msgspec.Struct, frozen=True):
    items: tuple[PlanView, ...]


@wire_type("sharding.under_way")
class UnderWay(msgspec.Struct, frozen=True):
    """One move in progress. `age_ms` since its owner was first asked, or since it was planned; `limit_ms` is what one
    ask may take (0: it waits for its turn, which has no limit)."""

    shard: int
    source: str
    target: str
    state: str
    cause: str
    age_ms: int
    limit_ms: int


@wire_type("sharding.placing")
class Placing(msgspec.Struct, frozen=True):
    """The coordinator's own view. `epochs` and `owners` by shard; `uneven` moves would even the load out; `pending` are
    pins whose node neither has the shard nor can take it now; `why_not_placing` and `why_not_rebalancing` say in words
    what stands in the way, empty when nothing does; `balancing` what evens the load out without anybody's doing."""

    node: str
    term: int
    version: int
    owners: tuple[str, ...]
    epochs: tuple[int, ...]
    uneven: int = 0
    moves: tuple[UnderWay, ...] = ()
    pins: tuple[Pin, ...] = ()
    pending: tuple[int, ...] = ()
    cordons: tuple[Cordon, ...] = ()
    draining: tuple[str, ...] = ()
    why_not_placing: str = ""
    why_not_rebalancing: tuple[str, ...] = ()
    receipts_late: int = 0
    unreadable: tuple[str, ...] = ()
    balancing: str = ""


@wire_type("sharding.declined")
class Declined(msgspec.Struct, frozen=True):
    """Nothing was done; `reason` is a short stable word, `detail` the facts."""

    reason: str
    detail: str = ""


Answer = PlanView | PlanViews | Placing | History | ReplicaRoster | Declined

# Which of a node's components a request is for.
REQUESTS: Final = (
    Stage,
    Commit,
    Cancel,
    Discard,
    GetPlans,
    GetPlacing,
    GetHistory,
    JoinReplicas,
    LeaveReplicas,
    GetReplicas,
)
