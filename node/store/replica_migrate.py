"""A replica that an older release wrote, brought to the present format: in a copy, which takes its place when it is
whole. The old file stays beside it under a name that says its format; a crash at any moment leaves one that is valid
under the name that is opened, and the next start begins again.

Format 1 had no index: 2 added the databases of `replica_index` and the quarantine.
"""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path
from typing import Final

import lmdb
import msgspec

from node.core.clock import Clock
from node.core.errors import OperatingError
from node.core.faultpoints import reach
from node.store import datafile
from node.store.replica_env import TABLES
from node.store.replica_file import dated
from node.store.replica_index import rows_of
from node.store.replica_layout import ENTRIES_DB, FORMAT, IDENTITY_KEY, META_DB, identity_record, stored_identity

COPY_DIR: Final = "migrating"
_ROWS_A_COMMIT: Final = 20_000


def stored_format(env: lmdb.Environment) -> int:
    """The format that the file's own identity record names; raises Damage, RecordDamaged or lmdb.Error."""
    with env.begin(db=env.open_db(META_DB, create=False)) as txn:
        return stored_identity(txn.get).format


def migrate(path: Path, env: lmdb.Environment, clock: Clock, map_bytes_max: int) -> Path:
    """Brings the file that `env` has open, and lets it go; the old file's new path. Raises OperatingError
    `E-REPLICA-DISK` when there is no room for the copy: the old file is as it was."""
    copy = path / COPY_DIR
    data = path / datafile.DATA_NAME
    try:
        clear_away(path)
        copy.mkdir(mode=0o700)
        form = stored_format(env)
        env.copy(str(copy), compact=True)
        env.close()
        reach("replica.copied")
        _index(copy, map_bytes_max)
        reach("replica.migrated")
        kept = _keep(data, form, clock)
        reach("replica.kept")
        (copy / datafile.DATA_NAME).replace(data)
        datafile.sync_dir(path)
        reach("replica.replaced")
        clear_away(path)
    except (lmdb.Error, OSError) as error:
        env.close()
        clear_away(path)
        message = f"{path}: it could not be brought to format {FORMAT}: {error}"
        hint = "make room for a second copy of the file; the old one is as it was"
        raise OperatingError("E-REPLICA-DISK", message, hint=hint) from error
    return kept


def clear_away(path: Path) -> None:
    """Forgets what a migration that was cut short has left."""
    shutil.rmtree(path / COPY_DIR, ignore_errors=True)


def _keep(data: Path, form: int, clock: Clock) -> Path:
    """Gives the old file its second name, unless a start that was cut short did."""
    for known in sorted(data.parent.glob(f"{data.name}.format-{form}-*")):
        if known.samefile(data):
            return known
    kept = dated(data, f"format-{form}", clock)
    kept.hardlink_to(data)
    datafile.sync_dir(data.parent)
    return kept


def _index(copy: Path, map_bytes_max: int) -> None:
    """Fills the databases that the old format did not have; the format number comes last."""
    with lmdb.open(str(copy), map_size=map_bytes_max, max_dbs=len(TABLES), mode=0o600, writemap=False) as env:
        tables = {name: env.open_db(name) for name in TABLES}
        after = b""
        while True:
            with env.begin(write=True) as txn:
                with txn.cursor(tables[ENTRIES_DB]) as cursor:
                    found = cursor.set_range(after + b"\0")
                    page = list(islice(cursor.iternext(), _ROWS_A_COMMIT)) if found else []
                for row in sorted(row for place, value in page for row in rows_of(place, value)):
                    txn.put(row.key, row.value, db=tables[row.db])
                if not page:
                    identity = stored_identity(lambda key: txn.get(key, db=tables[META_DB]))
                    record = identity_record(msgspec.structs.replace(identity, format=FORMAT))
                    txn.put(IDENTITY_KEY, record, db=tables[META_DB])
                    return
            after = page[-1][0]
