"""The ServeIndex of five real processes under load: how soon a put is everywhere, what a reconciliation moves, and how
an empty replica is filled.

PROMOVOLVE_TEST_SCALE=10 makes it 100,000 keys of about 1 KB and 30 s of puts, 1 makes it 4,000 and 3 s.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from byte_proxy import Relay
from cluster_world import Cluster, eventually
from index_load import BATCHES_PER_S, IndexWriter, key_of, row_of, scraped, write_rows
from relayed import relayed

from node.core import limits
from node.gossip.lww import ENTRY_OVERHEAD_BYTES
from promovolvectl.local import layout as lay
from scripts.postgres_server import PostgresServer

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
KEYS = 10_000 * SCALE if SCALE > 1 else 4_000
PUT_RATE, PUT_S = 200, 3 * SCALE
STREAM_S = 14.0 + SCALE  # how long an empty replica is made to take at least
START_S = 60 + 12 * SCALE  # what a node with an empty replica may take
NODES = ("api-1", "entity-1", "entity-2", "entity-3", "entity-4")
VICTIM = "entity-4"
STILL = 20  # looks, of a tenth of a second and more, without a byte
PART = re.compile(r"replica synchronising: [3-6][0-9]%")
# Messages that were on their way when the links were cut, and those that were asked for again of another peer.
REPEATED_MAX = 6 * limits.reconcile_batch_bytes
HELD = "promovolve_replica_keys"
SENT, VISIBLE = "promovolve_replica_sent_bytes_total", "promovolve_replica_visible_seconds_bucket"


class World:
    """The cluster, the relay before it, and a way to write."""

    def __init__(self, cluster: Cluster, relay: Relay, writer: IndexWriter) -> None:
        self.cluster = cluster
        self.relay = relay
        self.writer = writer
        layout = lay.read(cluster.data)
        assert layout is not None
        self._http = {node.name: f"http://{node.http}" for node in layout.nodes}

    def whole(self, nodes: int = len(NODES)) -> None:
        conditions = ("converged", f"nodes={nodes}", "shards=allocated", "replicas=agree")
        self.cluster.run("cluster", "wait", "-t", "140s", *(word for c in conditions for word in ("--for", c)))

    def at_rest(self) -> None:
        """Whole, and no shard moves any more: who writes a key is not to change in the midst of a test."""
        self.whole()
        self.cluster.even()
        self.whole()

    def metric(self, node: str, name: str) -> dict[str, float]:
        with urllib.request.urlopen(f"{self._http[node]}/metrics", timeout=10) as answer:
            return scraped(answer.read().decode, name)

    def sent_by(self, nodes: tuple[str, ...]) -> dict[str, int]:
        """Bytes of entries that these nodes have sent to peers, by why."""
        found = [self.metric(node, SENT) for node in nodes]
        return {why: int(sum(row[f'{{by="{why}"}}'] for row in found)) for why in ("deltas", "reconciliation")}

    def ready(self, node: str) -> tuple[int, str]:
        """Status of its readiness (0: nobody there), and what it lacks, in its words."""
        try:
            with urllib.request.urlopen(f"{self._http[node]}/ready", timeout=10) as answer:
                return answer.status, ""
        except urllib.error.HTTPError as error:
            with error:
                return error.code, "; ".join(json.load(error).get("reasons", []))
        except OSError:
            return 0, ""

    def replica(self, node: str) -> Any:
        rows = self.cluster.ask("serveindex", "status", "--allow-partial")["replicas"]
        return next((row for row in rows if row["node"] == node), None)

    def size(self) -> tuple[int, int]:
        """Keys and bytes of all maps."""
        rows = self.cluster.ask("serveindex", "maps")["items"]
        return sum(row["keys"] for row in rows), sum(row["bytes"] for row in rows)

    def load(self, folder: Path, keys: list[str]) -> None:
        file = write_rows(folder / "rows.jsonl", keys)
        done = self.cluster.ask("serveindex", "load", str(file), "--yes")
        assert done["result"]["written_count"] == len(keys)
        file.unlink()


@pytest.fixture(scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("load")
    cluster = Cluster(folder)
    with ExitStack() as around:
        relay = around.enter_context(relayed(cluster, len(NODES), postgres, api=len(NODES)))
        world = World(cluster, relay, around.enter_context(IndexWriter(cluster)))
        world.at_rest()
        world.load(folder, [key_of(number) for number in range(KEYS)])
        yield world


@pytest.fixture
def world(_world: World) -> Iterator[World]:
    """Whole before each test."""
    _world.relay.heal()
    _world.cluster.up()
    _world.at_rest()
    yield _world
    _world.relay.heal()


def test_a_put_is_soon_on_every_node(world: World, record_property: Callable[[str, object], None]) -> None:
    before = [world.metric(node, VISIBLE) for node in NODES]
    keys = [key_of(number, "steady") for number in range(PUT_RATE * PUT_S)]
    kept = world.writer.begin(world.writer.put_steadily(keys, PUT_RATE)).result(60 + 3 * PUT_S)
    assert (kept.written, kept.batches) == (len(keys), PUT_S * BATCHES_PER_S), "the load ran, batch by batch"
    world.whole()
    after = [world.metric(node, VISIBLE) for node in NODES]
    taken = {bound: sum(a[bound] - b[bound] for a, b in zip(after, before, strict=True)) for bound in after[0]}
    counted = taken['{le="+Inf"}']
    assert counted == len(keys) * (len(NODES) - 1), "each put is seen at each of the four others"
    within = min(float(bound[5:-2]) for bound, count in taken.items() if count >= 0.99 * counted)
    record_property("visible_p99_s", within)
    shares = {bound[5:-2]: round(count / counted, 4) for bound, count in taken.items()}
    record_property("puts_per_s", round(kept.rate, 1))
    print(
        f"{kept.written} puts in {kept.seconds:.2f} s, {kept.rate:.1f}/s of the {PUT_RATE}/s that were asked for, over"
        f" {KEYS} keys: on all nodes, p99 within {within} s; {shares}"
    )
    assert all(world.cluster.ask("serveindex", "get", key)["agree"] for key in (keys[0], keys[-1]))


def test_a_replica_that_missed_one_percent_is_reconciled_by_moving_little_more(
    world: World, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    others = tuple(node for node in NODES if node != VICTIM)
    world.cluster.ask("node", "stop", VICTIM, "--yes")
    missed = [key_of(number, "missed") for number in range(KEYS // 100)]
    world.load(tmp_path, missed)
    lacking = sum(len(row_of(key).value) for key in missed)
    world.whole(len(others))
    before, wire = world.sent_by(others), world.relay.carried("data")
    world.cluster.start(VICTIM)
    world.whole()
    wire = world.relay.carried("data") - wire
    after, (keys, size) = world.sent_by(NODES), world.size()
    moved = {why: after[why] - before[why] for why in after}
    record_property("moved", moved)
    print(
        f"{len(missed)} of {keys} keys missed: moved {moved} of {size} bytes, {sum(moved.values()) / size:.2%};"
        f" everything on the data lane meanwhile: {wire} bytes, {wire / size:.2%}"
    )
    assert sum(moved.values()) >= lacking
    assert sum(moved.values()) < 0.03 * size
    assert world.replica(VICTIM)["keys"] == keys


def test_an_empty_replica_is_streamed_over_a_cut_and_its_node_is_not_ready_before(world: World) -> None:
    others = tuple(node for node in NODES if node != VICTIM)
    keys, size = world.size()
    world.cluster.ask("node", "stop", VICTIM, "--yes")
    shutil.rmtree(lay.node_dir(world.cluster.data, VICTIM) / "replica")
    rate = {"PROMOVOLVE_NODE_REPLICATION__STREAM_BYTES_PER_S": str(max(1 << 16, int(size / STREAM_S)))}
    plain = world.cluster.env
    world.cluster.env = {**plain, **rate}
    try:
        starting = world.cluster.begun("node", "start", VICTIM, "--data", str(world.cluster.data), "-t", f"{START_S}s")
    finally:
        world.cluster.env = plain
    seen: list[tuple[int, str]] = []

    def look() -> bool:
        """Whether a part of the replica is there, by its node's own words."""
        seen.append(world.ready(VICTIM))
        return any(PART.fullmatch(reason) for reason in seen[-1][1].split("; "))

    eventually(look, bool, START_S, "a part of the replica")
    for other in others:
        world.relay.cut(VICTIM, other, ("data",))
        world.relay.cut(other, VICTIM, ("data",))
    held: list[int] = []

    def stands() -> bool:
        look()
        held.append(world.sent_by(others)["reconciliation"])
        return len(held) > STILL and len(set(held[-STILL:])) == 1

    eventually(stands, bool, 15, "a stream that is cut")
    assert seen[-1][0] == 503
    at_hand = int(world.metric(VICTIM, HELD)[""])
    assert 0 < at_hand < keys, "it was cut in the midst of it"
    world.relay.heal()
    eventually(look, lambda _: seen[-1][0] == 200, 2 * START_S, "a node that is ready")
    assert int(world.metric(VICTIM, HELD)[""]) == keys, "ready, so complete"
    moved = world.sent_by(others)["reconciliation"] - held[-1]
    lacking = (size // keys + ENTRY_OVERHEAD_BYTES) * (keys - at_hand)
    world.cluster.ended(starting)
    world.whole()
    print(f"{keys} keys of {size} bytes streamed, cut at {at_hand}: {moved} bytes sent for the {lacking} that lacked")
    assert len({said for _, said in seen if "synchronising" in said}) > 2, "progress is said"
    assert lacking * 0.9 < moved < lacking + REPEATED_MAX, "what was there before the cut is not sent again"
