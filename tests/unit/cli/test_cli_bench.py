"""`bench`: page views at nodes that answer, refuse and are away; and the checkout's benchmarks as processes."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import node as sample_node

from node.admin import protocol as p
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.local import benchmarks
from promovolvectl.local.page_views import spread

SLOTS = (p.Slot(slot="top", width=728, height=90), p.Slot(slot="side", width=300, height=250))
SITE = p.SiteShow(
    site="a.example", host="a.example", publisher="ann", verified_host=None, slots=SLOTS, pages_fresh=1, suspended=False
)
PAGES = p.PageList(
    items=(
        p.PageItem(url="https://a.example/fresh", classified_at="2026-11-29T14:00:00.000Z", fresh=True, categories=()),
        p.PageItem(url="https://a.example/old", classified_at="2026-11-01T14:00:00.000Z", fresh=False, categories=()),
    )
)
SERVED = {"seatbid": [{"id": "top", "winner": {"creative": "cr"}}, {"id": "side", "winner": None}]}


@contextmanager
def api(status: int) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An api node's port: its base URL and what it was asked."""
    asked: list[dict[str, Any]] = []

    class Node(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps(SERVED).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Node) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def handlers(**http: str | None) -> dict[type, Any]:
    rows = tuple(sample_node(name, http=base) for name, base in http.items())
    return {
        p.GetNodes: lambda _: p.NodeList(items=rows),
        p.GetSites: lambda _: p.SiteList(items=(SITE, msgspec.structs.replace(SITE, site="b", suspended=True))),
        p.GetPages: lambda _: PAGES,
    }


def test_page_views_are_asked_of_every_api_node_and_what_fails_is_counted(tmp_path: Path, invoke: Invoke) -> None:
    with api(200) as (well, asked), api(503) as (shedding, _):
        away = "http://127.0.0.1:9"
        with FakeNode(handlers(well=well, shedding=shedding, away=away, entity=None)) as node:
            node.write(tmp_path)
            words = ("bench", "serve", "--for", "300ms", "--connections", "6", "-o", "json")
            code, _, err = invoke(*words)
            assert (code, asked) == (6, []), "nobody was asked whether"
            assert '"promovolvectl bench serve --for 300ms --connections 6 -o json --yes"' in err
            code, out, _ = invoke(*words, "--yes")
    document = json.loads(out)
    assert (code, document["subject"]) == (15, "serve"), "of some nodes all failed"
    found = {item["name"]: item for item in document["items"]}
    assert found["well.page_views"]["count"] == found["well.answer"]["count"] == len(asked) > 0
    assert (found["well.filled"]["median"], found["well.filled"]["count"]) == (0.5, 2 * len(asked))
    assert found["well.answer"]["least"] <= found["well.answer"]["median"] <= found["well.answer"]["p99"]
    assert (found["well.failed"]["median"], found["well.failed"]["count"]) == (0.0, len(asked)), "none, which is said"
    assert found["shedding.failed.HTTP 503"] == {**found["shedding.failed"], "name": "shedding.failed.HTTP 503"}
    assert found["shedding.failed"]["median"] == found["shedding.failed"]["count"] >= 1
    assert found["away.failed.ConnectionRefusedError"]["median"] >= 1
    assert (found["shedding.page_views"]["median"], found["away.answer"]["count"]) == (0.0, 0)
    imps = [{"id": "top", "w": 728, "h": 90}, {"id": "side", "w": 300, "h": 250}]
    assert asked[0] == {"pub": "a.example", "url": "https://a.example/fresh", "imp": imps}


def test_a_load_of_which_nothing_fails_ends_well(tmp_path: Path, invoke: Invoke) -> None:
    with api(200) as (well, _), FakeNode(handlers(well=well)) as node:
        node.write(tmp_path)
        code, out, _ = invoke("bench", "serve", "--for", "200ms", "--yes", "-o", "value", "--columns", "name,median")
    assert code == 0
    assert "well.failed\t0" in out


def test_who_stops_a_load_is_shown_what_was_measured_until_then(tmp_path: Path) -> None:
    program = [sys.executable, "-c", "from promovolvectl.cli.main import run; run()"]
    words = ("bench", "serve", "--for", "60s", "--yes", "-o", "json")
    with api(200) as (well, asked), FakeNode(handlers(well=well)) as node:
        node.write(tmp_path)
        with subprocess.Popen([*program, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            until = time.monotonic() + 30
            while len(asked) < 20 and child.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=30)
    assert (child.returncode, err) == (130, "")
    document = json.loads(out)
    assert next(row for row in document["items"] if row["name"] == "well.answer")["count"] >= 12
    assert document["elapsed_s"] < 60
    [warning] = document["warnings"]
    assert warning["code"] == "W-CUT-SHORT"
    assert "of 60s" in warning["text"]


def test_when_nobody_answers_it_failed_and_without_pages_there_is_nothing_to_ask(
    tmp_path: Path, invoke: Invoke
) -> None:
    with FakeNode(handlers(away="http://127.0.0.1:9")) as node:
        node.write(tmp_path)
        assert invoke("bench", "serve", "--for", "100ms", "--yes")[0] == 15
        code, _, err = invoke("bench", "serve", "--site", "b", "--yes")
        assert (code, "no fresh page of b" in err) == (3, True)
        assert invoke("bench", "serve", "--for", "1d", "--yes")[0] == 2
    with FakeNode(handlers(entity=None)) as node:
        node.write(tmp_path)
        code, _, err = invoke("bench", "serve", "--yes")
        assert (code, "no node with the api role" in err) == (3, True)


def checkout(folder: Path, program: str) -> Path:
    scripts = folder / "scripts" / "benchmarks"
    scripts.mkdir(parents=True)
    (folder / "scripts" / "__init__.py").touch()
    (scripts / "__init__.py").touch()
    (scripts / "actors.py").touch()
    (scripts / "__main__.py").write_text(program)
    return folder


def test_figures_of_the_checkout_are_shown_with_their_places(
    tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = {"median": 2.0, "min": 1.0, "max": 3.0, "runs": 7, "unit": "ms"}
    report = {"actors": {"ours": {"asks": figure}, "versions": {"x": "1"}, "ratio": 2.0, "floor": figure}}
    program = (
        "import sys\nassert sys.argv[1:] == ['actors', '--runs', '7']\n"
        f"print('measuring', file=sys.stderr)\nprint({json.dumps(report)!r})\n"
    )
    monkeypatch.setattr(benchmarks, "ROOT", checkout(tmp_path, program))
    code, out, err = invoke("bench", "actors", "--runs", "7", "-o", "json")
    assert (code, "measuring" in err) == (0, True)
    assert [(i["name"], i["median"], i["count"]) for i in json.loads(out)["items"]] == [
        ("ours.asks", 2.0, 7),
        ("floor", 2.0, 7),
    ]


def test_without_a_checkout_or_with_one_that_fails_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "ROOT", tmp_path)
    with pytest.raises(CommandFailed) as missing:
        asyncio.run(benchmarks.measured("actors", 1, lambda _: None))
    assert missing.value.status is ExitStatus.NOT_FOUND
    checkout(tmp_path, "import sys; sys.exit('no peer is installed')")
    with pytest.raises(CommandFailed) as failed:
        asyncio.run(benchmarks.measured("actors", 1, lambda _: None))
    assert (failed.value.code, "no peer is installed" in failed.value.message) == ("E-BENCH", True)


def test_the_checkout_has_the_benchmarks_that_are_offered() -> None:
    for subject in ("actors", "replication"):
        assert (benchmarks.ROOT / "scripts" / "benchmarks" / f"{subject}.py").is_file()


def test_a_spread_of_few_and_of_none() -> None:
    assert spread([]) == (0.0, 0.0, 0.0, 0.0)
    assert spread([3.0, 1.0, 2.0]) == (2.0, 3.0, 1.0, 3.0)
