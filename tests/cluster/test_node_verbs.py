"""What an operator does about one node of a real cluster: looks at it, reads its log, restarts it."""

from __future__ import annotations

import json

from cluster_world import Cluster, eventually


def test_one_node_is_restarted_under_its_plan_and_watched_meanwhile(cluster: Cluster) -> None:
    """It is drained, started again and whole; nobody else is restarted, and who watched saw it go and come back."""
    cluster.even()
    name = cluster.owner_of(cluster.sites()[0]["site"])
    before = {row["name"]: (row["incarnation"], row["pid"]) for row in cluster.ask("node", "list")["items"]}
    shards = cluster.shards()
    mine = [shard for shard, row in shards.items() if row["node"] == name]
    plan = cluster.ask("node", "restart", name, "--dry-run")
    assert (plan["target"], {move["from"] for move in plan["moves"]}) == (f"node/{name}", {name})
    watching = cluster.begun("node", "watch", name, "--for", "removed", "-t", "60s")
    done = cluster.ask("node", "restart", name, "--yes", "--reason", "test", "-t", "120s")
    assert (done["state"], [phase["name"] for phase in done["phases"]]) == ("done", [name, "cluster"])
    assert done["result"]["messages_lost"] == 0
    assert done["result"]["shards_moved"] == len(mine)
    out, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert [json.loads(text)["type"] for text in out.splitlines()][:1] == ["snapshot"]
    after = {row["name"]: (row["incarnation"], row["pid"]) for row in cluster.ask("node", "list")["items"]}
    assert [node for node in before if before[node] != after[node]] == [name]
    assert after[name][0] == before[name][0] + 1
    # Who follows by a cursor is told that what the node had seen before is gone with its earlier start.
    gaps = cluster.ask("events", "--after", f"{name}@{before[name][0]}:1")["items"]
    assert [item["gap"] for item in gaps if item["node"] == name][:1] == [-1]
    history = cluster.ask("shard", "history", str(mine[0]))["items"]
    assert [entry["node"] for entry in history][-2] == name


def test_a_log_level_is_set_for_a_time_and_is_as_before_by_itself(cluster: Cluster) -> None:
    def held() -> dict[str, str]:
        return {row["logger"]: row["level"] for row in cluster.ask("node", "log-level", "entity-1")["items"]}

    before = held()
    done = cluster.ask("node", "log-level", "entity-1", "node", "warning", "--for", "8s", "--yes")
    assert (done["state"], done["result"]["changed"]) == ("done", True)
    assert held() == before | {"node": "WARNING"}
    eventually(held, lambda now: now == before, 20, "the level as it was")
    lines = cluster.ask("node", "logs", "entity-1", "--grep", "log level of node")["items"]
    assert [item["text"] for item in lines] == [
        "the log level of node is WARNING for 8 s",
        "the log level of node is as before",
    ]
    refused = cluster.refused("node", "log-level", "entity-1", "nobody", "debug", "--yes", status=2)
    assert refused["code"] == "E-REJECTED"


def test_views_and_members_agree_in_a_whole_cluster(cluster: Cluster) -> None:
    views = cluster.ask("cluster", "views")
    names = [row["name"] for row in cluster.ask("node", "list")["items"]]
    assert views["agree"]
    assert sorted(item["observer"] for item in views["items"]) == sorted(names)
    for observer in names:
        members = cluster.ask("cluster", "members", "--seen-by", observer)
        assert (members["seen_by"], sorted(row["name"] for row in members["items"])) == (observer, sorted(names))
    assert {row["node"] for row in cluster.ask("cluster", "top", "--interval", "200ms")["items"]} == set(names)


def test_an_entity_is_where_its_shard_is_and_its_owners_are_told(cluster: Cluster) -> None:
    cluster.even()
    site = cluster.sites()[0]["site"]
    place = cluster.ask("entity", "where", f"site/{site}")
    assert (place["node"], place["known"]) == (cluster.owner_of(site), True)
    assert cluster.ask("entity", "where", "site", "nobody.example")["known"] is False
    history = cluster.ask("entity", "history", "site", site)
    assert history["items"][-1]["node"] == place["node"]
    assert history["items"][-1]["until"] is None
    assert history["durable_epoch"] <= history["items"][-1]["epoch"]


def test_a_whole_cluster_needs_no_repair(cluster: Cluster) -> None:
    plan = cluster.ask("cluster", "repair", "--yes")
    assert (plan["kind"], plan["changed"], plan["moves"]) == ("Plan", False, [])


def test_a_drill_proves_the_fence_and_a_move_there_and_back(cluster: Cluster) -> None:
    cluster.even()
    site = cluster.sites()[0]["site"]
    shard = cluster.ask("shard", "where", "site", site)
    refused = cluster.ask("cluster", "drill", "run", "fence", "--site", site, "--yes")
    assert (refused["state"], refused["result"]["missed_count"]) == ("done", 0)
    moved = cluster.ask("cluster", "drill", "run", "move", "--site", site, "--yes")
    assert (moved["state"], moved["result"]["missed_count"]) == ("done", 0)
    after = cluster.ask("shard", "where", "site", site)
    assert after["node"] == shard["node"]
    assert after["epoch"] > shard["epoch"]
    last = {item["drill"]: item["last"] for item in cluster.ask("cluster", "drill", "list")["items"]}
    assert [last[name]["outcome"] for name in ("fence", "move")] == ["passed", "passed"]


def test_what_was_done_and_what_waits_is_told_by_each_node_alike(cluster: Cluster) -> None:
    """A plan that one node holds is shown, and committed, through another; what came of it is listed by all."""
    at = [f"--endpoint={row['admin']}" for row in cluster.ask("node", "list")["items"]]
    plan = cluster.ask("node", "log-level", "entity-1", "node", "warning", "--for", "1s", "--dry-run", at[0])
    for endpoint in at:
        assert plan["id"] in [item["id"] for item in cluster.ask("plan", "list", endpoint)["items"]]
        assert cluster.ask("plan", "show", plan["id"], endpoint)["id"] == plan["id"]
    done = cluster.ask("plan", "commit", plan["id"], "--yes", at[1])
    assert (done["verb"], done["state"]) == (plan["verb"], "done")
    told = [cluster.ask("op", "list", endpoint)["items"] for endpoint in at]
    assert done["id"] in [item["id"] for item in told[0]]
    assert [[item["id"] for item in items] for items in told[1:]] == [[item["id"] for item in told[0]]] * (len(at) - 1)
    assert all(cluster.ask("op", "show", done["id"], endpoint)["state"] == "done" for endpoint in at)
    assert cluster.refused("op", "show", "op-none", at[-1], status=3)["code"] == "E-NOT-FOUND"


def test_a_cordon_is_seen_at_once_by_whoever_looks_and_is_an_event(cluster: Cluster) -> None:
    def cordoned(*words: str) -> list[str]:
        return [row["name"] for row in cluster.ask("node", "list", *words)["items"] if row["cordoned"]]

    at = [f"--endpoint={row['admin']}" for row in cluster.ask("node", "list")["items"]]
    cluster.ask("node", "cordon", "entity-3", "--yes", "--reason", "its disk")
    try:
        assert [cordoned(endpoint) for endpoint in at] == [["entity-3"]] * len(at)
        assert cluster.ask("node", "show", "entity-3")["node"]["cordoned"] is True
    finally:
        cluster.ask("node", "uncordon", "entity-3", "--yes")
    assert cordoned() == []
    told = [item for item in cluster.ask("events", "--type", "node.*cordoned")["items"] if not item["gap"]]
    assert [(item["topic"], item["object"]) for item in told[-2:]] == [
        ("node.cordoned", "node/entity-3"),
        ("node.uncordoned", "node/entity-3"),
    ]
    assert "its disk" in told[-2]["text"]


def test_the_death_of_the_only_api_node_is_named_with_the_way_back(cluster: Cluster) -> None:
    cluster.kill("api-1")

    def reasons() -> list[str]:
        return [each["text"] for each in cluster.health()["reasons"] if each["code"] == "E-NO-NODE-OF-ROLE"]

    found = eventually(reasons, bool, 60, "that nobody serves ads")
    assert found[0].startswith("no node serves ads: ")
    assert "promovolvectl node start api-1" in found[0]
    cluster.restore("--demo")
    assert reasons() == []
