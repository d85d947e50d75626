"""V9 and E10 of `docs/checks.md`: who coordinates is killed amid a move, or the move's source or target, and the
command that watches tells and ends.

Two nodes here coordinate and own no shards, so that one of them can be armed to die or to stand still at a named step
of the next move. PROMOVOLVE_TEST_SCALE=10 makes it every step of each; otherwise the coordinator's death is V9's alone.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from cluster_world import Cluster, ended, eventually, runs, stands_still
from relayed import edit

from node.core.faultpoints import POINTS
from node.core.hashing import shard_of
from promovolvectl.local import files, ports
from promovolvectl.local import layout as lay

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
STEPS = [point for point in POINTS if point.startswith("handoff.")]
# Of three owners one may go: the others are a majority.
FRONT, VICTIM, OWNERS = "api-1", "entity-1", ("entity-2", "entity-3", "entity-4")
ROLES = {FRONT: ("api", "crawler", "singleton"), VICTIM: ("singleton",), **dict.fromkeys(OWNERS, ("entity",))}
MOVE_S = 60
WITHIN_S = 2 * MOVE_S  # for who waits for the command: it ends by itself


@pytest.fixture(scope="module")
def led(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("led"))
    try:
        lay.claim(cluster.data)
        layout = ports.plan(cluster.data, "local", tuple(ROLES.items()))
        lay.write(cluster.data, layout)
        files.prepare(cluster.data, layout)
        seeds = [f"{node.name}@{node.control}" for node in layout.nodes if node.name in (FRONT, VICTIM, OWNERS[0])]
        for node in layout.nodes:  # one of them is there at any time
            edit(cluster.data, node.name, "wire", {"seeds": seeds})
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


def whole(cluster: Cluster, nodes: int) -> None:
    conditions = ("converged", f"nodes={nodes}", "shards=allocated")
    cluster.run("cluster", "wait", "-t", "60s", *(word for c in conditions for word in ("--for", c)))


def alone(cluster: Cluster, fault: str) -> int:
    """The process of `VICTIM`, armed, which is the only one that could coordinate, and does; shards are even before,
    so that nothing moves but what a test moves."""
    cluster.up()
    whole(cluster, len(ROLES))
    cluster.even()
    cluster.ask("node", "stop", VICTIM, "--yes")
    pid = cluster.start(VICTIM, fault)
    cluster.ask("node", "stop", FRONT, "--yes", "--force", "last-of-role")
    eventually(lambda: cluster.status()["coordinator"], lambda name: name == VICTIM, 30, "that it coordinates")
    whole(cluster, len(ROLES) - 1)
    return pid


def armed(cluster: Cluster, fault: str) -> int:
    """The same, with a successor that is there already."""
    pid = alone(cluster, fault)
    cluster.start(FRONT)
    whole(cluster, len(ROLES))
    assert cluster.status()["coordinator"] == VICTIM
    return pid


def pinned_away(cluster: Cluster) -> tuple[list[int], Any]:
    """A plan for eight shards of an owner, but not for the one in which its own operation lives: while that is on its
    way and nobody coordinates, nobody can tell of the plan."""
    mine = [number for number, row in cluster.shards().items() if row["node"] == OWNERS[0]]
    for start in range(0, len(mine) - 8, 8):
        shards = mine[start : start + 8]
        plan = cluster.ask("shard", "pin", *map(str, shards), "--to", OWNERS[1], "--dry-run")
        if shard_of(f"op-{plan['id']}") not in shards:
            return shards, plan
    raise AssertionError("each plan's operation lived in a shard of its own")


def test_check_v9_a_plan_whose_coordinator_is_killed_goes_on_under_the_next(led: Cluster) -> None:
    """The next one starts only when the command has said that nobody coordinates."""
    pid = alone(led, "handoff.acknowledged:kill:3")
    shards, plan = pinned_away(led)
    owners = [row["admin"] for row in led.ask("node", "list")["items"] if row["name"] in OWNERS]
    through = [word for address in owners for word in ("--endpoint", address)]  # not through the one that dies
    commit = led.begun("plan", "commit", plan["id"], "--yes", "-t", f"{WITHIN_S}s", *through)
    assert commit.stderr is not None
    said: list[str] = []
    for line in commit.stderr:
        said.append(line)
        if "goes on with the plan" in line:
            break
    assert f"{plan['verb']} {plan['target']} running" in said[-1], said
    assert not runs(pid), "the coordinator was not killed"
    assert commit.poll() is None, "it did not wait for the next one"
    led.start(FRONT)
    out, rest = commit.communicate(timeout=WITHIN_S)
    assert commit.returncode == 0, (out, rest)
    found: Any = json.loads(out)
    assert (found["state"], found["result"]["shards_moved"]) == ("done", len(shards))
    assert [phase["detail"] for phase in found["phases"]] == [f"{len(shards)}/{len(shards)} moved"]
    after = led.shards()
    assert {after[number]["node"] for number in shards} == {OWNERS[1]}
    assert led.status()["coordinator"] == FRONT
    led.ask("shard", "unpin", *map(str, shards), "--yes")
    assert led.ask("shard", "check")["ok"]


@pytest.mark.skipif(SCALE < 10, reason="V9 shows one step; PROMOVOLVE_TEST_SCALE=10 makes it all")
@pytest.mark.parametrize("step", STEPS)
def test_check_e10_a_move_ends_and_says_how_when_its_coordinator_dies(led: Cluster, step: str) -> None:
    pid = armed(led, f"{step}:kill")
    number, row = next(iter(led.shards().items()))
    to = next(name for name in OWNERS if name != row["node"])
    move = led.begun("shard", "move", str(number), "--to", to, "--yes", "-t", f"{MOVE_S}s")
    out, said = move.communicate(timeout=WITHIN_S)
    assert not runs(pid), "the coordinator was not killed"
    assert move.returncode == 0, (out, said)
    assert json.loads(out)["state"] == "done"
    led.run("cluster", "wait", "--for", "shards=allocated", "-t", "60s")
    after = led.shards()[number]
    assert (after["node"], after["epoch"] > row["epoch"]) == (to, True)
    assert led.ask("shard", "check")["ok"]


DEATHS = [(who, step) for who in ("source", "target") for step in STEPS]
QUICK = [("source", "handoff.stop_sent"), ("target", "handoff.epoch_issued")]


@pytest.mark.parametrize(("who", "step"), DEATHS if SCALE >= 10 else QUICK)
def test_check_e10_a_move_ends_and_says_how_when_its_source_or_target_dies(led: Cluster, who: str, step: str) -> None:
    """The coordinator stands still at the step while one of the two is killed. Never silence, and the shard has one
    live owner afterwards."""
    pid = alone(led, f"{step}:stop")
    number, row = next(iter(led.shards().items()))
    source, to = row["node"], next(name for name in OWNERS if name != row["node"])
    dies = {"source": source, "target": to}[who]
    doomed = led.pids()[dies]
    move = led.begun("shard", "move", str(number), "--to", to, "--yes", "-t", f"{MOVE_S}s")
    try:
        eventually(lambda: stands_still(pid), bool, 60, "that the coordinator stands still")
        os.kill(doomed, signal.SIGKILL)
        ended(doomed)
    finally:
        os.kill(pid, signal.SIGCONT)
    out, said = move.communicate(timeout=WITHIN_S)
    assert move.returncode in (0, 15), (out, said)
    assert json.loads(out)["state"] == ("done" if move.returncode == 0 else "failed")
    whole(led, len(ROLES) - 2)
    after = led.shards()[number]
    assert after["node"] != dies
    assert after["epoch"] >= row["epoch"]
    assert led.ask("shard", "check")["ok"]
