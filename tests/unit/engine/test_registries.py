"""Registries over a replica: what is written, and what is not."""

from __future__ import annotations

import random

import pytest

from node.core.clock import SECOND, ManualClock
from node.core.errors import BadInput
from node.engine.registries import EXHAUSTED_CAMPAIGNS, SPENT_SHARES, ReplicaRegistry, registry_key, sharded_by
from node.gossip.replica_io import ReplicationSettings, RosterKnown
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replicator import Replicator
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import ReplicaIdentity


class Node:
    """A registry at a node whose shards all have one epoch."""

    def __init__(self) -> None:
        self.clock = ManualClock(mono_ns=SECOND)
        self.epoch = 1
        self.ahead_ms = 0
        store = MemoryReplica(ReplicaIdentity("c1", "n1", 1))
        self.replicator = Replicator("n1", store, ReplicationSettings(), random.Random(1))
        self.replicator.step(RosterKnown(ReplicaRoster()), 0, self.clock.wall_ms())
        self.registry = ReplicaRegistry(
            EXHAUSTED_CAMPAIGNS,
            self.replicator,
            self.clock,
            lambda _shard: self.epoch,
            lambda _effects: None,
            lambda _now_ns, _wall_ms: self.ahead_ms,
        )

    @property
    def puts(self) -> int:
        return self.replicator.counters().get("puts", 0)

    def in_ms(self, ms: int) -> int:
        return self.clock.wall_ms() + ms


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_number_is_there_until_its_time_is_over(node: Node) -> None:
    node.registry.set("camp", 0, node.in_ms(1_000))
    node.registry.set("camp2", (1 << 63) - 1, node.in_ms(5_000))
    assert (node.registry.get("camp"), node.registry.get("camp2"), node.registry.get("camp3")) == (
        0,
        (1 << 63) - 1,
        None,
    )
    node.clock.advance_ns(SECOND)
    assert (node.registry.get("camp"), node.registry.get("camp2")) == (None, (1 << 63) - 1)


def test_what_is_so_already_is_not_written_again(node: Node) -> None:
    until_ms = node.in_ms(1_000)
    for _ in range(3):
        node.registry.set("camp", 7, until_ms)
        node.registry.clear("another")
    assert node.puts == 1
    node.registry.set("camp", 6, until_ms)
    assert (node.registry.get("camp"), node.puts) == (6, 2)


def test_what_was_cleared_leaves_no_tombstone_and_beats_what_it_cleared(node: Node) -> None:
    until_ms = node.in_ms(1_000)
    node.registry.set("camp", 7, until_ms)
    key = registry_key(EXHAUSTED_CAMPAIGNS, "camp")
    before = node.replicator.entry(key)
    node.registry.clear("camp")
    after = node.replicator.entry(key)
    assert node.registry.get("camp") is None
    assert before is not None
    assert after is not None
    assert (after.tombstone, after.expires_at_ms) == (False, until_ms)
    assert (after.epoch, after.hlc) > (before.epoch, before.hlc)


def test_only_the_present_owner_writes_and_never_from_the_future(node: Node) -> None:
    node.epoch = 3
    node.registry.set("camp", 7, node.in_ms(1_000))
    for epoch, ahead_ms in ((0, 0), (2, 0), (3, 60_001)):
        node.epoch, node.ahead_ms = epoch, ahead_ms
        node.registry.set("camp", 1, node.in_ms(1_000))
    assert node.registry.get("camp") == 7
    assert node.registry.refused == 3


def test_a_key_is_sharded_by_its_site_or_by_the_name_in_a_registry() -> None:
    assert sharded_by("news.example|top") == "news.example"
    assert sharded_by(registry_key(SPENT_SHARES, "camp")) == "camp"


@pytest.mark.parametrize("key", ["", "news.example", "News|top", "~", "~|camp", "~spent-permille|", "~unknown|camp"])
def test_what_is_no_key_has_no_owner(key: str) -> None:
    with pytest.raises(BadInput) as refused:
        sharded_by(key)
    assert refused.value.field == "key"
