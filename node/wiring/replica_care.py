"""What is done about a replica's file while its node runs: commits, a slow scrub, and mending after a failure.

A commit that failed for want of room is tried again by the replicator. After any other failure (`LmdbReplica.poisoned`)
the file is checked in a process of its own and opened anew before the replicator hears of it, so that nothing is
written meanwhile and what waits is still served from memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from node.actors.actor import Failed
from node.core import limits
from node.core.clock import MS, Clock
from node.core.errors import OperatingError
from node.engine.events import damaged_words
from node.engine.faults import Faults
from node.store.replica_check import check
from node.store.replica_health import ReplicaHealth
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_port import ReplicaBatch
from node.store.replica_report import ReplicaReport

SUBJECT = "replica"
_log = logging.getLogger("node")

Ended = Callable[[bool, str], None]
Execute = Callable[[str, Callable[..., object], tuple[object, ...], Callable[[object], None]], bool]


class ReplicaCare:
    """One replica's care. `execute` runs blocking calls by executor; `lost` is called with the reason when the file
    can't be used any more: the process must end, and its next start sets the file aside."""

    def __init__(self, replica: LmdbReplica, execute: Execute, clock: Clock, lost: Callable[[str], None]) -> None:
        self._replica = replica
        self._execute = execute
        self._clock = clock
        self._lost = lost
        self._begun_ns: int | None = None  # of the commit that runs or is being made good
        self._slow_ms = 0  # what the last commit took, if that was slow
        self._mending = ""
        self._mend: asyncio.Task[None] | None = None
        self._scrubs = False
        self.mended = 0

    @property
    def busy(self) -> bool:
        """Whether a commit runs, or is being made good."""
        return self._begun_ns is not None

    def counters(self) -> dict[str, int]:
        """The file's numbers, and how often it was mended, for an operator."""
        numbers = {
            name: value for name, value in msgspec.to_builtins(self._replica.health()).items() if name != "poisoned"
        }
        numbers["scrub_progress_percent"] = int(100 * numbers.pop("scrub_progress"))
        return {f"replica_file.{name}": value for name, value in numbers.items()} | {"replica_file.mended": self.mended}

    # ---- commits

    def commit(self, batch: ReplicaBatch, ended: Ended) -> None:
        """`World.commit_replica`."""
        self._begun_ns = self._clock.mono_ns()
        if not self._execute("disk", self._replica.commit, (batch,), lambda outcome: self._committed(outcome, ended)):
            self._begun_ns = None
            asyncio.get_running_loop().call_soon(ended, False, "the disk executor is saturated")

    def _committed(self, outcome: object, ended: Ended) -> None:
        took_ms = self._waited_ms()
        self._slow_ms = took_ms if took_ms > limits.disk_slow_ms else 0
        failed = outcome.detail if isinstance(outcome, Failed) else ""
        if self._replica.poisoned:
            self._mending = failed or self._replica.poisoned
            self._mend = asyncio.get_running_loop().create_task(self._make_good(failed, ended), name="replica-mend")
            return
        self._begun_ns = None
        ended(not failed, failed)

    async def _make_good(self, failed: str, ended: Ended) -> None:
        """Neither a commit nor a scrub runs meanwhile."""
        _log.error("the replica's file is checked before it is used again: %s", failed)
        try:
            self._replica.regain_reads()
            report = await check(self._replica.path)
            if not report.complete:
                self._give_up("; ".join(problem.text for problem in report.problems))
                return
            self._replica.reopen()
        except OperatingError as error:
            self._give_up(error.message)
            return
        except OSError as error:  # no other process could be started: nothing is known, so nothing is tried
            failed = f"{failed}; its file could not be checked: {error}"
        else:
            self._note(report)
        finally:
            self._begun_ns, self._mending = None, ""
        self.mended += 1
        ended(False, failed)

    def _note(self, report: ReplicaReport) -> None:
        leaves = {(problem.map, problem.leaf) for problem in report.problems if problem.leaf >= 0}
        self._replica.suspect(leaves)
        _log.warning("the replica's file was checked and opened again: %d problems", report.problems_found)

    def _give_up(self, reason: str) -> None:
        try:
            self._replica.condemn(reason)
        except OSError as error:
            _log.error("the replica's file could not be marked: %s", error)
        self._lost(f"the replica's file is damaged: {reason}")

    # ---- what goes on beside them

    async def watch(self, faults: Faults) -> None:
        """For ever: a leaf of the scrub at a time, and faults for what an operator should know."""
        due_ns = self._clock.mono_ns()
        while True:
            self._show(faults)
            if self._clock.mono_ns() >= due_ns:
                due_ns = self._clock.mono_ns() + limits.replica_scrub_pause_ms * MS
                self._scrub()
            await asyncio.sleep(limits.disk_slow_ms / 2_000)

    async def close(self) -> None:
        """Ends a check that runs."""
        if self._mend is not None:
            self._mend.cancel()
            await asyncio.gather(self._mend, return_exceptions=True)

    def _scrub(self) -> None:
        if self._begun_ns is None and not self._scrubs:
            self._scrubs = self._execute("disk", self._replica.scrub, (), self._scrubbed)

    def _scrubbed(self, outcome: object) -> None:
        self._scrubs = False
        if isinstance(outcome, Failed):
            _log.error("the scrub of the replica failed: %s", outcome.detail)

    def _show(self, faults: Faults) -> None:
        waited_ms = max(self._slow_ms, self._waited_ms() if not self._mending else 0)
        slow = f"disk slow: a commit of the replica in {self._replica.path} takes {waited_ms / 1_000:.1f} s"
        faults.put("E-DISK-SLOW", SUBJECT, slow if waited_ms > limits.disk_slow_ms else "")
        mending = f"replica degraded: its file is checked before it is used again: {self._mending}"
        faults.put("E-REPLICA-CHECKED", SUBJECT, mending if self._mending else "")
        for code, text in warnings(self._replica.health()).items():
            faults.put(code, SUBJECT, text)
        faults.put("E-REPLICA-DAMAGED", SUBJECT, damaged_words(sorted(self._replica.damaged)))

    def _waited_ms(self) -> int:
        return 0 if self._begun_ns is None else (self._clock.mono_ns() - self._begun_ns) // MS


def warnings(health: ReplicaHealth) -> dict[str, str]:
    """Words for each fault that the file's numbers speak of; empty where all is well."""
    filling = reader = ""
    if health.limit_bytes and health.live_bytes * 100 >= health.limit_bytes * limits.replica_filling_percent:
        share = health.live_bytes * 100 // health.limit_bytes
        filling = f"the replica holds {health.live_bytes} of at most {health.limit_bytes} bytes ({share} %)"
    if health.oldest_reader_commits > limits.replica_reader_commits_max:
        reader = (
            f"process {health.oldest_reader_pid} has kept a read of the replica open for"
            f" {health.oldest_reader_commits} commits: the file grows until it ends"
        )
    return {"E-REPLICA-FILLING": filling, "E-REPLICA-READER": reader}
