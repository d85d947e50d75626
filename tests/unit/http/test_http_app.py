"""The public API over a scripted cluster: every status, problem documents, repeats of what did not happen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import httpx
import msgspec
import pytest

from node.actors.actor import Failed, Failure
from node.ads import messages as m
from node.core import limits
from node.core.clock import MS, ManualClock
from node.core.ids import EntityRef
from node.engine.index_messages import IndexStatus, PeerLagRow
from node.engine.messages import MapReport, NodeReport
from node.engine.readiness import Check
from node.gossip.latency import LatencyCounts
from node.http.app import App
from node.http.cluster import DEADLINE_MS, ClusterGate
from node.http.overload import Kind, Ticket
from node.http.problem import MEDIA_TYPE

SITE = "news.example"
PAGE = f"https://{SITE}/a"
SERVE = {"pub": SITE, "url": PAGE, "imp": [{"id": "top", "w": 300, "h": 250}, {"id": "side", "w": 300, "h": 250}]}
BEACON = {
    name: name for name in ("url", "slot", "cid", "v", "b", "tok", "camp", "adv", "cpm", "rid")
} | {"pub": SITE}  # fmt: skip
WINNER = m.Winner(
    "c1", "camp", "adv", "https://cdn/x", "https://shop/", "image/png", 300, 250, "483", 1, "r1", "pub=x&tok=i", "tok=c"
)  # fmt: skip


class Cluster:
    """Answers asks from a table; `asked` keeps them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.world = SimpleNamespace(clock=self.clock)
        self.drain = SimpleNamespace(accepts_work=True)
        self.asked: list[tuple[EntityRef, Any]] = []
        self.answers: dict[type, list[Any]] = {}

    def ask(self, to: EntityRef, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        self.asked.append((to, message))
        answers = self.answers.get(type(message), [Failed(Failure.REJECTED, "not scripted")])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Failed):
            self.clock.advance_ns((timeout_ms if answer.failure is Failure.TIMEOUT else 900) * MS)
        done(answer(to, message) if callable(answer) else answer)


REPLICA = IndexStatus(
    node="n1",
    ready=True,
    synchronised_ratio=1.0,
    digests=("d",) * 32,
    counts=((2, 10, 1),) * 32,
    lag=(PeerLagRow("n2", 1_204, 38_000, True), PeerLagRow("n3", 0, 0, False)),
    uncommitted=3,
    damaged=2,
    oldest_tombstone_ms=0,
    degraded=False,
    counters={"commits": 12, "delta_bytes_sent": 1_000, "bytes_sent": 70},
    pending_removals=4,
)


class Service:
    why: tuple[str, ...] = ()

    def __init__(self) -> None:
        self.edges: list[Callable[[], dict[str, int]]] = []
        self.index = SimpleNamespace(
            status=lambda: REPLICA, visible=lambda: LatencyCounts((0, 3, 1, *[0] * 7, 1), 71_025.0)
        )

    def checks(self) -> tuple[Check, ...]:
        return (Check("joined", ""), Check("replica", "".join(self.why), latches=True))

    def start_phases(self) -> tuple[Check, ...]:
        return self.checks()

    def report(self, *, coverage: bool) -> NodeReport:
        return NodeReport(
            "n1", 1, 1, "0", 1, not self.why, self.why, (), ((1, 1, 3),), {"site": 3}, (MapReport(2, 10, 0, "d"),) * 32,
            True, {"n2": 5}, (), (), {"engine.dropped": 4, **self.edges[0]()}, {}, 1, True, 7, 9, 1_000, 1, "v", True,
        )  # fmt: skip


class Api:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.service = Service()
        gate = ClusterGate(cast(Any, self.cluster))
        self.app = App(gate, cast(Any, self.service), "http://api:1")
        self.gate = gate

    def call(self, method: str, path: str, **more: Any) -> httpx.Response:
        async def call() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://api") as client:
                return await client.request(method, path, **more)

        return asyncio.run(call())

    def serve(self, **changes: Any) -> httpx.Response:
        return self.call("POST", "/v1/serve/batch", json=SERVE | changes)


@pytest.fixture
def api() -> Api:
    return Api()


def problem(response: httpx.Response, status: int, about: str = "") -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == MEDIA_TYPE
    document = cast(dict[str, Any], response.json())
    assert (document["status"], document["type"]) == (status, "about:blank")
    assert document["title"]
    assert document.get("field", "") == about
    return document


def test_serving_gives_a_seat_for_each_slot(api: Api) -> None:
    outcomes = (m.SlotOutcome("top", WINNER), m.SlotOutcome("side", None, "no_pool"))
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("served", outcomes, 5)]
    response = api.serve(url=f"{PAGE}?utm_source=x")
    assert response.status_code == 200
    document = response.json()
    top, side = document["seatbid"]
    assert (top["id"], top["winner"]["creativeId"], top["winner"]["requestId"]) == ("top", "c1", "r1")
    assert top["winner"]["impUrl"] == "http://api:1/v1/imp?pub=x&tok=i"
    assert side == {"id": "side", "reason": "no_pool"}
    assert (document["needText"], document["reclassifyInMs"]) == (False, 5)
    assert response.headers["access-control-allow-origin"] == "*"
    to, asked = api.cluster.asked[0]
    assert to == EntityRef("adserver", SITE)
    assert asked.url == PAGE, "the page is named without its trackers, as it is when its text is sent"
    assert asked.host == SITE


def test_w21_tracking_urls_are_ours_whatever_host_a_request_names(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("served", (m.SlotOutcome("top", WINNER),), 5)]
    response = api.call("POST", "/v1/serve/batch", json=SERVE, headers={"host": "evil.example"})
    winner = response.json()["seatbid"][0]["winner"]
    assert [winner[name].partition("?")[0] for name in ("impUrl", "clickUrl", "ctaUrl")] == [
        f"http://api:1/v1/{event}" for event in ("imp", "click", "cta")
    ]
    assert "evil" not in response.text


def test_an_unclassified_page_asks_for_its_text(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("served", (), 0)]
    assert api.serve().json()["needText"] is True


def test_the_page_is_the_same_one_in_both_requests(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("served", (), 0)]
    api.cluster.answers[m.ClassifyPage] = [m.ClassifyAck(True, "accepted")]
    for url in (f"{PAGE}/?b=2&gclid=1&a=1#x", f"{PAGE}/"):
        api.serve(url=url)
        api.call("POST", "/v1/classify-page", json={"pub": SITE, "url": url, "text": "words"})
    urls = [message.url for _, message in api.cluster.asked]
    assert urls[0] == urls[1] == f"{PAGE}/?b=2&a=1#x"
    assert urls[2] == urls[3] == f"{PAGE}/"


@pytest.mark.parametrize(("state", "status", "about"), [("host_refused", 403, "url"), ("unknown_site", 404, "")])
def test_what_is_not_served_says_why(api: Api, state: str, status: int, about: str) -> None:
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected(state)]
    api.cluster.answers[m.ResolveSite] = [m.ResolvedSite("")]
    problem(api.serve(), status, about)


def test_a_suspended_site_answers_204(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("suspended")]
    response = api.serve()
    assert (response.status_code, response.content) == (204, b"")


def test_a_publishers_id_finds_its_site_by_the_host_once(api: Api) -> None:
    def select(to: EntityRef, _: Any) -> m.BatchSelected:
        return m.BatchSelected("served" if to.id == SITE else "unknown_site")

    api.cluster.answers[m.BatchSelect] = [select]
    api.cluster.answers[m.ResolveSite] = [m.ResolvedSite(SITE)]
    for domain in ("", f"www.{SITE}", f"https://{SITE}/{'x' * 50}"):
        assert api.serve(pub="Acme_1", domain=domain).status_code == 200
    assert [to.kind for to, _ in api.cluster.asked] == ["adserver", "publisher", "adserver", "adserver", "adserver"]
    assert len(api.gate._sites) == 1, "spellings of one host are one entry"


def test_remembered_hosts_are_bounded(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "sites_resolved_max", 3)
    api.cluster.answers[m.ResolveSite] = [m.ResolvedSite(SITE)]
    for n in range(9):
        asyncio.run(api.gate.site_of("acme", f"h{n}"))
    assert len(api.gate._sites) == 3


@pytest.mark.parametrize(
    ("path", "body", "about"),
    [
        ("/v1/serve/batch", SERVE | {"pub": "a b"}, "pub"),
        ("/v1/serve/batch", SERVE | {"url": "ftp://x/"}, "url"),
        ("/v1/serve/batch", SERVE | {"imp": []}, "imp"),
        ("/v1/serve/batch", SERVE | {"domain": "x" * 500}, "domain"),
        ("/v1/classify-page", {"pub": SITE, "url": PAGE, "text": " "}, "text"),
        ("/v1/classify-page", {"pub": SITE, "url": "nothing", "text": "words"}, "url"),
    ],
)
def test_bad_input_names_its_field_and_asks_nobody(api: Api, path: str, body: Any, about: str) -> None:
    problem(api.call("POST", path, json=body), 400, about)
    assert api.cluster.asked == []


def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    for path in ("/v1/classify-page", "/v1/serve/batch"):
        problem(api.call("POST", path, content=b"x" * (limits.http_body_bytes_max + 1)), 413, "body")
    assert api.cluster.asked == []


def test_page_text_is_accepted_at_once_and_cut(api: Api) -> None:
    api.cluster.answers[m.ClassifyPage] = [m.ClassifyAck(False, "in_flight")]
    body = {"pub": SITE, "url": PAGE, "text": "word " * 50_000, "section": "s" * 900, "imp": SERVE["imp"]}
    response = api.call("POST", "/v1/classify-page", json=body)
    assert (response.status_code, response.json()) == (202, {"status": "accepted"})
    _, message = api.cluster.asked[0]
    assert len(message.text) <= limits.page_text_chars_max
    assert len(message.hint) == 200
    assert [slot.slot for slot in message.slots] == ["top", "side"]


@pytest.mark.parametrize(
    ("verdict", "status", "about"),
    [
        ("repeated", 409, ""),
        ("expired", 403, "tok"),
        ("bad_signature", 403, "tok"),
        ("malformed", 403, "tok"),
        ("unknown_site", 404, "pub"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/imp", "/v1/click"])
def test_beacons_that_do_not_count(api: Api, path: str, verdict: str, status: int, about: str) -> None:
    api.cluster.answers[m.Track] = [m.Tracked(verdict)]
    problem(api.call("GET", path, params=BEACON), status, about)


@pytest.mark.parametrize(("path", "event"), [("/v1/imp", "imp"), ("/v1/click", "click")])
def test_a_beacon_that_counts(api: Api, path: str, event: str) -> None:
    api.cluster.answers[m.Track] = [m.Tracked("counted")]
    assert api.call("GET", path, params=BEACON).status_code == 204
    to, message = api.cluster.asked[0]
    assert to == EntityRef("adserver", SITE)
    assert message == m.Track(event, *(BEACON[name] for name in BEACON if name != "pub"))


@pytest.mark.parametrize("name", sorted(BEACON))
def test_a_beacon_without_a_field_is_refused(api: Api, name: str) -> None:
    params = {key: value for key, value in BEACON.items() if key != name}
    problem(api.call("GET", "/v1/imp", params=params), 400, name)
    problem(api.call("GET", "/v1/imp", params=params | {name: ""}), 400, name)


def test_a_beacon_of_no_site_or_of_too_many_fields_is_refused(api: Api) -> None:
    problem(api.call("GET", "/v1/imp", params=BEACON | {"pub": "x" * 9_000}), 400, "pub")
    problem(api.call("GET", "/v1/imp?" + "a=1&" * 50), 400, "query")
    problem(api.call("GET", "/v1/imp?%FF=%ZZ"), 400, "pub")
    problem(api.call("GET", "/v1/imp?pub=a&pub=b"), 400, "pub")
    assert api.cluster.asked == []


@pytest.mark.parametrize(
    ("failed", "status"),
    [
        (Failed(Failure.TIMEOUT), 503),
        (Failed(Failure.FAILED, "it raised"), 503),
        (Failed(Failure.NO_HOME), 503),
        (Failed(Failure.MAILBOX_FULL), 503),
        (Failed(Failure.REJECTED, "starting: the site"), 503),
        (Failed(Failure.REJECTED, "try again: the campaign did not answer"), 503),
        (Failed(Failure.REJECTED, "there is no site 'x'"), 404),
        (Failed(Failure.REJECTED, "the site has approved too many"), 409),
    ],
)
def test_failures_of_the_cluster(api: Api, failed: Failed, status: int) -> None:
    api.cluster.answers[m.BatchSelect] = [failed]
    before_ns = api.cluster.clock.mono_ns()
    response = api.serve()
    problem(response, status)
    assert ("retry-after" in response.headers) == (status == 503)
    assert api.cluster.clock.mono_ns() - before_ns <= (DEADLINE_MS + 1_000) * MS


def test_what_did_not_happen_is_asked_again(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [Failed(Failure.STOPPED), Failed(Failure.PEER_BUSY), m.BatchSelected("served")]
    assert api.serve().status_code == 200
    assert len(api.cluster.asked) == 3
    assert api.gate.in_flight == 0


def test_what_may_have_happened_is_asked_once_more_when_twice_is_harmless(api: Api) -> None:
    unknown = Failed(Failure.FAILED, "the entity stopped before it answered")
    api.cluster.answers[m.BatchSelect] = [unknown, m.BatchSelected("served")]
    assert api.serve().status_code == 200
    api.cluster.answers[m.BatchSelect] = [unknown, unknown, m.BatchSelected("served")]
    assert api.serve().status_code == 503
    assert api.gate.in_flight == 0


def test_a_draining_node_says_ask_another(api: Api) -> None:
    api.cluster.drain.accepts_work = False
    response = api.serve()
    problem(response, 503)
    assert (response.headers["retry-after"], response.headers["connection"]) == ("1", "close")
    assert api.cluster.asked == []


def test_a_fault_of_ours_is_a_problem_document_too(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [m.BatchSelected("served", (msgspec.structs.replace,))]  # type: ignore[arg-type]
    problem(api.serve(), 500)
    api.cluster.answers[m.Track] = [m.Accepted()]
    problem(api.call("GET", "/v1/imp", params=BEACON), 500)


MOUNT = {"v": 1, "pub": SITE, "stage": "serve", "ok": False, "slots": 2, "served": 0, "mounted": 0, "reason": "slow"}


def test_how_far_tags_come_is_counted(api: Api) -> None:
    for ok in (True, False, False):
        assert api.call("POST", "/v1/beacon/mount", json=MOUNT | {"ok": ok}).status_code == 204
    counted = {name: count for edge in api.service.edges for name, count in edge().items() if "mount" in name}
    assert counted == {"http.mount_serve_ok": 1, "http.mount_serve_failed": 2}
    for name, value in (("stage", "sleep"), ("slots", -1), ("served", 10_001), ("pub", "x" * 129), ("v", 2)):
        problem(api.call("POST", "/v1/beacon/mount", json=MOUNT | {name: value}), 400, name)


def test_a_tag_asks_about_its_token_ten_times_then_once_a_second(api: Api) -> None:
    api.cluster.answers[m.CheckSiteToken] = [m.SiteTokenChecked("stale")]
    path = f"/v1/sites/{SITE}/token-check"
    for _ in range(10):
        assert api.call("POST", path, json={"token": "t"}).json() == {"state": "stale"}
    assert problem(api.call("POST", path, json={"token": "t"}), 429)["title"] == "Too many requests"
    other = {"x-forwarded-for": "203.0.113.9, 10.0.0.1"}
    assert api.call("POST", path, json={"token": "t"}, headers=other).status_code == 200
    api.cluster.clock.advance_ns(1_000 * MS)
    assert api.call("POST", path, json={"token": "t"}).status_code == 200
    problem(api.call("POST", "/v1/sites/A%20B/token-check", json={"token": "t"}, headers=other), 400, "site")
    api.cluster.answers[m.CheckSiteToken] = [Failed(Failure.REJECTED, "there is no site 'news.example'")]
    problem(api.call("POST", path, json={"token": "t"}, headers=other), 404)


def test_what_is_not_there(api: Api) -> None:
    problem(api.call("GET", "/v1/nothing"), 404)
    problem(api.call("GET", "/v1/serve/batch"), 405)
    assert api.call("HEAD", "/alive").status_code == 200
    assert api.call("HEAD", "/v1/imp", params=BEACON).status_code == 405
    assert api.cluster.asked == []


def test_a_browser_may_ask_from_any_host(api: Api) -> None:
    response = api.call("OPTIONS", "/v1/serve/batch", headers={"origin": "https://news.example"})
    assert response.status_code == 204
    assert response.headers["access-control-allow-origin"] == "*"
    assert "POST" in response.headers["access-control-allow-methods"]
    assert response.headers["access-control-allow-headers"] == "content-type"


def test_health_and_metrics(api: Api) -> None:
    for path in ("/alive", "/ready", "/startup", "/healthz/live", "/healthz/ready", "/healthz/startup"):
        assert api.call("GET", path).status_code == 200
    api.service.why = ("replica synchronising: 3%",)
    ready = api.call("GET", "/ready")
    assert ready.status_code == 503
    assert ready.json() == {
        "ready": False,
        "reasons": ["replica synchronising: 3%"],
        "checks": [
            {"name": "joined", "ok": True, "latches": False, "reason": ""},
            {"name": "replica", "ok": False, "latches": True, "reason": "replica synchronising: 3%"},
        ],
    }
    starting = api.call("GET", "/startup")
    assert (starting.status_code, starting.json()["started"]) == (503, False)
    assert [phase["state"] for phase in starting.json()["phases"]] == ["done", "waiting"]
    assert api.call("GET", "/alive").json() == {"alive": True}, "whatever the others do"
    text = api.call("GET", "/metrics").text
    for line in (
        "promovolve_replica_keys 64.0",
        "promovolve_replica_lag_ms 5.0",
        "promovolve_replica_uncommitted 3.0",
        "promovolve_replica_tombstones 32.0",
        "promovolve_replica_pending_removals 4.0",
        "promovolve_replica_quarantined 2.0",
        "promovolve_replica_commits_total 12.0",
        'promovolve_replica_behind_entries{peer="n2"} 1204.0',
        'promovolve_replica_behind_ms{peer="n2"} 38000.0',
        'promovolve_replica_behind_ms{peer="n3"} 0.0',
        'promovolve_replica_sent_bytes_total{by="deltas"} 1000.0',
        'promovolve_replica_sent_bytes_total{by="reconciliation"} 70.0',
        'promovolve_replica_visible_seconds_bucket{le="0.005"} 0.0',
        'promovolve_replica_visible_seconds_bucket{le="0.01"} 3.0',
        'promovolve_replica_visible_seconds_bucket{le="30"} 4.0',
        'promovolve_replica_visible_seconds_bucket{le="+Inf"} 5.0',
        "promovolve_replica_visible_seconds_count 5.0",
        "promovolve_replica_visible_seconds_sum 71.025",
        "promovolve_requests_total 9.0",
        'promovolve_events_total{name="engine.dropped"} 4.0',
        'promovolve_events_total{name="http.shed_serve"} 0.0',
        f"promovolve_http_limit {api.app.overload.limit}.0",
        "promovolve_http_in_flight 0.0",
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/serve/batch", "POST"),
        ("POST", "/v1/imp", "GET"),
        ("DELETE", "/metrics", "GET"),
    ],
)
def test_a_wrong_method_is_told_the_right_one(api: Api, method: str, path: str, allowed: str) -> None:
    answer = api.call(method, path)
    assert answer.status_code == 405
    assert allowed in answer.headers["allow"]
    assert answer.json()["status"] == 405


def test_above_the_limit_events_go_before_classification_before_serves(api: Api) -> None:
    api.cluster.answers |= {
        m.BatchSelect: [m.BatchSelected("served")],
        m.Track: [m.Tracked("counted")],
        m.ClassifyPage: [m.ClassifyAck(True, "accepted")],
    }
    kinds = {
        "event": lambda: api.call("GET", "/v1/imp", params=BEACON),
        "classify": lambda: api.call("POST", "/v1/classify-page", json={"pub": SITE, "url": PAGE, "text": "x"}),
        "serve": api.serve,
    }
    overload = api.app.overload
    inside: list[Ticket] = []
    first_shed: dict[str, int] = {}
    while len(first_shed) < len(kinds):
        for name, ask in kinds.items():
            response = ask()
            if response.headers.get("retry-after") and response.json()["title"] == "Overloaded":
                assert (problem(response, 503)["status"], int(response.headers["retry-after"]) > 0) == (503, True)
                first_shed.setdefault(name, len(inside))
        ticket = overload.admit(Kind.SERVE, 0)
        if ticket is not None:
            inside.append(ticket)
    assert list(first_shed) == ["event", "classify", "serve"]
    assert first_shed["serve"] == overload.limit
    asked = len(api.cluster.asked)
    assert api.serve().status_code == 503
    assert len(api.cluster.asked) == asked, "what is shed costs the cluster nothing"
    assert api.call("GET", "/ready").status_code == 200, "probes are answered all the same"
    for ticket in inside:
        overload.done(ticket, 0)
    assert api.serve().status_code == 200
    assert overload.in_flight == 0


def test_a_request_that_fails_leaves_its_place(api: Api) -> None:
    api.cluster.answers[m.BatchSelect] = [Failed(Failure.TIMEOUT)]
    assert api.serve().status_code == 503
    api.call("POST", "/v1/serve/batch", content=b"{")
    assert api.app.overload.in_flight == 0


def test_a_body_that_does_not_come_is_not_waited_for(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "http_body_ms_max", 20)
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/v1/serve/batch", "query_string": b""}
    asyncio.run(api.app(scope, receive, send))
    assert sent[0]["status"] == 408
    assert api.app.overload.in_flight == 0
