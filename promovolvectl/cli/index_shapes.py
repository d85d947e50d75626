"""How answers about the ServeIndex are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from promovolvectl.cli.shaping import Detail, Payload, Rows, Shape, Under, columns_of, each, itself, whole
from promovolvectl.cli.text import cell, size, span, version

_KEYS: Final = columns_of("key! map? bytes:bytes! version:version expires_at! expired?")
_DUMP: Final = columns_of("key! map version:version expires_at removed! value+")


def _entry_rows(payload: Payload) -> Rows:
    return [
        {
            "node": replica["node"],
            "present": replica["present"],
            "state": replica["state"],
            "wins": replica["wins"],
            "epoch": (replica["version"] or {}).get("epoch"),
            "hlc": (replica["version"] or {}).get("hlc"),
            "origin": (replica["version"] or {}).get("origin"),
            "wrote_at": replica["wrote_at"],
            "age_ms": replica["age_ms"],
            "expires_at": replica["expires_at"],
            "candidates": [item["creative"] for item in replica["candidates"]],
            "number": replica["number"],
            "digest": replica["digest"],
            "owner": replica["owner"],
            "epoch_now": replica["epoch_now"],
            "differs": _differs(replica, payload),
        }
        for replica in payload["replicas"]
    ]


def _differs(replica: Mapping[str, object], payload: Payload) -> str:
    """Why this view is not the one that all will hold; empty where it is."""
    if payload["agree"] or payload["winner"] is None:
        return ""
    version, winner = replica["version"], payload["winner"]
    if not isinstance(version, Mapping):
        return f"{replica['state']} here"
    if version != winner:
        return "older epoch" if version["epoch"] < winner["epoch"] else "older"
    return "" if replica["wins"] else "same version, other contents"


def _entry_head(payload: Payload) -> Sequence[str]:
    lines = [
        f"KEY {cell(payload['key'])}  map {cell(payload['map'])}  shard {payload['shard']}  "
        f"owner {cell(payload['owner'])}"
    ]
    if not payload["agree"]:
        winner = payload["winner"]
        wins = f"; {version(winner)} wins, written by {cell(winner['origin'])}" if winner else ""
        lines.append(f"the replicas differ{wins}")
    return lines


def _keys_head(payload: Payload) -> Sequence[str]:
    shown, total = len(payload["items"]), payload["total"]
    return (f"{shown} of {total} keys, as {cell(payload['node'])} has them",)


def _largest_head(payload: Payload) -> Sequence[str]:
    return (f"the largest of {payload['total']} entries, as {cell(payload['node'])} has them",)


def _lag_head(payload: Payload) -> Sequence[str]:
    return (f"MAX LAG {payload['max_lag_ms']} ms",)


_OPENED: Final = {
    "set_aside": "set aside as damaged",
    "migrated": "brought to this release's format",
    "older_copy": "being an older copy",
}


def _status_head(payload: Payload) -> Sequence[str]:
    share = "?" if payload["coverage_ratio"] is None else f"{payload['coverage_ratio']:.3f}"
    oldest = f" (oldest {span(payload['oldest_tombstone_ms'] / 1_000)})" if payload["tombstones"] else ""
    return (
        f"MAPS {len(payload['items'])}  REPLICAS {len(payload['replicas'])}  "
        f"EQUAL {payload['maps_equal']}/{len(payload['items'])}  ENTRIES {payload['keys']}  "
        f"TOMBSTONES {payload['tombstones']}{oldest}  PENDING REMOVALS {payload['pending_removals']}  "
        f"COVERAGE {share}  LAG {payload['max_lag_ms']} ms",
        f"STABLE UP TO {cell(payload['stable_at'])}",
        *(
            f"  {cell(one['node'])} lacks {one['entries']} of {cell(one['writer'])}: {cell(one['why'])}"
            for one in payload["held_back_by"]
        ),
        *(
            f"{cell(one['node'])} started {cell(one['opened_at'])} with its file {_OPENED[one['opened']]}: "
            f"{cell(one['opened_why'])}" + (f"; kept as {cell(one['opened_kept'])}" if one["opened_kept"] else "")
            for one in payload["replicas"]
            if one["opened"] in _OPENED
        ),
    )


def _diff_rows(payload: Payload) -> Rows:
    return [
        {
            "key": item["key"],
            "map": item["map"],
            "kind": item["kind"],
            "node": view["node"],
            "state": view["state"],
            "version": version(view["version"]),
            "bytes": view["bytes"],
            "digest": view["digest"],
            "wins": view["wins"],
        }
        for item in payload["items"]
        for view in item["views"]
    ]


def _diff_head(payload: Payload) -> Sequence[str]:
    replicas, total = payload["replicas"], payload["total"]
    names = ", ".join(cell(replica["node"]) for replica in replicas)
    if payload["equal"]:
        return (f"equal: {names}",)
    wrong = [f"{cell(r['node'])}: {r['digests_wrong']} digests are wrong" for r in replicas if r["digests_wrong"]]
    return (f"{total} keys differ between {names}", *wrong)


def _dump_head(payload: Payload) -> Sequence[str]:
    where = f" into {cell(payload['file'])}, {size(payload['bytes'])}" if payload["file"] else ""
    return (f"{payload['entries_count']} entries of {cell(payload['node'])}{where}",)


def _history_head(payload: Payload) -> Sequence[str]:
    removal = payload["removal"]
    head = [f"KEY {cell(payload['key'])}"]
    if any(row["at"] is None for row in payload["items"]):
        head.append("without a moment: there since before its node remembers anything of the key, its start as a rule")
    if not removal:
        return head
    forgotten = "whom its owner does not remember ('promovolvectl audit list' does)"
    by = {"": "its ad server", "?": forgotten}.get(removal["asked_by"]) or cell(removal["asked_by"])
    held = ", ".join(cell(one["node"]) for one in removal["held"])
    majority = f"by majority since {cell(removal['majority_at'])}" if removal["majority_at"] else "by no majority yet"
    served = cell(removal["last_serve_at"]) if removal["last_serve_at"] else "not known to its owner"
    head.append(
        f"REMOVED {version(removal['version'])} asked {cell(removal['asked_at'])} by {by}, {majority}: required "
        f"{removal['required']}, available {removal['available']} ({held}); last serve {served}"
    )
    return head


def _tombstones_head(payload: Payload) -> Sequence[str]:
    kept = span(payload["min_age_ms"] / 1_000)
    lines = [f"{len(payload['items'])} of {payload['total']} tombstones, each kept for {kept} at least"]
    lines += [f"{cell(one['node'])} settles none: {cell(one['reason'])}" for one in payload["not_settling"]]
    return lines


def _roster_head(payload: Payload) -> Sequence[str]:
    return (f"ROSTER version {payload['version']}  required {payload['required']}  available {payload['available']}",)


def _problem_rows(payload: Payload) -> Rows:
    return [{"node": item["node"], **problem} for item in payload["items"] for problem in item["problems"]]


_PROBLEMS: Final = Detail("PROBLEMS", _problem_rows, columns_of("node! kind! map key! text!"))
_REPLICAS: Final = Detail(
    "REPLICAS",
    Under("replicas"),
    columns_of(
        "node! ready keys bytes:bytes tombstones max_lag_ms:ms! uncommitted damaged! degraded! opened! opened_at? "
        "opened_why? opened_kept+ kept_files? commits_count? synchronised_ratio:ratio?"
    ),
)
_KEPT: Final = Detail(
    "FILES SET ASIDE (never used again; remove each on its node's host)",
    Under("kept"),
    columns_of("node! at! bytes:bytes! path! remove!"),
)

INDEX_SHAPES: Final[Mapping[str, Shape]] = {
    "ServeIndexMaps": Shape(columns_of("map! keys! bytes:bytes tombstones agree! replicas+"), each("map", "map")),
    "ServeIndexEntry": Shape(
        columns_of(
            "node! present? state! epoch! origin! age_ms:ms? wrote_at? expires_at candidates! number? wins! differs! "
            "hlc+ digest+ owner+ epoch_now+"
        ),
        itself("key", "key"),
        _entry_rows,
        head=_entry_head,
    ),
    "ServeIndexKeys": Shape(_KEYS, each("key", "key"), head=_keys_head),
    "ServeIndexLargest": Shape(_KEYS, each("key", "key"), head=_largest_head),
    "ServeIndexPlace": Shape(columns_of("key map leaf shard owner epoch"), itself("key", "key"), whole, one=True),
    "ServeIndexLag": Shape(
        columns_of("from! to! entries! lag_ms:ms! reachable"),
        lambda payload: [f"pair/{row['from']}/{row['to']}" for row in payload["items"]],
        head=_lag_head,
    ),
    "ServeIndexStatus": Shape(
        columns_of("map! keys! agree! leaves_different! tombstones bytes:bytes"),
        each("map", "map"),
        head=_status_head,
        details=(_REPLICAS, _KEPT),
    ),
    "ServeIndexDiff": Shape(
        columns_of("key! kind! node! state! version! wins! bytes:bytes? map? digest+"),
        each("key", "key"),
        _diff_rows,
        head=_diff_head,
    ),
    "ServeIndexHistory": Shape(
        columns_of("node! version:version! what! at! source bytes:bytes? expires_at?"),
        lambda payload: [f"version/{version(row['version'])}" for row in payload["items"]],
        head=_history_head,
    ),
    "ServeIndexPending": Shape(
        columns_of(
            "key! node version:version? asked_at! attempts! required! available! held_by? awaited! refused? id+"
        ),
        each("removal", "id"),
    ),
    "ServeIndexTombstones": Shape(
        columns_of("key! map? version:version? removed_at! age_ms:ms? caretaker awaited!"),
        each("key", "key"),
        head=_tombstones_head,
    ),
    "ServeIndexRoster": Shape(
        columns_of("node! counts! tenure! since member reachable! phase! progress_ratio:ratio? cause?"),
        each("node", "node"),
        head=_roster_head,
    ),
    "ServeIndexVerify": Shape(
        columns_of(
            "node! state:state! sound! checked! problems_found! complete? file_bytes:bytes live_bytes:bytes? "
            "entries_per_s? elapsed_s:seconds? total+"
        ),
        each("node", "node"),
        details=(_PROBLEMS,),
    ),
    "ServeIndexDump": Shape(_DUMP, each("key", "key"), head=_dump_head),
}
