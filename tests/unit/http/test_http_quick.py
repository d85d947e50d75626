"""Page views that are answered where they are read: what a client sees is what the application would have said."""

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
from node.core.ids import EntityRef
from node.http.app import App
from node.http.cluster import ClusterGate
from node.http.overload import Kind, Overload, OverloadSettings
from node.http.server import HttpServer, bind

SITE = "news.example"
SERVE = {"pub": SITE, "url": f"https://{SITE}/a", "imp": [{"id": "top", "w": 300, "h": 250}]}
ANSWER_S = 10.0


class Cluster:
    """Answers an ask in the loop's next turn, from a script by message; a pending one when it is told to."""

    def __init__(self) -> None:
        self.world = SimpleNamespace(clock=SystemClock())
        self.drain = SimpleNamespace(accepts_work=True)
        self.asked: list[tuple[EntityRef, Any]] = []
        self.answers: dict[type, Callable[[EntityRef, Any], Any]] = {}
        self.hold: list[Callable[[], None]] | None = None

    def ask(self, to: EntityRef, message: Any, timeout_ms: int, done: Callable[[Any], None]) -> None:
        self.asked.append((to, message))
        answer = self.answers.get(type(message), lambda _to, _message: Failed(Failure.REJECTED, "not scripted"))

        def settle() -> None:
            done(answer(to, message))

        if self.hold is None:
            asyncio.get_running_loop().call_soon(settle)
        else:
            self.hold.append(settle)


class Edge:
    """A server; `through`: requests that came to the application, by path."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.cluster.answers[m.BatchSelect] = self._select
        gate = ClusterGate(cast(Any, self.cluster))
        service = SimpleNamespace(edges=[], checks=lambda: (), start_phases=lambda: ())
        self.app = App(gate, cast(Any, service), "http://api:1", Overload(OverloadSettings(floor=16), gate.now_ns()))
        self.gate = gate
        self.through: list[str] = []
        self.server = HttpServer(self, bind("127.0.0.1:0"), self.app.quick)

    @staticmethod
    def _select(_to: EntityRef, message: m.BatchSelect) -> m.BatchSelected:
        """The slot says which page it was asked for."""
        outcome = m.SlotOutcome(message.slots[0].slot, None, message.url.rpartition("/")[2])
        return m.BatchSelected("served", (outcome,), 5)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.through.append(scope["path"])
        await self.app(scope, receive, send)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, _, port = self.server.address.rpartition(":")
        return await asyncio.open_connection(host, int(port))

    @property
    def settled(self) -> bool:
        return self.gate.in_flight == 0 and self.app.overload.in_flight == 0


def request(page: str = "a", *more: str, body: bytes | None = None, version: str = "1.1") -> bytes:
    content = json.dumps(SERVE | {"url": f"https://{SITE}/{page}"}).encode() if body is None else body
    lines = (f"POST /v1/serve/batch HTTP/{version}", "host: a", f"content-length: {len(content)}", *more)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_S)).decode()
    first, *rest = head.strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in rest)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(first.split()[1]), headers, json.loads(body) if body else None


def page_of(document: Any) -> str:
    return str(document["seatbid"][0]["reason"])


def played(scene: Callable[[Edge], Coroutine[Any, Any, None]]) -> None:
    async def play() -> None:
        edge = Edge()
        await edge.server.start()
        try:
            await scene(edge)
            assert edge.settled
        finally:
            await edge.server.stop()

    asyncio.run(play())


def test_a_page_view_needs_no_task_and_its_connection_is_kept() -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        for page in ("a", "b", "c"):
            writer.write(request(page))
            status, headers, document = await answer(reader)
            assert (status, page_of(document), document["reclassifyInMs"]) == (200, page, 5)
            assert headers["content-type"] == "application/json"
            assert headers["access-control-allow-origin"] == "*"
            assert "connection" not in headers
        assert edge.through == []
        writer.close()

    played(scene)


async def until(condition: Callable[[], object]) -> None:
    deadline = asyncio.get_running_loop().time() + ANSWER_S
    while not condition():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.005)


def test_a_body_in_two_reads_goes_to_the_application_which_says_the_same() -> None:
    async def scene(edge: Edge) -> None:
        found = []
        for whole in (True, False):
            reader, writer = await edge.connect()
            sent = request("a", "connection: close")
            if not whole:
                writer.write(sent[:-1])
                await until(lambda: edge.through)
                sent = sent[-1:]
            writer.write(sent)
            status, headers, document = await answer(reader)
            found.append((status, {name: text for name, text in headers.items() if name != "date"}, document))
            writer.close()
        assert edge.through == ["/v1/serve/batch"]
        assert found[0] == found[1]

    played(scene)


def test_requests_that_come_together_are_answered_in_their_order() -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        writer.write(request("a") + request("b") + b"GET /alive HTTP/1.1\r\nhost: a\r\n\r\n" + request("c"))
        found = [await answer(reader) for _ in range(4)]
        assert [page_of(document) for _, _, document in (found[0], found[1], found[3])] == ["a", "b", "c"]
        assert found[2][2] == {"alive": True}
        assert edge.through == ["/v1/serve/batch", "/alive", "/v1/serve/batch"], "those behind another wait their turn"
        writer.close()

    played(scene)


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (request("a", "connection: close"), False),
        (request("a", version="1.0"), False),
        (request("a"), True),
    ],
)
def test_a_connection_is_closed_when_that_is_wanted(sent: bytes, kept: bool) -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        writer.write(sent)
        status, headers, _ = await answer(reader)
        assert status == 200
        assert headers.get("connection", "") == ("" if kept else "close")
        if not kept:
            assert await asyncio.wait_for(reader.read(), ANSWER_S) == b""
        writer.close()

    played(scene)


def test_a_client_that_asks_whether_to_go_on_is_told_so() -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        head, _, body = request("a", "expect: 100-continue").partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_S) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await answer(reader))[0] == 200
        assert edge.through == ["/v1/serve/batch"]
        writer.close()

    played(scene)


def test_a_publisher_is_resolved_and_a_definite_failure_repeated() -> None:
    async def scene(edge: Edge) -> None:
        tries: list[str] = []

        def select(to: EntityRef, message: m.BatchSelect) -> Any:
            tries.append(to.id)
            if len(tries) == 1:
                return Failed(Failure.NO_HOME)
            return m.BatchSelected("unknown_site") if to.id == "ann" else edge._select(to, message)

        edge.cluster.answers[m.BatchSelect] = select
        edge.cluster.answers[m.ResolveSite] = lambda _to, _message: m.ResolvedSite(SITE)
        reader, writer = await edge.connect()
        sent = request(body=json.dumps(SERVE | {"pub": "ann"}).encode())
        for _ in range(2):
            writer.write(sent)
            assert (await answer(reader))[0] == 200
        assert tries == ["ann", "ann", SITE, SITE], "the second time it is known"
        assert edge.through == []
        writer.close()

    played(scene)


@pytest.mark.parametrize(("state", "status"), [("suspended", 204), ("host_refused", 403), ("unknown_site", 404)])
def test_what_is_not_served_says_why(state: str, status: int) -> None:
    async def scene(edge: Edge) -> None:
        edge.cluster.answers[m.BatchSelect] = lambda _to, _message: m.BatchSelected(state)
        edge.cluster.answers[m.ResolveSite] = lambda _to, _message: m.ResolvedSite("")
        reader, writer = await edge.connect()
        for _ in range(2):
            writer.write(request())
            found, headers, document = await answer(reader)
            assert found == status
            assert (document is None) == (status == 204)
            assert ("content-length" in headers) == (status != 204)
        writer.close()

    played(scene)


def test_bad_requests_shed_ones_and_those_of_a_node_that_leaves() -> None:
    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        writer.write(request(body=b'{"pub": 7}'))
        status, _, document = await answer(reader)
        assert (status, document["field"]) == (400, "pub")
        inside = [edge.app.overload.admit(Kind.SERVE, 0) for _ in range(edge.app.overload.limit)]
        writer.write(request())
        status, headers, _ = await answer(reader)
        assert (status, headers["retry-after"]) == (503, "1")
        for ticket in inside:
            assert ticket is not None
            edge.app.overload.done(ticket, 0)
        asked = len(edge.cluster.asked)
        edge.cluster.drain.accepts_work = False
        writer.write(request())
        status, headers, _ = await answer(reader)
        assert (status, headers["connection"]) == (503, "close")
        assert await asyncio.wait_for(reader.read(), ANSWER_S) == b""
        assert len(edge.cluster.asked) == asked
        writer.close()

    played(scene)


def test_a_fault_is_told_as_one() -> None:
    async def scene(edge: Edge) -> None:
        edge.cluster.answers[m.BatchSelect] = lambda _to, _message: m.BatchSelected("served", cast(Any, (None,)), 5)
        reader, writer = await edge.connect()
        for _ in range(2):
            writer.write(request())
            assert (await answer(reader))[0] == 500
        writer.close()

    played(scene)


def test_a_body_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "http_body_bytes_max", 200)

    async def scene(edge: Edge) -> None:
        reader, writer = await edge.connect()
        writer.write(request(body=b" " * 201))
        status, _, document = await answer(reader)
        assert (status, document["field"]) == (413, "body")
        writer.close()

    played(scene)


def test_a_reader_that_has_gone_is_not_written_to() -> None:
    async def scene(edge: Edge) -> None:
        edge.cluster.hold = []
        reader, writer = await edge.connect()
        writer.write(request())
        await until(lambda: edge.cluster.hold)
        (settle,) = edge.cluster.hold
        writer.close()
        await writer.wait_closed()
        del reader
        await until(lambda: not edge.server._server.server_state.connections)
        assert not edge.settled
        settle()
        assert edge.settled

    played(scene)
