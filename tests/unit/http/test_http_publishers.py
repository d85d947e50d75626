"""What the routes of publishers, statistics and targeting order of the cluster, and whom they are for."""

from __future__ import annotations

from typing import Any

import pytest
from test_http_administration import ROW, SITE, SITES, Panel

from node.admin import protocol as p
from node.admin.protocol import publishers
from node.http.admin_routes import ADMIN
from node.http.route import MUTATIONS
from node.http.webhook_body import WebhookBody, WebhookData
from node.http.webhooks_in import order_of
from node.wire.codec import CODEC

EVERYTHING = (
    'scopes = ["sites:read", "sites:write", "approvals:write", "campaigns:read", "campaigns:write", "accounts:write", '
    '"metering:read"]\n'
)
PLAN = p.Plan(id="p-1", verb="suspend", target="publisher/acme", base_version=1, moves=(), violations=())
SPEND = {"campaign": "c", "name": "C", "dailyBudget": "1", "maxCpm": "2", "categories": ["653"]}


@pytest.mark.parametrize(
    ("method", "path", "body", "order"),
    [
        ("GET", "/v1/publishers/acme", None, publishers.GetPublisher(publisher="acme")),
        (
            *("POST", "/v1/publishers/acme/blocklist", {"domains": ["a.example"]}),
            publishers.UpdatePublisher(publisher="acme", block_domains=("a.example",)),
        ),
        (
            *("DELETE", "/v1/publishers/acme/blocklist", {"domains": ["a.example"]}),
            publishers.UpdatePublisher(publisher="acme", unblock_domains=("a.example",)),
        ),
        ("GET", "/v1/sites", None, p.GetSites()),
        (
            *("PUT", f"{SITES}/{SITE}/auto-approve", {"enabled": True}),
            p.UpdateSite(site=SITE, auto_approve=True),
        ),
        (
            *("DELETE", f"{SITES}/{SITE}/auto-approve/anchors", {"kind": "domain", "value": "a.example"}),
            p.UpdateSite(site=SITE, distrust=("domain|a.example",)),
        ),
        (
            *("PUT", f"{SITES}/{SITE}/slots/low", {"width": 300, "height": 250}),
            p.UpdateSite(site=SITE, slots=(p.Slot(slot="low", width=300, height=250),)),
        ),
        ("DELETE", f"{SITES}/{SITE}/slots/low", None, p.UpdateSite(site=SITE, drop_slots=("low",))),
        ("PATCH", f"{SITES}/{SITE}", {"timezone": "Asia/Tokyo"}, p.UpdateSite(site=SITE, timezone="Asia/Tokyo")),
        (
            *("POST", "/v1/advertisers/rail/campaigns", SPEND | {"places": ["JP"], "endAt": "2030-01-01T00:00:00Z"}),
            p.CreateCampaign(
                campaign="c", advertiser="rail", name="C", max_cpm="2", daily_budget="1", categories=("653",),
                places=("JP",), end_at="2030-01-01T00:00:00Z",
            ),
        ),
    ],
)  # fmt: skip
def test_a_route_orders_what_it_says(method: str, path: str, body: Any, order: Any) -> None:
    panel = Panel(ROW + EVERYTHING)
    panel.call(method, path, body)
    assert [request for _, _, request in panel.asked] == [order]


def test_a_publisher_is_suspended_by_a_plan_that_is_committed_and_resumed_at_once() -> None:
    panel = Panel(ROW + EVERYTHING)
    panel.answer = PLAN
    assert panel.call("POST", "/v1/internal/publishers/acme/suspend").status == 204
    (_, _, staged), (_, _, committed) = panel.asked
    assert CODEC.message_of(staged.order, staged.version, staged.body) == publishers.UpdatePublisher(
        publisher="acme", suspended=True
    )
    assert committed == p.CommitPlan(id="p-1")
    assert panel.call("POST", "/v1/internal/publishers/acme/resume", key="k2").status == 204
    assert panel.asked[2][2] == publishers.UpdatePublisher(publisher="acme", suspended=False)


def test_who_is_bound_to_a_publisher_sees_nobody_else_s_statistics() -> None:
    panel = Panel(ROW + EVERYTHING + 'publisher = "acme"\n')
    assert panel.refused(403, "Authorization", "GET", "/v1/publishers/else/stats") == "not_yours"
    assert panel.refused(403, "Authorization", "GET", "/v1/advertisers/rail/stats") == "not_yours"
    assert panel.refused(403, "Authorization", "GET", "/v1/internal/metering/range") == "not_yours"
    assert panel.refused(403, "Authorization", "GET", "/v1/sites") == "not_yours"


def test_metering_takes_a_scope_of_its_own_and_names_what_is_missing() -> None:
    panel = Panel(ROW + 'scopes = ["sites:read", "campaigns:read", "accounts:write"]\n')
    assert panel.refused(403, "Authorization", "GET", "/v1/internal/metering/range") == "scope_missing"
    panel = Panel(ROW + EVERYTHING)
    panel.refused(400, "from", "GET", "/v1/internal/metering/range")
    panel.refused(400, "since", "GET", "/v1/internal/metering/entities")
    panel.refused(400, "cursors", "POST", "/v1/internal/metering/unsettled", {})
    cursors = {"cursors": [{"advertiser": "a"}]}
    panel.refused(400, "cursors[0].since", "POST", "/v1/internal/metering/unsettled", cursors)


def test_a_question_with_a_body_takes_no_key_and_every_change_takes_one() -> None:
    changes = [route for route in ADMIN if route.method in MUTATIONS]
    assert [route.name for route in changes if not route.mutates] == ["meterUnsettled"]
    assert len(changes) > 20


@pytest.mark.parametrize("state", ["suspended", "resumed"])
def test_a_webhook_suspends_and_resumes_a_publisher(state: Any) -> None:
    message = WebhookBody(f"publisher.{state}", WebhookData("acme"))  # type: ignore[arg-type]
    assert order_of(message) == publishers.UpdatePublisher(publisher="acme", suspended=state == "suspended")
