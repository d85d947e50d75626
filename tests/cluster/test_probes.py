"""What a supervisor and a load balancer are told while a node is killed or stands still, or the store is away."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import pytest
from cluster_world import Cluster, eventually
from relayed import relayed

from promovolvectl.local import layout as lay
from scripts.postgres_server import PostgresServer

NODES = 4
STORE_AWAY_S = 10.0


@dataclass
class Told:
    """Of one node: the statuses of `/alive`, and every answer of `/ready` that was not 200, since it was last asked
    for. 0: nothing answered."""

    alive: set[int] = field(default_factory=set)
    unready: list[tuple[int, list[str]]] = field(default_factory=list)
    rounds: int = 0


class Watch:
    """Asks every node for both probes, again and again, each on a thread of its own."""

    def __init__(self, addresses: dict[str, str]) -> None:
        self.told = {name: Told() for name in addresses}
        self._addresses = addresses
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(name,), daemon=True) for name in addresses]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def afresh(self) -> dict[str, Told]:
        """From now on; every node is asked before it returns."""
        self.told = {name: Told() for name in self._addresses}
        return self.told

    def asked(self, rounds: int, *names: str) -> None:
        """Until each of them was asked so many times more."""
        before = {name: self.told[name].rounds for name in names}
        eventually(
            lambda: min(self.told[name].rounds - before[name] for name in names), lambda n: n >= rounds, 30, "probes"
        )

    def _ask(self, name: str) -> None:
        while not self._stop.wait(0.05):
            told = self.told[name]
            told.alive.add(_get(self._addresses[name], "/alive")[0])
            status, document = _get(self._addresses[name], "/ready")
            if status != 200:
                told.unready.append((status, document.get("reasons", [])))
            told.rounds += 1


def _get(address: str, path: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=3) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except OSError:
        return 0, {}


@pytest.fixture
def watched(tmp_path: Any) -> Iterator[tuple[Cluster, Watch, PostgresServer]]:
    """Four nodes, each with probes, their state in a database of their own."""
    server, cluster = PostgresServer(tcp=True), Cluster(tmp_path)
    try:
        server.start()
        with relayed(cluster, NODES, server, "--demo", api=NODES):
            cluster.whole()
            layout = lay.read(cluster.data)
            assert layout is not None
            with Watch({node.name: node.http for node in layout.nodes}) as watch:
                yield cluster, watch, server
    finally:
        server.close()


def through(watch: Watch, fault: Callable[[], None], over: Callable[[], object], *others: str) -> dict[str, Told]:
    """What was told from just before a fault until `over` has returned."""
    told = watch.afresh()
    watch.asked(2, *others)
    fault()
    over()
    watch.asked(2, *others)
    return told


def test_p92_a_probe_speaks_of_its_own_node_only(watched: tuple[Cluster, Watch, PostgresServer]) -> None:
    """P92: alive throughout; whoever is not concerned stays ready; who is not ready says why."""
    cluster, watch, server = watched
    pids, names = cluster.pids(), tuple(watch.told)

    def stay_well(told: dict[str, Told], *concerned: str) -> None:
        for name in names:
            if name not in concerned:
                assert told[name].alive == {200}, name
                assert told[name].unready == [], name

    frozen = "entity-3"
    others = tuple(name for name in names if name != frozen)
    try:
        told = through(
            watch,
            lambda: os.kill(pids[frozen], signal.SIGSTOP),
            lambda: cluster.run("cluster", "wait", "--for", "nodes=3", "-t", "60s"),
            *others,
        )
    finally:
        os.kill(pids[frozen], signal.SIGCONT)
    stay_well(told, frozen)
    cluster.restore()

    def store_away() -> None:
        server.stop("immediate")
        began = time.monotonic()
        eventually(time.monotonic, lambda now: now - began >= STORE_AWAY_S, 2 * STORE_AWAY_S, "the store's time away")
        watch.asked(2, *names)
        server.start()

    told = through(watch, store_away, cluster.whole, *names)
    for name in names:
        assert told[name].alive == {200}, name
        assert all(reasons for _, reasons in told[name].unready), (name, told[name].unready)

    first = cluster.coordinator()
    others = tuple(name for name in names if name != first)
    told = through(
        watch,
        lambda: cluster.kill(first),
        lambda: cluster.run("cluster", "wait", "--for", "nodes=3", "--for", "shards=allocated", "-t", "60s"),
        *others,
    )
    stay_well(told, first)
    unready = [reasons for status, reasons in told[first].unready if status == 503]
    assert all(unready), "a node that stops says why it is not ready"
