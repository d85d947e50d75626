"""Replicas that somebody meddled with, under a running cluster: found by diff or verify, mended by repair.

Files are changed beside the node that has them open, as a careless hand or a bad disk does. The keys are of sites that
no auction knows: nobody but these tests writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest
from cluster_world import Cluster, eventually
from index_load import key_of, write_rows

from node.core.hashing import map_of
from node.store.replica_codec import entry_bytes, entry_of, key_bytes
from node.store.replica_layout import ENTRIES_DB
from node.store.replica_port import ReplicaEntry

NODE = "entity-2"
ALL = ("api-1", "entity-1", "entity-2", "entity-3")
KEYS = tuple(key_of(number) for number in range(200))
Edit = Callable[["lmdb.Transaction[bytes]", Any, str], None]


@pytest.fixture(scope="module")
def _own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of this module's own: what is done to it is not to be met by other tests."""
    folder = tmp_path_factory.mktemp("repair")
    cluster = Cluster(folder)
    try:
        cluster.up()
        agreed(cluster)
        cluster.ask("serveindex", "load", str(write_rows(folder / "rows.jsonl", KEYS)), "--yes")
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


@pytest.fixture
def own(_own: Cluster) -> Cluster:
    """Whole, with equal replicas in sound files before each test."""
    _own.up()
    agreed(_own)
    return _own


def agreed(cluster: Cluster) -> None:
    """All nodes hold the same, and have it on disk."""
    conditions = ("converged", f"nodes={len(ALL)}", "shards=allocated", "replicas=agree")
    cluster.run("cluster", "wait", "-t", "60s", *(word for c in conditions for word in ("--for", c)))
    eventually(lambda: uncommitted(cluster), lambda n: n == 0, 10, "everything on disk")


def uncommitted(cluster: Cluster) -> int:
    return sum(row["uncommitted"] for row in cluster.ask("serveindex", "status")["replicas"])


def folder(cluster: Cluster) -> Path:
    return cluster.data / "nodes" / NODE / "replica"


def in_other_maps(*taken: str) -> Iterator[str]:
    """Keys of which no two share a map, nor share one with those that are taken."""
    maps = {map_of(key) for key in taken}
    for key in KEYS:
        if map_of(key) not in maps:
            maps.add(map_of(key))
            yield key


def edited(cluster: Cluster, key: str, edit: Edit) -> None:
    """By hand, in the file of a node that runs: no digest and no count knows of it."""
    with lmdb.open(str(folder(cluster)), max_dbs=16, map_size=16 << 30, create=False) as env:
        table = env.open_db(ENTRIES_DB, create=False)
        with env.begin(write=True) as txn:
            edit(txn, table, key)


def changed(txn: lmdb.Transaction[bytes], table: Any, key: str) -> None:
    """Other contents under the same version, with a checksum that fits."""
    place = key_bytes(key)
    entry = entry_of(place, _value(txn, table, place))
    middle = len(entry.value) // 2  # in one of its texts
    other = entry.value[:middle] + bytes((entry.value[middle] ^ 1,)) + entry.value[middle + 1 :]
    txn.put(place, entry_bytes(place, msgspec.structs.replace(entry, value=other)), db=table)


def flipped(txn: lmdb.Transaction[bytes], table: Any, key: str) -> None:
    """One bit of the value."""
    place = key_bytes(key)
    value = bytearray(_value(txn, table, place))
    value[-7] ^= 0x10
    txn.put(place, bytes(value), db=table)


def lost(txn: lmdb.Transaction[bytes], table: Any, key: str) -> None:
    assert txn.delete(key_bytes(key), db=table)


def added(txn: lmdb.Transaction[bytes], table: Any, key: str) -> None:
    """A key that no other replica has."""
    entry = ReplicaEntry(key, 1, 1_700_000_000_000 << 16, "entity-1", 0, False, b"\xf6")
    txn.put(key_bytes(key), entry_bytes(key_bytes(key), entry), db=table)


def _value(txn: lmdb.Transaction[bytes], table: Any, place: bytes) -> bytes:
    value = txn.get(place, db=table)
    assert value is not None
    return value


def sound(cluster: Cluster) -> None:
    """Nothing is to be found any more; a replica that mended itself counts its maps again in the background."""
    eventually(lambda: uncommitted(cluster), lambda n: n == 0, 10, "everything on disk")
    eventually(
        lambda: cluster.ended(cluster.begun("serveindex", "verify"), status=None),
        lambda found: found["sound"] and not found["missing"],
        60,
        "sound files",
    )
    assert cluster.ask("serveindex", "diff")["equal"] is True
    assert cluster.ask("serveindex", "repair", "--dry-run")["changed"] is False


def test_what_was_meddled_with_is_found_by_its_kind_and_mended(own: Cluster) -> None:
    """An entry changed by hand, a flipped bit, a key that one has lost, and one that nobody else has."""
    new = "hand.example|top"
    other, bit, gone = islice(in_other_maps(new), 3)
    edits: dict[str, Edit] = {other: changed, bit: flipped, gone: lost, new: added}
    name = {key: f"serve-{map_of(key):02d}" for key in edits}
    before = own.ask("serveindex", "get", other)["winner"]
    for key, edit in edits.items():
        edited(own, key, edit)

    checked = own.ask("serveindex", "verify", "--node", NODE, status=10)
    found = {(one["kind"], one["map"]) for item in checked["items"] for one in item["problems"]}
    assert checked["sound"] is False
    assert found >= {("damaged", name[bit]), ("digest", name[gone]), ("digest", name[new])}
    assert name[other] not in {where for _, where in found}, "its checksum and its version are right"

    report = own.ask("serveindex", "diff", status=13)
    kinds = {item["key"]: item["kind"] for item in report["items"]}
    wrong = {item["key"]: {view["node"] for view in item["views"] if not view["wins"]} for item in report["items"]}
    # Whatever a replica has noticed as damaged it fetches by itself, which may be before anybody compares it.
    expected = {other: "content", gone: "missing", new: "missing"}
    assert kinds in ({**expected, bit: "damaged"}, expected)
    assert {key: wrong[key] for key in expected} == {other: {NODE}, gone: {NODE}, new: set(ALL) - {NODE}}
    assert (report["equal"], report["total"]) == (False, len(kinds))
    told = eventually(
        lambda: own.ask("events", "--type", "replica.damaged", "--node", NODE)["items"], bool, 10, "an event of it"
    )
    assert (told[0]["object"], bit in told[0]["text"]) == (f"node/{NODE}", True)

    assert own.ask("serveindex", "repair", "--dry-run")["kind"] == "Plan"
    assert own.refused("serveindex", "repair", "--node", NODE, status=6)["code"] == "E-NOT-CONFIRMED"
    repaired = own.ask("serveindex", "repair", "--yes")
    assert (repaired["kind"], repaired["state"], repaired["result"]["left_count"]) == ("Operation", "done", 0)
    sound(own)
    for key in edits:
        views = own.ask("serveindex", "get", key)
        assert (views["agree"], len(views["replicas"])) == (True, len(ALL))
    assert own.ask("serveindex", "get", other)["winner"] == before


def test_a_truncated_file_is_found_set_aside_and_its_replica_streamed_anew(own: Cluster) -> None:
    keys = {row["map"]: row["keys"] for row in own.ask("serveindex", "maps")["items"]}
    own.ask("node", "stop", NODE, "--yes")
    file = folder(own) / "data.mdb"
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size * 37 // 100)
    checked = own.ask("serveindex", "verify", "--path", str(folder(own)), status=10)
    (item,) = checked["items"]
    assert (checked["sound"], item["sound"], item["complete"]) == (False, False, False)
    assert [one["kind"] for one in item["problems"]] == ["structure"]
    own.start(NODE)
    agreed(own)
    assert [path for path in folder(own).iterdir() if ".damaged-" in path.name], "set aside, never deleted"
    assert {row["map"]: row["keys"] for row in own.ask("serveindex", "maps")["items"]} == keys
    sound(own)


def test_a_file_truncated_under_its_node_is_condemned_by_repair_or_kills_it(own: Cluster) -> None:
    """Reading behind a file's end kills whoever does it: which of the two comes first is not ours to say."""
    file = folder(own) / "data.mdb"
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size * 37 // 100)
    checked = own.ended(own.begun("serveindex", "verify", "--node", NODE), status=None)
    if checked["kind"] != "Error" and not checked["missing"]:  # the node that was asked may have been this one
        assert "structure" in {one["kind"] for one in checked["items"][0]["problems"]}
        repaired = own.run("serveindex", "repair", "--node", NODE, "--yes")
        assert f"hint: promovolvectl node stop {NODE} --yes" in repaired.err
        own.kill(NODE)
    own.start(NODE)
    agreed(own)
    assert [path for path in folder(own).iterdir() if ".damaged-" in path.name]
    sound(own)
