"""What a node says of itself when it asks to be let in, and what its engine is told, from its settings file."""

from __future__ import annotations

from dataclasses import replace

from node.core.ids import NodeId
from node.core.settings import NodeSettings
from node.engine.config import NodeConfig
from node.gossip.join import Seed
from node.gossip.member import Member
from node.gossip.replica_io import ReplicationSettings
from node.gossip.settings import MembershipSettings, identity
from node.sharding.nodes import ShardingSettings

VERSION = "0.1.0"
FAST_LEASE_MS = 3_000


def member(settings: NodeSettings, me: NodeId, control: str, data: str, admin: str) -> Member:
    """This start of this node, as it asks to be let in; the addresses are those that were bound."""
    return Member(
        me.name,
        me.incarnation,
        settings.wire.advertise_control or control,
        settings.wire.advertise_data or data,
        admin,
        settings.wire.http if "api" in settings.node.roles else "",
        settings.node.roles,
        VERSION,
        settings.node.capacity,
    )


def config(
    settings: NodeSettings,
    membership: MembershipSettings,
    seeds: tuple[Seed, ...],
    me: Member,
    cluster_id: str,
    *,
    existed: bool,
) -> NodeConfig:
    """`existed`: the state store knew the cluster before this start."""
    cluster = identity(
        settings.cluster.name,
        cluster_id,
        membership,
        tombstone_min_age_ms=settings.replication.tombstone_min_age_ms,
    )
    sharding = ShardingSettings(min_entity_nodes=settings.cluster.min_entity_nodes)
    if settings.cluster.profile == "fast":
        sharding = replace(sharding, lease_ms=FAST_LEASE_MS)
    return NodeConfig(
        me,
        cluster,
        seeds,
        membership,
        sharding,
        ReplicationSettings(
            tombstone_min_age_ms=settings.replication.tombstone_min_age_ms,
            stream_bytes_per_s=settings.replication.stream_bytes_per_s,
        ),
        bootstrap=settings.wire.bootstrap,
        existed=existed,
        drain_deadline_ms=settings.node.drain_deadline_s * 1_000,
        shown=settings.shown(),
    )
