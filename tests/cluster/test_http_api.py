"""The HTTP API of a real node: administration, what is wrong with a request, and Schemathesis over openapi.json.

PROMOVOLVE_TEST_SCALE=10 lets Schemathesis try for ten minutes, a seed after the other, with ten times the examples.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cluster_world import Cluster, eventually

ALL, BOUND, READER = (name + "-" + "t" * 40 for name in ("all", "bound", "reader"))
EVERYTHING = (
    *("sites:read", "sites:write", "approvals:write", "campaigns:read", "campaigns:write", "accounts:write"),
    *("events:read", "metering:read"),
)
NEW, OLD = b"n" * 32, b"o" * 32  # the keys of a sender of webhooks
SITE = "api.example"
SITES = "/v1/publishers/acme/sites"
CREATE = {"site": SITE, "host": SITE, "slots": [{"slot": "top", "width": 728, "height": 90}]}
SCALE = int(os.environ.get("PROMOVOLVE_TEST_SCALE", "1"))
EXAMPLES = 3 * SCALE
SOAK_S = 600 if SCALE >= 10 else 0
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


class Api:
    """Requests with a token; each mutation under a key of its own unless one is given."""

    def __init__(self, base: str) -> None:
        self.base = base

    def call(self, method: str, path: str, body: Any = None, token: str = ALL, **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {token}", "idempotency-key": uuid.uuid4().hex}
        headers |= more.pop("headers", {})
        content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx.request(method, self.base + path, content=content, headers=headers, timeout=30, **more)

    def good(self, method: str, path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
        response = self.call(method, path, body, **more)
        assert response.status_code == status, response.text
        return response.json() if response.content else None

    def bad(self, status: int, field: str, method: str, path: str, body: Any = None, **more: Any) -> Any:
        response = self.call(method, path, body, **more)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/problem+json"
        problem = response.json()
        assert problem.get("field", "") == field, problem
        return problem


def access(folder: Path) -> Path:
    rows = ((ALL, EVERYTHING, ""), (BOUND, ("sites:read", "sites:write"), "acme"), (READER, ("sites:read",), ""))
    text = ""
    for token, scopes, publisher in rows:
        text += (
            f'[[token]]\nname = "{token.partition("-")[0]}"\nrequests_per_s = 5000.0\nscopes = {json.dumps(scopes)}\n'
        )
        text += f'sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"\npublisher = "{publisher}"\n'
    secrets = [f"whsec_{base64.b64encode(key).decode()}" for key in (NEW, OLD)]
    text += f'[[sender]]\nname = "billing"\nsecrets = {json.dumps(secrets)}\n'
    path = folder / "access.toml"
    path.touch(0o600)
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One node, whose operator handed tokens out, with a site of the publisher acme."""
    folder = tmp_path_factory.mktemp("http")
    cluster = Cluster(folder)
    try:
        cluster.up("--nodes", "1")
        cluster.down()
        (settings,) = cluster.data.glob("nodes/*/node.toml")
        line = f"[wire]\nhttp_access_file = {json.dumps(str(access(folder)))}\n"
        settings.write_text(settings.read_text().replace("[wire]\n", line))
        cluster.up("--nodes", "1")
        Api(cluster.http).good("POST", SITES, CREATE, 201)
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


@pytest.fixture
def api(node: Cluster) -> Api:
    return Api(node.http)


def test_a_publisher_administers_its_site(api: Api, node: Cluster) -> None:
    one = f"{SITES}/{SITE}"
    assert [site["site"] for site in api.good("GET", SITES)["items"]] == [SITE]
    assert api.good("GET", "/v1/publishers/other/sites")["items"] == []
    assert api.good("PATCH", one, {"floorCpm": "0.70", "paced": True})["paced"] is True
    assert api.good("PUT", f"{one}/slots/top/floor", {"floorCpm": "1.10"})["slotFloors"] == [
        {"slot": "top", "floorCpm": "1.10"}
    ]
    assert api.good("PUT", f"{one}/slots/top/floor", {"floorCpm": None})["slotFloors"] == []
    assert api.good("POST", f"{one}/blocklist", {"domains": ["bad.example"]})["blockedDomains"] == ["bad.example"]
    assert api.good("DELETE", f"{one}/blocklist", {"domains": ["bad.example"]})["blockedDomains"] == []
    api.good("POST", f"/v1/internal/sites/{SITE}/suspend", status=204)
    shown = node.ask("site", "show", SITE)
    assert (shown["suspended"], shown["floor_cpm"]) == (True, "0.70"), "the commands see the same site"
    api.good("POST", f"/v1/internal/sites/{SITE}/resume", status=204)
    assert api.good("GET", one)["suspended"] is False


def test_a_suspended_publisher_serves_on_none_of_its_sites_and_everybody_sees_why(api: Api, node: Cluster) -> None:
    page = {"pub": SITE, "url": f"https://{SITE}/a", "imp": [{"id": "top", "w": 728, "h": 90}]}

    def served() -> int:
        return httpx.post(f"{api.base}/v1/serve/batch", json=page, timeout=30).status_code

    eventually(served, lambda status: status == 200, 30, "the site is served")
    api.good("POST", "/v1/internal/publishers/acme/suspend", status=204)
    eventually(served, lambda status: status == 204, 30, "nothing is served")
    eventually(lambda: api.good("GET", "/v1/publishers/acme")["untold"], lambda told: told == [], 30, "all sites know")
    shown = node.ask("site", "show", SITE)
    assert (shown["suspended"], shown["suspended_by"]) == (True, ["publisher"])
    (fact,) = node.ask("facts", "list", "--type", "publisher_standing")["items"]
    assert fact["fields"] == {"publisher": "acme", "suspended": True}
    entries = node.ask("audit", "list", "--limit", "100")["items"]
    assert [e["object"] for e in entries if e["verb"] == "publisher suspend"][:1] == ["publisher/acme"]
    api.good("POST", "/v1/internal/publishers/acme/resume", status=204)
    eventually(served, lambda status: status == 200, 30, "the site is served again")
    api.bad(404, "", "POST", "/v1/internal/publishers/nobody/suspend")


def test_a_deleted_site_is_gone_from_everywhere_and_its_id_is_free(api: Api, node: Cluster) -> None:
    gone = f"{SITES}/gone.example"
    body = CREATE | {"site": "gone.example", "host": "gone.example"}
    for _ in range(2):
        api.good("POST", SITES, body, 201)
        api.bad(404, "site", "DELETE", "/v1/publishers/other/sites/gone.example")
        api.good("DELETE", gone, status=204)
        assert api.call("GET", gone).status_code == 404
        assert [site["site"] for site in api.good("GET", "/v1/publishers/acme")["sites"]] == [SITE]
        assert [site["site"] for site in api.good("GET", SITES)["items"]] == [SITE]
    facts = node.ask("facts", "list", "--type", "site_deleted")["items"]
    assert [fact["fields"] for fact in facts] == [{"site": "gone.example", "publisher": "acme"}] * 2


def test_what_nobody_was_shown_is_counted_nowhere(api: Api) -> None:
    assert api.good("GET", "/v1/publishers/acme/stats")["items"] == [
        {"site": SITE, "impressions": 0, "clicks": 0, "ctas": 0, "revenue": "0.00"}
    ]
    assert api.good("GET", f"{SITES}/{SITE}/stats?by=hour&from=2026-01-01")["items"] == []
    metered = api.good("GET", "/v1/internal/metering/range?from=2026-01-01T00:00:00Z")
    assert (metered["items"], metered["to"]) == ([], metered["finalUntil"])
    cursor = {"advertiser": "rail", "since": "2026-01-01T00:00:00Z"}
    (owed,) = api.good("POST", "/v1/internal/metering/unsettled", {"cursors": [cursor]})["items"]
    assert owed["gross"] == "0.00"
    api.bad(400, "from", "GET", "/v1/internal/metering/range?from=2026-01-01T00:30:00Z")


def test_an_advertiser_s_campaign_from_its_creation_to_its_end(api: Api, node: Cluster) -> None:
    advertiser = {"advertiser": "rail", "name": "Rail", "dailyBudget": "50", "timezone": "Europe/Vienna"}
    api.good("POST", "/v1/advertisers", advertiser, 201)
    assert api.good("PUT", "/v1/advertisers/rail/budget", {"dailyBudget": "60"})["dailyBudget"] == "60.00"
    campaigns = "/v1/advertisers/rail/campaigns"
    for number in range(3):
        body = {"campaign": f"c{number}", "name": "C", "dailyBudget": "20", "maxCpm": "4", "categories": ["653"]}
        api.good("POST", campaigns, body, 201)
    first = api.good("GET", f"{campaigns}?limit=2")
    rest = api.good("GET", f"{campaigns}?limit=2&after={first['next']}")
    assert [c["campaign"] for page in (first, rest) for c in page["items"]] == ["c0", "c1", "c2"]
    assert rest["next"] == ""
    creative = {
        "creative": "k0",
        "assetUrl": "https://cdn.rail.example/k.png",
        "landingUrl": "https://rail.example/",
        "width": 728,
        "height": 90,
    }
    api.good("POST", f"{campaigns}/c0/creatives", creative, 201)
    assert api.good("PUT", f"{campaigns}/c0/status", {"status": "paused"})["status"] == "paused"
    api.bad(404, "creative", "PATCH", f"{campaigns}/c1/creatives/k0/status", {"status": "paused"})
    api.bad(404, "campaign", "GET", "/v1/advertisers/other/campaigns/c0")
    approval = f"{SITES}/{SITE}/approval"
    assert api.good("POST", f"{approval}/approve", {"creative": "k0"})["changed"] is True
    api.good("POST", f"{approval}/flag", {"creative": "k0", "reason": "ugly"})
    assert api.good("GET", f"{approval}/flagged")["items"] == [{"creative": "k0", "reason": "ugly"}]
    api.good("POST", f"{approval}/unflag", {"creative": "k0"})
    assert api.good("GET", f"{SITES}/{SITE}")["approved"] == [], "unflagging approves nothing"
    api.good("DELETE", f"{campaigns}/c0/creatives/k0", status=204)
    api.good("DELETE", f"{campaigns}/c0", status=204)
    assert node.ask("campaign", "show", "c0")["status"] == "deleted"
    verbs = [
        entry["verb"] for entry in node.ask("audit", "list", "--limit", "100")["items"] if entry["who"] == "token/all"
    ]
    assert {"advertiser create", "campaign pause", "campaign delete", "creative delete"} <= set(verbs)


def test_c9_a_replayed_request_has_no_second_effect_and_an_altered_one_is_refused(api: Api) -> None:
    key = {"idempotency-key": "one"}
    first = api.call("PATCH", f"{SITES}/{SITE}", {"floorCpm": "0.91"}, headers=key)
    api.good("PATCH", f"{SITES}/{SITE}", {"floorCpm": "0.92"})
    again = api.call("PATCH", f"{SITES}/{SITE}", {"floorCpm": "0.91"}, headers=key)
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    api.bad(422, "Idempotency-Key", "PATCH", f"{SITES}/{SITE}", {"floorCpm": "0.93"}, headers=key)
    assert api.good("GET", f"{SITES}/{SITE}")["floorCpm"] == "0.92"
    api.bad(400, "Idempotency-Key", "PATCH", f"{SITES}/{SITE}", {"paced": True}, headers={"idempotency-key": ""})


def test_c9_a_token_reaches_only_what_it_is_for_and_refusals_are_on_record(api: Api, node: Cluster) -> None:
    one, change = f"{SITES}/{SITE}", {"paced": False}
    assert api.good("GET", one, token=BOUND)["site"] == SITE
    codes = [
        api.bad(401, "Authorization", "PATCH", one, change, token="x" * 43)["code"],
        api.bad(403, "Authorization", "PATCH", one, change, token=READER)["code"],
        api.bad(403, "Authorization", "GET", "/v1/publishers/other/sites", token=BOUND)["code"],
        api.bad(403, "Authorization", "GET", "/v1/advertisers", token=BOUND)["code"],
    ]
    assert codes == ["token_unknown", "scope_missing", "not_yours", "scope_missing"]
    entries = node.ask("audit", "list", "--limit", "100")["items"]
    refused = [entry for entry in entries if entry["who"] == "token/reader"]
    assert refused[0]["outcome"] == "refused"
    assert ALL not in json.dumps(entries)


def test_events_go_on_behind_the_last_that_was_seen(api: Api) -> None:
    approval, watched = f"{SITES}/{SITE}/approval", f"{api.base}/v1/publishers/acme/events"
    headers = {"authorization": f"Bearer {ALL}"}
    seen: list[dict[str, str]] = []
    with httpx.stream("GET", watched, headers=headers, timeout=30) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        api.good("POST", f"{approval}/flag", {"creative": "k7", "reason": "ugly"})
        seen += events(stream, 1)
    api.good("POST", f"{approval}/unflag", {"creative": "k7"})
    api.good("POST", f"{approval}/flag", {"creative": "k8", "reason": "loud"})
    for _ in range(2):
        with httpx.stream("GET", watched, headers=headers | {"last-event-id": seen[-1]["id"]}, timeout=30) as stream:
            seen += events(stream, 1)
    assert [(event["event"], json.loads(event["data"])["creative"]) for event in seen] == [
        ("flagged", "k7"),
        ("unflagged", "k7"),
        ("flagged", "k8"),
    ]
    api.bad(400, "Last-Event-ID", "GET", "/v1/publishers/acme/events", headers={"last-event-id": "9" * 18})
    api.bad(403, "Authorization", "GET", "/v1/publishers/acme/events", token=READER)


def events(stream: httpx.Response, count: int) -> list[dict[str, str]]:
    """The first events of a stream, by their fields."""
    found: list[dict[str, str]] = []
    fields: dict[str, str] = {}
    for line in stream.iter_lines():
        name, colon, value = line.partition(": ")
        if colon:
            fields[name] = value
        elif fields:
            found += [fields] if "data" in fields else []
            fields = {}
        if len(found) == count:
            break
    return found


def test_c10_a_webhook_is_accepted_once_by_a_real_node(api: Api, node: Cluster) -> None:
    api.good("POST", "/v1/advertisers", {"advertiser": "late", "name": "Late", "dailyBudget": "5"}, 201)
    body = b'{"type": "advertiser.suspended", "data": {"id": "late"}}'

    def send(message_id: str, key: bytes, at_s: int) -> tuple[int, str]:
        signed = f"{message_id}.{at_s}.".encode() + body
        mac = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        headers = {"webhook-id": message_id, "webhook-timestamp": str(at_s), "webhook-signature": f"v1,{mac}"}
        answer = httpx.post(f"{api.base}/v1/webhooks/billing", content=body, headers=headers, timeout=30)
        return answer.status_code, answer.json()["code"] if answer.content else ""

    now_s = int(time.time())
    assert send("m1", b"x" * 32, now_s) == (401, "signature_wrong")
    assert send("m1", NEW, now_s - 400) == (401, "timestamp_old")
    assert send("m1", NEW, now_s + 400) == (401, "timestamp_future")
    assert node.ask("advertiser", "show", "late")["status"] == "active"
    assert send("m1", OLD, now_s) == (204, "")
    assert node.ask("advertiser", "show", "late")["status"] == "suspended"
    assert send("m1", OLD, now_s) == (409, "replayed")
    assert send("m1", NEW, now_s) == (409, "replayed")


BAD: tuple[tuple[str, str, Any, str], ...] = (
    ("POST", SITES, CREATE | {"site": "Bäcker.example"}, "site"),
    ("POST", SITES, CREATE | {"host": "no host"}, "host"),
    ("POST", SITES, CREATE | {"floorCpm": "-0.50"}, "floorCpm"),
    ("POST", SITES, CREATE | {"floorCpm": 0.5}, "floorCpm"),
    ("POST", SITES, CREATE | {"slots": []}, "slots"),
    ("POST", SITES, CREATE | {"slots": [{"slot": "a|b", "width": 1, "height": 1}]}, "slot"),
    ("POST", SITES, CREATE | {"colour": "red"}, "colour"),
    ("POST", "/v1/publishers/b%C3%A4r/sites", CREATE, "publisher"),
    ("PATCH", f"{SITES}/{SITE}", {}, "site"),
    ("PUT", f"{SITES}/{SITE}/slots/nowhere/floor", {"floorCpm": "1"}, "slot"),
    ("PUT", f"{SITES}/{SITE}/slots/top/floor", {"floorCpm": "-1"}, "floorCpm"),
    ("POST", "/v1/advertisers", {"advertiser": "a", "name": "A", "dailyBudget": "-3"}, "dailyBudget"),
    ("POST", "/v1/advertisers", {"advertiser": "a", "name": "A", "dailyBudget": "9" * 13}, "dailyBudget"),
    ("POST", "/v1/advertisers", {"advertiser": "a", "name": "A", "dailyBudget": "999999999999"}, "dailyBudget"),
    ("POST", "/v1/advertisers", {"advertiser": "a", "name": "A", "dailyBudget": "NaN"}, "dailyBudget"),
    ("POST", "/v1/advertisers", {"advertiser": "räil", "name": "A", "dailyBudget": "3"}, "advertiser"),
    (
        "POST",
        "/v1/advertisers",
        {"advertiser": "a", "name": "A", "dailyBudget": "3", "timezone": "Mars/Olympus"},
        "timezone",
    ),
    ("GET", "/v1/advertisers?limit=-1", None, "limit"),
    ("GET", "/v1/advertisers?after=%00", None, "after"),
    ("GET", f"/v1/advertisers?after={'0' * 300}", None, "after"),
    ("GET", f"{SITES}?after=%C3%BC", None, "after"),
    ("GET", "/v1/taxonomy/categories?limit=2&limit=3", None, "limit"),
    ("POST", f"{SITES}/{SITE}/approval/flag", {"creative": "k", "reason": ""}, "reason"),
    ("POST", f"{SITES}/{SITE}/approval/flag", {"creative": "../k", "reason": "x"}, "creative"),
    ("POST", "/v1/serve/batch", {"pub": SITE, "url": f"https://{SITE}/" + "x" * 10_000, "imp": []}, "url"),
    ("POST", "/v1/serve/batch", {"pub": SITE, "url": f"https://{SITE}/", "imp": [{"id": "ü", "w": 1, "h": 1}]},
     "imp.id"),
    ("POST", "/v1/classify-page", {"pub": SITE, "url": f"https://{SITE}/" + "x" * 10_000, "text": "words"}, "url"),
)  # fmt: skip


def test_whatever_is_wrong_names_its_field_and_changes_nothing(api: Api, node: Cluster) -> None:
    before = (node.ask("site", "list")["items"], node.ask("advertiser", "list")["items"])
    for method, path, body, field in BAD:
        api.bad(400, field, method, path, body)
    assert (node.ask("site", "list")["items"], node.ask("advertiser", "list")["items"]) == before


def test_w22_a_text_of_fifty_megabytes_is_refused_before_it_is_read(api: Api) -> None:
    text = b'{"pub": "%s", "url": "https://%s/a", "text": "' % (SITE.encode(), SITE.encode()) + b"x" * (50 << 20)
    with contextlib.suppress(httpx.WriteError):  # the connection may end while it is still sending
        api.bad(413, "body", "POST", "/v1/classify-page", text + b'"}')
    assert api.good("GET", "/alive") == {"alive": True}
    assert api.good("GET", f"{SITES}/{SITE}/pages")["items"] == []


def test_every_documented_operation_answers_as_it_is_described(api: Api, tmp_path: Path) -> None:
    paths = api.good("GET", "/openapi.json")["paths"]
    # All but the one by which it got the description.
    operations = sum(len(methods) for path, methods in paths.items() if path != "/openapi.json")
    until, seed = time.monotonic() + SOAK_S, 7
    while True:
        done = fuzzed(api, tmp_path, seed)
        assert done.returncode == 0, done.stdout[-6_000:]
        assert f"Tested: {operations}" in done.stdout
        print(f"seed {seed}: {done.stdout[-400:]}")
        if time.monotonic() > until:
            return
        seed += 1


def fuzzed(api: Api, folder: Path, seed: int) -> subprocess.CompletedProcess[str]:
    """One run over all operations, with what the seed makes of them."""
    command = [
        *(str(Path(sys.executable).with_name("schemathesis")), "run", f"{api.base}/openapi.json"),
        *("--header", f"Authorization: Bearer {ALL}", "--checks", CHECKS, "--max-examples", str(EXAMPLES)),
        *("--phases", "fuzzing" if SCALE == 1 else "coverage,fuzzing", "--seed", str(seed)),
        *("--generation-database", "none", "--no-color"),
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900, check=False)
