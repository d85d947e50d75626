"""When changes go to disk: a batch at a time, soon after the first of them, at once for removals and tenures."""

from __future__ import annotations

from node.core import limits
from node.core.hlc import COUNTER_BITS, Hlc
from node.gossip.contents import Contents
from node.gossip.replica_io import Commit, Committed, Effect, Fault, FaultCleared, ReplicationSettings


class Committer:
    """One commit at a time; a failed one is tried again, later and later, with what has come meanwhile."""

    def __init__(self, contents: Contents, hlc: Hlc, settings: ReplicationSettings) -> None:
        self._contents = contents
        self._hlc = hlc
        self._settings = settings
        self._token = 0
        self._flying: int | None = None
        self._flying_tenure = 0
        self._dirty_since_ns: int | None = None
        self._at_once = False
        self._failures = 0
        self._retry_ns = 0
        # Halved by each failure: what fits goes in although not all does.
        self._batch_max = limits.replica_commit_entries_max
        self._tenure = 0
        self.commits = self.failed = self.unknown = 0

    @property
    def degraded(self) -> bool:
        """Whether the last commit failed: this replica is in memory only."""
        return self._failures > 0

    def urge(self) -> None:
        """Somebody waits for what has just changed."""
        self._at_once = True

    def write_tenure(self, tenure: int) -> None:
        """The replica becomes one of that stay on the roster, with the next commit."""
        self._tenure = tenure
        self._at_once = True

    def next(self, now_ns: int) -> Commit | None:
        """The commit that is due now."""
        if not self._contents.uncommitted() and not self._tenure:
            self._dirty_since_ns = None
            return None
        if self._dirty_since_ns is None:
            self._dirty_since_ns = now_ns
        due_ns = self.due_ns()
        if due_ns is None or now_ns < due_ns:
            return None
        self._token += 1
        self._flying = self._token
        self._flying_tenure = self._tenure
        self._dirty_since_ns = None
        self._at_once = False
        # Above what was stamped, not what the clock says: one that is far ahead must leave no mark (T1).
        mark = self._hlc.mark + (limits.replica_hlc_reserve_ms << COUNTER_BITS)
        return Commit(self._token, self._contents.take_batch(mark, self._batch_max, self._tenure))

    def due_ns(self) -> int | None:
        if self._flying is not None or self._dirty_since_ns is None:
            return None
        urgent = self._at_once or self._contents.uncommitted() >= self._settings.commit_entries
        return max(self._dirty_since_ns + (0 if urgent else self._settings.commit_ns), self._retry_ns)

    def ended(self, event: Committed, now_ns: int) -> tuple[int, list[Effect]]:
        """A commit is over; the tenure that it made durable (0: none), and what to say of it."""
        if event.token != self._flying:
            self.unknown += 1
            return 0, []
        self._flying = None
        self._contents.commit_ended(event.ok)
        if event.ok:
            self.commits += 1
            written, failed = self._flying_tenure, self._failures
            self._tenure = 0 if written == self._tenure else self._tenure
            self._failures, self._retry_ns = 0, 0
            self._batch_max = min(self._batch_max * 2, limits.replica_commit_entries_max)
            return written, [FaultCleared("E-REPLICA-DEGRADED", "replica")] if failed else []
        self.failed += 1
        self._failures += 1
        self._batch_max = max(self._batch_max // 2, 1)
        backoff_ns = self._settings.commit_ns << min(self._failures, 10)
        self._retry_ns = now_ns + min(backoff_ns, self._settings.commit_retry_ns_max)
        self._at_once |= self._flying_tenure > 0
        text = f"replica degraded: kept in memory only, {self._contents.uncommitted()} changes wait: {event.error}"
        return 0, [Fault("E-REPLICA-DEGRADED", "replica", text)] if self._failures == 1 else []
