"""What an engine is told about its node, and its ways to the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from node.actors.ports import Execute
from node.core import limits
from node.core.clock import Clock
from node.core.rng import Rng
from node.gossip.join import Seed
from node.gossip.member import Member
from node.gossip.replica_io import ReplicationSettings
from node.gossip.settings import ClusterIdentity, MembershipSettings
from node.sharding.nodes import ShardingSettings
from node.store.journal import Journal, MemoryJournal
from node.store.port import Submit
from node.store.replica_opening import KeptFile, Opening
from node.store.replica_port import ReplicaBatch, ReplicaStore
from node.wire.port import Transport


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """One node's place in its cluster. `existed`: the state store knew the cluster before this start."""

    member: Member
    cluster: ClusterIdentity
    seeds: tuple[Seed, ...]
    membership: MembershipSettings
    sharding: ShardingSettings = field(default_factory=ShardingSettings)
    replication: ReplicationSettings = field(default_factory=ReplicationSettings)
    bootstrap: bool = False
    existed: bool = False
    drain_deadline_ms: int = 60_000
    shown: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Exit:
    """Why the process must end. `removed`: the cluster put this incarnation out and it did not ask for it. `overran`:
    a phase of its drain was left behind. `misfit`: it never was in, and as it is set up no cluster that it found would
    let it in."""

    reason: str
    removed: bool = False
    overran: bool = False
    misfit: bool = False


# (batch, ended): commit a replica's batch on a worker thread; `ended(ok, error)` on the engine's turn.
CommitReplica = Callable[[ReplicaBatch, Callable[[bool, str], None]], None]


@dataclass(frozen=True, slots=True)
class World:
    """The engine's ports. Everything here calls back on the engine's own thread.

    `wake` asks for a turn soon; `exit` is called once, last; `freed` may give memory back to the system; `journal`
    keeps split-brain decisions on this node's own disk. `opening` is how the replica's file was opened, at `opened_ms`
    (None: it has no file), and `kept` lists what was set aside beside it.
    """

    clock: Clock
    rng: Rng
    transport: Transport
    submit: Submit
    execute: Execute
    replica: ReplicaStore
    commit_replica: CommitReplica
    wake: Callable[[], None]
    exit: Callable[[Exit], None]
    freed: Callable[[], None] = lambda: None
    journal: Journal = field(default_factory=lambda: MemoryJournal(limits.decisions_kept_max))
    opening: Opening | None = None
    opened_ms: int = 0
    kept: Callable[[], tuple[KeptFile, ...]] = tuple
