"""Administration over a scripted cluster: who may ask what, how often, and what becomes of each refusal."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.admin import protocol as p
from node.ads import messages as m
from node.core.clock import MS, ManualClock
from node.flows import answer_book as book
from node.http.access import parse_access
from node.http.administration import Administration
from node.http.call import Call
from node.http.problem import ProblemError, Response
from node.http.route import Table
from node.wire.roster import OperatorRole

TOKEN = "t" * 43
ROW = f'[[token]]\nname = "panel"\nsha256 = "{hashlib.sha256(TOKEN.encode()).hexdigest()}"\n'
SCOPES = 'scopes = ["sites:read", "sites:write", "campaigns:read", "campaigns:write"]\n'
SITE = "news.example"
SITES = "/v1/publishers/acme/sites"
INFO = m.SiteInfo(SITE, SITE, "acme", (), 0, False, 1, ("c0",), ("c1",))
ADVERTISER = p.AdvertiserShow(
    advertiser="rail", name="R", status="active", daily_budget="1.00", spent_today="0.00",
    timezone="UTC", campaigns=(), creatives=0,
)  # fmt: skip


class Panel:
    def __init__(self, text: str = ROW + SCOPES) -> None:
        self.clock = ManualClock()
        self.engine = SimpleNamespace(counters=Counter(), world=SimpleNamespace(clock=self.clock))
        self.asked: list[tuple[str, OperatorRole, Any]] = []
        self.answer: Any = ADVERTISER
        self.on_record: list[tuple[str, str, str]] = []
        self.kept: dict[str, book.EndOnce] = {}
        self.begun = ""
        server = SimpleNamespace(engine=self.engine, asked=self._asked, guard=self, states=None)
        access = parse_access(text)
        made = Administration(cast(Any, self), cast(Any, server), lambda: access)
        self.handlers = made.handlers()
        self.table = Table(self.handlers)

    async def refused_elsewhere(self, who: str, verb: str, code: str) -> None:
        self.on_record.append((who, verb, code))

    async def _asked(self, who: str, role: OperatorRole, request: Any, timeout_ms: int) -> Any:
        self.asked.append((who, role, request))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def ask(self, to: Any, message: Any) -> Any:
        """As the gate to the cluster."""
        match message:
            case book.BeginOnce(key, fingerprint):
                kept = self.kept.get(key)
                if kept is None:
                    return book.BegunOnce(self.begun or book.FIRST)
                same = kept.print == fingerprint
                return book.BegunOnce(book.ANSWERED, kept.status, kept.body) if same else book.BegunOnce(book.OTHER)
            case book.EndOnce(key, _, status, _):
                if status:
                    self.kept[key] = message
                return book.EndedOnce()
            case m.GetSite():
                return INFO
            case _:
                raise ProblemError(404, "Not found", "there is nothing")

    def call(self, method: str, path: str, body: Any = None, key: str = "k", token: str = TOKEN) -> Response:
        found, params = self.table.find(path)
        headers = [(b"authorization", f"Bearer {token}".encode()), (b"idempotency-key", key.encode())]
        scope = {"headers": headers, "path": path, "query_string": b""}
        content = b"" if body is None else json.dumps(body).encode()
        answer = asyncio.run(self.handlers[found[method]](Call(scope, content, params)))  # type: ignore[arg-type]
        assert isinstance(answer, Response)
        return answer

    def refused(self, status: int, about: str, *call: Any, **more: Any) -> str:
        with pytest.raises(ProblemError) as caught:
            self.call(*call, **more)
        assert (caught.value.status, caught.value.about) == (status, about)
        return caught.value.code


CREATE = {"advertiser": "rail", "name": "R", "dailyBudget": "1"}


def test_an_order_goes_to_the_guard_in_the_bearer_s_name_and_role() -> None:
    panel = Panel()
    response = panel.call("POST", "/v1/advertisers", CREATE)
    assert (response.status, json.loads(response.body)["dailyBudget"]) == (201, "1.00")
    order = p.CreateAdvertiser(advertiser="rail", name="R", daily_budget="1")
    assert panel.asked == [("token/panel", OperatorRole.OPERATOR, order)]
    panel.call("GET", "/v1/advertisers/rail")
    assert panel.asked[1] == ("token/panel", OperatorRole.VIEWER, p.GetAdvertiser(advertiser="rail"))


def test_a_token_asks_so_often_and_no_more() -> None:
    panel = Panel(ROW + SCOPES + "requests_per_s = 2.0\n")
    for _ in range(6):
        panel.call("GET", "/v1/advertisers/rail")
    assert panel.refused(429, "", "GET", "/v1/advertisers/rail") == "too_many"
    assert panel.engine.counters["http_refused_too_many"] == 1
    panel.clock.advance_ns(500 * MS)
    assert panel.call("GET", "/v1/advertisers/rail").status == 200


def test_what_a_token_is_not_for_is_refused_and_a_change_put_on_record() -> None:
    panel = Panel(ROW + 'scopes = ["sites:read", "sites:write"]\npublisher = "acme"\n')
    body = {"domains": ["bad.example"]}
    assert panel.refused(403, "Authorization", "POST", "/v1/advertisers", CREATE) == "scope_missing"
    assert panel.refused(403, "Authorization", "POST", "/v1/publishers/b/sites/x/blocklist", body) == "not_yours"
    assert panel.refused(403, "Authorization", "GET", "/v1/publishers/b/sites") == "not_yours"
    assert panel.refused(401, "Authorization", "GET", SITES, token="x" * 43) == "token_unknown"
    assert panel.on_record == [
        ("token/panel", "http createAdvertiser", "scope_missing"),
        ("token/panel", "http blockDomains", "not_yours"),
    ]
    assert panel.asked == []


def test_what_is_somebody_else_s_is_not_there() -> None:
    panel = Panel()
    panel.refused(404, "site", "PATCH", f"/v1/publishers/other/sites/{SITE}", {"paced": True})
    panel.refused(400, "site", "GET", "/v1/publishers/acme/sites/A B")
    assert panel.asked == []


def test_a_key_that_is_missing_under_way_or_another_request_s_is_refused() -> None:
    panel = Panel()
    panel.refused(400, "Idempotency-Key", "POST", "/v1/advertisers", CREATE, key="")
    panel.refused(400, "Idempotency-Key", "POST", "/v1/advertisers", CREATE, key="a/b")
    panel.begun = book.RUNNING
    panel.refused(409, "Idempotency-Key", "POST", "/v1/advertisers", CREATE)
    panel.begun = book.FULL
    panel.refused(503, "", "POST", "/v1/advertisers", CREATE)
    assert panel.asked == []
    panel.begun = ""
    first = panel.call("POST", "/v1/advertisers", CREATE)
    again = panel.call("POST", "/v1/advertisers", CREATE)
    assert (again.status, again.body) == (first.status, first.body)
    assert ("idempotent-replayed", "true") in again.headers
    panel.refused(422, "Idempotency-Key", "POST", "/v1/advertisers", CREATE | {"name": "Q"})
    assert len(panel.asked) == 1


@pytest.mark.parametrize(
    ("refusal", "status", "field", "kept"),
    [
        (p.AdminRefusal(2, "E-BAD-INPUT", "daily_budget: no", about="daily_budget"), 400, "dailyBudget", True),
        (p.AdminRefusal(2, "E-REJECTED", "timezone: no"), 400, "timezone", True),
        (p.AdminRefusal(2, "E-REJECTED", "it has too many"), 409, "", True),
        (p.AdminRefusal(2, "E-REJECTED", "starting: wait"), 503, "", False),
        (p.AdminRefusal(3, "E-NOT-FOUND", "there is none"), 404, "", True),
        (p.AdminRefusal(4, "E-CONFLICT", "there is one"), 409, "", True),
        (p.AdminRefusal(5, "E-REFUSED", "not now"), 409, "", True),
        (p.AdminRefusal(7, "E-NOT-ALLOWED", "no"), 403, "Authorization", True),
        (p.AdminRefusal(9, "E-NO-ANSWER", "late"), 503, "", False),
        (p.AdminRefusal(15, "E-STORE", "away"), 503, "", False),
        (p.AdminRefusal(1, "E-BUG", "a fault"), 500, "", False),
    ],
)
def test_a_refusal_is_a_problem_and_kept_unless_trying_again_may_help(
    refusal: p.AdminRefusal, status: int, field: str, kept: bool
) -> None:
    panel = Panel()
    panel.answer = refusal
    response = panel.call("POST", "/v1/advertisers", CREATE)
    problem = json.loads(response.body)
    assert (response.status, problem["status"], problem.get("field", "")) == (status, status, field)
    assert bool(panel.kept) is kept
