"""A cluster starts from each file in configs/: only addresses and folders are changed to this machine's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_world import eventually
from postgres_clock import new_schema, run_sql

from node.core.settings import load_settings
from node.wire.keys import write_key_pair
from node.wire.roster import NodeEntry, OperatorEntry, OperatorRole, Roster, render_roster
from node.wire.zmq_sockets import new_key_pair
from scripts.postgres_server import PostgresServer

CONFIGS = Path(__file__).parents[2] / "configs"
STARTED_S = 90


class Node:
    """One node process from a settings file of this test's folder."""

    def __init__(self, config: Path) -> None:
        self.settings = load_settings(config)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PROMOVOLVE")}
        self._log = config.with_suffix(".log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "node", "--config", str(config)], env=environment, stderr=log, stdout=log
            )

    def ready(self) -> str:
        """Nothing, or why it is not."""
        if self._process.poll() is not None:
            raise AssertionError(f"the node ended: {self._log.read_text()[-3_000:]}")
        try:
            with urllib.request.urlopen(f"http://{self.settings.wire.http}/healthz/ready", timeout=5):
                return ""
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError as error:
            return str(error)

    def faults(self) -> int:
        """How many it says that it has."""
        with urllib.request.urlopen(f"http://{self.settings.wire.http}/metrics", timeout=5) as page:
            lines = page.read().decode().splitlines()
        return next(int(float(line.split()[1])) for line in lines if line.startswith("promovolve_faults "))

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout=90)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


@pytest.fixture
def nodes() -> Iterator[list[Node]]:
    made: list[Node] = []
    yield made
    for node in made:
        node.end()


def prepare(folder: Path, *names: str) -> None:
    """Keys and the roster, as the files' comments say."""
    entries = []
    for name in (*names, "operator"):
        pair = new_key_pair()
        write_key_pair(folder / f"{name}.key", pair)
        entries.append(pair.public)
    people = (OperatorEntry("operator", entries[-1], OperatorRole.ADMIN),)
    roster = Roster(tuple(NodeEntry(*pair) for pair in zip(names, entries[:-1], strict=True)), people)
    (folder / "roster.toml").write_text(render_roster(roster))
    (folder / "http-access.toml").touch(0o600)  # nobody has a token


def localised(source: str, folder: Path, changes: dict[str, str]) -> str:
    """The file's text with this machine's folders and addresses; every change must be for something."""
    text = (CONFIGS / source).read_text()
    for old, new in {"/etc/promovolve": str(folder), "/var/lib/promovolve": str(folder / "var"), **changes}.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def addresses(host: str, ports: list[int]) -> dict[str, str]:
    return {f"{host}:{7400 + index}": f"127.0.0.1:{port}" for index, port in enumerate(ports)}


@pytest.mark.parametrize("source", ["one-machine.toml", "every-key.toml"])
def test_a_node_starts_from_the_file_for_one_machine(tmp_path: Path, nodes: list[Node], source: str) -> None:
    prepare(tmp_path, "node-1")
    config = tmp_path / "node.toml"
    config.write_text(localised(source, tmp_path, addresses("127.0.0.1", free_ports(4))))
    nodes.append(Node(config))
    eventually(nodes[0].ready, lambda why: not why, STARTED_S, "readiness")
    assert (tmp_path / "var" / "store" / "data.mdb").exists()
    assert nodes[0].stop() == 0


def test_three_hosts_share_a_database(tmp_path: Path, nodes: list[Node], postgres: PostgresServer) -> None:
    """Three data folders and three sets of addresses stand for three hosts. The file is that of the first host."""
    names = ("node-1", "node-2", "node-3")
    prepare(tmp_path, *names)
    schema = new_schema()
    (tmp_path / "postgres.dsn").write_text(postgres.dsn)
    (tmp_path / "postgres.dsn").chmod(0o600)
    ports = free_ports(12)
    own = [addresses(f"10.0.0.{number + 1}", ports[4 * number :][:4]) for number in range(3)]
    seeds = {host: address for each in own for host, address in each.items() if host.endswith("7400")}
    for number, name in enumerate(names):
        text = (CONFIGS / "three-hosts-postgres.toml").read_text()
        line = next(line for line in text.splitlines() if line.startswith("seeds"))
        for index in range(4):  # what "differs"
            text = text.replace(f'= "10.0.0.1:740{index}"', f'= "{own[number][f"10.0.0.{number + 1}:740{index}"]}"')
        changed = line
        for host, address in seeds.items():
            changed = changed.replace(host, address)
        text = text.replace(line, changed).replace('name = "node-1"', f'name = "{name}"')
        text = text.replace("/promovolve/node-1", f"/promovolve/{name}").replace("/etc/promovolve", str(tmp_path))
        text = text.replace("/var/lib/promovolve", str(tmp_path / "var")).replace(
            'schema_name = "promovolve"', f'schema_name = "{schema}"'
        )
        config = tmp_path / f"{name}.toml"
        config.write_text(text)
        nodes.append(Node(config))
    for node in nodes:
        eventually(node.ready, lambda why: not why, STARTED_S, "readiness")
    owners = "SELECT node, count(*)::int FROM {}.placement WHERE state = 'running' GROUP BY node".format
    eventually(
        lambda: {row[0]: row[1] for row in run_sql(postgres.dsn, owners(schema))},
        lambda found: found.keys() == set(names) and sorted(found.values()) == [85, 85, 86],
        STARTED_S,
        "a placement of all shards, evenly on all nodes",
    )
    assert not list((tmp_path / "var").glob("**/store"))
    assert [node.stop() for node in nodes] == [0, 0, 0]


def test_g1_a_node_waits_for_its_database_and_outlives_it(
    tmp_path: Path, nodes: list[Node], own_postgres: PostgresServer
) -> None:
    """Down at the start: alive, not ready, and it says why. Down later: the process stays, and is whole again after."""
    own_postgres.stop()
    prepare(tmp_path, "node-1")
    (tmp_path / "postgres.dsn").write_text(own_postgres.dsn)
    (tmp_path / "postgres.dsn").chmod(0o600)
    text = localised("one-machine.toml", tmp_path, addresses("127.0.0.1", free_ports(4)))
    config = tmp_path / "node.toml"
    store = f'[store]\nkind = "postgres"\ndsn_file = "{tmp_path}/postgres.dsn"\n'
    config.write_text(text[: text.index("[store]")] + store)
    nodes.append(Node(config))
    why = eventually(nodes[0].ready, lambda found: "E-STORE" in found or "PostgreSQL" in found, STARTED_S, "a reason")
    assert "waits for the state store" in why
    own_postgres.start()
    eventually(nodes[0].ready, lambda found: not found, STARTED_S, "readiness")
    own_postgres.stop()
    eventually(nodes[0].faults, bool, STARTED_S, "a fault that says so")
    own_postgres.start()
    eventually(nodes[0].faults, lambda count: not count, STARTED_S, "the end of the fault")
    eventually(nodes[0].ready, lambda found: not found, STARTED_S, "readiness again")
    assert nodes[0].stop() == 0
