"""Opening a node's replica, whatever state its directory is in."""

from __future__ import annotations

import os
from pathlib import Path

from node.core import limits
from node.core.clock import Clock
from node.store import datafile
from node.store.replica_env import open_env
from node.store.replica_file import condemned, known_owner, lock_replica, set_aside, write_owner
from node.store.replica_layout import FORMAT, Damage
from node.store.replica_lmdb import LmdbReplica
from node.store.replica_mark import CommitMark
from node.store.replica_migrate import clear_away, migrate, stored_format
from node.store.replica_opening import Opening
from node.store.replica_port import ReplicaIdentity


def open_replica(
    path: Path,
    clock: Clock,
    *,
    cluster_id: str,
    node: str,
    tenure: int,
    mark: Path | None = None,
    map_bytes_max: int = limits.replica_map_bytes_max,
) -> tuple[LmdbReplica, Opening]:
    """Opens a node's replica, or makes one, or sets a damaged one aside and makes one.

    A replica that is found keeps its own tenure: the caller compares it. `mark` names a file outside its folder that
    tells an older copy (`replica_mark`): its tenure is over. One of an older format is migrated. Raises
    OperatingError: `E-REPLICA-IN-USE` naming the process, `E-OTHER-CLUSTER`, `E-NEWER-FORMAT`, `E-STORE-PATH`,
    `E-REPLICA-DISK`.
    """
    datafile.prepare_dir(path)
    wanted = ReplicaIdentity(cluster_id, node, tenure, FORMAT)
    lock = lock_replica(path)
    try:
        try:
            known = known_owner(path, wanted)
            condemned(path)
            clear_away(path)
            env, opening = open_env(path, map_bytes_max, wanted, known=known)
            form = stored_format(env)
            if form < FORMAT:
                kept = migrate(path, env, clock, map_bytes_max)
                env, _ = open_env(path, map_bytes_max, wanted, known=True)
                opening = Opening("migrated", f"it had format {form}", str(kept))
        except Damage as damage:
            opening = Opening("set_aside", str(damage), set_aside(path, clock))
            env, _ = open_env(path, map_bytes_max, wanted, known=False)
        counted, commits = CommitMark(mark), env.info()["last_txnid"]
        marked = counted.read()
        older = opening.how == "reused" and commits < marked
        if older:
            opening = Opening("older_copy", f"its file has had {commits} of the {marked} commits that were counted")
        else:
            counted.write(commits)
        replica = LmdbReplica(path, env, lock, clock, counted, older=older)
        try:
            write_owner(path, replica.identity)
        except OSError as error:
            env.close()
            counted.close()
            raise datafile.path_error(path, error) from error
    except BaseException:
        os.close(lock)
        raise
    return replica, opening
