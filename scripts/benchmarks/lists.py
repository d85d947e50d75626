"""How long the first page of each long list takes on a cluster with many things: what a person waits for, the command
alone, and the node's answer within it; and what these many things take of each node while nobody asks for anything.

`runs` is how many times each is asked; PROMOVOLVE_TEST_SCALE multiplies 1,000 entities and 10,000 keys, so that 10 is
the acceptance's size and 100 that of check V20.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from node.admin import protocol as p
from node.ads.bidbook import QUOTE_RENEWAL_MS
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.view import ServeView
from node.core.clock import SystemClock, rfc3339
from node.core.hashing import map_of, shard_of
from node.store.lmdb import LmdbStore
from node.store.port import ListStates, Placement, ReadPlacement, StatePage, WriteState, Written
from node.wire.codec import CODEC
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.link import open_link
from promovolvectl.client.profiles import find, load_file
from scripts.benchmarks.measure import cpu_s

RUNS_MIN: Final = 5
SCALE: Final = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
ENTITIES, KEYS = 1_000 * SCALE, 10_000 * SCALE
ADVERTISERS: Final = 50
AT_ONCE: Final = 250
LOADED_AT_ONCE: Final = 20_000  # a load ends within one request
PAGE: Final = 100
LIMIT_MS: Final = 300
FILTERED_LIMIT_MS: Final = 500
DAY_MS: Final = 86_400_000
SITE: Final = "long.example"
# As many as the pages of the largest site have slots: of sites that no ad server looks after, which would take out what
# it does not know.
KEYS_PER_SITE: Final = 100_000
KEYS_SITE: Final = "many-0.example"
_COMMAND: Final = str(Path(sys.executable).with_name("promovolvectl"))
LISTS: Final = {
    "campaign list": p.GetCampaigns(limit=PAGE),
    "advertiser list": p.GetAdvertisers(after="a", limit=PAGE),  # behind the one that the others are copied from
    "creative list": p.GetCreatives(limit=PAGE),
    "site list": p.GetSites(limit=PAGE),
    "entity list": p.GetEntities(limit=PAGE),
    f"serveindex keys {KEYS_SITE}": p.GetKeys(site=KEYS_SITE, limit=PAGE),
}
FILTERED: Final = {  # by the cluster: `--filter` reads all pages
    "campaign list --advertiser a007": p.GetCampaigns(advertiser="a007", limit=PAGE),
    "entity list --type campaign": p.GetEntities(kind="campaign", limit=PAGE),
    "entity list --state running": p.GetEntities(state="running", limit=PAGE),
}
ALL: Final = LISTS | FILTERED


def measure(runs: int) -> dict[str, object]:
    """Medians in milliseconds of the node's answer and of the whole command, with and without its own start."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("PROMOVOLVE")},
            "PROMOVOLVECTL_CONFIG": f"{folder}/config.toml",
            "XDG_STATE_HOME": f"{folder}/state",
        }
        data = ("--data", f"{folder}/data")
        _run(("up", "--nodes", "4", *data), env)
        try:
            _run(("cluster", "wait", "--for", "converged", "--for", "shards=allocated", "-t", "60s"), env)
            began = time.perf_counter()
            asyncio.run(_begin(Path(folder, "config.toml")))
            _run(("down", *data), env)
            _multiply(Path(folder, "data", "store"))
            _run(("up", *data), env)
            _run(("cluster", "wait", "--for", "converged", "--for", "shards=allocated", "-t", "60s"), env)
            dump = Path(folder, "keys.jsonl")
            for first in range(0, KEYS, LOADED_AT_ONCE):
                _write_keys(dump, range(first, min(first + LOADED_AT_ONCE, KEYS)))
                _run(("serveindex", "load", str(dump), "--yes", "-t", "10m"), env)
            filled_s = time.perf_counter() - began
            answers = asyncio.run(_answers(Path(folder, "config.toml"), max(runs, RUNS_MIN)))
            commands = _commands(max(runs, RUNS_MIN), env)
            rest = _rest(env)
        finally:
            _run(("down", *data), env)
    return {
        "entities": ENTITIES,
        "keys": KEYS,
        "filled_s": round(filled_s, 1),
        "page": PAGE,
        "limit_ms": LIMIT_MS,
        "filtered_limit_ms": FILTERED_LIMIT_MS,
        "rest_percent": rest,
        "version_ms": commands.pop("version"),
        **{name: {"answer_ms": answers[name], "command_ms": commands[name]} for name in ALL},
    }


async def _begin(config: Path) -> None:
    """One of each, through the cluster's front door: what the others are copied from."""
    client = AdminClient(find(load_file(config), config, ""), open_link)
    slot = p.Slot(slot="top", width=728, height=90)
    campaign = p.CreateCampaign(
        campaign="c", advertiser="a", name="c", max_cpm="1.00", daily_budget="5.00", categories=("653",)
    )
    picture = {"asset_url": "https://c.example/a.png", "landing_url": "https://r.example/"}
    creative = p.CreateCreative(creative="c-1", campaign="c", width=728, height=90, **picture)
    try:
        await client.call(p.CreateSite(site=SITE, host=SITE, publisher="ann", slots=(slot,)))
        await client.call(p.CreateAdvertiser(advertiser="a", name="a", daily_budget="500"))
        await client.call(campaign)
        await client.call(creative)
    finally:
        client.close()


def _multiply(folder: Path) -> None:
    """Writes the copies into the store of a cluster that is down, under the epochs of its placement table: through
    the front door each would be audited and paced."""
    store = LmdbStore(folder, SystemClock())
    try:
        [placement] = store.apply([ReadPlacement()])
        assert isinstance(placement, Placement)
        [page] = store.apply([ListStates(("advertiser", "campaign"))])
        assert isinstance(page, StatePage)
        advertiser, campaign = (CODEC.decode_record(record.body) for record in page.records)
        assert isinstance(advertiser, AdvertiserState)
        assert isinstance(campaign, CampaignState)
        [spec] = campaign.creatives
        owned: dict[str, list[str]] = {f"a{number:03d}": [] for number in range(ADVERTISERS)}
        states: list[tuple[str, str, msgspec.Struct]] = []
        for number in range(ENTITIES):
            name, owner = f"c{number:06d}", f"a{number % ADVERTISERS:03d}"
            owned[owner].append(name)
            creatives = (replace(spec, creative=f"{name}-1"),)
            states.append(("campaign", name, replace(campaign, campaign=name, advertiser=owner, creatives=creatives)))
        for name, campaigns in owned.items():
            states.append(("advertiser", name, replace(advertiser, advertiser=name, campaigns=tuple(campaigns))))
        writes = [
            WriteState(kind, name, shard_of(name), placement.rows[shard_of(name)].epoch, 0, CODEC.encode_record(state))
            for kind, name, state in states
        ]
        for begin in range(0, len(writes), AT_ONCE):
            refused = [one for one in store.apply(writes[begin : begin + AT_ONCE]) if not isinstance(one, Written)]
            assert not refused, refused[0]
    finally:
        store.close()


def _write_keys(file: Path, numbers: range) -> None:
    """A dump of some slots, with empty pools."""
    wall_ms = SystemClock().wall_ms()
    view = ServeView((), wall_ms, wall_ms + DAY_MS)
    encoded = CODEC.encode(view)
    version = p.EntryVersion(epoch=1, hlc=wall_ms << 16, origin="dump")
    with file.open("wb") as stream:
        for number in numbers:
            key = f"many-{number // KEYS_PER_SITE}.example|slot-{number:07d}"
            row = p.DumpRow(
                key=key,
                map=f"serve-{map_of(key):02d}",
                version=version,
                expires_at=rfc3339(view.expires_at_ms),
                removed=False,
                value=encoded,
            )
            stream.write(msgspec.json.encode(row) + b"\n")


async def _answers(config: Path, runs: int) -> dict[str, float]:
    """How long the node takes, over a connection that is open."""
    client = AdminClient(find(load_file(config), config, ""), open_link)
    found: dict[str, float] = {}
    try:
        for name, request in ALL.items():
            taken: list[float] = []
            for _ in range(runs + 1):
                began = time.perf_counter()
                reply: Any = (await client.call(request))[0]
                taken.append((time.perf_counter() - began) * 1_000)
                assert len(reply.items) >= 1, name
            found[name] = round(statistics.median(taken[1:]), 1)
    finally:
        client.close()
    return found


def _commands(runs: int, env: Mapping[str, str]) -> dict[str, float]:
    """Whole commands, start and all, beside one that asks nobody."""
    lines = {"version": ("version",)} | {name: (*name.split(), "--limit", str(PAGE), "-o", "json") for name in ALL}
    taken: dict[str, list[float]] = {name: [] for name in lines}
    for number in range(runs + 1):
        for name, line in lines.items():
            began = time.perf_counter()
            _run(line, env)
            if number:
                taken[name].append((time.perf_counter() - began) * 1_000)
    return {name: round(statistics.median(found), 1) for name, found in taken.items()}


def _rest(env: Mapping[str, str]) -> dict[str, float]:
    """Percent of a core that each node takes while every bid is renewed once."""
    nodes = {item["name"]: int(item["pid"]) for item in json.loads(_run(("node", "list", "-o", "json"), env))["items"]}
    before, began = {name: cpu_s(pid) for name, pid in nodes.items()}, time.monotonic()
    time.sleep(QUOTE_RENEWAL_MS / 1_000)
    took = time.monotonic() - began
    return {name: round((cpu_s(pid) - before[name]) / took * 100, 2) for name, pid in nodes.items()}


def _run(words: tuple[str, ...], env: Mapping[str, str]) -> str:
    done = subprocess.run((_COMMAND, *words), env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout
