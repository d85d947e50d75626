"""Nodes on hosts of their own, as far as the kernel's network is concerned: namespaces, and a database for all."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cluster_world import Cluster, ended, eventually, runs
from net_hosts import NetHosts, needs_namespaces
from relayed import database, edit

from promovolvectl.local import access, files, ports
from promovolvectl.local import layout as lay
from promovolvectl.local.roles import spread
from scripts.postgres_server import PostgresServer

OUT_WITHIN_S = 20.0
LEAVER = "entity-3"
NAMES = ("api-1", "entity-1", "entity-2", LEAVER)


class World:
    """The cluster, its hosts, and its processes."""

    def __init__(self, cluster: Cluster, hosts: NetHosts) -> None:
        self.cluster = cluster
        self.hosts = hosts
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str) -> None:
        command = [sys.executable, "-P", "-m", "node", "--config", str(lay.node_file(self.cluster.data, name))]
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*self.hosts.within(name), *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def log(self, name: str) -> Path:
        return lay.log_file(self.cluster.data, name)

    def whole(self) -> None:
        """All up, with all shards and equal replicas."""
        for name in NAMES:
            if not runs(self.processes[name].pid):
                self.processes[name].wait()
                self.start(name)
        conditions = ("converged", f"nodes={len(NAMES)}", "shards=allocated", "replicas=agree")
        self.cluster.run("cluster", "wait", "-t", "60s", *(word for c in conditions for word in ("--for", c)))
        self.cluster.even()

    def members(self) -> set[str]:
        status = self.cluster.status()
        return {node["name"] for node in status["nodes"] if node["status"] == "up"} if status else set()

    def end(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def prepared(folder: Path, hosts: NetHosts) -> lay.Layout:
    """The files of a cluster whose nodes listen at their hosts' addresses."""
    lay.claim(folder)
    plan = ports.plan(folder, "hosts", spread(len(NAMES)))

    def moved(node: lay.NodePlace) -> lay.NodePlace:
        there = {what: a.replace(ports.HOST, hosts.address(node.name)) for what, a in node.addresses().items()}
        return msgspec.structs.replace(node, **there)

    layout = msgspec.structs.replace(plan, nodes=tuple(moved(node) for node in plan.nodes))
    assert tuple(node.name for node in layout.nodes) == NAMES
    lay.write(folder, layout)
    return layout


@pytest.fixture(scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory, postgres: PostgresServer) -> Iterator[World]:
    needs_namespaces()
    folder = tmp_path_factory.mktemp("hosts")
    with NetHosts(NAMES) as hosts:
        cluster = Cluster(folder, hosts.within(NetHosts.HUB))
        layout = prepared(cluster.data, hosts)
        keys = files.prepare(cluster.data, layout)
        store = database(folder, postgres)
        for name in NAMES:
            edit(cluster.data, name, "store", store, whole=True)
        access.save_profile(folder / "config.toml", access.profile_of(cluster.data, layout, keys))
        world = World(cluster, hosts)
        try:
            for name in NAMES:
                world.start(name)
            yield world
        finally:
            world.end()


@pytest.fixture
def world(_world: World) -> World:
    _world.whole()
    return _world


def removed_by_the_others(world: World, before: dict[int, Any]) -> None:
    """They take its shards under higher epochs than `before`; it ends by itself and says why."""
    lost = [number for number, row in before.items() if row["node"] == LEAVER]
    assert lost
    eventually(world.members, lambda found: found == set(NAMES) - {LEAVER}, OUT_WITHIN_S, "three members")
    world.cluster.run("cluster", "wait", "-t", "30s", "--for", "shards=allocated")
    after = world.cluster.shards()
    assert all(after[n]["node"] != LEAVER and after[n]["epoch"] > before[n]["epoch"] for n in lost)
    assert all(after[n] == row for n, row in before.items() if n not in lost)
    ended(world.processes[LEAVER].pid, within_s=OUT_WITHIN_S)
    log = world.log(LEAVER).read_text()
    assert "E-REMOVED" in log.strip().splitlines()[-1]
    assert "Traceback" not in log


def test_n1_n14_a_host_whose_cable_is_pulled(world: World) -> None:
    """N1, N14: no connection is told that it ended; heartbeats tell, both sides decide alike, and it comes back."""
    before = world.cluster.shards()
    world.hosts.unplug(LEAVER)
    try:
        removed_by_the_others(world, before)
    finally:
        world.hosts.plug(LEAVER)
    world.whole()


def test_n2_n21_a_host_whose_kernel_refuses_to_send(world: World) -> None:
    """N2, N21: it hears and is not heard; errors of its own sending are loss to it, not a reason to fail."""
    before = world.cluster.shards()
    others = [name for name in NAMES if name != LEAVER]
    for other in others:
        world.hosts.forbid(LEAVER, other)
    try:
        removed_by_the_others(world, before)
    finally:
        for other in others:
            world.hosts.allow(LEAVER, other)
    world.whole()
