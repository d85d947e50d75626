"""Coverage by node and its explanation, orders about what is served, and why a shard is where it is."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from node.actors.actor import Failed, Failure
from node.admin import domain_views
from node.admin import protocol as p
from node.admin.business_requests import BusinessRequests
from node.admin.coverage_requests import CoverageRequests, placement_nodes, why_there
from node.admin.protocol.audit import AuditEntry, AuditList, GetAudit
from node.admin.removed_pools import removed_words
from node.admin.resting import resting
from node.ads import messages as m
from node.ads.budget import open_budget
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.site_state import SiteState
from node.ads.view import CandidateView, ServeView
from node.core.clock import ManualClock
from node.core.errors import BadInput
from node.core.hashing import SHARD_COUNT
from node.core.ids import EntityRef
from node.core.limits import coverage_keys_max
from node.engine.messages import FindKeys, KeysFound, SiteReport
from node.engine.removal_messages import CertificateRow, GetKeyHistory, KeyHistory, SeenRow, VersionRow
from node.gossip.removal import NOT_KNOWN
from node.sharding import requests as r
from node.sharding.book import Cordon, History, Ownership, Pin

META = cast("p.Meta", SimpleNamespace())
SITE = "news.example"
INFO = m.SiteInfo(SITE, SITE, "ann", (), 800_000, True, 0, (), ())


def silent(node: str) -> p.Missing:
    return p.Missing(node=node, reason="timeout", since="1970-01-01T00:00:00.000Z")


class Server:
    """As much of an admin server as these requests need: entities answer from `answers`, nodes hold `held`."""

    def __init__(self) -> None:
        self.handlers: dict[type, Any] = {}
        self.engine = self
        self.view = SimpleNamespace(members={"n1": None, "n2": None, "n3": None})
        self.membership = SimpleNamespace(state=SimpleNamespace(members={}))
        self.gatherer = self.states = self
        self.answers: dict[tuple[EntityRef, type], Any] = {}
        self.sent: list[tuple[EntityRef, Any]] = []
        self.held: dict[str, set[str]] = {}
        self.reported: dict[str, Any] = {}
        self.silent: tuple[p.Missing, ...] = ()  # of reports
        self.missing: tuple[p.Missing, ...] = ()  # from the newest answer
        self.kept: list[msgspec.Struct] = []
        self.remembered: dict[str, list[KeyHistory]] = {}
        self.pools: dict[str, ServeView] = {}
        self.index = SimpleNamespace(read=self.pools.get)
        self.questions: list[FindKeys] = []
        self.world = SimpleNamespace(clock=ManualClock())
        homes = (SimpleNamespace(node="n1"),) * SHARD_COUNT
        self.sharding = SimpleNamespace(region=SimpleNamespace(homes=lambda: homes))
        CoverageRequests(cast("Any", self))
        BusinessRequests(cast("Any", self))

    def ask(self, to: EntityRef, message: Any, _timeout_ms: int, done: Any) -> None:
        self.sent.append((to, message))
        done(self.answers.get((to, type(message)), Failed(Failure.REJECTED, f"there is no {to}")))

    async def reports(self) -> tuple[dict[str, Any], tuple[p.Missing, ...]]:
        return self.reported, self.silent

    async def ids(self, _kind: str) -> list[str]:
        return [SITE]

    async def all(self, kind: str, shape: type) -> list[msgspec.Struct]:
        return [state for state in self.kept if isinstance(state, shape)]

    async def each(self, nodes: list[str], order: Any, _answer: type) -> tuple[list[Any], list[Any]]:
        if isinstance(order, GetKeyHistory):
            return self.remembered.get(order.key, []), []
        self.questions.append(order)
        found = [KeysFound(n, tuple(k for k in order.keys if k in self.held[n])) for n in nodes if n in self.held]
        return found, [silent(n) for n in nodes if n not in self.held]

    def with_missing(self, call: p.Meta, missing: Any) -> p.Meta:
        self.missing = missing
        return call

    def call(self, request: Any) -> Any:
        return asyncio.run(self.handlers[type(request)](request, META))[0]


@pytest.fixture
def server() -> Server:
    return Server()


def test_coverage_says_of_each_node_what_its_own_replica_has(server: Server) -> None:
    site = SiteReport(SITE, 2, 1, (("side", "no_demand"),), ("side", "top"))
    server.reported = {"n1": SimpleNamespace(sites=(site,))}
    server.held = {"n1": {f"{SITE}|top"}, "n2": set()}
    found: p.Coverage = server.call(p.GetCoverage())
    assert (found.expected, found.present, found.ratio) == (2, 1, 0.5)
    assert found.sites[0].missing == (p.EmptySlot(slot="side", reason="no_demand"),)
    assert [(n.node, n.expected, n.present, n.ratio) for n in found.nodes] == [("n1", 2, 1, 0.5), ("n2", 2, 0, 0.0)]


def test_many_keys_are_looked_up_in_bounded_questions(server: Server) -> None:
    slots = tuple(f"s{n}" for n in range(coverage_keys_max + 1))
    server.reported = {"n1": SimpleNamespace(sites=(SiteReport(SITE, len(slots), 0, (), slots),))}
    server.held = {"n2": {f"{SITE}|{slot}" for slot in slots}}
    found: p.Coverage = server.call(p.GetCoverage())
    assert [len(question.keys) for question in server.questions] == [coverage_keys_max, 1]
    assert [(n.node, n.present) for n in found.nodes] == [("n2", len(slots))]


def test_an_explanation_names_nodes_that_lack_a_pool_of_the_owner_s(server: Server) -> None:
    slots = (
        m.SlotExplained("gone", "no_page", "why", "fill", 0),
        m.SlotExplained("side", "below_floor", "why", "fill", 2),
        m.SlotExplained("top", "filled", "why", "", 2),
    )
    server.answers[EntityRef("site", SITE), m.ExplainCoverage] = m.CoverageExplained(SITE, slots)
    server.held = {"n1": {f"{SITE}|top"}, "n2": set()}
    found: p.CoverageExplanation = server.call(p.ExplainCoverage(site=SITE))
    assert (found.expected, found.present, found.ratio) == (2, 1, 0.5)
    assert [(slot.slot, slot.lacking) for slot in found.slots] == [("gone", ()), ("side", ()), ("top", ("n2",))]
    assert [one.node for one in server.missing] == ["n3"], "who does not say is not known to lack it"


def test_bids_of_a_slot_s_pages_are_told_beside_those_of_one_auction(server: Server) -> None:
    """`2 campaigns bid for it, 2.60 at most` was of one page's auction; the pool held a third at 3.40, of another's."""
    slots = (
        m.SlotExplained("many", "filled", "2 candidates in its pool", "", 3),
        m.SlotExplained("one", "filled", "1 candidate in its pool", "", 1),
        m.SlotExplained("side", "no_demand", "why", "fill", 2),
    )
    server.answers[EntityRef("site", SITE), m.ExplainCoverage] = m.CoverageExplained(SITE, slots)
    server.held = {"n1": set()}
    bids = (("rail", 2_600_000), ("bikes", 3_400_000), ("rail", 1_000_000))
    pool = ServeView(tuple(_bid(campaign, micros) for campaign, micros in bids), 0, 0)
    for slot in slots:
        server.pools[f"{SITE}|{slot.slot}"] = pool
    why = {slot.slot: slot.why for slot in server.call(p.ExplainCoverage(site=SITE)).slots}
    told = "of all its 3 pages, the pool has 2 campaigns, 3.40 at most (an auction is of one page)"
    assert why == {"many": f"2 candidates in its pool; {told}", "one": "1 candidate in its pool", "side": "why"}


def _bid(campaign: str, cpm_micros: int) -> CandidateView:
    blank: dict[str, Any] = {field.name: "" for field in msgspec.structs.fields(CandidateView) if field.required}
    return CandidateView(**blank | {"campaign_id": campaign, "cpm_micros": cpm_micros})


def test_coverage_of_a_silent_owner_s_sites_is_unknown(server: Server) -> None:
    server.reported, server.silent = {"n1": SimpleNamespace(sites=())}, (silent("n3"),)
    server.held = {"n1": set()}
    found: p.Coverage = server.call(p.GetCoverage())
    assert (found.expected, found.present, found.ratio, found.unknown_sites) == (None, None, None, 1)
    assert [(row.site, row.expected, row.ratio) for row in found.sites] == [(SITE, None, None)]
    assert [(row.node, row.expected, row.present, row.ratio) for row in found.nodes] == [("n1", None, None, None)]
    assert [one.node for one in server.missing] == ["n3", "n2"], "each once, also who did not tell of its keys"


def test_who_says_what_it_holds_of_some_keys_only_is_missing(server: Server) -> None:
    slots = tuple(f"s{n}" for n in range(coverage_keys_max + 1))
    server.reported = {"n1": SimpleNamespace(sites=(SiteReport(SITE, len(slots), 0, (), slots),))}
    keys = {f"{SITE}|{slot}" for slot in slots}
    server.held = {"n1": keys, "n2": keys, "n3": keys}
    each = server.each

    async def falls_silent(nodes: list[str], order: Any, answer: type) -> Any:
        answers = await each(nodes, order, answer)
        server.held.pop("n2", None)
        return answers

    server.each = falls_silent  # type: ignore[method-assign]
    found: p.Coverage = server.call(p.GetCoverage())
    assert [(row.node, row.present) for row in found.nodes] == [("n1", len(slots)), ("n3", len(slots))]
    assert [one.node for one in server.missing] == ["n2"]


V1, V2 = VersionRow(1, 1_000 << 16, "n1"), VersionRow(1, 2_000 << 16, "n1")
PUT, GONE = SeenRow(V1, False, 9, 0, 1_000, "own"), SeenRow(V2, True, 0, 0, 2_000, "own")
PUT_AGAIN = SeenRow(VersionRow(1, 3_000 << 16, "n1"), False, 9, 0, 3_000, "own")
BY_ANN = CertificateRow(f"{SITE}|top", V2, 2_000, "ann: takedown", 1, 2, (), 0, 0)
BY_OWNER = msgspec.structs.replace(BY_ANN, asked_by="")
FORGOTTEN = msgspec.structs.replace(BY_ANN, asked_by=NOT_KNOWN)


def logged(at: str, outcome: str = "done", about: str = f"key/{SITE}|top") -> AuditEntry:
    texts = dict.fromkeys(("role", "node", "code", "plan", "operation", "nonce", "before", "digest"), "")
    return AuditEntry(
        number=7, at=at, who="bob", verb="serveindex remove", about=about, reason="", outcome=outcome, begins=6, **texts
    )


REMOVALS: list[tuple[list[KeyHistory], list[AuditEntry], str]] = [
    ([KeyHistory("n1", (PUT, GONE), BY_ANN)], [], "at 1970-01-01T00:00:02.000Z by ann: takedown"),
    ([KeyHistory("n2", (PUT,)), KeyHistory("n1", (GONE,), BY_ANN)], [], "by ann: takedown"),
    ([KeyHistory("n1", (PUT, GONE, PUT_AGAIN), BY_ANN)], [logged("1970-01-01T00:00:02.500Z")], ""),
    ([KeyHistory("n1", (PUT, GONE), BY_OWNER)], [], ""),
    ([KeyHistory("n1", (PUT, GONE), BY_OWNER)], [logged("1970-01-01T00:00:01.500Z")], ""),
    ([KeyHistory("n1", (GONE,), BY_OWNER)], [logged("1970-01-01T00:00:02.500Z")], "at 1970-01-01T00:00:02.500Z by bob"),
    ([KeyHistory("n1", (GONE,), FORGOTTEN)], [logged("1970-01-01T00:00:02.500Z")], ":02.500Z by bob"),
    ([], [logged("2026-01-01T00:00:00.000Z", "refused"), logged("1970-01-01T00:00:02.500Z")], ":02.500Z by bob"),
    ([], [logged("1970-01-01T00:00:02.500Z", about=f"key/{SITE}|top2")], ""),
    ([], [], ""),
]


@pytest.mark.parametrize(("histories", "entries", "words"), REMOVALS)
def test_a_pool_that_an_operator_removed_is_told_from_one_that_is_on_its_way(
    histories: list[KeyHistory], entries: list[AuditEntry], words: str
) -> None:
    found = removed_words(f"{SITE}|top", histories, entries)
    assert (words in found, bool(found)) == (True, bool(words))


def test_an_explanation_says_who_removed_a_pool_and_what_puts_it_back(server: Server) -> None:
    slots = tuple(m.SlotExplained(slot, "auction_pending", "on their way", "", 2) for slot in ("side", "top"))
    server.answers[EntityRef("site", SITE), m.ExplainCoverage] = m.CoverageExplained(SITE, slots)
    server.remembered = {f"{SITE}|top": [KeyHistory("n1", (PUT, GONE), BY_ANN)]}

    async def unreadable(request: GetAudit, _call: Any) -> Any:
        assert (request.verb, request.about) == ("remove", f"key/{SITE}|")
        raise p.AdminRefusal(15, "E-AUDIT", "the log can't be read")

    server.handlers[GetAudit] = unreadable
    side, top = server.call(p.ExplainCoverage(site=SITE)).slots
    assert (side.reason, side.why) == ("auction_pending", "on their way")
    assert (top.reason, top.fill) == ("removed", f"promovolvectl replay start --site {SITE}")
    assert "by ann: takedown" in top.why


def test_coverage_tells_a_removed_pool_from_one_that_is_on_its_way(server: Server) -> None:
    """By the log, which may name thousands of slots less than wait; what was written since is on its way again."""
    missing = (
        ("again", "auction_pending"),
        ("side", "auction_pending"),
        ("top", "auction_pending"),
        ("x", "no_demand"),
    )
    server.reported = {"n1": SimpleNamespace(sites=(SiteReport(SITE, 4, 0, missing, ("again", "side", "top", "x")),))}
    server.remembered = {f"{SITE}|top": [KeyHistory("n1", (PUT, GONE), BY_ANN)]}
    server.remembered[f"{SITE}|again"] = [KeyHistory("n1", (PUT, GONE, PUT_AGAIN), BY_ANN)]
    entries = tuple(logged("1970-01-01T00:00:02.500Z", about=f"key/{SITE}|{slot}") for slot in ("again", "top", "x"))

    async def removals(request: GetAudit, _call: Any) -> Any:
        assert (request.verb, request.about) == ("remove", "key/")
        return AuditList(items=entries), META

    server.handlers[GetAudit] = removals
    [row] = server.call(p.GetCoverage()).sites
    told = {slot.slot: slot.reason for slot in row.missing}
    assert told == {"again": "auction_pending", "side": "auction_pending", "top": "removed", "x": "no_demand"}


def campaign(name: str, cpm: int, *, spent: int = 0, **more: Any) -> CampaignState:
    budget = msgspec.structs.replace(open_budget(1_000_000, "UTC", now_ms=0), spent_micros=spent)
    spec = m.CreativeSpec(f"cr-{name}", "https://a.example/", "https://a.example/", 1, 1, "image/png")
    return CampaignState(name, "adv", name, cpm, more.pop("categories", ("653",)), budget, (spec,), **more)


RESTING: list[tuple[dict[str, Any], str, str]] = [
    ({"status": "paused"}, "campaign c is paused", "campaign resume c"),
    ({"advertiser_suspended": True}, "advertiser adv is suspended", "advertiser resume adv"),
    ({"spent": 1_000_000}, "campaign c has spent its day's budget", "campaign update c --daily-budget"),
    ({"withdrawn": {"cr-c": "paused"}}, "no creative of campaign c is active", "creative resume cr-c"),
    ({"status": "paused", "categories": ("1",)}, "", ""),
    ({"status": "deleted"}, "", ""),
    ({}, "", ""),
]


@pytest.mark.parametrize(("rest", "why", "fill"), RESTING)
def test_who_would_bid_but_rests_is_named_with_what_wakes_it(rest: dict[str, Any], why: str, fill: str) -> None:
    budget = open_budget(1_000_000, "UTC", now_ms=0)
    above = {"adv": AdvertiserState("adv", "A", budget)}
    ended = {"adv": AdvertiserState("adv", "A", budget, status="deleted")}
    assert resting([campaign("c", 1_000_000, **rest)], ended, frozenset({"653"}), 0) == ("", ""), "nothing wakes it"
    found = resting([campaign("c", 1_000_000, **rest)], above, frozenset({"653"}), 0)
    assert (why in found[0], fill in found[1]) == (True, True)
    assert bool(found[0]) == bool(why)


def test_of_several_that_rest_the_best_bid_is_woken() -> None:
    names = [campaign(f"c{number}", number, status="paused") for number in range(1, 6)]
    why, fill = resting(names, {}, frozenset({"653"}), 0)
    assert why == "campaign c5 is paused; campaign c4 is paused; campaign c3 is paused; and 2 more"
    assert fill == "promovolvectl campaign resume c5"


def test_an_explanation_names_a_campaign_that_rests(server: Server) -> None:
    slots = (m.SlotExplained("side", "no_demand", "no campaign bids", "a campaign", 2, ("653",)),)
    server.answers[EntityRef("site", SITE), m.ExplainCoverage] = m.CoverageExplained(SITE, slots)
    server.kept = [campaign("c", 1_000_000, status="paused")]
    found: p.CoverageExplanation = server.call(p.ExplainCoverage(site=SITE))
    [slot] = found.slots
    assert (slot.why, slot.fill) == ("no campaign bids; campaign c is paused", "promovolvectl campaign resume c")


def test_a_site_is_updated_by_what_was_checked(server: Server) -> None:
    server.answers[EntityRef("site", SITE), m.UpdateSite] = INFO
    request = p.UpdateSite(site=SITE, floor_cpm="0.80", block_domains=("WWW.Shop.example",), unblock_products=("1052",))
    assert server.call(request).floor_cpm == "0.80"
    assert server.sent[-1][1] == m.UpdateSite(800_000, None, ("shop.example",), (), (), ("1052",))
    server.call(p.UpdateSite(site=SITE, paced=True, auto_approve=False))
    assert server.sent[-1][1] == m.UpdateSite(paced=True, auto_approve=False)
    floor = p.SlotFloor(slot="top", floor_cpm="1.20")
    server.call(p.UpdateSite(site=SITE, slot_floors=(floor,), clear_slot_floors=("side",)))
    assert server.sent[-1][1] == m.UpdateSite(slot_floors=(("top", 1_200_000),), clear_slot_floors=("side",))
    for bad in (
        p.UpdateSite(site=SITE),
        p.UpdateSite(site=SITE, block_domains=("not a domain",)),
        p.UpdateSite(site=SITE, block_products=("no/product",)),
        p.UpdateSite(site=SITE, block_domains=("a.example",), unblock_domains=("a.example",)),
        p.UpdateSite(site=SITE, floor_cpm="-1"),
        p.UpdateSite(site=SITE, slot_floors=(p.SlotFloor(slot="no slot", floor_cpm="1"),)),
        p.UpdateSite(site=SITE, slot_floors=(p.SlotFloor(slot="top", floor_cpm="-1"),)),
    ):
        with pytest.raises(BadInput):
            server.call(bad)
    assert len(server.sent) == 3


def test_a_site_shows_what_it_has_learned_and_whom_it_trusts() -> None:
    info = msgspec.structs.replace(
        INFO,
        learned_floor_micros=900_000,
        category_floors={"653": 1_980_000},
        paced=True,
        auto_approve=True,
        trusted=("campaign|rail", "domain|shop.example"),
        flagged={"cr-9": "misleading"},
    )
    shown = domain_views.site(info)
    assert (shown.floor_cpm, shown.learned_floor_cpm) == ("0.80", "0.90")
    assert shown.category_floors == (p.CategoryFloor(category="653", name="Travel", floor_cpm="1.98"),)
    assert (shown.paced, shown.auto_approve) == (True, True)
    assert shown.trusted == ("campaign rail", "domain shop.example")
    assert shown.flagged == ("cr-9: misleading",)


def test_a_creative_is_revoked_where_it_is_approved_and_rejected_where_it_waits_too(server: Server) -> None:
    budget = open_budget(1_000_000, "UTC", now_ms=0)
    spec = m.CreativeSpec("cr", "https://a.example/", "https://a.example/", 1, 1, "image/png")
    waits = {"cr": m.PendingCreative("cr", "camp", "adv", (), 1)}
    server.kept = [
        CampaignState("camp", "adv", "camp", 1, (), budget, (spec,)),
        SiteState("approved.example", "h", "ann", (), 0, b"", approved={"cr": 1}),
        SiteState("waiting.example", "h", "ann", (), 0, b"", pending=waits),
        SiteState("other.example", "h", "ann", (), 0, b""),
    ]
    for site in ("approved.example", "waiting.example"):
        server.answers[EntityRef("site", site), m.RevokeCreative] = m.Accepted(changed=site.startswith("approved"))
    revoked: p.Revoked = server.call(p.RevokeCreative(creative="cr"))
    assert (revoked.sites, revoked.changed, revoked.rejected) == (("approved.example",), True, False)
    rejected: p.Revoked = server.call(p.RevokeCreative(creative="cr", reject=True))
    assert (rejected.sites, rejected.changed) == (("approved.example", "waiting.example"), True)
    one: p.Revoked = server.call(p.RevokeCreative(creative="cr", site="waiting.example"))
    assert (one.sites, one.changed) == (("waiting.example",), False)
    with pytest.raises(p.AdminRefusal) as refused:
        server.call(p.RevokeCreative(creative="unknown"))
    assert refused.value.exit_status == 3


# ---- placement


def placing(**changes: Any) -> r.Placing:
    owners = ("n1@1", "n2@1", "n1@1", "")
    return msgspec.structs.replace(r.Placing("n1", 2, 7, owners, (3, 4, 5, 0)), **changes)


def test_the_reasons_of_a_placement_come_the_strongest_first() -> None:
    history = History(2, (Ownership("n2", 1, 3, "allocated", 1_000), Ownership("n1", 1, 5, "op-9 rebalance", 2_000)))
    full = placing(
        pins=(Pin(2, "n3", "its disk is fast", 1_500), Pin(1, "n2")),
        pending=(2,),
        cordons=(Cordon("n1", "old kernel"),),
        draining=("n1@1",),
        moves=(r.UnderWay(2, "n1", "n3", "stopping", "op-10 move", 40, 0),),
        why_not_rebalancing=("n4 is unreachable",),
    )
    why = why_there(full, 2, history)
    starts = [
        "it is stopping, from n1 to n3: op-10 move",
        "it is pinned to n3 (which does not take shards now) since 1970-01-01T00:00:01.500Z: its disk is fast",
        "n1 is being drained",
        "it came from n2 to n1 at 1970-01-01T00:00:02.000Z under epoch 5: op-9 rebalance",
        "n1 is cordoned (old kernel)",
        "the load is not evened out: n4 is unreachable",
    ]
    assert len(why) == len(starts)
    assert all(line.startswith(start) for line, start in zip(why, starts, strict=True)), why
    assert why_there(placing(), 0, None) == ()


def test_a_shard_without_an_owner_says_why() -> None:
    assert "nobody owns it: no entity node is up" in why_there(placing(why_not_placing="no entity node is up"), 3, None)
    assert "least loaded" in why_there(placing(), 3, None)[0]


def test_what_each_node_weighs_and_what_keeps_it_from_taking_shards() -> None:
    nodes = placement_nodes(placing(cordons=(Cordon("n2"),), draining=("n3@1",)), {"n1": 3.0, "n2": 1.0, "n3": 0.0})
    assert [(n.node, n.capacity, n.share, n.shards, n.takes, n.why_not) for n in nodes] == [
        ("n1", 3.0, 3, 2, True, ""),
        ("n2", 1.0, 1, 1, False, "cordoned"),
        ("n3", 0.0, 0, 0, False, "draining"),
    ]
    gone = placement_nodes(placing(), {"n1": 1.0})
    assert [(n.node, n.why_not) for n in gone] == [("n1", ""), ("n2", "is no entity node that is up")]


def test_coverage_of_one_node_is_what_its_own_replica_can_serve(server: Server) -> None:
    """Also where it differs from what the site's owner has: a pool that it lacks, one that it has still."""
    missing = (("gone", "classification_expired"), ("side", "no_demand"))
    site = SiteReport(SITE, 3, 2, missing, ("late", "side", "top"))
    server.reported = {"n1": SimpleNamespace(sites=(site,))}
    server.held = {"n1": {f"{SITE}|top", f"{SITE}|late"}, "n2": {f"{SITE}|top"}, "n3": {f"{SITE}|side"}}

    def at(node: str) -> tuple[int, dict[str, str], list[str]]:
        found: p.Coverage = server.call(p.GetCoverage(node=node))
        assert found.present == found.sites[0].present
        assert found.ratio == found.sites[0].ratio == found.present / 3
        return (
            found.present,
            {slot.slot: slot.reason for slot in found.sites[0].missing},
            [row.node for row in found.nodes],
        )

    assert at("n1") == (2, dict(missing), ["n1"])
    assert at("n2") == (1, {**dict(missing), "late": "not_on_this_node"}, ["n2"])
    assert at("n3") == (
        1,
        {"gone": "classification_expired", "late": "not_on_this_node", "top": "not_on_this_node"},
        ["n3"],
    )
    with pytest.raises(p.AdminRefusal, match="there is no node 'n9'"):
        server.call(p.GetCoverage(node="n9"))
    del server.held["n2"]
    with pytest.raises(p.AdminRefusal, match="n2 did not answer"):
        server.call(p.GetCoverage(node="n2"))
