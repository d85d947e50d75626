"""Nodes that stand still for longer than everybody's patience and then go on (P8)."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from cluster_load import Load
from cluster_world import Cluster, eventually, runs

from node.core.clock import SystemClock
from node.core.hashing import shard_of
from node.store.lmdb import LmdbStore
from node.store.port import AcquireLease, ListStates, Record, StatePage

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
PAUSE_S = min(30.0, 9.0 * SCALE)  # the fast profile's detection, stable_after and lease end within 5 s
WRITE_S, PAUSES_MAX = 1.0, 20
KINDS = ("advertiser", "auctioneer", "campaign", "category-bidder", "publisher", "site")


def records(store: Path) -> dict[tuple[str, str], Record]:
    """All durable states, read from the file beside the nodes that write it."""
    opened = LmdbStore(store, SystemClock())
    try:
        [page] = opened.apply([ListStates(KINDS, limit=500)])
        assert isinstance(page, StatePage)
        assert not page.more
        return {(record.kind, record.id): record for record in page.records}
    finally:
        opened.close()


def paused_between_writes(cluster: Cluster, pid: int) -> float:
    """Stops a process; since when. One that stands still inside a write blocks the file that all share, which is said
    (P9) and is not what a pause is about: it goes on for a moment then, and is stopped at another one."""
    for _ in range(PAUSES_MAX):
        os.kill(pid, signal.SIGSTOP)
        stopped = time.monotonic()
        writes = LmdbStore(cluster.data / "store", SystemClock())
        done = threading.Thread(target=writes.apply, args=([AcquireLease("pause", "test", 1)],), daemon=True)
        done.start()
        done.join(WRITE_S)
        if not done.is_alive():
            writes.close()
            return stopped
        os.kill(pid, signal.SIGCONT)
        done.join()
        writes.close()
    raise AssertionError(f"{PAUSES_MAX} times it was stopped inside a write")


def test_p8_a_paused_owner_writes_nothing_when_it_goes_on(cluster: Cluster) -> None:
    """P8: stopped beyond leases and detection while pages are viewed, then continued. PROMOVOLVE_TEST_SCALE=4 makes it
    the row's 30 s."""
    cluster.even()
    site = cluster.sites()[0]["site"]
    victim = cluster.owner_of(site)
    owned = {shard for shard, row in cluster.shards().items() if row["node"] == victim}
    pid = cluster.pids()[victim]
    with Load(cluster) as load:
        stopped = paused_between_writes(cluster, pid)
        eventually(lambda: cluster.owner_of(site), lambda node: node not in (victim, None), 30, "a new owner")
        load.lasts(max(0.1, PAUSE_S - (time.monotonic() - stopped)))
        epochs = {shard: row["epoch"] for shard, row in cluster.shards().items()}
        before = records(cluster.data / "store")
        os.kill(pid, signal.SIGCONT)
        eventually(lambda: runs(pid), lambda alive: not alive, 30, "the end of the node that was away")
        load.answered(200)
    assert load.wrong() == []
    assert load.beacons.refused == []
    log = (cluster.data / "logs" / f"{victim}.log").read_text().strip().splitlines()
    assert "E-REMOVED" in log[-1]

    after = records(cluster.data / "store")
    changed = {key: record for key, record in after.items() if record != before.get(key)}
    assert changed, "the campaigns' spend was written meanwhile"
    for (kind, name), record in changed.items():
        assert record.epoch == epochs[shard_of(name)], f"{kind} {name} was written under an epoch that is over"
    assert owned
    shards = cluster.shards()
    assert all(shards[shard]["node"] != victim for shard in owned)


@pytest.mark.parametrize("which", ["an owner", "the coordinator"])
def test_p47_lists_without_one_node_show_the_rest_and_name_it(cluster: Cluster, which: str) -> None:
    """P47: the node stands still and is a member still; each list waits for it no longer than 3 s."""
    cluster.even()
    victim = cluster.coordinator() if which == "the coordinator" else cluster.owner_of(cluster.sites()[0]["site"])
    whole = cluster.ask("entity", "list", "--limit", "0")["items"]
    others = {(row["type"], row["id"]) for row in whole if row["node"] != victim}
    pid = cluster.pids()[victim]
    os.kill(pid, signal.SIGSTOP)
    try:
        lists = [cluster.begun(noun, "list", "--limit", "0", "-t", "3s") for noun in ("shard", "entity")]
        shards, entities = (cluster.ended(command, status=12) for command in lists)
    finally:
        os.kill(pid, signal.SIGCONT)
    for found in (shards, entities):
        assert not found["complete"]
        assert [missing["node"] for missing in found["missing"]] == [victim]
    assert len(shards["items"]) == 256
    assert others <= {(row["type"], row["id"]) for row in entities["items"]}
