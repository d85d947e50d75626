"""What flows ask of entities and nodes, what they are told, and how they are asked themselves."""

from __future__ import annotations

import msgspec

from node.wire.registry import Lane, wire_type

Counts = dict[str, int | str | None]

# ---- a replay and the sites it goes through


@wire_type("flow.replay_site")
class ReplaySite(msgspec.Struct, frozen=True):
    """Send a site's fresh classifications to its auctioneer again, whether it holds them or not: of the pages behind
    `after` in the order of their addresses the first `limit` (0: all), with `missing` only those with an empty slot."""

    operation: str
    after: str = ""
    limit: int = 0
    missing: bool = False


@wire_type("flow.replay_report")
class ReplayReport(msgspec.Struct, frozen=True):
    """Of the pages that were asked about: how many there are, went out again, needed not to (too old, or nothing of
    theirs is missing), and failed. `next`: the page after which it goes on, empty behind the last."""

    total: int
    replayed: int
    ignored: int
    failed: int
    next: str = ""


@wire_type("flow.get_coverage")
class GetCoverage(msgspec.Struct, frozen=True):
    pass


@wire_type("flow.site_coverage")
class SiteCoverage(msgspec.Struct, frozen=True):
    """Slots of fresh pages, and those of them that have a pool; `missing` pairs an empty slot with the reason, also one
    that only old pages show, which is not expected to have any; `slots` are those that are; `pages`, old ones too;
    `pending`: empty slots whose auction is not over yet."""

    site: str
    expected: int
    present: int
    missing: tuple[tuple[str, str], ...]
    slots: tuple[str, ...] = ()
    pages: int = 0
    pending: int = 0


@wire_type("flow.start_replay")
class StartReplay(msgspec.Struct, frozen=True):
    """`scope` in words for the operator; the same id again changes nothing. `missing`: only pages with an empty slot;
    `rate` in pages a second, 0 for no limit; `until`: the coverage at which it ends, 0 for as much as comes. `why`: the
    reason that the operator gave."""

    sites: tuple[str, ...]
    scope: str
    missing: bool = False
    rate: int = 0
    until: float = 0.0
    why: str = ""


@wire_type("flow.replay_status")
class ReplayStatus(msgspec.Struct, frozen=True):
    """`state`: running, done, failed or cancelled, `reason` why; coverages are ratios, the second one that of now.
    `missing`: site, slot and reason of slots without candidates, the first ones; `reasons` counts all of them. `why`:
    the reason that the operator gave for it."""

    id: str
    state: str
    scope: str
    total: int
    replayed: int
    ignored: int
    failed: int
    coverage_before: float
    coverage_after: float
    started_ms: int
    ended_ms: int
    reason: str = ""
    missing: tuple[tuple[str, str, str], ...] = ()
    reasons: dict[str, int] = {}
    why: str = ""


@wire_type("flow.open_replay")
class OpenReplay(msgspec.Struct, frozen=True):
    """To the register: start this replay, unless another one goes through one of its sites. `over`: others that are
    known to be over, by their durable state. Answered by its ReplayStatus, by ReplayRefused or by ReplaySilent."""

    id: str
    order: StartReplay
    over: tuple[str, ...] = ()


@wire_type("flow.replay_refused")
class ReplayRefused(msgspec.Struct, frozen=True):
    """`running`: the one that stands in the way; `sites` both want, 0 when there are merely too many at once."""

    running: ReplayStatus
    sites: int


@wire_type("flow.replay_silent")
class ReplaySilent(msgspec.Struct, frozen=True):
    """`id` wants some of the same sites, and does not say whether it still runs."""

    id: str


@wire_type("flow.cancel_replay")
class CancelReplay(msgspec.Struct, frozen=True):
    """End it where it stands: what went out stays, the rest does not go. Answered by ReplayStatus."""

    reason: str = ""


@wire_type("flow.get_replay")
class GetReplay(msgspec.Struct, frozen=True):
    pass


# ---- operations on nodes and shards


@wire_type("flow.phase")
class Phase(msgspec.Struct, frozen=True):
    """One phase of an operation. `state`: waiting, running, done, overran (left behind at its limit), skipped,
    interrupted or cancelled. A blocker begins with what it is: `entity/…`, `peer/…`, `shard/…`, `node/…`."""

    name: str
    state: str
    elapsed_ms: int = 0
    detail: str = ""
    blockers: tuple[str, ...] = ()


@wire_type("flow.start_operation")
class StartOperation(msgspec.Struct, frozen=True):
    """`verb` drain (`node`, `incarnation`), restart (`nodes`: names with the incarnations that are to go, in order), or
    that of the committed plan `plan`, whose `target` says in words what it is about. The same id again changes
    nothing. `witnesses`: by whose standing the cluster is whole again; those that go when empty."""

    verb: str
    node: str = ""
    incarnation: int = 0
    reason: str = ""
    plan: str = ""
    target: str = ""
    nodes: tuple[tuple[str, int], ...] = ()
    witnesses: tuple[str, ...] = ()


@wire_type("flow.get_operation")
class GetOperation(msgspec.Struct, frozen=True):
    pass


@wire_type("flow.operation_status")
class OperationStatus(msgspec.Struct, frozen=True):
    """`state`: running, done, failed or cancelled; `result` is what the verb counts, null where nobody knows."""

    id: str
    verb: str
    target: str
    state: str
    phases: tuple[Phase, ...]
    started_ms: int
    ended_ms: int
    result: Counts
    reason: str = ""


@wire_type("flow.standing_get", lane=Lane.CONTROL)
class GetStanding(msgspec.Struct, frozen=True):
    """To a node: how do you stand? Answered by NodeStanding."""


@wire_type("flow.standing", lane=Lane.CONTROL)
class NodeStanding(msgspec.Struct, frozen=True):
    """One node, for whoever waits until a cluster is whole again. `digest`: over all maps of its replica; `sites`:
    those that live there and know their slots, of which so many should have, and have, candidates."""

    incarnation: int
    why_not_ready: tuple[str, ...]
    digest: str
    sites: int
    slots_expected: int
    slots_present: int


@wire_type("flow.hold_balance", lane=Lane.CONTROL)
class HoldBalance(msgspec.Struct, frozen=True):
    """To every node, repeated while it is wanted: nothing is rebalanced for so long; 0 ends it."""

    for_ms: int


@wire_type("flow.cancel_operation")
class CancelOperation(msgspec.Struct, frozen=True):
    """End an operation where it stands: what has moved stays, and the rest does not start."""

    reason: str = ""


@wire_type("flow.drain_name_get", lane=Lane.CONTROL)
class GetDrainName(msgspec.Struct, frozen=True):
    """To a node: the name that its drain has, or would have. So that all who start one start the same."""


@wire_type("flow.drain_name", lane=Lane.CONTROL)
class DrainName(msgspec.Struct, frozen=True):
    operation: str
    active: bool


@wire_type("flow.cancel_drain", lane=Lane.CONTROL)
class CancelDrain(msgspec.Struct, frozen=True):
    """To a node: drain no more; answered by DrainCancelled."""

    incarnation: int


@wire_type("flow.drain_progress")
class DrainProgress(msgspec.Struct, frozen=True):
    """From the draining node to its operation, answered by Recorded once it is durable. `lost` counts messages that
    nobody handled and nobody hears of: who asked was told, or waits no more. `sequence` grows with the phases, so that
    a late report changes nothing."""

    phases: tuple[Phase, ...]
    shards_moved: int
    lost: int
    sequence: int = 0


@wire_type("flow.drain_cancelled", lane=Lane.CONTROL)
class DrainCancelled(msgspec.Struct, frozen=True):
    """`why_not`: why it goes on, empty when it does not; then `progress` is the drain as it ended."""

    why_not: str = ""
    progress: DrainProgress | None = None


@wire_type("flow.recorded")
class Recorded(msgspec.Struct, frozen=True):
    """The operation holds, durably, what the report with this sequence said."""

    sequence: int


@wire_type("flow.begin_drain", lane=Lane.CONTROL)
class BeginDrain(msgspec.Struct, frozen=True):
    """To a node: drain yourself for this operation, if you are this incarnation."""

    operation: str
    incarnation: int
