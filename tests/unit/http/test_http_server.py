"""The real HTTP server on a real socket: W21's clients, and serves under a flood of events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest

from node.actors.actor import Failed, Failure
from node.ads import messages as m
from node.core import limits
from node.core.clock import SystemClock
from node.http import guard
from node.http.app import App
from node.http.cluster import ClusterGate
from node.http.guard import GuardedProtocol
from node.http.overload import Overload, OverloadSettings
from node.http.problem import MEDIA_TYPE
from node.http.server import HttpServer, bind

SERVE = {"pub": "news.example", "url": "https://news.example/a", "imp": [{"id": "top", "w": 300, "h": 250}]}
BEACON = "&".join(f"{name}=x" for name in ("pub", "url", "slot", "cid", "v", "b", "tok", "camp", "adv", "cpm", "rid"))
ANSWER_S = 10.0


class Cluster:
    """Does so many asks at once, each in `takes_s`; the rest waits, as in a node that is too busy."""

    def __init__(self, at_once: int, takes_s: float) -> None:
        self.world = SimpleNamespace(clock=SystemClock())
        self.drain = SimpleNamespace(accepts_work=True)
        self.inside = self.most_inside = 0
        self._room = asyncio.Semaphore(at_once)
        self._takes_s = takes_s
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(self, to: Any, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        task = asyncio.create_task(self._answer(message, timeout_ms, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            async with asyncio.timeout(timeout_ms / 1_000), self._room:
                await asyncio.sleep(self._takes_s)
        except TimeoutError:
            done(Failed(Failure.TIMEOUT))
        else:
            done(m.BatchSelected("served") if isinstance(message, m.BatchSelect) else m.Tracked("counted"))
        finally:
            self.inside -= 1


class Edge:
    """A server, and what talks to it byte by byte."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.service = SimpleNamespace(edges=[], checks=lambda: (), start_phases=lambda: ())
        gate = ClusterGate(cast(Any, cluster))
        overload = Overload(OverloadSettings(floor=16), gate.now_ns())
        self.app = App(gate, cast(Any, self.service), "http://api:1", overload)
        self.server = HttpServer(self.app, bind("127.0.0.1:0"), self.app.quick)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self.server.address.rpartition(":")
        return await asyncio.open_connection(host, int(port))

    async def call(self, method: str, path: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own: status, headers, body."""
        reader, writer = await self.connect()
        head = f"{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        try:
            return answer_of(await asyncio.wait_for(reader.read(), ANSWER_S))
        finally:
            writer.close()

    async def serve(self) -> int:
        return (await self.call("POST", "/v1/serve/batch", json.dumps(SERVE).encode()))[0]


def answer_of(data: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in rest), body


def played(scene: Callable[[Edge], Coroutine[Any, Any, None]], at_once: int = 50, takes_s: float = 0.001) -> None:
    async def play() -> None:
        edge = Edge(Cluster(at_once, takes_s))
        await edge.server.start()
        try:
            await scene(edge)
        finally:
            await edge.server.stop()

    guard.REFUSED.clear()
    asyncio.run(play())


def problem(data: bytes, status: int) -> None:
    found, headers, body = answer_of(data)
    assert (found, headers["content-type"], headers["connection"]) == (status, MEDIA_TYPE, "close")
    assert json.loads(body)["status"] == status


def test_w21_headers_that_come_slowly_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GuardedProtocol, "head_ms_max", 100)

    async def scene(edge: Edge) -> None:
        for first in (b"", b"GET /alive HTTP/1.1\r\nhost: a\r\n"):
            reader, writer = await edge.connect()
            writer.write(first)
            problem(await asyncio.wait_for(reader.read(), ANSWER_S), 408)
            writer.close()
        # The same of a second request on a connection, after a good one.
        reader, writer = await edge.connect()
        writer.write(b"GET /alive HTTP/1.1\r\nhost: a\r\n\r\n")
        await reader.readuntil(b"}")
        writer.write(b"GET /alive HTTP/1.1\r\nx")
        problem(await asyncio.wait_for(reader.read(), ANSWER_S), 408)
        writer.close()
        assert guard.REFUSED["head_late"] == 3
        assert edge.service.edges[0]()["http.refused_head_late"] == 3
        assert await edge.serve() == 200

    played(scene)


def test_w21_a_header_without_end_is_cut_off() -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        head = b"GET /alive HTTP/1.1\r\nx: "
        # One byte too many, and none after it: what a closed socket has not read would reset the connection.
        writer.write(head + b"y" * (limits.http_head_bytes_max - len(head) + 1))
        problem(await asyncio.wait_for(reader.read(), ANSWER_S), 431)
        writer.close()
        assert guard.REFUSED["head_bytes"] == 1
        assert await edge.serve() == 200

    played(scene)


def test_w21_many_idle_sockets_take_no_request_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The idle ones' time is over when the test says so: sixty may take longer to connect than they are given."""
    monkeypatch.setattr(limits, "http_connections_max", 40)
    monkeypatch.setattr(GuardedProtocol, "head_ms_max", 300)
    late, held, all_held = GuardedProtocol._late, list[GuardedProtocol](), asyncio.Event()

    def hold(idle: GuardedProtocol) -> None:
        held.append(idle)
        if len(held) == 40:
            all_held.set()

    monkeypatch.setattr(GuardedProtocol, "_late", hold)

    async def scene(edge: Edge) -> None:
        idle = [await edge.connect() for _ in range(60)]
        refused = [r for r, _ in idle[40:]]
        for reader in refused:
            problem(await asyncio.wait_for(reader.read(), ANSWER_S), 503)
        assert guard.REFUSED["connections"] == 20
        await asyncio.wait_for(all_held.wait(), ANSWER_S)
        for protocol in held:
            late(protocol)
        for reader, _ in idle[:40]:
            problem(await asyncio.wait_for(reader.read(), ANSWER_S), 408)
        assert await edge.serve() == 200
        for _, writer in idle:
            writer.close()

    played(scene)


@pytest.mark.parametrize("bytes_", [b"\x00\x01\x02\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"BREW / HTTP/1.1\r\n\r\n"])
def test_w21_what_is_no_request_is_answered_with_a_problem_document(bytes_: bytes) -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        writer.write(bytes_)
        problem(await asyncio.wait_for(reader.read(), ANSWER_S), 400)
        writer.close()

    played(scene)


def test_w21_a_chunked_body_without_end_is_refused() -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        writer.write(b"POST /v1/serve/batch HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        chunk = b"10000\r\n" + b"z" * 0x10000 + b"\r\n"
        for _ in range(limits.http_body_bytes_max // 0x10000 + 2):
            writer.write(chunk)
            await asyncio.sleep(0)
        status, headers, _ = answer_of(await asyncio.wait_for(reader.readuntil(b"}"), ANSWER_S))
        assert (status, headers["content-type"]) == (413, MEDIA_TYPE)
        writer.close()

    played(scene)


def test_w21_requests_that_are_sent_ahead_are_answered_one_after_the_other() -> None:
    async def scene(edge: Edge) -> None:
        body = json.dumps(SERVE).encode()
        head = f"POST /v1/serve/batch HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n"
        last = "GET /alive HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
        reader, writer = await edge.connect()
        writer.write((f"{head}\r\n".encode() + body) * 100 + last.encode())
        answered = await asyncio.wait_for(reader.read(), ANSWER_S)
        assert answered.count(b"HTTP/1.1 200") == 101
        assert answered.endswith(b'{"alive":true}')
        assert edge.cluster.most_inside == 1, "a client takes no more room by not waiting"
        writer.close()

    played(scene)


@pytest.mark.parametrize("host", ["", "evil.example", "a b", "<script>", "x" * 10_000, "[::1", "a\r\nhost: b"])
def test_w21_a_host_that_is_none_of_ours_does_no_harm(host: str) -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        writer.write(f"GET /alive HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        status, _, body = answer_of(await asyncio.wait_for(reader.read(), ANSWER_S))
        assert (status, body) == (200, b'{"alive":true}') or status == 400
        assert b"evil" not in body
        writer.close()
        assert await edge.serve() == 200

    played(scene)


def test_serves_are_answered_while_events_flood_in() -> None:
    async def scene(edge: Edge) -> None:
        stop = asyncio.Event()
        events: list[tuple[int, dict[str, str]]] = []

        async def flood() -> None:
            while not stop.is_set():
                status, headers, _ = await edge.call("GET", f"/v1/imp?{BEACON}")
                events.append((status, headers))
                await asyncio.sleep(0.1)  # clients that come again at once would leave this process no time for itself

        flooding = [asyncio.create_task(flood()) for _ in range(120)]
        await until(lambda: edge.app.overload.shed["event"] > 50)
        served = [await edge.serve() for _ in range(20)]
        stop.set()
        await asyncio.gather(*flooding)
        assert served == [200] * 20
        shed = [headers for status, headers in events if status == 503]
        assert shed
        assert all(int(headers["retry-after"]) > 0 and headers["content-type"] == MEDIA_TYPE for headers in shed)
        assert {status for status, _ in events} == {204, 503}
        counted = edge.service.edges[0]()
        assert (counted["http.shed_event"] >= len(shed), counted["http.shed_serve"]) == (True, 0)

    # The limit is on its floor of 16, since there is room for 8 at once.
    played(scene, at_once=8, takes_s=0.02)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(ANSWER_S):
        while not holds():  # noqa: ASYNC110 - any condition, within a deadline
            await asyncio.sleep(0.005)
