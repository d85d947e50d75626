"""A market of any size, as a cluster's durable state: sites alike with pages that are classified, and in each category
ten campaigns whose creatives every site has approved. One site goes through the cluster's front door; the others are
copied from it while the cluster is down: one by one each would be audited and paced.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from node.admin import protocol as p
from node.ads.entities.publisher import PublisherState
from node.ads.entities.site_state import SiteState
from node.ads.messages import PageEntry
from node.core.clock import SystemClock
from node.core.hashing import shard_of
from node.store.lmdb import LmdbStore
from node.store.port import ListStates, Placement, ReadPlacement, StatePage, WriteState, Written
from node.wire.codec import CODEC
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.link import open_link
from promovolvectl.client.profiles import find, load_file

CAMPAIGNS_PER_CATEGORY: Final = 10
CATEGORIES: Final = ("653", "223", "483", "552", "215")
PUBLISHER: Final = "ann"
TEMPLATE: Final = "s00000.example"
SLOT: Final = p.Slot(slot="top", width=728, height=90)
AT_ONCE: Final = 250
COVERED_S: Final = 900.0
UP_WITHIN: Final = "300s"
_COMMAND: Final = str(Path(sys.executable).with_name("promovolvectl"))


class Market:
    """`sites` with `pages` each, served by `up` (the words of `promovolvectl up` that say which nodes)."""

    def __init__(self, folder: str, sites: int, pages: int, up: tuple[str, ...]) -> None:
        self.sites = [f"s{number:05d}.example" for number in range(sites)]
        self.data = Path(folder) / "data"
        self._pages = pages
        self._nodes = up
        self._config = Path(folder) / "config.toml"
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("PROMOVOLVE")} | {
            "PROMOVOLVECTL_CONFIG": str(self._config),
            "XDG_STATE_HOME": str(Path(folder) / "state"),
        }
        self.http = ""
        self.pids: list[int] = []

    def fill(self) -> None:
        """Makes the cluster and everything in it; it is down afterwards."""
        self.up()
        try:
            asyncio.run(self._first())
        finally:
            self.down()
        self._multiply()

    def up(self) -> None:
        found = self.command("up", *self._nodes, "--data", str(self.data), "-t", UP_WITHIN)
        self.http, self.pids = found["http"], [node["pid"] for node in found["nodes"]]

    def down(self) -> None:
        self.command("down", "--data", str(self.data))

    def covered(self) -> float:
        """Waits until every slot that should have a pool has one; how many seconds that took."""
        began = time.monotonic()
        wanted = len(self.sites)
        while (found := self._coverage()) != {
            "expected": wanted,
            "present": wanted,
            "ratio": 1.0,
            "unknown_sites": 0,
        }:
            if time.monotonic() - began > COVERED_S:
                raise RuntimeError(f"coverage is {found} of {wanted} after {COVERED_S:.0f} s")
            time.sleep(0.2)
        return time.monotonic() - began

    def requests(self) -> Iterator[bytes]:
        """A page view of each page: its only slot."""
        imp = [{"id": SLOT.slot, "w": SLOT.width, "h": SLOT.height}]
        for site in self.sites:
            for number in range(self._pages):
                yield json.dumps({"pub": site, "url": _url(site, number), "imp": imp}).encode()

    def command(self, *words: str) -> dict[str, Any]:
        done = self._ran(*words)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-2000:]}")
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def _coverage(self) -> dict[str, Any] | None:
        """None while the nodes are too busy to answer."""
        done = self._ran("cluster", "status", "--allow-partial")
        if done.returncode in (ExitStatus.UNREACHABLE, ExitStatus.TIMED_OUT):
            return None
        if done.returncode:
            raise RuntimeError(f"cluster status ended with {done.returncode}: {done.stderr[-2000:]}")
        found: dict[str, Any] = json.loads(done.stdout)["coverage"]
        return found

    def _ran(self, *words: str) -> subprocess.CompletedProcess[str]:
        line = (_COMMAND, *words, "-o", "json")
        return subprocess.run(line, env=self._env, capture_output=True, text=True, check=False)

    def client(self) -> AdminClient:
        """Who asks without a command's start; to be closed."""
        return AdminClient(find(load_file(self._config), self._config, ""), open_link)

    async def _first(self) -> None:
        client = self.client()
        try:
            await client.call(p.CreateSite(site=TEMPLATE, host=TEMPLATE, publisher=PUBLISHER, slots=(SLOT,)))
            for category in CATEGORIES:
                for number in range(CAMPAIGNS_PER_CATEGORY):
                    await self._campaign(client, category, number)
        finally:
            client.close()

    async def _campaign(self, client: AdminClient, category: str, number: int) -> None:
        name = f"c-{category}-{number}"
        await client.call(p.CreateAdvertiser(advertiser=name, name=name, daily_budget="100000"))
        campaign = p.CreateCampaign(
            campaign=name,
            advertiser=name,
            name=name,
            max_cpm=f"{2 + number / 10:.2f}",
            daily_budget="100000",
            categories=(category,),
        )
        creative = p.CreateCreative(
            creative=name,
            campaign=name,
            asset_url=f"https://c.example/{name}.png",
            landing_url=f"https://{name}.example/",
            width=SLOT.width,
            height=SLOT.height,
        )
        await client.call(campaign)
        await client.call(creative)

    def _multiply(self) -> None:
        clock = SystemClock()
        store = LmdbStore(self.data / "store", clock)
        try:
            site, publisher = _one(store, "site", SiteState), _one(store, "publisher", PublisherState)
            states: list[tuple[str, str, msgspec.Struct]] = [
                ("site", name, self._site(site, name, clock.wall_ms())) for name in self.sites
            ]
            states.append(("publisher", PUBLISHER, replace(publisher, sites={name: name for name in self.sites})))
            _write(store, states)
        finally:
            store.close()

    def _site(self, template: SiteState, name: str, now_ms: int) -> SiteState:
        pages = (
            PageEntry(_url(name, page), ((_subject(name, page), 0.9),), (SLOT.slot,), now_ms)
            for page in range(self._pages)
        )
        creatives = (f"c-{each}-{n}" for each in CATEGORIES for n in range(CAMPAIGNS_PER_CATEGORY))
        approved = dict.fromkeys(creatives, now_ms)
        return replace(template, site=name, host=name, approved=approved, pages={page.url: page for page in pages})


def _url(site: str, page: int) -> str:
    return f"https://{site}/page-{page}"


def _subject(site: str, page: int) -> str:
    """A site's pages are about one subject after the other, beginning with the site's own."""
    return CATEGORIES[(int(site[1:6]) + page) % len(CATEGORIES)]


def _one(store: LmdbStore, kind: str, state: type[Any]) -> Any:
    [page] = store.apply([ListStates((kind,))])
    assert isinstance(page, StatePage)
    [record] = page.records
    decoded = CODEC.decode_record(record.body)
    assert isinstance(decoded, state)
    return decoded


def _write(store: LmdbStore, states: list[tuple[str, str, msgspec.Struct]]) -> None:
    """Under the epochs of the placement table, over what is there."""
    [placement] = store.apply([ReadPlacement()])
    assert isinstance(placement, Placement)
    [held] = store.apply([ListStates(("site", "publisher"))])
    assert isinstance(held, StatePage)
    revisions = {(record.kind, record.id): record.revision for record in held.records}
    writes = [
        WriteState(
            kind,
            name,
            shard_of(name),
            placement.rows[shard_of(name)].epoch,
            revisions.get((kind, name), 0),
            CODEC.encode_record(state),
        )
        for kind, name, state in states
    ]
    for begin in range(0, len(writes), AT_ONCE):
        refused = [one for one in store.apply(writes[begin : begin + AT_ONCE]) if not isinstance(one, Written)]
        assert not refused, refused[0]
