"""What a node says of entries in its replica that are not what was written."""

from __future__ import annotations

import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from node.core.clock import ManualClock
from node.core.ids import NodeId
from node.core.limits import replica_damaged_kept_max
from node.engine.faults import Faults
from node.engine.machines import Replication
from node.gossip.replica_io import ReplicationSettings
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import ReplicaIdentity


class HurtReplica(MemoryReplica):
    """Its file tells of these keys, and that these were found."""

    hurt: frozenset[str] = frozenset()
    found: frozenset[str] = frozenset()

    @property
    def damaged(self) -> frozenset[str]:
        return self.hurt

    def take_found(self) -> frozenset[str]:
        found, self.found = self.found, frozenset()
        return found


class Node:
    """As much of an engine as a replicator needs; `said` is what it published."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.said: list[tuple[Any, ...]] = []
        self.replica = HurtReplica(ReplicaIdentity("c", "n1", 1))
        world = SimpleNamespace(
            replica=self.replica,
            opening=None,
            rng=random.Random(1),
            clock=clock,
            commit_replica=lambda _batch, _ended: None,
        )
        engine: Any = SimpleNamespace(
            me=NodeId("n1", 1),
            world=world,
            config=SimpleNamespace(replication=ReplicationSettings()),
            faults=Faults(clock),
            roster=SimpleNamespace(join=lambda _tenure: None),
            emit=lambda *words, cluster: self.said.append((*words, cluster)),
            send_message=lambda *_: None,
            wake_before=lambda _ns: None,
        )
        self.replication = Replication(engine)

    def look(self, *hurt: str, mended: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """What is said at the next tick, with these keys damaged, and these found and `mended` since the last."""
        self.said.clear()
        self.replica.found |= frozenset((*hurt, *mended)) - self.replica.hurt
        self.replica.hurt = frozenset(hurt)
        self.replication.tick(0)
        return list(self.said)


def test_damage_is_an_event_for_every_node_once_it_is_found() -> None:
    node = Node()
    assert node.look("a|x") == [], "nobody hears it before it has joined"
    node.replication.peers_changed(frozenset())
    words = "damaged entries are out of use until they are written again"
    assert node.look("a|x") == [("replica.damaged", "node/n1", f"1 {words}: a|x", True)]
    assert node.look("a|x") == [], "once"
    assert node.look("a|x", "b|y", "c|z") == [("replica.damaged", "node/n1", f"2 {words}: b|y, c|z", True)]
    assert node.look() == [], "it was mended"
    assert node.look("a|x") == [("replica.damaged", "node/n1", f"1 {words}: a|x", True)], "damaged again"


def test_damage_that_was_mended_before_anybody_looked_is_an_event_too() -> None:
    node = Node()
    node.replication.peers_changed(frozenset())
    words = "damaged entries are out of use until they are written again"
    assert node.look("b|y", mended=["a|x"]) == [("replica.damaged", "node/n1", f"2 {words}: a|x, b|y", True)]
    assert node.look("b|y", mended=["a|x"]) == [("replica.damaged", "node/n1", f"1 {words}: a|x", True)], "again"


def test_a_file_full_of_damage_is_one_event_that_names_a_few() -> None:
    node = Node()
    node.replication.peers_changed(frozenset())
    [(_, _, text, _)] = node.look(*(f"s|{number:04d}" for number in range(replica_damaged_kept_max)))
    assert text.endswith(f": s|0000, s|0001, s|0002, s|0003, s|0004 and {replica_damaged_kept_max - 5} more")
