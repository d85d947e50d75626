"""Full disks, and files that were damaged while their node was stopped, under a real cluster."""

from __future__ import annotations

import contextlib
import itertools
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest
from cluster_load import Load
from cluster_world import Cluster, eventually
from index_load import key_of, write_rows
from small_disk import SmallDisk, small_disk

from node.store.replica_layout import ENTRIES_DB, QUARANTINE_DB
from promovolvectl.local.demo.loader import load as load_demo

NODE = "entity-2"
ROOM_MIB = 8
KEYS_A_LOOK = 200


def faults(cluster: Cluster) -> dict[str, str]:
    return {fault["code"]: fault["message"] for fault in cluster.status()["faults"]}


@contextlib.contextmanager
def all_stopped(cluster: Cluster) -> Iterator[None]:
    """Within it no node runs; they are all up again behind it."""
    cluster.down()
    try:
        yield
    finally:
        cluster.up()


@contextlib.contextmanager
def one_stopped(cluster: Cluster) -> Iterator[Path]:
    """Within it NODE does not run: its replica's folder."""
    cluster.ask("node", "stop", NODE, "--yes")
    try:
        yield cluster.data / "nodes" / NODE / "replica"
    finally:
        cluster.ask("node", "start", NODE, "--data", str(cluster.data))


@pytest.fixture
def small_replica(cluster: Cluster) -> Iterator[SmallDisk]:
    with contextlib.ExitStack() as around:
        with one_stopped(cluster) as folder:
            disk = around.enter_context(small_disk(folder, ROOM_MIB))
        cluster.whole()
        yield disk
        with one_stopped(cluster):
            around.close()


@pytest.fixture
def small_store(cluster: Cluster) -> Iterator[SmallDisk]:
    with contextlib.ExitStack() as around:
        with all_stopped(cluster):
            disk = around.enter_context(small_disk(cluster.data / "store", ROOM_MIB))
        cluster.whole()
        yield disk
        with all_stopped(cluster):
            around.close()


def records(folder: Path, table: bytes) -> dict[bytes, bytes]:
    """What a table of a replica's file holds; the node may be running."""
    with lmdb.open(str(folder), readonly=True, max_dbs=16) as env, env.begin() as txn:
        try:
            db = env.open_db(table, txn=txn, create=False)
        except lmdb.NotFoundError:
            return {}
        return dict(txn.cursor(db))


def new_pages(cluster: Cluster) -> Iterator[None]:
    """Tells the cluster of one page after the other, with the demonstration's texts: entries for each replica."""
    for number in itertools.count(1):
        for site in load_demo().sites:
            slots = [{"id": slot.id, "w": slot.width, "h": slot.height} for slot in site.slots]
            for page in site.pages:
                document = {"pub": site.id, "url": f"{page.url}-{number}", "text": page.text, "imp": slots}
                assert cluster.post("/v1/classify-page", document)[0] in (202, 429, 503)
                yield


def test_d1_a_full_disk_under_a_replica_degrades_it_and_pages_are_served(
    cluster: Cluster, small_replica: SmallDisk, tmp_path: Path
) -> None:
    """What can't be kept is held in memory, and said; nobody else notices, and it is kept when there is room."""
    pids = cluster.pids()
    numbers = itertools.count()
    small_replica.fill()
    with Load(cluster) as load:

        def degraded() -> str:
            # New keys: what replaces others finds room in the file's free pages.
            keys = [key_of(number, "filling") for number in itertools.islice(numbers, KEYS_A_LOOK)]
            cluster.ask("serveindex", "load", str(write_rows(tmp_path / "rows", keys)), "--yes")
            return faults(cluster).get("E-REPLICA-DEGRADED", "")

        said = eventually(degraded, bool, 60, "a degraded replica")
        load.answered(200)
        cluster.run("cluster", "wait", "-t", "30s", "--for", "replicas=agree")
        assert "E-REPLICA-DEGRADED" in faults(cluster)
    assert "replica degraded: kept in memory only" in said
    shed = [answer for answer in load.failed() if "more requests are inside" in answer.said]  # a busy machine's doing
    assert len(shed) == len(load.failed()) < len(load.answers) / 10
    assert load.wrong() == []
    small_replica.make_room()
    eventually(lambda: faults(cluster), lambda f: "E-REPLICA-DEGRADED" not in f, 60, "a replica on disk")
    cluster.whole()
    assert cluster.pids() == pids


def test_d2_a_full_disk_under_the_store_refuses_writes_for_certain(cluster: Cluster, small_store: SmallDisk) -> None:
    """Nothing is acknowledged that is not kept, no process ends over it, and writes go on when there is room."""
    before = sum(row["impressions_count"] for row in cluster.ask("campaign", "list")["items"])
    pids = cluster.pids()
    with Load(cluster) as load:
        small_store.fill()
        found = eventually(lambda: faults(cluster), lambda f: any(c.startswith("E-STORE") for c in f), 60, "a fault")
        load.answered(300)
        assert cluster.pids() == pids, "no crash loop"
        small_store.make_room()
        counted = load.beacons.counted
        eventually(lambda: load.beacons.counted, lambda n: n > counted + 10, 60, "that impressions are counted again")
    assert found.keys() & {"E-STORE-DISK", "E-STORE-FULL"}
    assert load.wrong() == []
    assert load.beacons.refused == []
    least = before + load.beacons.counted
    total = eventually(
        lambda: sum(row["impressions_count"] for row in cluster.ask("campaign", "list")["items"]),
        lambda n: n >= least,
        30,
        "every acknowledged impression",
    )
    assert total <= least + load.beacons.unknown
    eventually(lambda: faults(cluster), lambda f: not any(c.startswith("E-STORE") for c in f), 30, "the fault's end")
    assert cluster.pids() == pids


def truncated(file: Path) -> None:
    with file.open("r+b") as data:
        data.truncate(file.stat().st_size * 2 // 3)


def emptied(file: Path) -> None:
    file.write_bytes(b"")


def missing(file: Path) -> None:
    file.unlink()


@pytest.mark.parametrize("damage", [truncated, emptied, missing])
def test_d4_d5_a_damaged_replica_is_set_aside_and_streamed_anew(
    cluster: Cluster, damage: Callable[[Path], None]
) -> None:
    """The node says so at its start, keeps the file under a dated name, and holds what the others hold."""
    log = cluster.data / "logs" / f"{NODE}.log"
    with one_stopped(cluster) as folder:
        damage(folder / "data.mdb")
        said = len(log.read_text())
    cluster.whole()
    opened = next(line for line in log.read_text()[said:].splitlines() if "set aside" in line)
    assert "WARNING" in opened
    events = cluster.ask("events", "--type", "replica.set_aside")["items"]
    assert {event["object"] for event in events} == {f"node/{NODE}"}
    status = cluster.ask("serveindex", "status")
    told = {row["node"]: (row["opened"], row["opened_kept"]) for row in status["replicas"]}
    kept = [row["path"] for row in status["kept"] if row["node"] == NODE]
    assert told.pop(NODE) == ("set_aside", "" if damage is missing else kept[0])
    assert {how for how, _ in told.values()} <= {"reused", "fresh"}
    if damage is not missing:
        aside = [path for path in folder.parent.iterdir() if path.name.startswith("replica") and path != folder]
        aside += [path for path in folder.iterdir() if "aside" in path.name or path.name.startswith("data.mdb.")]
        assert aside, list(folder.iterdir())
    cluster.replicas_agree()


def tenures(cluster: Cluster) -> dict[str, int]:
    rows = cluster.ask("serveindex", "roster", "list")["items"]
    return {row["node"]: row["tenure"] for row in rows if row["counts"]}


def test_d17_a_replica_copied_back_from_a_backup_takes_over_before_it_counts_again(cluster: Cluster) -> None:
    """When all nodes die at once the roster knows of no other stay: that its node has run since tells the copy."""
    before = tenures(cluster)
    folder = cluster.data / "nodes" / NODE / "replica"
    backup = folder.with_name("backup")
    cluster.kill(*before)
    shutil.copytree(folder, backup)
    cluster.restore()
    assert tenures(cluster) == before
    log = cluster.data / "logs" / f"{NODE}.log"
    cluster.kill(*before)
    shutil.rmtree(folder)
    backup.rename(folder)
    said = len(log.read_text())
    cluster.restore()
    assert "an older copy" in log.read_text()[said:]
    assert "commits that were counted" in log.read_text()[said:], "which tell a copy that missed no start, too"
    after = {**before, NODE: before[NODE] + 1}
    eventually(lambda: tenures(cluster), lambda found: found == after, 30, "a new stay of this replica alone")
    cluster.replicas_agree()


def flip(file: Path, entries: dict[bytes, bytes], rng: random.Random) -> None:
    """One bit of each of these entries, wherever it stands: pages that are free hold former copies."""
    data = file.read_bytes()
    for value in entries.values():
        hurt = bytearray(value)
        hurt[len(value) // 2] ^= 1 << rng.randrange(8)
        data = data.replace(value, hurt)
    file.write_bytes(data)


def counter(cluster: Cluster, name: str) -> int:
    rows = cluster.ask("node", "show", NODE)["counters"]
    return next(int(row["count"]) for row in rows if row["name"] == name)


@pytest.mark.parametrize("elsewhere", [0, 17])
def test_d6_flipped_bits_in_a_stopped_node_s_replica_are_never_served(
    cluster: Cluster, elsewhere: int, tmp_path: Path
) -> None:
    """Two bits in views that readers want, three in entries that nobody else writes, and others anywhere: each of the
    five is found by its record's check, kept apart, counted and told, and held again as its owner wrote it, or the file
    is set aside, which the five alone are no reason for; the digests agree in the end."""
    kept = cluster.settled_state()
    own = [key_of(number, "flipped") for number in range(3)]  # of sites that no auction knows
    cluster.ask("serveindex", "load", str(write_rows(tmp_path / "rows", own)), "--yes")
    cluster.whole()
    written = {key: cluster.ask("serveindex", "get", key)["winner"] for key in own}
    sites = {site["site"] for site in cluster.sites()}
    rng = random.Random(6)
    with one_stopped(cluster) as folder:
        file = folder / "data.mdb"
        entries = {place[2:].decode(): (place, value) for place, value in records(folder, ENTRIES_DB).items()}
        keys = [*own, *rng.sample(sorted(key for key in entries if key.partition("|")[0] in sites), 2)]
        hit = dict(entries[key] for key in keys)
        flip(file, hit, rng)
        (checked,) = cluster.ask("serveindex", "verify", "--path", str(folder), status=10)["items"]
        assert sorted((one["kind"], one["key"]) for one in checked["problems"]) == [
            ("damaged", k) for k in sorted(keys)
        ]
        data = bytearray(file.read_bytes())
        for _ in range(elsewhere):
            data[rng.randrange(2 * 4096, len(data))] ^= 1 << rng.randrange(8)
        file.write_bytes(data)
        before = set(folder.iterdir())
    with Load(cluster) as load:
        load.answered(200)
    assert load.wrong() == []
    cluster.whole()
    for key in keys:  # no page view has to want it, and the scrub takes hours to come by
        assert cluster.ask("serveindex", "get", key)["winner"] is not None
    aside = [path for path in set(folder.iterdir()) - before if "damaged" in path.name]
    if not (elsewhere and aside):
        # Whoever writes an entry anew reads the old one before: also the two that their owner may have written.
        eventually(
            lambda: hit.keys() - records(folder, QUARANTINE_DB).keys(), lambda n: not n, 60, "all are kept apart"
        )
        assert not aside
        assert counter(cluster, "replica_file.damaged_found") >= len(keys)
        told = " ".join(e["text"] for e in cluster.ask("events", "--type", "replica.damaged", "--node", NODE)["items"])
        assert [key for key in own if key not in told] == []
        report = cluster.ended(cluster.begun("doctor"), status=None)
        found = [one["found"] for one in report["items"] if (one["check"], one["object"]) == ("replica.state", NODE)]
        assert any("entries were set aside as damaged since its start" in text for text in found), found
    cluster.whole()
    cluster.replicas_agree()
    for key in own:
        views = cluster.ask("serveindex", "get", key)
        assert (views["winner"], views["agree"], len(views["replicas"])) == (written[key], True, 4)
    assert cluster.settled_state()["approved"] == kept["approved"]


@pytest.mark.parametrize("damage", [truncated, emptied, missing])
def test_d4_d5_a_damaged_state_store_starts_nothing(cluster: Cluster, damage: Callable[[Path], None]) -> None:
    """It is no new database: refused, with the way to a backup; the file itself is left as it is."""
    kept = cluster.settled_state()
    file = cluster.data / "store" / "data.mdb"
    with all_stopped(cluster):
        backup = file.with_name("kept")
        file.rename(backup)  # the file itself, which a copy would not be taken for
        shutil.copy(backup, file)
        damage(file)
        left = file.read_bytes() if file.exists() else None
        try:
            error = cluster.refused("up", "--data", str(cluster.data), status=15)
            assert (file.read_bytes() if file.exists() else None) == left
        finally:
            backup.replace(file)
    said = "".join(cluster.logs()) + str(error)
    assert "E-STORE-DAMAGED" in said
    assert "store restore" in said
    cluster.whole()
    assert cluster.state() == kept
