"""A node's replica disk: the reference replica, whose commits take time and are lost when the process dies first.

A disk can be full, flip bits, put a record where another belongs, and forget at a power cut what it had not synced.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from node.core.clock import MS
from node.core.hashing import leaf_of, map_of
from node.sim.faults import Knobs
from node.sim.scheduler import Scheduler
from node.store.record import RecordDamaged
from node.store.replica_codec import entry_bytes, entry_of, key_bytes
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import ReplicaBatch, ReplicaEntry, ReplicaIdentity

if TYPE_CHECKING:
    from node.sim.process import Process


MISPLACED_RATIO: Final = 0.3  # of damaged records: another key's lies there, whole


class SimReplica(MemoryReplica):
    """The reference replica, with records that were damaged. What a reader makes of one is for the product's codec to
    say: what it refuses is kept from sight until it is written again, what it takes for an entry is one."""

    def __init__(self, identity: ReplicaIdentity) -> None:
        super().__init__(identity)
        self._refused: set[str] = set()
        self._found: set[str] = set()

    @property
    def damaged(self) -> frozenset[str]:
        """See `ReplicaStore`; so are the others."""
        return frozenset(self._refused)

    def take_found(self) -> frozenset[str]:
        found = frozenset(self._found)
        self._found.clear()
        return found

    def opened(self) -> None:
        """By a process that finds anew what is still wrong in it."""
        self._found = set(self._refused)

    def record(self, key: str) -> bytes:
        """What the file holds for a key that is there, as it was written."""
        entry = super().get(map_of(key), leaf_of(key), key)
        return b"" if entry is None else entry_bytes(key_bytes(key), entry)

    def spoil(self, key: str, record: bytes) -> None:
        """The file holds this for the key from now on."""
        try:
            entry = entry_of(key_bytes(key), record)
        except RecordDamaged:
            self._refused.add(key)
            self._found.add(key)
        else:
            self._leaves[(map_of(key), leaf_of(key))][key] = entry

    def get(self, map: int, leaf: int, key: str) -> ReplicaEntry | None:  # noqa: A002 - the port's name
        return None if key in self._refused else super().get(map, leaf, key)

    def scan(self, map: int, leaf: int) -> Sequence[ReplicaEntry]:  # noqa: A002 - the port's name
        return [entry for entry in super().scan(map, leaf) if entry.key not in self._refused]

    def commit(self, batch: ReplicaBatch) -> None:
        super().commit(batch)
        if self._refused:
            self._refused.difference_update([entry.key for entry in batch.puts], batch.drops)

    def stored_keys(self) -> list[str]:
        """What is in the file, damaged or not, in order."""
        return sorted(entry.key for entry in self.scan_all("", 1_000_000)) + sorted(self._refused)


class SimDisk:
    """One host's disk. `full`: no commit finds room."""

    def __init__(self, scheduler: Scheduler, knobs: Knobs, host: str) -> None:
        self._scheduler = scheduler
        self._knobs = knobs
        self._host = host
        self._rng = scheduler.derive(f"disk/{host}")
        self._calm = False
        self._replica: SimReplica | None = None
        self._unsynced: list[ReplicaBatch] = []  # what the file holds and the platter does not
        self._platter: SimReplica | None = None
        self.full = False

    def heal(self) -> None:
        self._calm = True
        self.full = False

    def wipe(self) -> None:
        """The replica's directory is deleted while the node is down."""
        self._replica = self._platter = None
        self._unsynced.clear()

    def power_cut(self) -> int:
        """What was not synced is gone; how many commits that were. The process must be down."""
        lost = len(self._unsynced)
        if lost and self._platter is not None:
            self._replica = self._copy(self._platter)
            self._unsynced.clear()
        return lost

    def flip_bits(self, count: int) -> tuple[str, ...]:
        """Damage the records of so many entries; which. One bit, or all of it."""
        replica, rng = self._replica, self._rng
        keys = replica.stored_keys() if replica is not None else []
        hit = tuple(sorted(rng.sample(keys, min(count, len(keys)))))
        if replica is not None:
            records = {key: replica.record(key) for key in keys}
            for key in hit:
                misplaced = rng.random() < MISPLACED_RATIO
                replica.spoil(key, records[rng.choice(keys)] if misplaced else _flipped(records[key], rng))
        return hit

    def open(self, cluster_id: str) -> MemoryReplica:
        if self._replica is None:
            self._replica = SimReplica(ReplicaIdentity(cluster_id, self._host, 0))
            if self._knobs.unsynced_ms:
                self._platter = SimReplica(self._replica.identity)
        self._replica.opened()
        return self._replica

    def commit(
        self, process: Process, replica: MemoryReplica, batch: ReplicaBatch, ended: Callable[[bool, str], None]
    ) -> None:
        """`World.commit_replica` of one process."""
        delay_ns = int((0.5 + self._rng.random()) * self._knobs.disk_ms * MS)
        failing = not self._calm and self._rng.random() < self._knobs.disk_failure_ratio
        self._scheduler.after(delay_ns, process.run, partial(self._commit, failing, replica, batch, ended))

    def _commit(
        self, failing: bool, replica: MemoryReplica, batch: ReplicaBatch, ended: Callable[[bool, str], None]
    ) -> None:
        if failing or self.full:
            ended(False, "no room")
            return
        replica.commit(batch)
        if self._platter is not None:
            if not self._unsynced:
                self._scheduler.after(self._knobs.unsynced_ms * MS, self._sync)
            self._unsynced.append(batch)
        ended(True, "")

    def _sync(self) -> None:
        if self._platter is not None:
            for batch in self._unsynced:
                self._platter.commit(batch)
        self._unsynced.clear()

    @staticmethod
    def _copy(replica: SimReplica) -> SimReplica:
        copied = SimReplica(replica.identity)
        entries = tuple(replica.scan_all("", 1_000_000))
        digests = {
            (map_of(entry.key), leaf_of(entry.key)): replica.digests()[map_of(entry.key)][leaf_of(entry.key)]
            for entry in entries
        }
        counts = dict(enumerate(replica.counts()))
        copied.commit(ReplicaBatch(entries, (), digests, replica.hlc_mark(), counts))
        return copied


def _flipped(record: bytes, rng: random.Random) -> bytes:
    bit = rng.randrange(8 * len(record))
    return record[: bit // 8] + bytes((record[bit // 8] ^ (1 << bit % 8),)) + record[bit // 8 + 1 :]
