"""`kill -9` of all nodes in the midst of puts and removals, again and again: what a removal's acknowledgement is worth.

PROMOVOLVE_TEST_SCALE=10 makes it 20 rounds, 1 makes it one.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster_world import Cluster, eventually
from index_load import IndexWriter, Removing, key_of, write_rows
from test_disks import new_pages

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
ROUNDS = max(1, 2 * SCALE - SCALE % 2)
KEYS_A_ROUND = 500
REMOVED_A_ROUND, PAGES_A_ROUND = 20, 20
NODES = ("api-1", "entity-1", "entity-2", "entity-3")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Cluster]:
    """A demonstration cluster of this test's own."""
    cluster = Cluster(tmp_path)
    try:
        cluster.restore("--demo")
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


class Pages:
    """Tells the cluster of new pages from entering to leaving: each is classified, and its auctions put pools."""

    def __init__(self, cluster: Cluster, posted: Iterator[None]) -> None:
        self._cluster = cluster
        self._posted = posted
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.sent = 0

    def __enter__(self) -> Pages:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def more(self, count: int) -> None:
        wanted = self.sent + count
        eventually(lambda: self.sent, lambda n: n >= wanted, 60, f"{count} more pages")

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                next(self._posted)
            except (OSError, http.client.HTTPException):  # killed while it was asked
                return
            self.sent += 1


def live(cluster: Cluster, node: str) -> set[str]:
    """The keys that carry a value on this node."""
    rows = map(json.loads, cluster.run("serveindex", "dump", "--node", node, "-o", "jsonl").out.splitlines())
    return {row["key"] for row in rows if not row["removed"]}


def test_what_was_removed_stays_removed_and_what_was_put_comes_back(
    own: Cluster, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    pools = live(own, NODES[0])
    doomed = [key_of(number, "doomed") for number in range(KEYS_A_ROUND * ROUNDS)]
    for start in range(0, len(doomed), 1_000):
        file = write_rows(tmp_path / "rows.jsonl", doomed[start : start + 1_000])
        own.ask("serveindex", "load", str(file), "--yes")
    removed: list[str] = []
    left = iter(doomed)
    for number in range(ROUNDS):
        log_ends = {name: len((own.data / "logs" / f"{name}.log").read_text()) for name in NODES}
        with IndexWriter(own) as writer:
            removing = Removing(writer, list(itertools.islice(left, KEYS_A_ROUND)))
            pages = Pages(own, new_pages(own))
            with pages:
                pages.more(PAGES_A_ROUND)
                with removing:
                    removing.more(REMOVED_A_ROUND)
                    own.kill(*NODES)
                    removing.cut_off()
        removed += removing.acknowledged
        own.restore("-t", "60s")
        for name in NODES:
            said = (own.data / "logs" / f"{name}.log").read_text()[log_ends[name] :]
            assert "replica: its file is used as it was left" in said
            assert "an older copy" not in said
        assert own.ask("serveindex", "verify")["sound"] is True, "without repair"
        for name in NODES:
            held = live(own, name)
            assert held & set(removed) == set(), f"back after kill {number + 1}"
            assert held >= pools, "the replay has put what the crash lost"
    own.replicas_agree()
    for key in removed[-3:]:
        views = own.ask("serveindex", "get", key)
        assert {view["state"] for view in views["replicas"]} == {"removed"}
    record_property("removed", len(removed))
    print(f"{ROUNDS} kills of all nodes: {len(removed)} removals acknowledged, none came back")
