"""How long a crashed node's shards are without service: `kill -9` of a real node, again and again, in both profiles.

Two times after each kill, in ms, watched side by side: until the cluster says that every shard of the dead node runs
elsewhere (as a command tells it, its own start included), and until a page view of a site whose owner was killed is
answered with an ad again. A view is sent every 100 ms whether or not those before it are answered: one that waits for
the dead node must not hide that later ones are served. `--runs` is how many kills each profile gets.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import tomli_w

from promovolvectl.local import files, ports, roles
from promovolvectl.local import layout as lay
from scripts.benchmarks.measure import spread

NODES = 5
POLL_S = 0.05
VIEW_EVERY_S = 0.1
VIEW_TIMEOUT_S = 5.0
LIMIT_S = 90.0


def measure(runs: int) -> dict[str, Any]:
    return {profile: _measured(profile, runs) for profile in ("fast", "default")}


def _measured(profile: str, runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        cluster = _Cluster(Path(folder), profile)
        try:
            times = [cluster.kill_one(number) for number in range(runs)]
        finally:
            cluster.ctl("down", "--data", str(cluster.data))
    return {
        "kills": runs,
        "shards_running": spread([allocated for allocated, _ in times], "ms"),
        "served_again": spread([served for _, served in times], "ms"),
        "worst_ms": round(max(max(pair) for pair in times)),
    }


class _Cluster:
    """A demonstration cluster whose nodes use one profile of failure detection."""

    def __init__(self, folder: Path, profile: str) -> None:
        self.data = folder / "data"
        self._environment = {**os.environ, "XDG_CONFIG_HOME": f"{folder}/config", "XDG_STATE_HOME": f"{folder}/state"}
        lay.claim(self.data)
        layout = ports.plan(self.data, "local", roles.spread(NODES))
        lay.write(self.data, layout)
        files.prepare(self.data, layout)
        for node in layout.nodes:
            path = lay.node_file(self.data, node.name)
            document = tomllib.loads(path.read_text())
            document["cluster"]["profile"] = profile
            path.write_text(tomli_w.dumps(document))
        self._http = str(self.ctl("up", "--demo", "--data", str(self.data), "-t", "120s")["http"])
        self._sites = [site["site"] for site in self.ctl("site", "list")["items"]]

    def ctl(self, *words: str) -> dict[str, Any]:
        command = [str(Path(sys.executable).with_name("promovolvectl")), *words, "-o", "json"]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 12):
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def kill_one(self, number: int) -> tuple[float, float]:
        """Milliseconds until its shards run elsewhere, and until its site's page is served again."""
        site = self._sites[number % len(self._sites)]
        victim = str(self.ctl("shard", "where", "site", site)["node"])
        body = self._page_view(site)
        pid = next(node["pid"] for node in self.ctl("node", "list")["items"] if node["name"] == victim)
        os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        with ThreadPoolExecutor(1 + round(VIEW_TIMEOUT_S / VIEW_EVERY_S)) as pool:
            allocated = pool.submit(_until, lambda: self._runs_elsewhere(victim), killed)
            served_ms = _first(pool, lambda: self._serves(body), killed)
            allocated_ms = allocated.result()
        self.ctl("node", "start", victim, "--data", str(self.data), "-t", "120s")
        wanted = ("converged", f"nodes={NODES}", "shards=allocated", "replicas=agree", "coverage=1.0")
        self.ctl("cluster", "wait", "-t", "120s", *(word for each in wanted for word in ("--for", each)))
        sys.stderr.write(f"  {victim}: shards after {allocated_ms:.0f} ms, page view after {served_ms:.0f} ms\n")
        return allocated_ms, served_ms

    def _page_view(self, site: str) -> bytes:
        slot = self.ctl("site", "show", site)["slots"][0]
        page = self.ctl("page", "list", site)["items"][0]["url"]
        imp = [{"id": slot["slot"], "w": slot["width"], "h": slot["height"]}]
        return json.dumps({"pub": site, "url": page, "imp": imp}).encode()

    def _serves(self, body: bytes) -> bool:
        request = urllib.request.Request(
            f"{self._http}/v1/serve/batch", body, {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(request, timeout=VIEW_TIMEOUT_S) as answer:
                return "winner" in json.loads(answer.read())["seatbid"][0]
        except (urllib.error.URLError, OSError):
            return False

    def _runs_elsewhere(self, victim: str) -> bool:
        rows = self.ctl("shard", "list")["items"]
        return all(row["state"] == "running" and row["node"] != victim for row in rows)


def _until(holds: Callable[[], bool], since: float) -> float:
    while not holds():
        if time.monotonic() - since > LIMIT_S:
            raise RuntimeError(f"not in {LIMIT_S:g} s")
        time.sleep(POLL_S)
    return (time.monotonic() - since) * 1_000


def _first(pool: ThreadPoolExecutor, attempt: Callable[[], bool], since: float) -> float:
    """Milliseconds until the first of many attempts, begun one after the other, has succeeded."""
    begun: set[Future[bool]] = set()
    while time.monotonic() - since < LIMIT_S:
        begun.add(pool.submit(attempt))
        ended, begun = wait(begun, VIEW_EVERY_S, FIRST_COMPLETED)
        if any(one.result() for one in ended):
            return (time.monotonic() - since) * 1_000
        time.sleep(VIEW_EVERY_S if ended else 0)
    raise RuntimeError(f"not in {LIMIT_S:g} s")
