"""Replicas that somebody meddled with, under a running cluster: found by diff or verify, mended by repair.

Files are changed beside the node that has them open, as a careless hand or a bad disk does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import msgspec
import pytest
from cluster_world import Cluster, eventually

from node.core.hashing import map_of
from node.store.replica_codec import entry_bytes, entry_of, key_bytes
from node.store.replica_layout import ENTRIES_DB
from node.store.replica_port import ReplicaEntry

NODE = "entity-2"
ALL = ("api-1", "entity-1", "entity-2", "entity-3")
QUIET_LOOKS = 4
Edit = Callable[["lmdb.Transaction[bytes]", Any, str], None]


@pytest.fixture(scope="module")
def _own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of this module's own: what is done to it is not to be met by other tests."""
    cluster = Cluster(tmp_path_factory.mktemp("repair"))
    try:
        cluster.up("--demo")
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


@pytest.fixture
def own(_own: Cluster) -> Cluster:
    """Whole, with equal replicas in sound files before each test."""
    _own.up("--demo")
    _own.whole()
    settled(_own)
    return _own


def settled(cluster: Cluster) -> None:
    """No auction writes any more, and everything is on disk."""
    seen: list[Any] = []

    def look() -> bool:
        seen.append(digests(cluster))
        return uncommitted(cluster) == 0 and len(seen) > QUIET_LOOKS and len(set(seen[-QUIET_LOOKS:])) == 1

    eventually(look, bool, 60, "an index that nobody writes to")


def digests(cluster: Cluster) -> tuple[str, ...]:
    return tuple(row["digest"] for item in cluster.ask("serveindex", "maps")["items"] for row in item["replicas"])


def uncommitted(cluster: Cluster) -> int:
    return sum(row["uncommitted"] for row in cluster.ask("serveindex", "status")["replicas"])


def folder(cluster: Cluster) -> Path:
    return cluster.data / "nodes" / NODE / "replica"


def a_key(cluster: Cluster) -> str:
    site = cluster.sites()[0]["site"]
    key: str = cluster.ask("serveindex", "keys", site)["items"][0]["key"]
    return key


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
    other = entry.value[:-1] + bytes((entry.value[-1] ^ 1,))
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


@pytest.mark.parametrize(
    ("edit", "kind", "wrong", "problem"),
    [
        (changed, "content", {NODE}, ""),
        (flipped, "damaged", {NODE}, "damaged"),
        (lost, "missing", {NODE}, "digest"),
        (added, "missing", set(ALL) - {NODE}, "digest"),
    ],
    ids=["an-entry-changed-by-hand", "a-flipped-bit", "a-key-lost-by-one", "a-key-of-one-only"],
)
def test_what_was_meddled_with_is_found_by_its_kind_and_mended(
    own: Cluster, edit: Edit, kind: str, wrong: set[str], problem: str
) -> None:
    key = "hand.example|top" if edit is added else a_key(own)
    name = f"serve-{map_of(key):02d}"
    before = {row["node"]: row for row in own.ask("serveindex", "get", key)["replicas"]} if edit is not added else {}
    edited(own, key, edit)
    if problem:
        checked = own.ask("serveindex", "verify", "--node", NODE, status=10)
        found = {(one["kind"], one["map"]) for item in checked["items"] for one in item["problems"]}
        assert checked["sound"] is False
        assert (problem, name) in found
    else:
        assert own.ask("serveindex", "verify", "--node", NODE)["sound"], "its checksum and its version are right"
    report = own.ended(own.begun("serveindex", "diff", "--map", name), status=None)
    # Whatever a replica has noticed as damaged it fetches by itself, which may be before anybody compares it.
    if not (kind == "damaged" and report["equal"]):
        assert (report["kind"], report["equal"], report["total"]) == ("ServeIndexDiff", False, 1)
        (item,) = report["items"]
        assert (item["key"], item["kind"]) == (key, kind)
        assert {view["node"] for view in item["views"] if not view["wins"]} == wrong
        if kind != "damaged":
            own.run("serveindex", "diff", "--map", name, status=13)
    plan = own.ask("serveindex", "repair", "--dry-run")
    assert plan["kind"] == "Plan"
    refused = own.refused("serveindex", "repair", "--node", NODE, status=6) if plan["changed"] else None
    assert refused is None or refused["code"] == "E-NOT-CONFIRMED"
    repaired = own.ask("serveindex", "repair", "--yes")
    if repaired["kind"] == "Operation":  # a replica that has noticed damage may have mended itself meanwhile
        assert (repaired["state"], repaired["result"]["left_count"]) == ("done", 0)
    sound(own)
    after = {row["node"]: row for row in own.ask("serveindex", "get", key)["replicas"]}
    assert len({(row["digest"], row["version"]["hlc"]) for row in after.values()}) == 1
    if before:
        assert after[NODE]["digest"] == before["api-1"]["digest"] or after[NODE]["version"] != before[NODE]["version"]


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
    own.whole()
    assert [path for path in folder(own).iterdir() if ".damaged-" in path.name], "set aside, never deleted"
    settled(own)
    assert {row["map"]: row["keys"] for row in own.ask("serveindex", "maps")["items"]} == keys
    sound(own)


def test_a_file_truncated_under_its_node_is_condemned_by_repair_or_kills_it(own: Cluster) -> None:
    """Reading behind a file's end kills whoever does it: which of the two comes first is not ours to say."""
    file = folder(own) / "data.mdb"
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size * 37 // 100)
    checked = own.ended(own.begun("serveindex", "verify", "--node", NODE), status=None)
    if not checked["missing"]:
        assert "structure" in {one["kind"] for one in checked["items"][0]["problems"]}
        repaired = own.run("serveindex", "repair", "--node", NODE, "--yes")
        assert f"hint: promovolvectl node stop {NODE} --yes" in repaired.stderr
        own.kill(NODE)
    own.start(NODE)
    own.whole()
    assert [path for path in folder(own).iterdir() if ".damaged-" in path.name]
    settled(own)
    sound(own)
