"""From nodes' reports to what an operator reads."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from node.actors.actor import Failed, Failure
from node.admin import outcomes, views
from node.admin.absences import absences
from node.admin.protocol import AdminRefusal
from node.ads.messages import GetSite
from node.core.clock import ManualClock
from node.core.errors import BadInput
from node.core.hashing import MAP_COUNT, SHARD_COUNT
from node.core.ids import EntityRef, NodeId, ServiceRef
from node.engine.messages import FaultReport, MapReport, NodeReport, SiteReport
from node.gossip.member import Member, Status
from node.gossip.view import ClusterView, Unreachability
from node.store.port import ShardRow, ShardState

SAME = (MapReport(1, 10, 0, "d"),) * MAP_COUNT


def member(name: str, incarnation: int = 1, **changes: Any) -> Member:
    fields: dict[str, Any] = {"control": f"{name}:1", "roles": ("entity",), "status": Status.UP, "up_number": 1}
    return Member(name, incarnation, **(fields | changes))


def cluster(*members: Member, unreachable: tuple[str, ...] = (), **changes: Any) -> ClusterView:
    away = {name: Unreachability((), 0) for name in unreachable}
    fields: dict[str, Any] = {"leader": members[0].node, "converged": True}
    return ClusterView(members[0].id, members={m.node: m for m in members}, unreachable=away, **(fields | changes))


def report(name: str, **changes: Any) -> NodeReport:
    base = NodeReport(
        name, 1, 100, "0.1.0", 10_000, True, (), (), ((1, 4, 3), (2, 4, 1)), {"site": 4}, SAME, True, {}, (), (), {},
        {}, 7, name == "n1", 5, 9, 1_000, 500, "view", True,
    )  # fmt: skip
    return msgspec.structs.replace(base, **changes)


TWO = cluster(member("n1"), member("n2"))
ROWS = (
    ShardRow(0),
    ShardRow(1, "n1", 1, 4, ShardState.RUNNING),
    ShardRow(2, "n2", 1, 5, ShardState.MOVING),
    ShardRow(3, "gone", 1, 3, ShardState.RUNNING),
    ShardRow(4, "n2", 7, 3, ShardState.RUNNING),
)


def status(
    view: ClusterView = TWO, sites: tuple[str, ...] | None = (), reports: dict[str, NodeReport] | None = None
) -> Any:
    return views.cluster_status(view, ROWS, reports or {"n1": report("n1"), "n2": report("n2")}, sites, 1.5)


def test_every_shard_has_an_owner_or_a_reason() -> None:
    items = {item.shard: item for item in views.shard_items(TWO, ROWS, {"n1": report("n1")})}
    assert [items[n].state for n in range(5)] == ["unallocated", "running", "moving", "unallocated", "unallocated"]
    assert (items[1].node, items[1].epoch, items[1].entities) == ("n1", 4, 3)
    assert "never placed" in items[0].why
    assert "gone@1" in items[3].why
    assert "n2@7" in items[4].why, "the owner's name is back as another incarnation"
    totals = views.shard_totals(tuple(items.values()))
    assert (totals.total, totals.allocated, totals.moving, totals.unallocated) == (5, 1, 1, 3)


def test_a_node_that_did_not_answer_is_shown_as_such() -> None:
    rows = {row.name: row for row in views.node_rows(TWO, {"n1": report("n1", lag_ms={"n2": 7, "n3": 9})}, ())}
    assert (rows["n1"].ready, rows["n1"].shards, rows["n1"].entities, rows["n1"].max_lag_ms) == (True, 2, 4, 9)
    assert rows["n1"].cpu_ratio == 0.05
    assert (rows["n2"].ready, rows["n2"].why_not_ready) == (False, ("no answer",))
    stale = views.node_rows(TWO, {"n1": report("n1", incarnation=2)}, ())
    own = ("pid", "uptime_s", "entities", "max_lag_ms", "rss_bytes", "cpu_ratio")
    assert [getattr(rows["n2"], name) for name in own] == [None] * len(own), "nobody who is silent has said 0"
    assert None not in [getattr(rows["n1"], name) for name in own]
    assert stale[0].why_not_ready == ("no answer",), "what an earlier start said is not about this one"


def test_maps_agree_or_differ_by_digest() -> None:
    assert all(item.agree for item in views.maps({"n1": report("n1"), "n2": report("n2")}))
    other = (*SAME[:5], MapReport(2, 30, 1, "e"), *SAME[6:])
    items = views.maps({"n1": report("n1"), "n2": report("n2", maps=other)})
    assert [item.map for item in items if not item.agree] == ["serve-05"]
    assert (items[5].keys, items[5].bytes, items[5].tombstones) == (2, 30, 1)
    assert [r.digest for r in items[5].replicas] == ["d", "e"]
    assert [item.keys for item in views.maps({})] == [0] * MAP_COUNT


def test_a_silent_replica_is_known_neither_to_agree_nor_to_differ() -> None:
    assert status().serveindex.agree is True
    silent = status(reports={"n1": report("n1")})
    assert silent.serveindex.agree is None
    assert "E-REPLICAS-DIFFER" not in [reason.code for reason in views.health(silent).reasons]
    other = (*SAME[:5], MapReport(2, 30, 1, "e"), *SAME[6:])
    three = cluster(member("n1"), member("n2"), member("n3"))
    differ = status(three, reports={"n1": report("n1"), "n2": report("n2", maps=other)})
    assert differ.serveindex.agree is False, "those that answered do, whatever the third holds"
    assert "E-REPLICAS-DIFFER" in [reason.code for reason in views.health(differ).reasons]


def test_coverage_is_of_all_sites_or_of_those_asked_for() -> None:
    sites = (SiteReport("a", 4, 4, ()), SiteReport("b", 4, 1, (("top", "no_demand"),)))
    reports = {"n1": report("n1", sites=sites[:1]), "n2": report("n2", sites=sites[1:])}
    all_sites = views.coverage(reports, ("a", "b"))
    assert (all_sites.expected, all_sites.present, all_sites.ratio) == (8, 5, 0.625)
    (only,) = views.coverage(reports, ("a", "b"), ["b"]).sites
    assert (only.ratio, [(m.slot, m.reason) for m in only.missing]) == (0.25, [("top", "no_demand")])
    assert views.coverage({}, ()).ratio == 1.0
    assert status(sites=("a", "b"), reports=reports).coverage.ratio == 0.625


def test_a_site_that_nobody_reports_is_unknown_and_no_sum_passes_for_the_whole() -> None:
    reports = {"n1": report("n1", sites=(SiteReport("a", 4, 4, ()),))}
    found = views.coverage(reports, ("a", "b"))
    assert (found.expected, found.present, found.ratio, found.unknown_sites) == (None, 4, None, 1)
    assert [(row.site, row.expected, row.present, row.ratio) for row in found.sites] == [
        ("a", 4, 4, 1.0),
        ("b", None, None, None),
    ]
    assert views.coverage(reports, ("a", "b"), ["a"]).ratio == 1.0, "what was asked for is known"
    nobody = views.coverage({}, ("a", "b"), ["b"])
    assert (nobody.expected, nobody.present, nobody.ratio, nobody.unknown_sites) == (None, None, None, 1)
    totals = status(sites=("a", "b"), reports=reports).coverage
    assert (totals.expected, totals.present, totals.ratio, totals.unknown_sites) == (None, 4, None, 1)
    unsaid = status(sites=None, reports=reports).coverage
    assert (unsaid.expected, unsaid.present, unsaid.ratio, unsaid.unknown_sites) == (None, 4, None, None)
    here = views.coverage_at(found, {"a": frozenset("xy")}, {"a|x"})
    assert (here.expected, here.present, here.ratio, here.sites[1].present) == (None, 1, None, None)


def test_the_status_of_a_whole_cluster() -> None:
    found = status()
    assert (found.converged, found.coordinator, found.term, found.requests_per_s) == (True, "n1", 7, 1.5)
    assert (found.members_up, found.required, found.available, found.served_count) == (2, 2, 2, 10)
    assert not status(reports={"n1": report("n1"), "n2": report("n2", view_digest="other")}).converged
    assert not status(cluster(member("n1"), member("n2"), unreachable=("n2",))).converged
    assert status(reports={"n1": report("n1", coordinator_active=False)}).coordinator is None


def test_who_coordinates_says_who_is_cordoned() -> None:
    reports = {"n1": report("n1", cordons=("n2",)), "n2": report("n2", cordons=("n1",))}
    assert [row.cordoned for row in status(reports=reports).nodes] == [False, True]
    del reports["n1"]
    assert [row.cordoned for row in status(reports=reports).nodes] == [None, None], "nobody knows"


def test_a_fault_is_listed_once_since_its_first_sight() -> None:
    early, late = FaultReport("E-X", "node/n2", "text", 1_000), FaultReport("E-X", "node/n2", "text", 2_000)
    other = FaultReport("E-A", "store", "text", 3_000)
    rows = views.faults({"n1": report("n1", faults=(late, other)), "n2": report("n2", faults=(early,))})
    assert [(r.code, r.since) for r in rows] == [
        ("E-A", "1970-01-01T00:00:03.000Z"),
        ("E-X", "1970-01-01T00:00:01.000Z"),
    ]


def test_health_says_why() -> None:
    rows = tuple(ShardRow(n, "n1", 1, 1, ShardState.RUNNING) for n in range(4))
    reports = {"n1": report("n1"), "n2": report("n2")}
    healthy = views.health(views.cluster_status(TWO, rows, reports, (), 0.0))
    assert (healthy.state, healthy.reasons) == ("healthy", ())
    lacking = absences(("n1", "n9"), TWO.members, {}, {})
    missed = views.health(msgspec.structs.replace(views.cluster_status(TWO, rows, reports, (), 0.0), absent=lacking))
    assert missed.state == "degraded"
    assert [(r.code, r.object) for r in missed.reasons] == [("E-NODE-ABSENT", "node/n9")]
    reports["n2"] = report("n2", ready=False, why_not_ready=("draining",))
    degraded = views.health(views.cluster_status(TWO, rows, reports, (), 0.0))
    assert (degraded.state, [r.code for r in degraded.reasons]) == ("degraded", ["E-NODE-NOT-READY"])
    assert degraded.reasons[0].text == "draining"
    broken = views.health(
        status(cluster(member("n1"), member("n2"), unreachable=("n2",)), reports={"n1": report("n1")})
    )
    assert broken.state == "unhealthy"
    assert [r.code for r in broken.reasons] == [
        "E-NODE-UNREACHABLE",
        "E-SHARDS-UNALLOCATED",
        "E-NO-MAJORITY",
        "E-NOT-CONVERGED",
    ]


@pytest.mark.parametrize(
    ("failed", "code", "exit_status"),
    [
        (Failed(Failure.REJECTED, "there is no site 'x'"), "E-NOT-FOUND", 3),
        (Failed(Failure.REJECTED, "conflict: it exists"), "E-CONFLICT", 4),
        (Failed(Failure.REJECTED, "daily_budget: must not be negative"), "E-REJECTED", 2),
        (Failed(Failure.TIMEOUT), "E-NO-ANSWER", 9),
        (Failed(Failure.NO_HOME, "unknown"), "E-UNAVAILABLE", 15),
        (Failed(Failure.FAILED, "raised"), "E-UNAVAILABLE", 15),
    ],
)
def test_failures_have_the_exit_status_that_fits(failed: Failed, code: str, exit_status: int) -> None:
    refusal = outcomes.refusal(failed, "site:x")
    assert (refusal.code, refusal.exit_status) == (code, exit_status)
    assert "conflict: " not in refusal.message


def test_refusals_name_what_they_are_about() -> None:
    assert outcomes.bad_input(BadInput("slots", "a slot is named twice")).about == "slots"
    missing = outcomes.not_found("site", "x", ["a", "b"])
    assert (missing.exit_status, missing.message) == (3, "there is no site 'x'; there are: a, b")
    assert missing.hint == "promovolvectl site list"


def test_what_is_left_out_of_an_error_is_counted_and_where_it_stands_is_named() -> None:
    many = outcomes.not_found("drill", "x", list("abcdefghijk"))
    assert many.message == "there is no drill 'x'; there are: a, b, c, d, e, f, g, h and 3 more"
    assert many.hint == "promovolvectl cluster drill list"
    assert outcomes.not_found("slot", "x", [], listed="promovolvectl site show s").hint == "promovolvectl site show s"
    assert outcomes.not_found("site", "x", []).message == "there is no site 'x'; there are: none"
    assert outcomes.not_found("site", "x").message == "there is no site 'x'", "nobody looked"
    for kind, listed in (("operation", "op"), ("replay", "replay")):
        missing = outcomes.refusal(Failed(Failure.REJECTED, f"there is no {kind} 'x'"), f"{kind}:x")
        assert (missing.exit_status, missing.hint) == (3, f"promovolvectl {listed} list")
    rejected = outcomes.refusal(Failed(Failure.REJECTED, "there is no campaign 'x'"), "campaign:x")
    assert rejected.hint == "promovolvectl campaign list"


@pytest.mark.parametrize(
    ("status", "cause", "words"),
    [
        (Status.REMOVED, "at T by decision n1.4, keep-majority", "was removed at T by decision n1.4, keep-majority"),
        (Status.REMOVED, "by ann: disk lost", "was removed at 1970-01-01T00:00:01.000Z by ann: disk lost"),
        (Status.REMOVED, "left", "left at 1970-01-01T00:00:01.000Z"),
        (Status.DOWN, "", "is being removed at 1970-01-01T00:00:01.000Z"),
    ],
)
def test_of_a_node_that_was_a_member_it_is_said_how_it_went(status: Status, cause: str, words: str) -> None:
    gone = Member("n3", 2, "h:1", status=status, cause=cause)
    engine: Any = SimpleNamespace(
        membership=SimpleNamespace(state=SimpleNamespace(members={"n3": gone})),
        members=SimpleNamespace(went_ms={NodeId("n3", 2): 1_000}),
        view=SimpleNamespace(members={"n1": None}),
    )
    refusal = outcomes.no_member(engine, "n3")
    assert f"its last start, incarnation 2, {words};" in refusal.message
    assert "logs/n3.log" in refusal.message
    assert (refusal.exit_status, refusal.hint) == (3, "promovolvectl node start n3")
    assert outcomes.no_member(engine, "n4").message == "there is no node 'n4'; there are: n1"


def placed_engine(outcome: Failed) -> Any:
    """An engine whose asks all come to this, and whose shards are all on n4."""
    rows = tuple(ShardRow(number, "n4", 1, 1, ShardState.RUNNING) for number in range(SHARD_COUNT))
    return SimpleNamespace(
        ask=lambda _to, _message, _timeout_ms, done: done(outcome),
        sharding=SimpleNamespace(region=SimpleNamespace(homes=lambda: rows)),
        world=SimpleNamespace(clock=ManualClock()),
    )


@pytest.mark.parametrize("failure", [Failure.TIMEOUT, Failure.UNREACHABLE, Failure.PEER_BUSY])
def test_a_question_without_an_answer_names_the_silent_node_and_may_not_have_happened(failure: Failure) -> None:
    engine = placed_engine(Failed(failure, "detail"))
    moved = SimpleNamespace(homes=lambda: (ShardRow(0, "n5", 1, 2, ShardState.RUNNING),) * SHARD_COUNT)
    answered = engine.ask

    def moves(*asked: Any) -> None:
        engine.sharding.region = moved  # while it is waited for
        answered(*asked)

    engine.ask = moves
    for to, node in ((EntityRef("site", "x"), "n4"), (ServiceRef("n2", "/node"), "n2")):
        with pytest.raises(AdminRefusal) as silent:
            asyncio.run(outcomes.read(engine, to, GetSite()))
        refused = silent.value
        assert (refused.exit_status, refused.code, refused.about) == (12, "E-SILENT", f"node/{node}")
        assert refused.message.startswith(f"{node} did not answer ({failure.value}): ")
        assert "may have happened" not in refused.message


def test_a_question_that_was_answered_with_a_refusal_is_refused_as_a_change_is() -> None:
    engine = placed_engine(Failed(Failure.REJECTED, "there is no site 'x'"))
    with pytest.raises(AdminRefusal) as refused:
        asyncio.run(outcomes.read(engine, EntityRef("site", "x"), GetSite()))
    assert refused.value.exit_status == 3
