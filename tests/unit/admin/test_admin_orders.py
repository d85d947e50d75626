"""Orders that are staged: what they would do, who may, what is on record; and `request_id`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from admin_console import Console, played

from node.actors.actor import Failed, Failure
from node.admin import protocol as p
from node.admin.protocol import audit, publishers
from node.ads import messages as m
from node.ads.budget import open_budget
from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.entities.publisher import PublisherState
from node.ads.entities.site_state import SiteState
from node.core.hashing import shard_of
from node.core.ids import EntityRef
from node.store.port import WriteState, Written
from node.wire.codec import CODEC

BUDGET = open_budget(1_000_000, "UTC", now_ms=0)
SPEC = m.CreativeSpec("cr", "https://a.example/", "https://b.example/", 1, 1, "image/png")
RAIL = CampaignState("rail", "acme", "rail", 4_000_000, ("653",), BUDGET, (SPEC,))
GONE = msgspec.structs.replace(RAIL, campaign="gone", status="deleted", creatives=())
ACME = AdvertiserState("acme", "acme", BUDGET, ("rail", "gone"))
ENDED = AdvertiserState("ended", "ended", BUDGET, status="deleted")
BLOG = SiteState("blog", "blog.example", "ann", (m.SlotSpec("top", 1, 1),), 500_000, b"", approved={"cr": 1})
ANN = PublisherState("ann", b"", {"blog": "blog.example"})
INFO = m.CampaignInfo("rail", "acme", "rail", "deleted", 1, 1, 0, 0, 0, 0, (), ())
DELETE = p.SetCampaignStatus(campaign="rail", status="deleted", reason="over")


def staged(order: msgspec.Struct) -> p.StageOrder:
    name, version, body = CODEC.body_of(order)
    return p.StageOrder(order=name, version=version, body=body, reason=getattr(order, "reason", ""))


def keep(console: Console, *states: tuple[str, str, msgspec.Struct]) -> None:
    for kind, name, state in states:
        write = WriteState(kind, name, shard_of(name), 1, 0, CODEC.encode_record(state))
        assert isinstance(console.engine.store.apply([write])[0], Written)


async def at_work(console: Console) -> Console:
    keep(
        console,
        ("campaign", "rail", RAIL),
        ("campaign", "gone", GONE),
        ("advertiser", "acme", ACME),
        ("advertiser", "ended", ENDED),
        ("site", "blog", BLOG),
        ("publisher", "ann", ANN),
    )
    return console


@pytest.mark.parametrize(
    "order",
    [
        DELETE,
        p.SetAdvertiserStatus(advertiser="acme", status="suspended"),
        p.SetAdvertiserStatus(advertiser="acme", status="deleted"),
        p.UpdateSite(site="blog", suspended=True),
        publishers.UpdatePublisher(publisher="ann", suspended=True),
        publishers.DeleteSite(site="blog"),
        p.RevokeCreative(creative="cr"),
        p.SetCreativeStatus(creative="cr", status="deleted"),
    ],
    ids=lambda found: type(found).__name__,
)
def test_what_takes_something_away_is_not_taken_without_a_plan(order: msgspec.Struct) -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        answer = await console.ask(order)
        assert (answer.code, answer.exit) == ("E-NOT-STAGED", 5)
        assert console.engine.asked == []
        (entry,) = (await console.ask(audit.GetAudit())).items
        assert (entry.outcome, entry.code, entry.reason) == ("refused", "E-NOT-STAGED", getattr(order, "reason", ""))
        plan = await console.ask(staged(order))
        assert isinstance(plan, p.Plan), plan
        assert (plan.changed, bool(plan.notes), plan.violations) == (True, True, ())
        assert console.engine.asked == [], "a plan tells nobody anything"

    played(scene)


def test_a_plan_is_shown_listed_committed_once_and_on_record() -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        plan = await console.ask(staged(DELETE))
        assert (plan.verb, plan.target, plan.reason) == ("delete", "campaign/rail", "over")
        assert await console.ask(p.GetPlan(id=plan.id)) == plan
        assert plan in (await console.ask(p.GetPlans())).items
        console.engine.answers = [INFO]
        commit = p.CommitPlan(id=plan.id, reason="over", request_id="once")
        done = await console.ask(commit)
        assert (done.state, done.result) == ("done", {"changed": True})
        assert await console.ask(commit) == done
        assert await console.ask(p.GetOperation(id=done.id)) == done
        assert done in (await console.ask(p.ListOperations())).items
        assert (await console.ask(p.ListOperations(state="failed"))).items == ()
        told = [message for to, message in console.engine.asked if to == EntityRef("campaign", "rail")]
        assert told == [m.SetCampaignStatus("deleted")]
        entry = (await console.ask(audit.GetAudit())).items[0]
        assert (entry.verb, entry.about, entry.reason) == ("campaign delete", "campaign/rail", "over")
        assert await console.ask(p.CancelOperation(id=done.id)) == done, "it is over"

    played(scene)


def test_a_viewer_stages_nothing_and_a_plan_can_be_forgotten() -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        console.who = "viewer"
        refused = await console.ask(staged(DELETE))
        assert (refused.exit, "campaign delete needs the role operator" in refused.message) == (7, True)
        console.who = "operator"
        plan = await console.ask(staged(DELETE))
        assert (await console.ask(p.DiscardPlan(id=plan.id))).id == plan.id
        assert (await console.ask(p.CommitPlan(id=plan.id))).exit == 3
        forced = await console.ask(staged(p.RotateKey(node="n1", step="retire", force=True)))
        assert forced.exit == 7, "what takes an administrator is not staged by an operator"

    played(scene)


@pytest.mark.parametrize(
    ("order", "changed", "violates"),
    [
        (p.SetCampaignStatus(campaign="gone", status="deleted"), False, False),
        (p.SetCampaignStatus(campaign="gone", status="active"), True, True),
        (p.SetCampaignStatus(campaign="rail", status="active"), False, False),
        (p.SetAdvertiserStatus(advertiser="acme", status="active"), False, False),
        (p.SetAdvertiserStatus(advertiser="acme", status="deleted"), True, False),
        (p.SetAdvertiserStatus(advertiser="ended", status="deleted"), False, False),
        (p.SetAdvertiserStatus(advertiser="ended", status="active"), True, True),
        (p.UpdateAdvertiser(advertiser="ended", name="new"), True, True),
        (
            p.CreateCampaign(
                campaign="new", advertiser="ended", name="new", max_cpm="1.00", daily_budget="2", categories=("653",)
            ),
            True,
            True,
        ),
        (p.UpdateSite(site="blog", floor_cpm="0.50"), False, False),
        (p.UpdateSite(site="blog", floor_cpm="0.60"), True, False),
        (p.CreateAdvertiser(advertiser="acme", name="acme", daily_budget="1"), False, False),
        (p.CreateAdvertiser(advertiser="acme", name="acme", daily_budget="2"), True, True),
        (p.CreateAdvertiser(advertiser="new", name="new", daily_budget="2"), True, False),
        (p.RevokeCreative(creative="cr", site="blog"), True, False),
        (p.ApproveCreative(creative="cr", site="blog"), False, False),
        (p.SetCreativeStatus(creative="cr", status="active"), False, False),
        (p.SetCreativeStatus(creative="cr", status="paused"), True, False),
        (p.UpdateCampaign(campaign="rail", max_cpm="4.00"), False, False),
        (p.UpdateCampaign(campaign="rail", max_cpm="4.00", daily_budget="2"), True, False),
        (p.UpdateCampaign(campaign="gone", max_cpm="1.00"), True, True),
        (p.UpdateCampaign(campaign="rail", places=("JP-14",)), True, False),
        (p.UpdateCampaign(campaign="rail", audience=("JP",)), True, False),
        (p.UpdateSite(site="blog", audience=("JP",)), True, False),
        (p.UpdateSite(site="blog", audience=()), False, False),
        (p.UpdateCampaign(campaign="rail", places=(), sites=(), start_at=""), False, False),
        (p.UpdateAdvertiser(advertiser="acme", name="acme", daily_budget="1.00"), False, False),
        (p.UpdateAdvertiser(advertiser="acme", name="Acme"), True, False),
        (
            p.CreateCreative(
                creative="cr", campaign="gone", asset_url="https://a.example/", landing_url="https://b.example/",
                width=1, height=1,
            ),
            True,
            True,
        ),
    ],
)  # fmt: skip
def test_what_an_order_would_do_is_read_from_what_is_there(order: Any, changed: bool, violates: bool) -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        plan = await console.ask(staged(order))
        assert isinstance(plan, p.Plan), plan
        assert (plan.changed, bool(plan.violations)) == (changed, violates)
        if violates or not changed:
            assert (await console.ask(p.CommitPlan(id=plan.id))).exit == 4
        assert console.engine.asked == []

    played(scene)


@pytest.mark.parametrize(
    ("stage", "exit_status"),
    [
        (p.StageOrder(order="no.such"), 2),
        (p.StageOrder(order="admin.campaign_status_set", body={"campaign": 7}), 2),
        (staged(p.GetNodes()), 2),
        (staged(p.StageCordon(node="n1")), 2),
        (staged(p.CommitPlan(id="p-1")), 2),
        (staged(p.SetCampaignStatus(campaign="nobody", status="paused")), 3),
        (staged(p.UpdateSite(site="nowhere", suspended=True)), 3),
        (staged(publishers.DeleteSite(site="nowhere")), 3),
        (staged(publishers.UpdatePublisher(publisher="nobody", suspended=True)), 3),
        (staged(publishers.UpdatePublisher(publisher="ann")), 2),
        (staged(p.RevokeCreative(creative="none")), 3),
        (staged(p.RevokeCreative(creative="cr", site="nowhere")), 3),
        (staged(p.UpdateCampaign(campaign="rail")), 2),
        (staged(p.UpdateCampaign(campaign="rail", max_cpm="0")), 2),
        (staged(p.UpdateCampaign(campaign="rail", places=("Atlantis",))), 2),
        (staged(p.UpdateCampaign(campaign="rail", audience=("Atlantis",))), 2),
        (staged(p.UpdateSite(site="blog", audience=("JP", "Atlantis"))), 2),
        (staged(p.UpdateCampaign(campaign="rail", blocked_categories=("nonsense",))), 2),
        (staged(p.UpdateCampaign(campaign="rail", sites=("No Site",))), 2),
        (staged(p.UpdateCampaign(campaign="rail", end_at="tomorrow")), 2),
        (staged(p.UpdateCampaign(campaign="rail", end_at="9999-12-31T23:59:59-12:00")), 2),
        (staged(p.UpdateCampaign(campaign="rail", start_at="2026-12-02T00:00:00Z", end_at="2026-12-01T00:00:00Z")), 2),
        (staged(p.UpdateAdvertiser(advertiser="acme", daily_budget="-1")), 2),
        (staged(p.SetCreativeStatus(creative="none", status="paused")), 3),
        (staged(p.CreateSite(site="x", host="x.example", publisher="ann", slots=())), 2),
    ],
    ids=lambda found: str(found)[:60],
)
def test_what_could_not_be_done_is_not_staged(stage: p.StageOrder, exit_status: int) -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        assert (await console.ask(stage)).exit == exit_status

    played(scene)


def test_a_deleted_creative_is_forgotten_by_the_sites_that_know_it_also_when_it_is_said_again() -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        plan = await console.ask(staged(p.SetCreativeStatus(creative="cr", status="deleted")))
        assert any("forgotten by blog" in note for note in plan.notes)
        console.engine.answers = [m.Accepted(changed=False), m.Accepted()]
        done = await console.ask(p.CommitPlan(id=plan.id))
        assert done.result == {"changed": True}
        assert console.engine.asked == [
            (EntityRef("campaign", "rail"), m.SetCreativeStatus("cr", "deleted")),
            (EntityRef("site", "blog"), m.ForgetCreative("cr")),
        ]

    played(scene)


def test_terms_are_changed_by_what_was_checked() -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        console.engine.answers = [INFO]
        await console.ask(p.UpdateCampaign(campaign="rail", max_cpm="3.50", daily_budget="80"))
        assert console.engine.asked == [(EntityRef("campaign", "rail"), m.UpdateCampaign("", 3_500_000, 80_000_000))]
        console.engine.answers = [m.Accepted()]
        paused = await console.ask(p.SetCreativeStatus(creative="cr", status="paused"))
        assert (paused.status, paused.approved_sites, paused.changed) == ("paused", ("blog",), True)

    played(scene)


def test_the_same_request_id_is_answered_again_and_nothing_is_done_twice() -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        pause = p.SetCampaignStatus(campaign="rail", status="paused", request_id="r")
        console.engine.answers = [INFO]
        first = await console.ask(pause)
        assert await console.ask(pause) == first
        assert len(console.engine.asked) == 1
        assert len((await console.ask(audit.GetAudit())).items) == 1
        other = await console.ask(p.SetCampaignStatus(campaign="gone", status="paused", request_id="r"))
        assert (other.exit, len(console.engine.asked)) == (4, 1)
        console.who = "operator"
        console.engine.answers = [INFO]
        await console.ask(pause)
        assert len(console.engine.asked) == 2, "ids of others are theirs"

    played(scene)


def test_what_failed_under_a_request_id_can_be_tried_again_and_what_runs_is_waited_for() -> None:
    async def scene(console: Console) -> None:
        await at_work(console)
        pause = p.SetCampaignStatus(campaign="rail", status="paused", request_id="r")
        console.engine.answers = [Failed(Failure.TIMEOUT, "")]
        assert (await console.ask(pause)).exit == 9
        waiting: list[Any] = []
        console.engine.ask = lambda to, message, timeout_ms, done: waiting.append(done)  # type: ignore[method-assign]
        console.request(pause, number=1)
        await console.until(lambda: bool(waiting))
        console.request(pause, number=2)
        waiting[0](INFO)
        await console.until(lambda: {1, 2} <= {number for number, _, _ in console.replies})
        assert len(waiting) == 1
        assert len({answer for number, _, answer in console.replies if number in (1, 2)}) == 1

    played(scene)
