"""One of five nodes stands still: every command that gathers from nodes shows the rest, names it, and ends with 12."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from cluster_world import Cluster, eventually
from matrix_seat import in_pipe

from promovolvectl.cli.walk import leaves

# Each gathers from all members. The words behind a leaf's name are what it needs; {…} is filled in with what exists.
GATHERING = {
    "cluster status": "",
    "cluster views": "",
    "cluster top": "--interval 200ms",
    "cluster decisions": "",
    "node list": "",
    "node status": "{victim}",
    "node logs": "--limit 3",
    "shard list": "",
    "shard show": "17",
    "shard check": "",
    "entity list": "",
    "entity quarantine list": "",
    "entity history": "site {site}",
    "deadletter list": "",
    "events": "--limit 3",
    "serveindex maps": "",
    "serveindex get": "{key}",
    "serveindex status": "",
    "serveindex lag": "",
    "replay coverage": "",
}
# These look for faults, and a silent node is one: they end with 10 and name it all the same.
FINDING = {"cluster health": "", "node stuck": ""}
WITHIN = "3s"


@dataclass(frozen=True)
class Five:
    cluster: Cluster
    victim: str
    pid: int
    words: dict[str, str]


@pytest.fixture(scope="module")
def five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Five]:
    cluster = Cluster(tmp_path_factory.mktemp("silent"))
    try:
        cluster.up("--demo", "--nodes", "5")
        cluster.whole(nodes=5)
        site = cluster.sites()[0]["site"]
        slot = cluster.ask("site", "show", site)["slots"][0]["slot"]
        # The one whose silence costs most: it owns the site, and somebody else coordinates.
        status = cluster.status()
        away = [row["name"] for row in status["nodes"] if "entity" in row["roles"]]
        victim = next(name for name in sorted(away, reverse=True) if name != status["coordinator"])
        yield Five(cluster, victim, cluster.pids()[victim], {"victim": victim, "site": site, "key": f"{site}|{slot}"})
        cluster.down()
    finally:
        cluster.last_resort()


@contextlib.contextmanager
def silent(five: Five) -> Iterator[None]:
    """The node stands still meanwhile, for less long than the others take to decide that it is gone."""
    os.kill(five.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(five.pid, signal.SIGCONT)
        eventually(
            lambda: five.cluster.status(),
            lambda found: found is not None and found["converged"] and all(row["ready"] for row in found["nodes"]),
            30,
            "a whole cluster again",
        )


def asked(five: Five, name: str, words: str) -> tuple[int, Any]:
    """The status and document of one command, which gets no longer than `WITHIN` for its answer."""
    line = (*name.split(), *words.format(**five.words).split(), "-t", WITHIN, "-o", "json")
    env = {key: five.cluster.env[key] for key in ("PROMOVOLVECTL_CONFIG", "XDG_STATE_HOME")}
    with silent(five):
        found = in_pipe(line, {**env, "XDG_CACHE_HOME": str(five.cluster.data / "cache")})
    assert found.out, found
    return found.status, json.loads(found.out)


@pytest.mark.parametrize("name", GATHERING)
def test_acceptance_5_a_gathering_command_names_the_silent_node_and_ends_with_12(name: str, five: Five) -> None:
    """P47 for every list: one of five nodes is stopped by SIGSTOP."""
    status, document = asked(five, name, GATHERING[name])
    assert status == 12, document
    assert not document["complete"]
    assert [missing["node"] for missing in document["missing"]] == [five.victim]


@pytest.mark.parametrize("name", FINDING)
def test_a_command_that_looks_for_faults_finds_the_silent_node(name: str, five: Five) -> None:
    status, document = asked(five, name, FINDING[name])
    assert status == 10, document
    assert [missing["node"] for missing in document["missing"]] == [five.victim]


def test_the_silence_of_the_node_that_is_asked_first_costs_no_answer(five: Five) -> None:
    """The profile's first endpoint is the one that stands still: the next is asked, in the same time."""
    endpoints = sorted(five.cluster.ask("node", "list")["items"], key=lambda row: row["name"] != five.victim)
    words = " ".join(f"--endpoint {row['admin']}" for row in endpoints[:2])
    status, document = asked(five, "cluster views", words)
    assert status == 12
    assert document["observed_by"] != five.victim
    assert [missing["node"] for missing in document["missing"]] == [five.victim]


def test_the_gathering_commands_exist() -> None:
    assert {*GATHERING, *FINDING} <= {leaf.name for leaf in leaves()}
