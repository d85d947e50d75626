"""What the simulated disk does to records, as the product's codec sees it."""

from __future__ import annotations

import pytest

from node.core.hashing import leaf_of, map_of
from node.sim.disk import SimDisk, SimReplica
from node.sim.faults import calm
from node.sim.scheduler import Scheduler
from node.store import record
from node.store.replica_port import ReplicaBatch, ReplicaEntry, ReplicaIdentity

KEYS = tuple(f"p{number}|s0" for number in range(40))


def _batch(*keys: str, value: bytes = b"value") -> ReplicaBatch:
    return ReplicaBatch(
        tuple(ReplicaEntry(key, 1, 5, "n1", 0, False, value + key.encode()) for key in keys), (), {}, 9, {}
    )


def _seen(replica: SimReplica) -> dict[str, bytes]:
    return {key: e.value for key in KEYS if (e := replica.get(map_of(key), leaf_of(key), key)) is not None}


def test_x1_a_damaged_record_is_out_of_sight_until_it_is_written_again() -> None:
    """X1: flipped bits and records of other keys alike; what is left is what was written."""
    disk = SimDisk(Scheduler(1), calm(), "n1")
    replica = disk.open("c1")
    assert isinstance(replica, SimReplica)
    replica.commit(_batch(*KEYS))
    whole = _seen(replica)
    hit = frozenset(disk.flip_bits(20))
    assert len(hit) == 20
    assert replica.damaged == hit - _exchanged_for_itself(replica, hit)
    assert _seen(replica) == {key: value for key, value in whole.items() if key not in replica.damaged}
    refused = replica.damaged
    left = frozenset(sorted(refused)[:3])
    replica.commit(_batch(*(key for key in KEYS if key not in left)))
    assert replica.take_found() == refused, "also what was written again"
    assert disk.open("c1") is replica
    assert (replica.take_found(), replica.take_found()) == (left, frozenset()), "found anew, what is still wrong"
    replica.commit(_batch(*KEYS))
    assert replica.damaged == frozenset()
    assert _seen(replica) == whole


def _exchanged_for_itself(replica: SimReplica, hit: frozenset[str]) -> frozenset[str]:
    """A record may be drawn for its own place."""
    return hit & frozenset(_seen(replica))


def test_a_checksum_that_is_not_bound_to_its_key_lets_another_s_record_through(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = record._checksum
    monkeypatch.setattr(record, "_checksum", lambda _key, numbers, summed: bound(b"", numbers, summed))
    replica = SimReplica(ReplicaIdentity("c1", "n1", 1))
    replica.commit(_batch(*KEYS))
    replica.spoil(KEYS[0], replica.record(KEYS[1]))
    assert _seen(replica)[KEYS[0]] == b"value" + KEYS[1].encode()
