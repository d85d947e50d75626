"""Shapes of answers about the state store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Payload, Shape, Under, columns_of, each, itself
from promovolvectl.cli.text import cell


class _Parts:
    """The parts of a backup, which lie one level down."""

    def __call__(self, payload: Payload) -> Sequence[Mapping[str, object]]:
        found: Sequence[Mapping[str, object]] = payload["backup"]["parts"]
        return found


def _of(payload: Payload) -> tuple[str, ...]:
    known = payload["backup"]
    if known is None:
        return ()
    return (
        f"CLUSTER {cell(known['cluster_name'])} {cell(known['cluster_id'])}",
        f"TAKEN {cell(known['taken_at'])}",
        f"LAST FACT {known['last_offset']}",
    )


_PARTS: Final = columns_of("part! rows_count! bytes! digest?")
STORE_SHAPES: Final[Mapping[str, Shape]] = {
    "StoreBackup": Shape(
        _PARTS,
        itself("backup", "archive"),
        _Parts(),
        head=lambda p: (f"ARCHIVE {cell(p['archive'])}", f"BYTES {p['bytes']}", *_of(p)),
    ),
    "StoreRestore": Shape(
        _PARTS,
        itself("store", "place"),
        _Parts(),
        head=lambda p: (f"STORE {cell(p['place'])}", f"KEPT {cell(p['kept'] or None)}", *_of(p)),
    ),
    "StoreVerify": Shape(
        columns_of("record! text!"),
        each("record", "record", Under("damaged")),
        Under("damaged"),
        head=lambda p: (
            f"{'STORE' if p['backup'] is None else 'BACKUP'} {cell(p['path'])}",
            *_of(p),
            f"CHECKED {p['checked']}",
            f"DAMAGED {len(p['damaged'])}",
        ),
    ),
    "StoreCompact": Shape(
        columns_of("path! bytes_before! bytes_after! changed!"), itself("store", "path"), lambda p: [p], one=True
    ),
    "StoreStatus": Shape(
        columns_of("name! pid! reads_since_commits busy_ms waits"),
        each("session", "pid", Under("sessions")),
        Under("sessions"),
        head=lambda p: (
            f"STORE {cell(p['place'])}",
            f"KIND {p['store_kind']}",
            f"OF {cell(p['store_of'])}",
            f"USED {p['used_bytes']} of {cell(p['limit_bytes'])} bytes, file {p['file_bytes']}",
            f"FACTS {p['facts_count']}",
            "WRITERS BLOCKED" if p["writer_blocked"] else f"WRITER WAITS {p['writer_waits_ms']} ms",
            f"LAST BACKUP {cell(p['last_backup']['taken_at'] if p['last_backup'] else None)}",
        ),
    ),
    "StoreLeases": Shape(columns_of("lease! holder! held! term left_ms!"), each("lease", "lease")),
}
