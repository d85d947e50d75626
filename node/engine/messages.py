"""What nodes say to each other as nodes, beside what their machines say."""

from __future__ import annotations

import msgspec

from node.core.ids import NodeId
from node.gossip.splitbrain import Decision
from node.wire.ledger import LedgerRow
from node.wire.port import PeerReport
from node.wire.registry import Lane, wire_type


@wire_type("node.draining", lane=Lane.CONTROL)
class NodeDraining(msgspec.Struct, frozen=True):
    """The sender hands everything over: it hosts no singletons and takes no shards. Repeated while it holds. `closing`:
    it takes no more shards, and keeps for now what it has."""

    on: bool
    closing: bool = False


@wire_type("node.storeless", lane=Lane.CONTROL)
class NodeStoreless(msgspec.Struct, frozen=True):
    """The state store does not answer the sender: it coordinates nothing while another can. Repeated while it holds."""

    on: bool


@wire_type("node.freeze", lane=Lane.CONTROL)
class Freeze(msgspec.Struct, frozen=True):
    """The whole cluster stops: nothing is moved because nodes go away."""

    reason: str


@wire_type("node.topic_event")
class TopicEvent(msgspec.Struct, frozen=True):
    """An event of a cluster-wide topic, encoded, so that each node decodes it once and only if it listens. `number`
    counts the sender's events of the topic from 1, so that a receiver knows what it missed; 0: it does not count."""

    topic: str
    event: bytes
    number: int = 0


@wire_type("node.done", lane=Lane.CONTROL)
class NodeDone(msgspec.Struct, frozen=True):
    """What was asked of the node is under way or done; `changed` is false when it was already."""

    changed: bool = True


@wire_type("node.stop", lane=Lane.CONTROL)
class StopNode(msgspec.Struct, frozen=True):
    """Stop: after a drain, or (`drain` false) with only the node's own state flushed."""

    drain: bool


@wire_type("node.remove_member", lane=Lane.CONTROL)
class RemoveMember(msgspec.Struct, frozen=True):
    """Declare a member dead on behalf of an operator, `by` whom and why; asked of a node when it is not the one that
    goes. Answered with NodeDone."""

    member: NodeId
    by: str


@wire_type("node.report_get")
class GetNodeReport(msgspec.Struct, frozen=True):
    """`coverage`: look at every local site's slots too."""

    coverage: bool = True


@wire_type("node.ledger_get")
class GetLedger(msgspec.Struct, frozen=True):
    """What passed between the node and `peer`, or all its peers; answered with a `LedgerReport`."""

    peer: str = ""


@wire_type("node.ledger_report")
class LedgerReport(msgspec.Struct, frozen=True):
    """See `node.wire.ledger`."""

    node: NodeId
    at_ms: int
    rows: tuple[LedgerRow, ...]


@wire_type("node.echo_control", lane=Lane.CONTROL)
class EchoControl(msgspec.Struct, frozen=True):
    """A ping on the control lane, answered by itself."""

    number: int


@wire_type("node.echo_data")
class EchoData(msgspec.Struct, frozen=True):
    """A ping on the data lane, answered by itself."""

    number: int


@wire_type("node.decisions_get")
class GetDecisions(msgspec.Struct, frozen=True):
    """The newest split-brain decisions that the node took."""

    limit: int


@wire_type("node.decisions")
class DecisionsReport(msgspec.Struct, frozen=True):
    """Oldest first; `unreadable` lines of the log are no decision of this release."""

    node: str
    decisions: tuple[Decision, ...]
    unreadable: int = 0


@wire_type("node.entry_get")
class GetReplicaEntry(msgspec.Struct, frozen=True):
    key: str


@wire_type("node.replica_entry")
class ReplicaEntryReport(msgspec.Struct, frozen=True):
    """One key as this node's replica holds it; `value` is the encoded view, empty for a tombstone. `damaged`: it holds
    one that is kept from sight. `owner` and `epoch_now`: who may write the key, as this node knows it."""

    node: str
    present: bool
    epoch: int = 0
    hlc: int = 0
    origin: str = ""
    expires_at_ms: int = 0
    tombstone: bool = False
    value: bytes = b""
    damaged: bool = False
    owner: str = ""
    epoch_now: int = 0


@wire_type("node.map_report")
class MapReport(msgspec.Struct, frozen=True):
    keys: int
    bytes: int
    tombstones: int
    digest: str


@wire_type("node.fault_report")
class FaultReport(msgspec.Struct, frozen=True):
    code: str
    object: str
    message: str
    since_ms: int


@wire_type("node.site_report")
class SiteReport(msgspec.Struct, frozen=True):
    """Coverage of a site that lives here; `missing` pairs a slot with the reason, `slots` are those expected."""

    site: str
    expected: int
    present: int
    missing: tuple[tuple[str, str], ...]
    slots: tuple[str, ...] = ()


@wire_type("node.keys_find")
class FindKeys(msgspec.Struct, frozen=True):
    """Which of these keys can this node's own replica serve?"""

    keys: tuple[str, ...]


@wire_type("node.keys_found")
class KeysFound(msgspec.Struct, frozen=True):
    node: str
    keys: tuple[str, ...]


@wire_type("node.follower_report")
class FollowerReport(msgspec.Struct, frozen=True):
    """How one projection's follower fares on the node that coordinates: rounds that failed or came second since its
    start, and the last failure with its time (wall ms, 0 for never)."""

    name: str
    offset: int
    applied: int
    conflicts: int
    failures: int
    last_failure: str = ""
    failed_ms: int = 0


@wire_type("node.report")
class NodeReport(msgspec.Struct, frozen=True):
    """Everything that one node knows of itself; the cluster's status is made of these.

    `running`: `(shard, epoch, entities)` of the shards whose entities run here. `lag_ms`: how long peers have had
    something of this node's unacknowledged, by peer. `counters`: whatever was not handled, by reason, and totals.
    `living`: `(shard, epoch)` as the actors have them; `buffered`: `(shard, messages, oldest ms)` that wait for a home.
    `behind`: entries of this node's that peers in reach have not acknowledged, by peer. `cordons`: of the node that
    coordinates, the nodes that get no more shards.
    """

    node: str
    incarnation: int
    pid: int
    version: str
    uptime_ms: int
    ready: bool
    why_not_ready: tuple[str, ...]
    phases: tuple[str, ...]
    running: tuple[tuple[int, int, int], ...]
    entities_by_kind: dict[str, int]
    maps: tuple[MapReport, ...]
    replica_synchronised: bool
    lag_ms: dict[str, int]
    sites: tuple[SiteReport, ...]
    faults: tuple[FaultReport, ...]
    counters: dict[str, int]
    settings: dict[str, str]
    coordinator_term: int
    coordinator_active: bool
    served_count: int
    requests_count: int
    rss_bytes: int
    cpu_ms: int
    view_digest: str
    view_converged: bool
    observers_against: tuple[str, ...] = ()
    peers: tuple[PeerReport, ...] = ()
    why_not_joined: str = ""
    living: tuple[tuple[int, int], ...] = ()
    buffered: tuple[tuple[int, int, int], ...] = ()
    behind: dict[str, int] = msgspec.field(default_factory=dict)
    pending_removals: int = 0
    followers: tuple[FollowerReport, ...] = ()
    cordons: tuple[str, ...] = ()
