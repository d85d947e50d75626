"""Named places in the code where a test may end or stop the process: crash points.

`reach(POINT)` does nothing until somebody armed a hook: the simulator (which loses the node at that very step), or the
composition root, when `PROMOVOLVE_FAULT_AT` names a point (kill -9 or SIGSTOP, so that real processes are tested at
the same steps). Machinery names what it has just done; it never asks whether it is being tested.

Catalogue rows P2 to P5 and P9 of the fault catalogue are read off these names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

POINTS: Final[dict[str, str]] = {
    "store.before_begin": "a batch of writes waits, no transaction is open",
    "store.in_transaction": "requests are applied, the transaction is open",
    "store.before_commit": "everything is applied, the commit has not begun",
    "store.after_commit": "durable, nobody was told",
    "store.after_answer": "durable, and the writers were told",
    "replica.copied": "a migration has copied the old file",
    "replica.migrated": "the copy has the new format",
    "replica.kept": "the old file has a second name",
    "replica.replaced": "the copy is opened from now on",
    "handoff.marked": "the placement table says moving",
    "handoff.stop_sent": "the old owner was told to stop the shard",
    "handoff.acknowledged": "the old owner says that the shard is stopped and flushed",
    "handoff.epoch_issued": "the placement table holds the new owner and epoch",
    "handoff.started": "the new owner was told to start the shard",
    "drain.readiness": "phase 1 of a drain begins",
    "drain.ingestion": "phase 2 begins",
    "drain.singletons": "phase 3 begins",
    "drain.shards": "phase 4 begins",
    "drain.asks": "phase 5 begins",
    "drain.replicas": "phase 6 begins",
    "drain.outboxes": "phase 7 begins",
    "drain.flush": "phase 8 begins",
    "drain.leave": "phase 9 begins",
}

# Those of them that only the first start of a release with another format reaches: no simulated node has older files.
# `unit/store/test_replica_migrate.py` ends a real migration at each.
MIGRATION_POINTS: Final = frozenset({"replica.copied", "replica.migrated", "replica.kept", "replica.replaced"})

# Reached by commands that work on a store beside its nodes, which no simulated node does.
COMMAND_POINTS: Final[dict[str, str]] = {
    "backup.written": "an archive is whole and synced, under the name of an unfinished one",
    "backup.named": "the archive has its name",
    "restore.written": "everything is in a new file, or table, that nobody uses yet",
    "restore.replaced": "it is the store from now on",
    "compact.copied": "a small copy is whole and synced beside the file",
    "compact.replaced": "the copy is the store's file from now on",
}

_hook: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """Say that `point`, a key of these tables, was reached. What the hook raises goes through: it ends the node."""
    if _hook is not None:
        _hook(point)


def arm(hook: Callable[[str], None] | None) -> None:
    """Let `hook` see every point reached from now on; None disarms."""
    global _hook  # one process, one hook: a parameter would run through every layer for tests alone
    _hook = hook
