"""Real processes on bad links: five nodes behind the relay, one link or several of it made bad at a time.

They share a database, since an isolated host could reach no other host's file; its own link is as good as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from byte_proxy import Relay
from cluster_world import Cluster, eventually
from relayed import relayed

from scripts.postgres_server import PostgresServer

NODES = ("api-1", "entity-1", "entity-2", "entity-3", "entity-4")
OUT_WITHIN_S = 12.0  # detection and stable_after of the fast profile, with room for two busy cores
STAYS_S = 6.0  # longer than detection and stable_after: whatever goes has gone by then


@pytest.fixture(scope="module")
def _five(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[tuple[Cluster, Relay]]:
    cluster = Cluster(tmp_path_factory.mktemp("links"))
    with relayed(cluster, len(NODES), postgres) as relay:
        yield cluster, relay


@pytest.fixture
def five(_five: tuple[Cluster, Relay]) -> Iterator[tuple[Cluster, Relay]]:
    """Whole before each test and healed behind it."""
    cluster, relay = _five
    relay.heal()
    cluster.restore(nodes=len(NODES))
    cluster.even()
    yield cluster, relay
    relay.heal()


def together(cluster: Cluster) -> None:
    conditions = ("converged", f"nodes={len(NODES)}", "shards=allocated", "replicas=agree")
    cluster.run("cluster", "wait", "-t", "60s", *(word for c in conditions for word in ("--for", c)))
    cluster.even()


def members(cluster: Cluster) -> set[str]:
    status: Any = cluster.status()
    return {node["name"] for node in status["nodes"] if node["status"] == "up"} if status else set()


def test_n1_a_node_that_is_cut_off_stops_and_the_others_take_its_shards(five: tuple[Cluster, Relay]) -> None:
    """N1: the minority ends by the rule; whatever it owned has a new owner under a higher epoch."""
    cluster, relay = five
    before = cluster.shards()
    lost = [shard for shard, row in before.items() if row["node"] == "entity-4"]
    relay.isolate("entity-4")
    eventually(lambda: members(cluster), lambda found: found == set(NODES) - {"entity-4"}, OUT_WITHIN_S, "4 members")
    cluster.run("cluster", "wait", "-t", "30s", "--for", "shards=allocated")
    after = cluster.shards()
    assert lost
    assert all(after[s]["node"] != "entity-4" and after[s]["epoch"] > before[s]["epoch"] for s in lost)
    assert all(after[s] == before[s] for s in before if s not in lost), "no other shard has moved"
    log = (cluster.data / "logs" / "entity-4.log").read_text()
    assert "E-REMOVED" in log.splitlines()[-1], "the node that goes says so, last"


@pytest.mark.parametrize(("heard", "hears"), [(False, True), (True, False)])
def test_n2_a_link_that_works_one_way(five: tuple[Cluster, Relay], heard: bool, hears: bool) -> None:
    """N2: half deaf or half mute, the node goes; all others stay, and each shard has one owner among them."""
    cluster, relay = five
    for other in NODES[:-1]:
        if not heard:
            relay.cut("entity-4", other)
        if not hears:
            relay.cut(other, "entity-4")
    eventually(lambda: members(cluster), lambda found: found == set(NODES) - {"entity-4"}, OUT_WITHIN_S, "4 members")
    cluster.run("cluster", "wait", "-t", "30s", "--for", "shards=allocated")
    assert {row["node"] for row in cluster.shards().values()} == {"entity-1", "entity-2", "entity-3"}


def test_n3_the_larger_side_goes_on(five: tuple[Cluster, Relay]) -> None:
    """N3: 3 entity nodes against 1 with the api node, which the operator's command still reaches."""
    cluster, relay = five
    relay.split(("entity-1", "entity-2", "entity-3"), ("api-1", "entity-4"))
    stay = {"entity-1", "entity-2", "entity-3"}
    eventually(lambda: members(cluster), lambda found: found == stay, OUT_WITHIN_S, "the three")
    cluster.run("cluster", "wait", "-t", "30s", "--for", "shards=allocated")
    assert {row["node"] for row in cluster.shards().values()} == stay


def test_n4_one_pair_that_cannot_see_each_other(five: tuple[Cluster, Relay]) -> None:
    """N4, S03: both reach everybody else, and each other no more, which is said; at most one of the two goes,
    nobody else does."""
    cluster, relay = five
    pair = ("entity-3", "entity-4")
    relay.cut(*pair)
    relay.cut(*reversed(pair))
    seen: list[set[str]] = []
    said: set[tuple[str, ...]] = set()

    def settled() -> bool:
        seen.append(members(cluster))
        said.update(tuple(sorted(bad)) for bad in cluster.ask("cluster", "members")["indirect"])
        return len(seen) > STAYS_S / 0.3 and seen[-1] == seen[-8]

    eventually(settled, bool, 4 * OUT_WITHIN_S, "members that stay")
    assert relay.swallowed(*pair, "control") > 0
    assert relay.swallowed(*reversed(pair), "control") > 0, "the link was cut both ways"
    assert said == {pair}, "that they can't see each other is said, and of nobody else"
    gone = set(NODES) - seen[-1]
    assert gone in (set(), {"entity-3"}, {"entity-4"})
    assert all(set(NODES) - found <= gone for found in seen), "nobody went in between"


def test_n9_late_bytes_remove_nobody(five: tuple[Cluster, Relay]) -> None:
    """N9: half of the acceptable pause as delay, both ways between two nodes: nothing is removed or moved."""
    cluster, relay = five
    before = cluster.shards()
    relay.delay("entity-1", "entity-2", 700)
    relay.delay("entity-2", "entity-1", 700)
    polls: list[set[str]] = []

    def long_enough() -> int:
        polls.append(members(cluster))
        return len(polls)

    eventually(long_enough, lambda n: n > STAYS_S / 0.3, 60, "a while")
    assert [found for found in polls if found != set(NODES)] == []
    relay.heal()
    together(cluster)
    assert cluster.shards() == before


def test_n11_a_flipped_bit_costs_a_connection(five: tuple[Cluster, Relay]) -> None:
    """N11: under CURVE a damaged frame ends the connection, which is built anew; nobody is removed."""
    cluster, relay = five
    before = {n["name"]: n["incarnation"] for n in cluster.status()["nodes"]}
    for target in ("entity-2", "entity-3", "entity-4"):
        relay.corrupt("entity-1", target)
        eventually(lambda t=target: relay.corrupted("entity-1", t), lambda n: n >= 1, 15, "a damaged frame")
    together(cluster)
    assert {n["name"]: n["incarnation"] for n in cluster.status()["nodes"]} == before
