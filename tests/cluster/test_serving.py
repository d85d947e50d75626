"""From a fresh cluster to an ad: what a new user does, by commands and HTTP."""

from __future__ import annotations

import os

from cluster_world import Cluster, eventually, runs

SITE = "rails.example"
URL = "https://rails.example/night-train"
SLOT = {"id": "top", "w": 728, "h": 90}
TEXT = """The night train from Vienna to Rome crosses the Alps while its travellers sleep. Tourists book a sleeping car
weeks ahead, reserve a hotel near the station and spend their holiday sightseeing: museums, old squares, a day trip to
the coast. For a family vacation, travel by rail is slower than a flight and far more of a journey. The guide book lists
destinations, the luggage fits under the berth, and the trip itself becomes part of the holiday."""


def test_the_status_of_a_demonstration_cluster(cluster: Cluster) -> None:
    status = cluster.ask("cluster", "status")
    assert status["converged"] is True
    assert [row["status"] for row in status["nodes"]] == ["up"] * 4
    assert status["shards"]["total"] == status["shards"]["allocated"] == 256
    assert status["serveindex"]["agree"] is True
    assert status["coverage"]["ratio"] == 1.0
    assert status["coverage"]["expected"] > 0
    pids = {row["pid"] for row in status["nodes"]}
    assert len(pids) == 4
    assert all(runs(pid) for pid in pids)
    assert all(os.getsid(pid) == pid for pid in pids)


def test_up_again_changes_nothing(cluster: Cluster) -> None:
    before = cluster.ask("node", "list")["items"]
    again = cluster.up("--demo")
    assert again["changed"] is False
    assert {n["name"]: n["pid"] for n in again["nodes"]} == {n["name"]: n["pid"] for n in before}


def test_different_pages_get_different_ads(cluster: Cluster) -> None:
    won = set()
    for site in cluster.sites():
        slots = [{"id": s["slot"], "w": s["width"], "h": s["height"]} for s in site["slots"]]
        for page in cluster.pages(site["site"]):
            winners = cluster.serve(site["site"], page["url"], slots)
            won |= {winner["campaignId"] for winner in winners.values() if winner}
    assert len(won) >= 5


def test_a_new_site_serves_what_its_publisher_approved(cluster: Cluster) -> None:
    cluster.ask("site", "create", SITE, "--publisher", "me", "--slot", "top:728x90")
    cluster.ask("advertiser", "create", "rail-co", "--name", "Rail Co", "--daily-budget", "50")
    category = cluster.ask("page", "classify", _file(cluster))["categories"][0]["id"]
    cluster.ask(
        *("campaign", "create", "sleepers", "--advertiser", "rail-co", "--name", "Sleepers"),
        *("--max-cpm", "40", "--daily-budget", "20", "--category", category),
    )
    cluster.ask(
        *("creative", "create", "berth", "--campaign", "sleepers", "--size", "728x90"),
        *("--asset-url", "https://cdn.rail.example/berth.png", "--landing-url", "https://rail.example/berth"),
    )
    status, _ = cluster.post("/v1/classify-page", {"pub": SITE, "url": URL, "text": TEXT, "imp": [SLOT]})
    assert status == 202
    shown = eventually(
        lambda: cluster.ask("site", "show", SITE), lambda s: "berth" in s["pending"], 20, "the creative's auction"
    )
    assert shown["approved"] == []
    for _ in range(20):
        assert cluster.serve(SITE, URL, [SLOT])["top"] is None
    cluster.ask("creative", "approve", "berth", "--site", SITE)
    winner = eventually(
        lambda: cluster.serve(SITE, URL, [SLOT])["top"], lambda won: won is not None, 20, "the approved creative"
    )
    assert winner["creativeId"] == "berth"
    why = cluster.ask("serve", "explain", winner["requestId"])
    assert why["served"] is True
    assert why["winner"] == "berth"
    assert [c["outcome"] for c in why["candidates"] if c["creative"] == "berth"] == ["won"]


def test_what_is_wrong_gets_its_sentence(cluster: Cluster) -> None:
    before = cluster.sites()
    site = before[0]["site"]
    status, problem = cluster.post("/v1/classify-page", {"pub": site, "url": f"https://{site}/x", "text": "  "})
    assert (status, problem["field"]) == (400, "text")
    status, problem = cluster.post("/v1/serve/batch", {"pub": site, "url": f"https://{site}/x", "imp": "none"})
    assert (status, problem["field"]) == (400, "imp")
    error = cluster.refused(
        *("campaign", "create", "c-x", "--advertiser", "rail-co", "--name", "x", "--max-cpm", "1"),
        *("--daily-budget", "0", "--category", "653"),
        status=2,
    )
    assert "budget" in error["message"]
    assert cluster.refused("site", "show", "nowhere.example", status=3)["code"] == "E-NOT-FOUND"
    assert cluster.sites() == before


def _file(cluster: Cluster) -> str:
    file = cluster.data.parent / "night-train.txt"
    file.write_text(TEXT)
    return str(file)
