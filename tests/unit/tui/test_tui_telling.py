"""What a newcomer read wrongly, or nowhere: counts, what is held or empty because somebody wants it so, frozen ages."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec.structs import replace
from test_tui_choosing import NODES, held
from tui_answers import everything
from tui_stage import AT, FakeSource, node, push, refusal, staged

from node.admin import protocol as p
from node.admin.protocol.diagnosis import EventItem, EventList, GetEventList, GetRates, RateList
from node.admin.protocol.explaining import CampaignExplanation, ExplainCampaign, ExplainSite, SiteExplanation


def coverage(expected: int | None, present: int, ratio: float | None) -> p.CoverageTotals:
    return p.CoverageTotals(expected=expected, present=present, ratio=ratio)


def test_cordons_and_empty_slots_are_notes_in_attention() -> None:
    async def look() -> None:
        source = FakeSource(otherwise=everything())
        async with staged((120, 40), source) as stage:
            stage.source.play(push(*held("entity-2"), coverage=coverage(9, 7, 7 / 9)))
            await stage.until("● live")
            screen = await stage.go("overview")
            assert "nothing needs attention" not in screen
            assert "7 of 9 slots filled  cov 0.778" in screen
            await stage.until("· slots", "2 of 9 slots are empty", "· node/entity-2", "cordoned, gets no more shards")
            await stage.until("● entity-2 cordoned ")
            await stage.tap("enter")
            await stage.until("slots | campaigns")

    asyncio.run(look())


def test_of_a_node_that_does_not_answer_no_figure_is_made_up() -> None:
    nothing = dict.fromkeys(("pid", "entities", "max_lag_ms", "rss_bytes", "uptime_s", "cpu_ratio"))
    silent = replace(NODES[-1], reachable=False, ready=False, **nothing)

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES[:-1], silent))
            await stage.until("● live")
            screen = await stage.go("overview")
            (member,) = (line for line in screen.splitlines() if f"? {silent.name} unreachable" in line)
            assert member.split("unreachable")[1].split()[1:3] == ["?", "?"]
            await stage.go("nodes")
            await stage.tap("end")
            await stage.until("up ?", "entities ?", "lag ?", "memory ?", "cpu ?")

    asyncio.run(look())


def test_coverage_that_is_not_known_yet_is_no_figure() -> None:
    """Until every site has told, what is filled is no more than a part of nobody knows how many."""

    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES, coverage=coverage(None, 6, None)))
            await stage.until("● live", "6 of ? slots filled  cov ?: more to come", "shards  cov ?")
            await stage.until("not all sites have told")

    asyncio.run(look())


def test_a_frozen_picture_is_not_live_and_its_age_goes_on() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live", "HEALTHY")
            await stage.tap("f")
            stage.later(12)
            stage.source.play(push(*NODES[:1], state="degraded"))
            screen = await stage.until(
                "FROZEN 12s", "‖ frozen · api-1 · 12s", "FROZEN since", "was ● HEALTHY", "entity-3"
            )
            assert "● live" not in screen
            await stage.tap("f")
            screen = await stage.until("● live", "DEGRADED")
            assert "rozen" not in screen

    asyncio.run(look())


def test_an_empty_slot_says_why_in_the_pane_that_is_open_first() -> None:
    """Also where nothing was decided about it yet, and whole: what to do stands at the end."""
    fill = "campaign demo-camp-ev is paused; it would take part again with promovolvectl campaign resume demo-camp-ev"
    slot = p.ExplainedSlot(slot="thing", reason="no_demand", why="nobody bids", fill=fill, pages=3)

    def undecided(_: p.GetExplanation) -> p.ServeExplanation:
        raise refusal("no decision about it was kept " * 6 + "look again later")

    async def look() -> None:
        explained = replace(everything()(p.ExplainCoverage(site="thing")), slots=(slot,))
        source = FakeSource({p.ExplainCoverage: lambda _: explained, p.GetExplanation: undecided}, everything())
        async with staged((80, 40), source) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            screen = await stage.go("serving")
            assert "✗ thing  no_demand" in screen
            assert fill in " ".join(" ".join(screen.split()).split())
            assert "look again later" in screen

    asyncio.run(look())


def test_an_auction_of_another_page_names_it_beside_the_decision() -> None:
    """Its categories read as if they were of the page that was asked about."""
    ours = everything()

    def decided(request: p.GetExplanation) -> p.ServeExplanation:
        auction = p.ExplainedAuction(
            at="2026-11-29T14:00:00.000Z", trigger="t", categories=("547",), page="https://b/x"
        )
        found: p.ServeExplanation = ours(request)
        return replace(found, page="https://a/y", auction=auction)

    async def look() -> None:
        async with staged((120, 40), FakeSource({p.GetExplanation: decided}, ours)) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("serving")
            screen = await stage.until("of another page https://b/x", "page https://a/y")
            assert "547" in screen

    asyncio.run(look())


def test_slots_without_a_pool_come_first_where_slots_are_looked_at() -> None:
    """Whoever came because a slot is empty stood on one that was filled."""
    ours = everything()

    def sites(request: p.GetSites) -> p.SiteList:
        found = ours(request)
        (site, *_) = found.items
        slots = tuple(p.Slot(slot=name, width=300, height=250) for name in ("alpha", "omega"))
        return replace(found, items=(replace(site, site="thing", suspended=False, slots=slots),))

    def covered(request: p.GetCoverage) -> p.Coverage:
        missing = (p.EmptySlot(slot="omega", reason="no_demand"),)
        site = p.SiteCoverage(site="thing", expected=2, present=1, ratio=0.5, missing=missing)
        return replace(ours(request), sites=(site,))

    async def look() -> None:
        async with staged((120, 40), FakeSource({p.GetSites: sites, p.GetCoverage: covered}, ours)) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("serving")
            screen = await stage.until("✗ no_demand", "✓ filled")
            assert screen.index("omega") < screen.index("alpha")

    asyncio.run(look())


def test_a_table_within_another_names_what_it_is_of_before_it_counts() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything(("entity-1", "entity-2")))) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("shards")
            await stage.tap("enter")
            await stage.until("entities of the shard 0: ")

    asyncio.run(look())


def test_traffic_names_every_node_or_says_how_many_have_no_room() -> None:
    found = everything()(GetRates())
    assert isinstance(found, RateList)
    names = [f"entity-{number}" for number in range(1, 8)]
    rates = replace(found, items=tuple(replace(found.items[0], node=name) for name in names))

    async def look() -> None:
        async with staged((120, 40), FakeSource({GetRates: lambda _: rates}, everything())) as stage:
            stage.source.play(push(*(node(name) for name in names)))
            await stage.until("● live")
            screen = await stage.go("serving")
            own = "\n".join(screen.splitlines()[2:-3])
            assert all(name in own for name in names) or "more nodes, together" in own
            assert sum(name in own for name in names) >= 5
            assert "requests, whole cluster" in own
            assert own.count(" decides ") >= 5, "what a node's figure is of"

    asyncio.run(look())


def test_advertisers_have_a_table_with_their_names() -> None:
    async def look() -> None:
        found = everything()(p.GetAdvertisers())
        assert isinstance(found, p.AdvertiserList)
        named = replace(found, items=(replace(found.items[0], advertiser="adv-1", name="Cloud & Sons"),))
        async with staged((120, 40), FakeSource({p.GetAdvertisers: lambda _: named}, everything())) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("serving")
            await stage.tap("v", "v")
            await stage.until("advertisers 1", "adv-1", "Cloud & Sons")

    asyncio.run(look())


def test_a_pane_tells_what_a_site_s_day_came_of_and_another_who_has_a_campaign_s_bid() -> None:
    made = everything()(ExplainSite(site="thing"))
    assert isinstance(made, SiteExplanation)
    late = replace(made.counts[0], of="late", label="653 rail", this_hour=3, last_hour=1, day=4, day_ratio=0.25)
    failed = replace(made.checks[0], check="fresh pages that the auctioneer lacks", result="fail", count=2)
    site = replace(made, checks=(failed,), counts=(late,))
    bids = everything()(ExplainCampaign(campaign="thing"))
    assert isinstance(bids, CampaignExplanation)
    silent = replace(bids, ok=False, stripes=(replace(bids.stripes[0], category="653", quote="silent", ok=False),))

    async def look() -> None:
        answers = {ExplainSite: lambda _: site, ExplainCampaign: lambda _: silent}
        async with staged((120, 40), FakeSource(answers, everything())) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("serving")
            await stage.tap("o")
            await stage.until("MUST BE 0", "fresh pages that the auctioneer lacks", "653 rail", "25.0%")
            await stage.tap("v", "b")
            await stage.until("campaigns 1", "BID", "silent")

    asyncio.run(look())


def test_a_pane_that_has_nothing_to_tell_says_so() -> None:
    nothing: Any = everything(empty=True)(p.GetNode(node="entity-1"))

    async def look() -> None:
        source = FakeSource({p.GetNode: lambda _: replace(nothing, settings=())}, everything())
        async with staged((120, 40), source) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            await stage.go("nodes")
            await stage.tap("c")
            await stage.until("─ settings", "empty: the cluster has told nothing of this")

    asyncio.run(look())


def test_the_pane_of_what_was_not_checked_says_what_that_was() -> None:
    async def look() -> None:
        check = p.ClusterCheck(ok=True, checks=(), unchecked=("entity-9@1 did not answer",))
        shards = p.ShardCheck(ok=True, faults=(), unchecked=check.unchecked)
        source = FakeSource({p.CheckCluster: lambda _: check, p.GetShardCheck: lambda _: shards}, everything())
        async with staged((120, 40), source) as stage:
            stage.source.play(push(*NODES))
            await stage.until("● live")
            screen = await stage.go("doctor")
            assert screen.count("not checked: entity-9@1 did not answer") == 2, "the row, and the pane about it"
            await stage.go("shards")
            await stage.tap("c")
            screen = await stage.until("not checked: entity-9@1 did not answer", "what was checked agrees")
            assert "all views agree" not in screen

    asyncio.run(look())


def test_a_cordoned_node_s_pane_says_so_and_why() -> None:
    def cordon(name: str, target: str, reason: str, at: str) -> p.Operation:
        return p.Operation(
            id=name, verb="cordon", target=target, state="done", phases=(), elapsed_s=0.1, started_at=at, reason=reason
        )

    found = p.OperationList(
        items=(
            cordon("op-1", "node/entity-1", "an old one", "2026-11-29T13:00:00.000Z"),
            cordon("op-2", "node/entity-1", "kernel fix", "2026-11-29T14:00:00.000Z"),
            cordon("op-3", "node/entity-2", "another", "2026-11-29T14:01:00.000Z"),
        )
    )

    async def look() -> None:
        async with staged((120, 40), FakeSource({p.ListOperations: lambda _: found}, everything())) as stage:
            stage.source.play(push(node("entity-1", cordoned=True), node("entity-2")))
            await stage.until("● live")
            await stage.go("nodes")
            screen = await stage.until("● up cordoned", "cordoned by op-2", "kernel fix", "gets no more")
            assert "an old one" not in screen
            await stage.tap("down")
            assert "cordoned by" not in await stage.text()

    asyncio.run(look())


def test_what_was_copied_is_said() -> None:
    async def look() -> None:
        async with staged((120, 40), FakeSource(otherwise=everything())) as stage:
            stage.source.play(push(node("entity-1")))
            await stage.until("● live")
            await stage.go("nodes")
            await stage.tap("y")
            await stage.until("sent to the terminal's clipboard: entity-1")
            assert stage.app.clipboard == "entity-1"
            await stage.tap("Y")
            await stage.until("clipboard: the row entity-1")

    asyncio.run(look())


def test_events_that_a_break_cost_are_asked_of_the_node_that_is_followed_next() -> None:
    async def look() -> None:
        kept = EventList(
            items=(EventItem(at=AT, topic="node.removed", object="node/api-9", text="is no member", node="api-1"),),
            cursor="",
        )
        source = FakeSource({GetEventList: lambda _: kept}, everything())
        async with staged((120, 40), source) as stage:
            stage.source.play(push(node("entity-1")))
            await stage.until("● live")
            assert not [asked for asked in source.asked if isinstance(asked, GetEventList)]
            stage.source.play(refusal("the node went silent"))
            await stage.until("the node went silent")
            stage.app._feed.retry_now()
            stage.source.play(push(node("entity-1"), node("entity-2")))
            await stage.until("● live", "entity-2")
            await stage.go("events")
            await stage.until("dashboard.lost", "node.removed", "node/api-9")
            asked = [asked for asked in source.asked if isinstance(asked, GetEventList) and asked.since_ms]
            assert [each.node for each in asked] == ["api-1"], "once, of who is followed"

    asyncio.run(look())
