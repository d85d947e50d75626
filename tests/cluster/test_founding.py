"""The files of `cluster init`, as a person uses them: copied nowhere, since all nodes are here, but started by hand."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
from pathlib import Path

from cluster_world import Cluster

ROLES = {"n1": "api,crawler,entity,singleton", "n2": "entity,singleton", "n3": "entity"}


def free_port(count: int) -> int:
    """The first of so many neighbouring ports that nobody uses."""
    for first in range(26_000, 32_000, count):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free ports")


def test_nodes_that_are_started_from_the_files_are_a_cluster_that_its_profile_reaches(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    made, port = tmp_path / "made", free_port(4 * len(ROLES))
    nodes = [word for name, roles in ROLES.items() for word in ("--node", f"{name}={roles}@127.0.0.1")]
    nodes[1] += f":{port}"
    places = ("--out", str(made), "--home", str(made), "--data", str(tmp_path / "var"))
    (tmp_path / "var").mkdir()
    document = cluster.ask("cluster", "init", "-p", "founded", *places, *nodes)
    processes = []
    try:
        for node in document["nodes"]:
            words = node["start"].split()
            assert words[:3] == ["python", "-m", "node"]
            with (tmp_path / f"{node['name']}.log").open("w") as log:
                processes.append(subprocess.Popen([sys.executable, *words[1:]], stdout=log, stderr=log, cwd=tmp_path))
        wanted = ("--for", f"nodes={len(ROLES)}", "--for", "shards=allocated", "--for", "healthy")
        cluster.ask("cluster", "wait", *wanted, "-t", "90s")
        rows = {row["name"]: ",".join(row["roles"]) for row in cluster.ask("node", "list")["items"]}
        assert {name: set(roles.split(",")) for name, roles in rows.items()} == {
            name: set(roles.split(",")) for name, roles in ROLES.items()
        }
        cluster.ask("site", "create", "a.example", "--publisher", "ann", "--slot", "top:728x90", "--reason", "first")
        assert cluster.ask("audit", "list", "--limit", "1")["items"][0]["reason"] == "first"
        cluster.ask("cluster", "shutdown", "--yes", "-t", "60s")
        assert [process.wait(60) for process in processes] == [0] * len(ROLES)
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
