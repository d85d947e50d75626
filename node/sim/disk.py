"""A node's replica disk: the reference replica, whose commits take time and are lost when the process dies first."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from node.core.clock import MS
from node.sim.faults import Knobs
from node.sim.scheduler import Scheduler
from node.store.replica_memory import MemoryReplica
from node.store.replica_port import ReplicaBatch, ReplicaIdentity

if TYPE_CHECKING:
    from node.sim.process import Process


class SimDisk:
    """One host's disk. `replica` is what would be found on it now."""

    def __init__(self, scheduler: Scheduler, knobs: Knobs, host: str) -> None:
        self._scheduler = scheduler
        self._knobs = knobs
        self._host = host
        self._rng = scheduler.derive(f"disk/{host}")
        self._calm = False
        self._replica: MemoryReplica | None = None

    def heal(self) -> None:
        self._calm = True

    def wipe(self) -> None:
        """The replica's directory is deleted while the node is down."""
        self._replica = None

    def open(self, cluster_id: str) -> MemoryReplica:
        if self._replica is None:
            self._replica = MemoryReplica(ReplicaIdentity(cluster_id, self._host, 1))
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
        if failing:
            ended(False, "no room")
            return
        replica.commit(batch)
        ended(True, "")
