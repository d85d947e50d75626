"""Whoever is hostile from outside a whole cluster: a stranger that knocks, and an enrolled peer that sends what no node
may take. PROMOVOLVE_TEST_SCALE=60 gives the catalogue's rows in full: ten and five minutes, and their bounds on how
long page views take, which no shared machine keeps in seconds.
"""

from __future__ import annotations

import importlib.util
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import zmq
from cluster_load import Answer, Load
from cluster_world import Cluster, eventually

from node.core import limits
from node.wire.keys import read_key_pair
from node.wire.zmq_sockets import new_key_pair, use_curve
from promovolvectl.local import layout as lay

SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
KNOCKS_S = min(600, 10 * SCALE)
HOSTILE_S = min(300, 5 * SCALE)
WHOLE = SCALE >= 60
RATE = 100
VICTIM = "entity-1"
PEER = "entity-3"
MIB = 1 << 20
SUMMARY = re.compile(r"refused from \S+ denied .* is not in the roster(?: \(and (\d+) before\))?")


def hostile_documents() -> list[bytes]:
    """The table W1 to W12 of the wire's own tests, and W13: a frame that is larger than any may be."""
    path = Path(__file__).parents[1] / "unit" / "wire" / "wire_hostile.py"
    spec = importlib.util.spec_from_file_location("wire_hostile", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [data for _, data, _ in module.REFUSED] + [bytes(limits.frame_data_bytes_max + 1)]


def rss_bytes(pid: int) -> int:
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return resident * os.sysconf("SC_PAGE_SIZE")


def p99_s(answers: Sequence[Answer]) -> float:
    taken = sorted(answer.took_s for answer in answers if answer.status == 200)
    return taken[len(taken) * 99 // 100]


def paced(seconds: float, act: Callable[[int], None]) -> int:
    """`RATE` times a second, for so long; how often."""
    begun, count = time.monotonic(), 0
    while (late := begun + count / RATE - time.monotonic()) > -seconds and time.monotonic() < begun + seconds:
        if late > 0:
            time.sleep(late)
        act(count)
        count += 1
    return count


@contextmanager
def unharmed(cluster: Cluster, rss_growth_max: int, ratio_max: float) -> Iterator[None]:
    """The victim lives and its memory stays; pages are viewed as before, and nobody is unreachable meanwhile."""
    pid = cluster.pids()[VICTIM]
    members = {node["name"]: node["incarnation"] for node in cluster.status()["nodes"]}
    with Load(cluster) as load:
        load.lasts(min(30, 3 * SCALE))
        before, first = list(load.answers), rss_bytes(pid)
        yield
        during = load.answers[len(before) :]
        grown = rss_bytes(pid) - first
        load.answered(50)
    assert cluster.pids()[VICTIM] == pid
    assert grown < rss_growth_max, f"{grown / MIB:.1f} MiB"
    assert load.wrong() == []
    assert sum(answer.winners > 0 for answer in during) > len(during) * 0.9
    assert not WHOLE or p99_s(during) < ratio_max * p99_s(before)
    status = cluster.status()
    assert {node["name"]: node["incarnation"] for node in status["nodes"]}.items() <= members.items()


def test_s14_a_stranger_that_knocks_again_and_again_costs_nothing(cluster: Cluster) -> None:
    """S14: a hundred connections a second under a key that nobody knows; the node lives, its memory and its log stay
    small, and both it and its log say in numbers what it has turned away."""
    layout = lay.read(cluster.data)
    assert layout is not None
    address = next(node.control for node in layout.nodes if node.name == VICTIM)
    public = read_key_pair(lay.key_file(cluster.data, VICTIM)).public
    log = lay.log_file(cluster.data, VICTIM)
    stranger, size, denied = new_key_pair(), log.stat().st_size, turned_away(cluster)

    def knock_at(context: zmq.Context[Any]) -> None:
        with context.socket(zmq.DEALER) as dealer:
            dealer.linger = 0
            use_curve(dealer, stranger, public)
            with dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_AUTH) as monitor:
                dealer.connect(f"tcp://{address}")
                monitor.poll(2_000)
                dealer.disable_monitor()

    with zmq.Context() as context, unharmed(cluster, 20 * MIB, 1.1):
        knocks = paced(KNOCKS_S, lambda _: knock_at(context))
    assert knocks > KNOCKS_S * 10, "it was a flood"
    assert log.stat().st_size - size < 200 * knocks, "fewer than a line for each"
    eventually(lambda: turned_away(cluster) - denied, lambda n: n > knocks * 0.8, 20, "that it says so")

    def told() -> int:
        """How many refusals the log stands for: a line now and then, each with how many were not said before it."""
        with zmq.Context() as again:
            knock_at(again)
        lines = SUMMARY.findall(log.read_bytes()[size:].decode())
        return sum(1 + int(before or 0) for before in lines)

    eventually(told, lambda n: n > knocks * 0.8, 30, "a line that sums up")


def test_s18_hostile_frames_of_an_enrolled_peer_leave_nothing_behind(cluster: Cluster) -> None:
    """S18: under a member's own key, a hundred frames a second of everything that no node may take, on the data lane;
    they are counted under that peer, the memory stays, and the others notice nothing."""
    layout = lay.read(cluster.data)
    assert layout is not None
    address = next(node.data for node in layout.nodes if node.name == VICTIM)
    public = read_key_pair(lay.key_file(cluster.data, VICTIM)).public
    documents = hostile_documents()
    with zmq.Context() as context, unharmed(cluster, 50 * MIB, 1.25), context.socket(zmq.DEALER) as dealer:
        dealer.linger = 0
        use_curve(dealer, read_key_pair(lay.key_file(cluster.data, PEER)), public)
        dealer.connect(f"tcp://{address}")
        before = refused(cluster)
        sent = paced(HOSTILE_S, lambda number: dealer.send(documents[number % len(documents)]))
        eventually(lambda: refused(cluster) - before, lambda n: n > sent // 2, 20, "that they are counted")
    assert sent > HOSTILE_S * 20


def turned_away(cluster: Cluster) -> int:
    """Connections of strangers that the victim has denied."""
    found = {row["name"]: row["count"] for row in cluster.ask("node", "show", VICTIM)["counters"]}
    return int(found.get("wire.stranger_denied", 0))


def refused(cluster: Cluster) -> int:
    """What the victim has refused of the peer."""
    found = {row["node"]: row["counts"] for row in cluster.ask("node", "show", VICTIM)["peers"]}
    return sum(row["count"] for row in found[PEER] if row["name"] not in ("sent", "received"))
