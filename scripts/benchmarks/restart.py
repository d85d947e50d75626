"""How long a cluster is without service after `kill -9` of all its nodes: from their start until each slot has its pool
again, without any page view; and whether something was decided anew that had been decided.

PROMOVOLVE_TEST_SCALE multiplies 20 sites with 50 classified pages each: 10 is the acceptance's size, 200 sites and
10,000 pages. `kept` finds the nodes' replicas as the kill left them; `rebuilt` finds none, so that every pool has to
come from durable state. `again` is what nobody may do: approvals and classifications that were made a second time.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from node.admin import protocol as p
from node.ads.entities.page_shelf import PageShelfState
from node.ads.entities.site_state import SiteState
from node.ads.facts import CreativeApproved, PageClassified
from node.core.clock import SystemClock
from node.store.lmdb import LmdbStore
from node.store.port import FactPage, ListStates, ReadFacts, StatePage
from node.wire.codec import CODEC
from node.wire.registry import REGISTRY
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from scripts.benchmarks.market import Market
from scripts.benchmarks.measure import spread

SCALE: Final = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
SITES, PAGES = 20 * SCALE, 50
NODES: Final = ("--nodes", "4")
AIM_S: Final = 15.0
LIMIT_S: Final = 300.0
POLL_S: Final = 0.1
ASK_MS: Final = 3_000
DECISIONS: Final = frozenset(REGISTRY.name_of(fact) for fact in (CreativeApproved, PageClassified))
UNITS: Final = {"covered": "s", "ready": "s", "cpu": "s", "again": "1"}
T = TypeVar("T")
_NO_ANSWER: Final = (ExitStatus.UNREACHABLE, ExitStatus.TIMED_OUT)


class Decided(NamedTuple):
    """What was decided and when (wall ms): approvals by site and creative, classifications by site and page; and how
    often, by the log of facts. `shelved`: no page is on its way to its shelf any more."""

    approved: dict[tuple[str, str], int]
    classified: dict[tuple[str, str], int]
    times: Counter[str]
    shelved: bool


def measure(runs: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        market = Market(folder, SITES, PAGES, NODES)
        market.fill()
        market.up()
        try:
            asyncio.run(_covered(market))
            before = _settled(market)
            found = {name: [_restarted(market, before, name) for _ in range(runs)] for name in ("kept", "rebuilt")}
        finally:
            market.down()
    return {
        "sites": SITES,
        "pages": len(before.classified),
        "approvals": len(before.approved),
        "nodes": 4,
        **{name: _summed(rows) for name, rows in found.items()},
        "aim_max_s": AIM_S,
        "met": {name: max(row["covered"] for row in rows) <= AIM_S for name, rows in found.items()},
    }


def _summed(rows: list[dict[str, float]]) -> dict[str, Any]:
    return {name: spread([row[name] for row in rows], unit) for name, unit in UNITS.items()}


def _restarted(market: Market, before: Decided, replicas: str) -> dict[str, float]:
    """One restart: seconds until coverage is 1.0 and until the command says that all nodes serve, the processor time
    of the nodes until both, and how many decisions were made again."""
    for pid in market.pids:
        os.kill(pid, signal.SIGKILL)
    _awaited(lambda: [pid for pid in market.pids if _runs(pid)], lambda left: not left, "the end of all nodes")
    if replicas == "rebuilt":
        for replica in market.data.glob("nodes/*/replica"):
            shutil.rmtree(replica)
    covered_s, ready_s = asyncio.run(_begun(market))
    cpu_s = sum(_cpu_s(pid) for pid in market.pids)
    again = _again(before, _decided(market))
    sys.stderr.write(f"  {replicas}: covered after {covered_s:.1f} s, ready after {ready_s:.1f} s, cpu {cpu_s:.1f} s\n")
    return {"covered": covered_s, "ready": ready_s, "cpu": cpu_s, "again": again}


async def _begun(market: Market) -> tuple[float, float]:
    """Starts all nodes; seconds until each slot has a pool, and until all serve."""

    async def ready() -> float:
        await asyncio.to_thread(market.up)
        return time.monotonic() - began

    async def covered() -> float:
        await _covered(market)
        return time.monotonic() - began

    began = time.monotonic()
    covered_s, ready_s = await asyncio.gather(covered(), ready())
    return covered_s, ready_s


async def _covered(market: Market) -> None:
    """Until every site's slot has a pool, as whichever node answers says."""
    client = market.client()
    until = time.monotonic() + LIMIT_S
    try:
        while True:
            try:
                status, _ = await client.ask(p.GetClusterStatus(), p.ClusterStatus, ASK_MS)
            except CommandFailed as failed:
                if failed.status not in _NO_ANSWER:
                    raise
                told = failed.message
            else:
                found = status.coverage
                if found.expected == found.present == len(market.sites) and found.ratio == 1.0:
                    return
                told = f"{found.present} of {found.expected} slots have a pool"
            if time.monotonic() > until:
                raise RuntimeError(f"after {LIMIT_S:.0f} s: {told}")
            await asyncio.sleep(POLL_S)
    finally:
        client.close()


# ---- what was decided


def _settled(market: Market) -> Decided:
    """The first state in which every page is on its shelf, which is the last step of loading them."""
    wanted = len(market.sites) * PAGES

    def whole(found: Decided) -> bool:
        return found.shelved and len(found.classified) == wanted

    return _awaited(lambda: _decided(market), whole, f"{wanted} pages on their shelves")


def _decided(market: Market) -> Decided:
    approved: dict[tuple[str, str], int] = {}
    classified: dict[tuple[str, str], int] = {}
    shelved = True
    store = LmdbStore(market.data / "store", SystemClock())
    try:
        for state in _states(store):
            if isinstance(state, SiteState):
                approved |= {(state.site, creative): at_ms for creative, at_ms in state.approved.items()}
                shelved = shelved and not state.pages
            elif isinstance(state, PageShelfState):
                classified |= {(state.site, page.url): page.classified_at_ms for page in state.pages}
        times = _times(store)
    finally:
        store.close()
    return Decided(approved, classified, times, shelved)


def _states(store: LmdbStore) -> Iterator[msgspec.Struct]:
    after: tuple[str, str] | None = None
    more = True
    while more:
        [page] = store.apply([ListStates(("page-shelf", "site"), after=after)])
        assert isinstance(page, StatePage), page
        for record in page.records:
            after = (record.kind, record.id)
            yield CODEC.decode_record(record.body)
        more = page.more


def _times(store: LmdbStore) -> Counter[str]:
    found: Counter[str] = Counter()
    after, more = 0, True
    while more:
        [page] = store.apply([ReadFacts(after=after, limit=5_000)])
        assert isinstance(page, FactPage), page
        found.update(fact.type for fact in page.facts if fact.type in DECISIONS)
        after, more = page.facts[-1].offset if page.facts else after, page.more
    return found


def _again(before: Decided, after: Decided) -> int:
    """How many decisions differ, are there no more or were made anew."""
    differing = len(before.approved.items() ^ after.approved.items())
    differing += len(before.classified.items() ^ after.classified.items())
    return differing + (after.times - before.times).total()


# ---- processes


def _awaited(look: Callable[[], T], holds: Callable[[T], bool], what: str) -> T:
    until = time.monotonic() + LIMIT_S
    while not holds(found := look()):
        if time.monotonic() > until:
            raise RuntimeError(f"{what}: not in {LIMIT_S:.0f} s")
        time.sleep(POLL_S)
    return found


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _runs(pid: int) -> bool:
    """Whether a process is there and not only waits to be reaped."""
    try:
        return _stat(pid)[0] not in "ZX"
    except OSError:
        return False


def _cpu_s(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
