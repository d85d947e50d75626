"""A node whose pages are judged by a service: a server of ours stands in for it, well, failing and silent."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_world import Cluster, eventually
from model_formats import FORMATS, KEY
from model_server import Answer, ModelServer

SITE = "rails.example"
TEXT = (
    "Melt the butter in a pan, add garlic and onion and simmer the sauce until it is thick. Serve it with pasta, a"
    " green salad and a glass of wine; the recipe is enough for four, and the dessert is a cake from the same oven."
)
SAID = '{"categories": [{"id": "653", "confidence": 0.8}], "places": []}'


@pytest.fixture(scope="module")
def service() -> Iterator[ModelServer]:
    with ModelServer(FORMATS["openai"]) as server:
        server.script = [server.says(SAID)]
        yield server


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, service: ModelServer) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("service")
    key = folder / "classifier.key"
    key.touch(0o600)
    key.write_text(f"{KEY}\n")
    cluster = Cluster(folder)
    try:
        cluster.up("--nodes", "1")
        cluster.down()
        (settings,) = cluster.data.glob("nodes/*/node.toml")
        section = {"provider": "openai", "base_url": service.base_url, "api_key_file": str(key)}
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in section.items())
        settings.write_text(f"{settings.read_text()}\n[classifier]\n{lines}requests_per_min = 1000\n")
        cluster.up("--nodes", "1")
        cluster.ask("site", "create", SITE, "--publisher", "me", "--slot", "top:728x90")
        yield cluster
        cluster.down()
    finally:
        cluster.last_resort()


def judged(cluster: Cluster, page: str) -> Any:
    """The page as it is listed once it is judged."""
    url = f"https://{SITE}/{page}"
    status, _ = cluster.post("/v1/classify-page", {"pub": SITE, "url": url, "text": TEXT, "imp": []})
    assert status == 202

    def listed() -> Any:
        return next((row for row in cluster.pages(SITE) if row["url"] == url), None)

    return eventually(listed, bool, 30, f"a judgement of {page}")


def counted(cluster: Cluster, name: str) -> float:
    with urllib.request.urlopen(f"{cluster.http}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    wanted = f'promovolve_events_total{{name="classifier.{name}"}} '
    return next((float(line.removeprefix(wanted)) for line in lines if line.startswith(wanted)), 0.0)


def test_pages_are_judged_by_the_service_and_by_local_where_it_fails(node: Cluster, service: ModelServer) -> None:
    page = judged(node, "one")
    assert (page["provider"], page["fallback"], [c["id"] for c in page["categories"]]) == ("openai", False, ["653"])
    assert node.ask("site", "show", SITE)["pages_fallback"] == 0

    service.script = [service.fails(401)]
    page = judged(node, "two")
    assert (page["provider"], page["fallback"]) == ("local", True)
    assert page["categories"][0]["path"].startswith("Food & Drink"), "by its own text"
    assert node.ask("site", "show", SITE)["pages_fallback"] == 1
    assert counted(node, "fallback_not_allowed") == 1
    (fault,) = [fault for fault in node.status()["faults"] if fault["code"] == "E-CLASSIFIER-SERVICE"]
    assert "not allowed (status 401)" in fault["message"]
    facts = node.ask("facts", "list", "--type", "page_classified")["items"]
    assert [(fact["fields"]["provider"], fact["fields"]["fallback"]) for fact in facts] == [
        ("openai", False),
        ("local", True),
    ]

    service.script = [service.says(SAID)]
    judged(node, "two")
    eventually(lambda: node.ask("site", "show", SITE)["pages_fallback"], lambda n: n == 0, 30, "the page judged again")
    assert [fault for fault in node.status()["faults"] if fault["code"] == "E-CLASSIFIER-SERVICE"] == []


def test_an_operator_is_answered_in_time_also_where_the_service_is_silent(
    node: Cluster, service: ModelServer, tmp_path: Path
) -> None:
    file = tmp_path / "page.txt"
    file.write_text(TEXT)
    service.script = [service.says(SAID)]
    assert node.ask("page", "classify", str(file))["provider"] == "openai"
    service.script = [Answer(held=True)]
    found = node.ask("page", "classify", str(file), "-t", "3s")
    assert (found["provider"], found["fallback"]) == ("local", True)
    service.script = [service.says(SAID)]
    assert node.ask("page", "classify", str(file))["fallback"] is False, "one silence is no failure of the service"


def test_the_key_is_shown_nowhere(node: Cluster) -> None:
    shown = json.dumps(node.ask("node", "show", node.ask("node", "list")["items"][0]["name"]))
    assert "classifier.key" in shown, "the file's name is a setting"
    logs = [path.read_text(errors="replace") for path in node.data.rglob("*.log")]
    assert logs
    assert [text for text in (shown, *logs) if KEY in text] == []
