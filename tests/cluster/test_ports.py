"""Ports that somebody else has."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest
from cluster_world import Cluster


@contextlib.contextmanager
def taken(address: str) -> Iterator[None]:
    host, _, port = address.rpartition(":")
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, int(port)))
        listener.listen()
        yield


@pytest.mark.parametrize("lane", ["control", "data", "admin", "http"])
def test_n17_a_port_in_use_is_named_at_the_start(cluster: Cluster, lane: str) -> None:
    """N17: the start is refused with the port and what to do, by the command and by the node; freed, it starts."""
    name = "api-1" if lane == "http" else "entity-2"
    config = cluster.data / "nodes" / name / "node.toml"
    address = tomllib.loads(config.read_text())["wire"][lane]
    alone = ("--force", "last-of-role") if lane == "http" else ()
    cluster.ask("node", "stop", name, "--yes", *alone)
    with taken(address):
        error = cluster.refused("node", "start", name, "--data", str(cluster.data), status=17)
        node = subprocess.run(
            [sys.executable, "-P", "-m", "node", "--config", str(config)], capture_output=True, text=True, timeout=60
        )
    assert (error["code"], error["object"]) == ("E-PORT", address)
    assert name in error["message"]
    assert address.rpartition(":")[2] in error["hint"]
    assert node.returncode in (16, 17), node.stderr
    said = [line for line in node.stderr.splitlines() if line.startswith(("E-", "hint:"))]
    assert len(said) == 2, node.stderr
    assert address in said[0]
    cluster.start(name)
    cluster.whole()
