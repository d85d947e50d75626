"""A node whose replica takes in nothing from its peers while FILE exists; run in place of `python -m node`:

    python deaf_replica_node.py FILE --config FILE

It beats, owns its shards and answers as ever; what it was sent meanwhile it has to catch up with, as after a disk that
stalled under its replica.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from node import main
from node.engine.machines import Replication


def deaf(file: Path) -> None:
    """From now on the replicas of this process hear nothing while the file is there."""
    received = Replication.received

    def heard(self: Replication, sender: str, message: msgspec.Struct) -> None:
        if file.exists():
            self._engine.counters["dropped_no_service"] += 1
        else:
            received(self, sender, message)

    Replication.received = heard  # type: ignore[method-assign]


if __name__ == "__main__":
    which, *rest = sys.argv[1:]
    deaf(Path(which))
    sys.exit(main.run(rest))
