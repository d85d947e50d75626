"""Heartbeats keep their time whatever else a node has to do: executors that take nothing more, and lanes that are full.

PROMOVOLVE_TEST_SCALE=6 gives the catalogue's rows in full: a minute, and its bounds. At smaller scales the bounds are
those that a busy machine keeps, too: the detector's patience, and the median of what the row bounds for all.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from byte_proxy import LANES, Relay
from cluster_world import eventually
from relayed import edit, prepare

from node.admin.protocol import GetNode
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.link import open_link
from promovolvectl.client.profiles import Profile
from promovolvectl.local import access, files
from promovolvectl.local import layout as lay

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
SECONDS = min(60, 10 * SCALE)
WHOLE = SECONDS == 60
NODES = 3
WAIT_S = 120
ASK_EACH_S = 0.1
ADMIN_MS_MAX = 200
BYTES_PER_S = 2_000_000  # a heartbeat behind one frame of 900 KiB would be two intervals late

Nodes = dict[str, "subprocess.Popen[bytes]"]


@contextmanager
def running(folder: Path, layout: lay.Layout, burden: str, nodes: Nodes) -> Iterator[None]:
    """All nodes, entered in `nodes`; inside, each of them is burdened."""
    script = str(Path(__file__).with_name("burdened_node.py"))
    for node in layout.nodes:
        words = [burden, str(SECONDS), str(NODES), str(folder / f"{node.name}.json")]
        command = [sys.executable, "-P", script, *words, "--config", str(lay.node_file(folder, node.name))]
        with (folder / f"{node.name}.log").open("w") as log:
            nodes[node.name] = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
    try:
        begun = [folder / f"{node.name}.begun" for node in layout.nodes]
        eventually(lambda: [path.exists() for path in begun], all, WAIT_S / 4, "that each node is burdened")
        yield
        for process in nodes.values():
            process.wait(WAIT_S)
    finally:
        for process in nodes.values():
            process.kill()
            process.wait()


def heartbeats_on_time(folder: Path, layout: lay.Layout) -> list[dict[str, Any]]:
    """What each node has seen of the others: nobody was unreachable, no heartbeat late."""
    found = []
    for node in layout.nodes:
        result = folder / f"{node.name}.json"
        assert result.exists(), (folder / f"{node.name}.log").read_text()
        seen: dict[str, Any] = json.loads(result.read_text())
        assert seen["unreachable"] == []
        gaps = sorted(gap for peer in seen["gaps_ms"].values() for gap in peer)
        assert len(seen["gaps_ms"]) == NODES - 1
        assert min(map(len, seen["gaps_ms"].values())) > SECONDS, "one a second at the very least"
        assert gaps[len(gaps) // 2] < 2 * seen["interval_ms"], gaps
        assert gaps[len(gaps) * 99 // 100] < (2 * seen["interval_ms"] if WHOLE else seen["pause_ms"]), gaps
        found.append(seen)
    return found


async def answer_times_ms(profiles: Sequence[Profile], seconds: float) -> list[float]:
    """How long each node takes to answer on its admin socket, asked again and again."""

    async def ask(profile: Profile) -> list[float]:
        client, found = AdminClient(profile, open_link), []
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                begun = time.monotonic()
                await client.call(GetNode(node=profile.endpoints[0].node))
                found.append((time.monotonic() - begun) * 1_000)
                await asyncio.sleep(ASK_EACH_S)
        finally:
            client.close()
        return found

    return sorted(taken for each in await asyncio.gather(*map(ask, profiles)) for taken in each)


def test_heartbeats_and_admin_answers_are_on_time_while_no_executor_takes_anything_more(tmp_path: Path) -> None:
    """`db`, `llm`, `browser` and `disk` of every node are saturated; heartbeats come in time, and each admin socket
    answers within 200 ms (SCALE 6: 99 of 100 times)."""
    layout = prepare(tmp_path, NODES)
    whole = access.profile_of(tmp_path, layout, files.prepare(tmp_path, layout))
    profiles = [Profile(name=e.node, key_file=whole.key_file, endpoints=(e,)) for e in whole.endpoints]
    with running(tmp_path, layout, "executors", {}):
        times = asyncio.run(answer_times_ms(profiles, SECONDS * 0.7))
    assert len(profiles) == NODES
    assert len(times) > 2 * NODES
    assert times[len(times) * (99 if WHOLE else 50) // 100] < ADMIN_MS_MAX, times
    for seen in heartbeats_on_time(tmp_path, layout):
        assert seen["full"] > 0, "the burden never was one"


def test_heartbeats_are_on_time_while_every_data_lane_is_full(tmp_path: Path) -> None:
    """Each pair's data lane is full of 900 KiB frames, on links that carry two of them a second; nobody becomes
    unreachable, and heartbeats come in time (SCALE 6: the 99th percentile of their distances below two intervals)."""
    layout, nodes = prepare(tmp_path, NODES), Nodes()
    with Relay(layout, lambda: {name: process.pid for name, process in nodes.items()}) as relay:
        seeds = [f"{n.name}@{relay.addresses[n.name, 'control']}" for n in layout.nodes if "singleton" in n.roles]
        for node in layout.nodes:
            advertised = {f"advertise_{lane}": relay.addresses[node.name, lane] for lane in LANES}
            edit(tmp_path, node.name, "wire", {**advertised, "seeds": seeds})
        relay.limit("data", BYTES_PER_S)
        with running(tmp_path, layout, "lanes", nodes):
            pass
    for seen in heartbeats_on_time(tmp_path, layout):
        assert seen["full"] == (NODES - 1) * seen["looks"] > SECONDS, "each lane was full at every look"
        assert seen["received"] > SECONDS // 2, "and frames moved all the time"
