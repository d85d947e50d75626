"""Nodes that die, alone and all at once, while pages are being viewed: nothing acknowledged may be lost."""

from __future__ import annotations

import shutil
import time
from collections import Counter

from cluster_load import RATE, Load
from cluster_world import Cluster, eventually

from node.ads.facts import CreativeApproved, PageClassified
from node.core.clock import SystemClock
from node.store.lmdb import LmdbStore
from node.store.port import FactPage, ReadFacts
from node.wire.registry import REGISTRY

BACK_WITHIN_S = 12.0
DECISIONS = {REGISTRY.name_of(fact) for fact in (CreativeApproved, PageClassified)}


def impressions(cluster: Cluster) -> int:
    return sum(row["impressions_count"] for row in cluster.ask("campaign", "list")["items"])


def decisions(cluster: Cluster) -> Counter[str]:
    """How often creatives were approved and pages classified, by the log of facts."""
    found: Counter[str] = Counter()
    after, more = 0, True
    store = LmdbStore(cluster.data / "store", SystemClock())
    try:
        while more:
            [page] = store.apply([ReadFacts(after=after)])
            assert isinstance(page, FactPage), page
            found.update(fact.type for fact in page.facts if fact.type in DECISIONS)
            after, more = page.facts[-1].offset if page.facts else after, page.more
    finally:
        store.close()
    return found


def test_killing_an_entity_node_under_load(cluster: Cluster) -> None:
    cluster.even()
    victim = cluster.owner_of(cluster.sites()[0]["site"])
    shards = cluster.shards()
    incarnation = cluster.ask("node", "show", victim)["node"]["incarnation"]
    kept = cluster.settled_state()
    counted = impressions(cluster)
    with Load(cluster) as load:
        cluster.kill(victim)
        killed = time.monotonic()
        load.lasts(BACK_WITHIN_S + 3)
    assert load.wrong() == []
    late = [a for a in load.answers if a.sent > killed + BACK_WITHIN_S]
    assert [a for a in late if a.status != 200] == []
    assert all(a.winners for a in late)
    assert load.beacons.refused == []
    assert load.beacons.counted > 0
    assert len(load.answers) > BACK_WITHIN_S * RATE / 2, "the load was not steady"

    after = cluster.shards()
    moved = [number for number, row in shards.items() if row["node"] == victim]
    assert moved
    assert all(after[n]["node"] not in (victim, None) for n in moved)
    assert all(after[n]["epoch"] > shards[n]["epoch"] for n in moved)

    least = counted + load.beacons.counted
    found = eventually(lambda: impressions(cluster), lambda n: n >= least, 30, "every acknowledged impression")
    assert found <= least + load.beacons.unknown
    now = cluster.settled_state()
    assert (now["approved"], now["pages"]) == (kept["approved"], kept["pages"])
    for before, row in zip(kept["campaigns"], now["campaigns"], strict=True):
        assert row["campaign"] == before["campaign"]
        assert float(row["spent_today"]) >= float(before["spent_today"])

    started = cluster.ask("node", "start", victim, "--data", str(cluster.data))
    assert started["changed"] is True
    assert cluster.ask("node", "show", victim)["node"]["incarnation"] > incarnation
    cluster.whole()


def test_down_and_up_keep_everything(cluster: Cluster) -> None:
    kept = cluster.settled_state()
    stopped = cluster.down()
    assert stopped["stopped"] == ["api-1", "entity-1", "entity-2", "entity-3"]
    assert cluster.down()["changed"] is False
    cluster.up("-t", "30s")
    cluster.whole("30s")
    assert cluster.state() == kept


def test_killing_all_nodes_at_once_keeps_everything(cluster: Cluster) -> None:
    """Also every slot's pool, without a page view; and nothing is approved or classified a second time."""
    with Load(cluster) as load:
        load.answered(200)
    assert load.failed() == []
    kept, decided = cluster.settled_state(), decisions(cluster)
    assert decided.keys() == DECISIONS
    cluster.kill("api-1", "entity-1", "entity-2", "entity-3")
    cluster.up("-t", "30s")
    cluster.whole("30s")
    assert cluster.state() == kept
    assert decisions(cluster) == decided


def test_a_replica_that_was_deleted_is_filled_again(cluster: Cluster) -> None:
    kept = cluster.settled_state()
    cluster.kill("entity-2")
    shutil.rmtree(cluster.data / "nodes" / "entity-2" / "replica")
    cluster.ask("node", "start", "entity-2", "--data", str(cluster.data))
    replay = cluster.ask("replay", "start", "--all", "--wait")
    assert replay["state"] == "done"
    assert replay["pages"]["failed"] == 0
    assert replay["coverage_after"] == 1.0
    cluster.whole()
    cluster.replicas_agree()
    assert cluster.state() == kept


def test_p1_an_idle_node_that_is_killed_is_replaced_and_comes_back(cluster: Cluster) -> None:
    """P1: its shards run elsewhere under higher epochs; it returns as a new incarnation and opens its replica again."""
    cluster.even()
    kept, shards = cluster.settled_state(), cluster.shards()
    log = cluster.data / "logs" / "entity-3.log"
    incarnation = cluster.ask("node", "show", "entity-3")["node"]["incarnation"]
    cluster.kill("entity-3")
    said = len(log.read_text())
    cluster.run("cluster", "wait", "-t", "30s", "--for", "nodes=3", "--for", "shards=allocated", "--for", "converged")
    after = cluster.shards()
    lost = [number for number, row in shards.items() if row["node"] == "entity-3"]
    assert lost
    assert all(after[n]["node"] != "entity-3" and after[n]["epoch"] > shards[n]["epoch"] for n in lost)
    moved = [n for n, row in shards.items() if n not in lost and after[n]["epoch"] != row["epoch"]]
    assert moved == [], "no other shard has moved"
    cluster.start("entity-3")
    assert cluster.ask("node", "show", "entity-3")["node"]["incarnation"] > incarnation
    assert "replica: its file is used as it was left" in log.read_text()[said:]
    cluster.whole()
    assert cluster.state() == kept
