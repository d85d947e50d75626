"""docs/ci.md does what it says: its scripts are taken out of the page and run as they stand."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import uuid
from pathlib import Path

import pytest
from cluster_world import CTL, Cluster, ended

from promovolvectl.client.exit_codes import ExitStatus

PAGE = Path(__file__).parents[2] / "docs" / "ci.md"
ROLLING, NIGHTLY, READING = re.findall(
    r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)
ENTITY_NODES = ("entity-1", "entity-2", "entity-3")
SCRIPT_S = 300


@pytest.fixture
def summary(tmp_path: Path) -> Path:
    return tmp_path / "summary.md"


def run(script: str, cluster: Cluster, summary: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(CTL).parent}{os.pathsep}{os.environ['PATH']}"
    told = {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTIONS": "true", "BACKUPS": str(summary.parent)}
    env = {**cluster.env, "PATH": path, **told, **more}
    return subprocess.run(["sh", "-c", script], env=env, capture_output=True, text=True, timeout=SCRIPT_S, check=False)


def killed(pid: int) -> None:
    """The others may have removed it while it was stopped: what it would do then is no matter here."""
    os.kill(pid, signal.SIGKILL)
    ended(pid)


def test_the_rolling_restart_restarts_each_entity_node_once(cluster: Cluster, summary: Path) -> None:
    before = cluster.pids()
    done = run(ROLLING, cluster, summary)
    assert done.returncode == 0, done.stderr
    after = cluster.pids()
    assert after["api-1"] == before["api-1"]
    assert all(after[name] != before[name] for name in ENTITY_NODES)
    assert "::error" not in done.stderr
    told = summary.read_text(encoding="utf-8")
    assert told.count("### NodeStop") == told.count("### NodeStart") == len(ENTITY_NODES)
    assert "| entity-2 ready | yes |" in told
    assert "\x1b" not in done.stdout + done.stderr


def test_the_rolling_restart_stops_at_the_first_unhealthy_node(cluster: Cluster, summary: Path) -> None:
    """The first one dies at the first write of its new life: the job ends there, and the others are left alone."""
    before = cluster.pids()
    done = run(ROLLING, cluster, summary, PROMOVOLVE_FAULT_AT="store.before_begin:kill")
    told = summary.read_text(encoding="utf-8")
    assert done.returncode not in (0, 2), done.stderr
    assert "::error" in done.stderr
    assert told.count("### NodeStop") == 1
    assert "### NodeStart" not in told
    stopped, *others = ENTITY_NODES
    assert stopped in done.stderr
    left = cluster.pids()
    assert {name: left[name] for name in ("api-1", *others)} == {name: before[name] for name in ("api-1", *others)}
    assert left.get(stopped) != before[stopped]
    again = run(ROLLING, cluster, summary)
    assert again.returncode == 9, "while it is away, the job given again fails, too"
    assert f"away: {stopped}" in again.stderr
    assert cluster.pids() == left
    cluster.restore("--demo")


@pytest.mark.parametrize("script", [ROLLING, NIGHTLY, READING], ids=["rolling", "nightly", "reading"])
def test_no_script_ends_well_where_its_key_is_refused_or_no_node_is_reached(
    cluster: Cluster, summary: Path, script: str
) -> None:
    """A shell ignores how a command ends that stands in the head of a loop: then nothing is done, and all is green."""
    before, key = cluster.pids(), summary.parent / "revoked.key"
    name = f"ci-{uuid.uuid4().hex[:8]}"  # a name is given out once
    cluster.run("auth", "key", "create", name, "--role", "operator", "--out", str(key), "--yes")
    cluster.run("auth", "key", "revoke", name, "--yes")
    refused = run(script, cluster, summary, PROMOVOLVECTL_KEY_FILE=str(key))
    assert refused.returncode == ExitStatus.NOT_ALLOWED, refused.stderr
    with socket.socket() as deaf:  # bound, and nobody listens: whoever connects is refused, as where a cluster is down
        deaf.bind(("127.0.0.1", 0))
        down = run(script, cluster, summary, PROMOVOLVECTL_ENDPOINT=f"127.0.0.1:{deaf.getsockname()[1]}")
    assert down.returncode == ExitStatus.UNREACHABLE, down.stderr
    assert cluster.pids() == before


def test_the_nightly_job_is_content_with_a_whole_cluster_and_not_with_a_stopped_node(
    cluster: Cluster, summary: Path
) -> None:
    assert run(NIGHTLY, cluster, summary).returncode == 0
    told = summary.read_text(encoding="utf-8")
    assert "### ClusterCheck" in told
    assert "### StoreVerify" in told
    assert len(list(summary.parent.glob("*.pbk"))) == 1
    stopped = cluster.pids()["entity-3"]
    os.kill(stopped, signal.SIGSTOP)
    try:
        assert run(NIGHTLY, cluster, summary).returncode != 0
    finally:
        killed(stopped)


def test_what_the_page_reads_is_empty_when_all_are_reachable(cluster: Cluster, summary: Path) -> None:
    done = run(READING, cluster, summary)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
