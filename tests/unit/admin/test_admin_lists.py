"""Lists of advertisers and of campaigns over the state store: everything once, and no more read than a page needs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.admin import protocol as p
from node.admin.domain_requests import DomainRequests
from node.admin.states import States
from node.ads import messages as m
from node.ads.budget import open_budget
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.site_state import SiteState
from node.core.clock import ManualClock
from node.core.hashing import SHARD_COUNT, shard_of
from node.store.memory import MemoryStore
from node.store.port import (
    AcquireLease,
    LeaseGranted,
    ListStates,
    PlacementWritten,
    ReadState,
    ShardRow,
    ShardState,
    WritePlacement,
    WriteState,
    Written,
)
from node.wire.codec import CODEC

BUDGET = open_budget(5_000_000, "UTC", now_ms=0)


class Lists:
    """The requests about what the cluster serves, over a store with these advertisers: their campaigns by name, each
    with its number of creatives."""

    def __init__(self, owned: Mapping[str, Mapping[str, int]]) -> None:
        self.clock = ManualClock()
        self.engine = self.world = self
        self.handlers: dict[type, Any] = {}
        self.states = States(cast("Any", self))
        self.read: list[str] = []  # names of states that were read one by one
        self.listed = 0
        self._store = MemoryStore(self.clock)
        self._rows = tuple(ShardRow(shard, f"n{shard % 3}", 1, 1, ShardState.RUNNING) for shard in range(SHARD_COUNT))
        self.sharding = SimpleNamespace(region=SimpleNamespace(homes=lambda: self._rows))
        self._place()
        self._write("site", "blog.example", SiteState("blog.example", "blog.example", "ann", (), 1, b"s" * 32))
        for advertiser, campaigns in owned.items():
            self._write("advertiser", advertiser, AdvertiserState(advertiser, "", BUDGET, tuple(campaigns)))
            for name, count in campaigns.items():
                creatives = tuple(m.CreativeSpec(f"{name}-{n}", "", "", 1, 1, "image/png") for n in range(count))
                state = CampaignState(name, advertiser, "", 1, ("483",), BUDGET, creatives)
                self._write("campaign", name, state)
        DomainRequests(cast("Any", self))

    def submit(self, request: Any, done: Any) -> None:
        if isinstance(request, ReadState):
            self.read.append(request.id)
        self.listed += isinstance(request, ListStates)
        done(self._store.apply([request])[0])

    def pages(self, request: Any) -> list[list[Any]]:
        """All pages, as somebody reads them who asks on."""
        found: list[list[Any]] = []
        after = ""
        while True:
            asked = type(request)(**{f: getattr(request, f) for f in request.__struct_fields__} | {"after": after})
            reply = asyncio.run(self.handlers[type(request)](asked, cast("p.Meta", None)))[0]
            found.append(list(reply.items))
            after = reply.next
            if not after:
                return found

    def _place(self) -> None:
        lease = self._store.apply([AcquireLease("coordinator", "test", 10**9)])[0]
        assert isinstance(lease, LeaseGranted)
        [placed] = self._store.apply([WritePlacement("coordinator", "test", lease.term, 0, self._rows)])
        assert isinstance(placed, PlacementWritten)

    def _write(self, kind: str, name: str, state: Any) -> None:
        [written] = self._store.apply([WriteState(kind, name, shard_of(name), 1, 0, CODEC.encode_record(state))])
        assert isinstance(written, Written)


def test_an_advertisers_campaigns_are_read_by_their_names() -> None:
    """However many others there are: a list of all would be read to find a few."""
    lists = Lists({"a": {f"c{n}": 1 for n in range(5)}, "b": {f"d{n}": 1 for n in range(50)}, "none": {}})
    pages = lists.pages(p.GetCampaigns(advertiser="a", limit=2))
    assert [[item.campaign for item in page] for page in pages] == [["c0", "c1"], ["c2", "c3"], ["c4"]]
    assert (lists.listed, {name for name in lists.read if name.startswith("d")}) == (0, set())
    for other in ("none", "unknown"):
        assert lists.pages(p.GetCampaigns(advertiser=other)) == [[]]


@pytest.mark.parametrize("limit", [0, 1, 3, 4, 5])
def test_every_campaign_is_on_one_page(limit: int) -> None:
    lists = Lists({"a": {"c1": 1, "c3": 1}, "b": {"c2": 1, "c4": 1}})
    found = [item.campaign for page in lists.pages(p.GetCampaigns(limit=limit)) for item in page]
    assert found == ["c1", "c2", "c3", "c4"]


@pytest.mark.parametrize(("states_max", "sizes"), [(100, [4]), (5, [2, 2]), (3, [1, 1, 2]), (1, [1, 1, 1, 1])])
def test_a_page_of_advertisers_reads_no_more_campaigns_than_it_may(
    monkeypatch: pytest.MonkeyPatch, states_max: int, sizes: list[int]
) -> None:
    monkeypatch.setattr("node.admin.domain_requests.admin_page_states_max", states_max)
    owned = {"a": {"a1": 2, "a2": 0}, "b": {"b1": 1, "b2": 1}, "c": {"c1": 4, "c2": 1}, "d": {"d1": 3}}
    lists = Lists(owned)
    pages = lists.pages(p.GetAdvertisers())
    assert [len(page) for page in pages] == sizes
    counted = {item.advertiser: item.creatives for page in pages for item in page}
    assert counted == {advertiser: sum(campaigns.values()) for advertiser, campaigns in owned.items()}
    assert sorted(lists.read) == sorted(name for campaigns in owned.values() for name in campaigns), "each once"


@pytest.mark.parametrize(
    ("request_", "identity"),
    [(p.GetSites(), "site"), (p.GetAdvertisers(), "advertiser"), (p.GetCampaigns(), "campaign")],
    ids=["site", "advertiser", "campaign"],
)
def test_a_list_says_where_each_lives(request_: Any, identity: str) -> None:
    """`site list --filter node=one` found none, whatever node had them: lists said null of every one."""
    items = [item for page in Lists({"a": {"a1": 1, "a2": 0}}).pages(request_) for item in page]
    shards = [shard_of(getattr(item, identity)) for item in items]
    assert items
    assert [(item.shard, item.node) for item in items] == [(shard, f"n{shard % 3}") for shard in shards]


@pytest.mark.parametrize("request_", [p.GetSites(), p.GetAdvertisers(), p.GetCampaigns(), p.GetCreatives()])
def test_who_only_asks_is_not_told_that_something_changed(request_: Any) -> None:
    items = [item for page in Lists({"a": {"a1": 1}}).pages(request_) for item in page]
    assert items
    assert not any(item.changed for item in items)
