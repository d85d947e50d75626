"""A replay of a few hundred pages whose coordinator is killed in the middle: it ends, and its counts are exact."""

from __future__ import annotations

from typing import Any

from cluster_world import Cluster, eventually

PAGES = 240
RATE = 20
TEXT = "A new night train connects the two cities; railway operators expect more passengers on the long routes."


def with_pages(cluster: Cluster) -> int:
    """How many pages the site has, once these are judged too; asked again where the node says it is too much."""
    site = next(row["site"] for row in cluster.sites())
    slot = cluster.ask("site", "show", site)["slots"][0]
    imp = [{"id": slot["slot"], "w": slot["width"], "h": slot["height"]}]
    open_ = [f"https://{site}/replayed/{number:03d}" for number in range(PAGES)]

    def judged() -> list[str]:
        known = {row["url"] for row in cluster.pages(site)}
        left = [url for url in open_ if url not in known]
        for url in left:
            status, _ = cluster.post("/v1/classify-page", {"pub": site, "url": url, "text": TEXT, "imp": imp})
            assert status in (202, 429, 503), status
        return left

    eventually(judged, lambda left: not left, 60, "all pages judged")
    return sum(len(cluster.pages(row["site"])) for row in cluster.sites())


def shown(cluster: Cluster, replay: str) -> Any:
    return cluster.ask("replay", "show", replay)


def test_a_replay_whose_coordinator_is_killed_in_the_middle_ends_with_exact_counts(cluster: Cluster) -> None:
    pages = with_pages(cluster)
    started = cluster.ask("replay", "start", "--all", "--rate", str(RATE), "--request-id", "killed", "--detach")
    assert (started["id"], started["state"]) == ("r-killed", "running")
    refused = cluster.refused("replay", "start", "--all", status=4)
    assert "r-killed" in refused["message"]
    assert "promovolvectl replay watch r-killed" in refused["hint"]
    eventually(lambda: shown(cluster, "r-killed")["pages"]["replayed"], lambda done: done >= RATE, 20, "a beginning")
    victim = cluster.coordinator()
    cluster.kill(victim)
    again = cluster.begun("replay", "start", "--all", "--rate", str(RATE), "--request-id", "killed", "-t", "90s")
    found = cluster.ended(again)
    assert (found["id"], found["state"], found["reason"]) == ("r-killed", "done", "")
    assert found["pages"] == {"total": pages, "replayed": pages, "ignored": 0, "failed": 0}
    assert (found["coverage_after"], found["empty"]) == (1.0, [])
    assert cluster.ask("replay", "list", "--state", "running")["items"] == []
    cluster.start(victim)
    cluster.whole()
