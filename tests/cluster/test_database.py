"""A cluster whose database freezes, dies, or is out of reach of one node only, while pages are being viewed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from byte_proxy import DATABASE, Relay
from cluster_load import Answer, Load
from cluster_world import Cluster, CommandError, eventually
from postgres_clock import run_sql
from relayed import relayed, schema_of

from node.core.hashing import shard_of
from scripts.postgres_server import PostgresServer

NODES = 4
NAMED_WITHIN_S = 15.0  # a store's deadline, and the time until the fault is told
BACK_WITHIN_S = 20.0
FILLED_RATIO = 0.9  # of page views that have a winner while the database is away
World = tuple[Cluster, Relay, PostgresServer]


@pytest.fixture(scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    server = PostgresServer(tcp=True)
    cluster = Cluster(tmp_path_factory.mktemp("database"))
    try:
        server.start()
        with relayed(cluster, NODES, server, "--demo") as relay:
            yield cluster, relay, server
    finally:
        server.close()


@pytest.fixture
def world(_world: World) -> World:
    """Whole, and all pages of it filled."""
    cluster, relay, _ = _world
    relay.heal()
    cluster.restore("--demo")
    cluster.even()
    return _world


def store_faults(cluster: Cluster) -> set[str]:
    status: Any = cluster.status()
    assert status, "the status is told, whatever becomes of the store"
    return {fault["code"] for fault in status["faults"] if fault["code"].startswith("E-STORE")}


def well(answers: list[Answer]) -> bool:
    return len(answers) > 50 and all(answer.status == 200 and answer.winners for answer in answers[-50:])


def impressions(cluster: Cluster) -> dict[str, int]:
    return {row["campaign"]: row["impressions_count"] for row in cluster.ask("campaign", "list")["items"]}


@pytest.mark.parametrize("how", ["frozen", "crashed"])
def test_g1_g2_g3_pages_are_answered_without_the_database(world: World, how: str) -> None:
    """The processes stay; the fault is named; what can not be written is not acknowledged; all is well after."""
    cluster, _, server = world
    pids, before = cluster.pids(), sum(impressions(cluster).values())
    with Load(cluster) as load:
        eventually(lambda: load.beacons.counted, bool, 15, "a counted impression")
        first = len(load.answers)
        try:
            server.freeze() if how == "frozen" else server.stop("immediate")
            eventually(lambda: store_faults(cluster), bool, NAMED_WITHIN_S, "a fault that names the store")
            status = cluster.status()
            load.answered(300)
            counted = load.beacons.counted
            load.answered(200)
            assert load.beacons.counted == counted, "nothing is acknowledged that is not durable"
            away = load.answers[first:]
        finally:
            server.thaw() if how == "frozen" else server.start()
        eventually(lambda: well(load.answers), bool, BACK_WITHIN_S, "winners for every page again")
        eventually(lambda: load.beacons.counted, lambda n: n > counted, 15, "that impressions are counted again")
    assert {node["name"] for node in status["nodes"] if node["status"] == "up"} == set(pids)
    assert [warned["code"] for warned in status["warnings"]] == ["E-STORE"], "it says that it does not know all"
    assert [answer for answer in load.answers if answer.status == 0] == [], "nothing hangs until its caller has gone"
    assert load.wrong() == []
    assert load.beacons.refused == []
    served = [answer for answer in away if answer.status == 200]
    assert len(served) > len(away) / 2
    filled = sum(answer.winners > 0 for answer in served)
    assert filled > len(served) * FILLED_RATIO, f"{filled} of {len(served)} page views have a winner"
    assert all("nothing was done" in answer.said for answer in away if answer.status == 503)
    eventually(lambda: store_faults(cluster), lambda codes: not codes, 15, "the end of the fault")
    assert cluster.pids() == pids
    least = before + load.beacons.counted
    found = eventually(lambda: sum(impressions(cluster).values()), lambda n: n >= least, 30, "each acknowledged one")
    assert found <= least + load.beacons.unknown


def ordered(cluster: Cluster, shard: int, to: str, endpoint: str) -> bool:
    """Whether a move was ordered, carried out and told."""
    try:
        cluster.ask("shard", "move", str(shard), "--to", to, "--yes", "--wait", "--endpoint", endpoint)
    except CommandError:
        return False
    return True


def test_n6_a_coordinator_without_the_store_has_a_successor_that_reaches_it(world: World) -> None:
    """N6: its lease can't be renewed, and it says so; another takes the next term and moves shards."""
    cluster, relay, _ = world
    first, before = cluster.coordinator(), cluster.status()
    relay.cut(first, DATABASE)
    after = eventually(cluster.status, lambda s: s["coordinator"] not in (None, first), NAMED_WITHIN_S, "a successor")
    assert after["term"] > before["term"]
    assert {node["name"] for node in after["nodes"] if node["status"] == "up"} == set(cluster.pids())
    eventually(lambda: store_faults(cluster), bool, NAMED_WITHIN_S, "a fault that says why")
    shard, row = next((n, row) for n, row in cluster.shards().items() if row["node"] not in (first, "entity-3"))
    # Through a node that can write down who ordered it; and a move's record lives in some shard: where that is on the
    # node without the store, the order is not answered.
    asked = next(row["admin"] for row in cluster.ask("node", "list")["items"] if row["name"] == "entity-3")
    eventually(lambda: ordered(cluster, shard, "entity-3", asked), bool, 6 * NAMED_WITHIN_S, "a move that is taken on")
    assert cluster.shards()[shard]["node"] == "entity-3" != row["node"]
    relay.heal()
    cluster.coordinator()
    eventually(lambda: store_faults(cluster), lambda codes: not codes, 15, "the end of the fault")


def test_n6_where_no_node_that_could_coordinate_reaches_the_store_nothing_is_decided(world: World) -> None:
    """N6: nobody coordinates, which is said; the others, which reach the store, go on."""
    cluster, relay, server = world
    before = cluster.status()
    placement = f"SELECT shard, node, epoch, state FROM {schema_of(cluster.data)}.placement ORDER BY shard"
    rows = run_sql(server.dsn, placement)
    for name in (node["name"] for node in before["nodes"] if "singleton" in node["roles"]):
        relay.cut(name, DATABASE)
    eventually(lambda: store_faults(cluster), bool, NAMED_WITHIN_S, "a fault that says why")
    eventually(lambda: cluster.status()["coordinator"], lambda name: name is None, NAMED_WITHIN_S, "a lease's end")
    health = cluster.ask("cluster", "health", status=10)
    assert "E-NO-COORDINATOR" in {reason["code"] for reason in health["reasons"]}
    refused = cluster.refused("shard", "move", "7", "--to", "entity-3", "--yes", status=8)
    assert "coordinat" in refused["message"]
    assert run_sql(server.dsn, placement) == rows
    assert {node["name"] for node in cluster.status()["nodes"] if node["status"] == "up"} == set(cluster.pids())
    relay.heal()
    after = eventually(cluster.status, lambda s: s["coordinator"] is not None, NAMED_WITHIN_S, "a coordinator")
    assert after["term"] >= before["term"]
    eventually(lambda: store_faults(cluster), lambda codes: not codes, 15, "the end of the fault")


def owners(cluster: Cluster) -> dict[str, str]:
    """The node of each campaign."""
    nodes = {number: row["node"] for number, row in cluster.shards().items()}
    return {row["campaign"]: nodes[shard_of(row["campaign"])] for row in cluster.ask("campaign", "list")["items"]}


def test_n6_an_owner_without_the_store_writes_nothing(world: World) -> None:
    """N6: nothing of its shards changes in the store, nothing of them is acknowledged; the others' writes go on."""
    cluster, relay, server = world
    owner = owners(cluster)
    first = cluster.coordinator()
    victim = next(node for node in owner.values() if node != first)
    owned = [number for number, row in cluster.shards().items() if row["node"] == victim]
    shards = ", ".join(str(number) for number in owned)
    query = f"SELECT kind, id, revision FROM {schema_of(cluster.data)}.states WHERE shard IN ({shards}) ORDER BY 1, 2"
    with Load(cluster) as load:
        relay.cut(victim, DATABASE)
        eventually(lambda: store_faults(cluster), bool, NAMED_WITHIN_S, "a fault that says why")
        kept, before = run_sql(server.dsn, query), impressions(cluster)
        load.answered(300)
        after = impressions(cluster)
        assert run_sql(server.dsn, query) == kept
        relay.heal()
        eventually(lambda: well(load.answers), bool, BACK_WITHIN_S, "winners for every page again")
    assert kept
    assert all(after[campaign] == before[campaign] for campaign, node in owner.items() if node == victim)
    assert any(after[campaign] > before[campaign] for campaign, node in owner.items() if node != victim)
    assert load.wrong() == []
    assert load.beacons.refused == []
    eventually(lambda: run_sql(server.dsn, query), lambda rows: rows != kept, 30, "that it writes again")
    eventually(lambda: store_faults(cluster), lambda codes: not codes, 15, "the end of the fault")
