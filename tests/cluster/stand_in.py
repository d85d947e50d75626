"""A node of a cluster played by a script beside these tests, which does one thing that nothing from outside could bring
about; its own process is back with the next `up`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w
from cluster_world import Cluster, eventually

NODE = "entity-3"
DRAIN_S = 600  # no phase of a drain overruns because the machine is busy


@contextlib.contextmanager
def played(cluster: Cluster, folder: Path, script: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`NODE` as the script plays it, in a whole cluster; it is gone behind it."""
    cluster.ask("node", "stop", NODE, "--yes")
    settings = tomllib.loads((cluster.data / "nodes" / NODE / "node.toml").read_text())
    settings["node"]["drain_deadline_s"] = DRAIN_S
    config = folder / "node.toml"
    config.write_text(tomli_w.dumps(settings))
    file = Path(__file__).with_name(script)
    command = [sys.executable, "-P", str(file), *words, "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True) as child:
        try:
            cluster.run("node", "wait", NODE, "--for", "ready", "-t", "60s")
            assert cluster.pids()[NODE] == child.pid
            cluster.whole()
            yield child
        finally:
            child.kill()


@dataclass(frozen=True)
class Slow:
    """A node that holds back the writes of one campaign, which lives on it, until it is told; the write of its pause is
    under way."""

    child: subprocess.Popen[str]
    campaign: str
    shard: int
    goes_on: Path

    @property
    def blocker(self) -> str:
        return f"entity/campaign/{self.campaign}: a write is under way, its shard {self.shard} stops"

    def go_on(self) -> None:
        self.goes_on.touch()


@contextlib.contextmanager
def slow(cluster: Cluster, folder: Path) -> Iterator[Slow]:
    """In place of `NODE`, which is back afterwards, and the campaign active."""
    campaign = next(row["campaign"] for row in cluster.ask("campaign", "list")["items"] if row["status"] == "active")
    goes_on = folder / "goes-on"
    with played(cluster, folder, "slow_writer_node.py", f"campaign/{campaign}", str(goes_on)) as child:
        shard = cluster.ask("shard", "where", "campaign", campaign)["shard"]
        cluster.even()
        cluster.ask("shard", "move", str(shard), "--to", NODE, "--yes", "-t", "60s")
        with cluster.begun("campaign", "pause", campaign) as pause:  # which gives up before the write is done
            try:
                eventually(goes_on.with_suffix(".held").exists, bool, 60, "a write that is held back")
                yield Slow(child, campaign, shard, goes_on)
            finally:
                pause.kill()
    cluster.restore()
    cluster.ask("campaign", "resume", campaign, "-t", "30s")


def held(operation: Any) -> list[str]:
    """What a drain says it waits for while its shards move."""
    return [text for phase in operation["phases"] if phase["name"] == "shards" for text in phase["blockers"]]


def running_drain(cluster: Cluster) -> str:
    """The id of the drain that is under way."""
    found = eventually(lambda: cluster.ask("op", "list", "--state", "running")["items"], bool, 20, "a running drain")
    return str(found[0]["id"])
