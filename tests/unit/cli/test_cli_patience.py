"""A node that listens and is slow to complete a handshake is waited for, where no other is quicker."""

from __future__ import annotations

import asyncio
import math
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from conftest import Invoke
from fake_server import FakeNode
from samples import status

from node.admin import protocol as p
from promovolvectl.client import connect as rules
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.connect import CONNECT_MS, Link, NoLink, connect, ends_ms, too_late
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.link import open_link
from promovolvectl.client.profiles import Endpoint, Profile

STATUS = {p.GetClusterStatus: lambda _: status()}
DEADLINE_S = 30.0


@contextmanager
def relay(node: FakeNode, go: threading.Event) -> Iterator[Endpoint]:
    """In front of a node: takes every connection at once, and passes nothing on before `go` is set."""
    sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []
    over = threading.Event()
    host, port = node.address.rsplit(":", 1)

    def start(target: Callable[..., None], *args: object) -> None:
        threads.append(threading.Thread(target=target, args=args, daemon=True))
        threads[-1].start()

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def serve(taken: socket.socket) -> None:
        if not go.wait(DEADLINE_S) or over.is_set():
            return
        with suppress(OSError):
            onward = socket.create_connection((host, int(port)))
            sockets.append(onward)
            start(pump, onward, taken)
            pump(taken, onward)

    def accept() -> None:
        with suppress(OSError):
            while True:
                taken, _ = listener.accept()
                sockets.append(taken)
                start(serve, taken)

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        start(accept)
        try:
            yield msgspec.structs.replace(node.endpoint("busy"), admin=f"127.0.0.1:{listener.getsockname()[1]}")
        finally:
            over.set()
            go.set()
            listener.shutdown(socket.SHUT_RDWR)
            threads[0].join(DEADLINE_S)  # none is taken any more
            for each in sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            for thread in threads:  # those that are started meanwhile, too
                thread.join(DEADLINE_S)
            for each in sockets:
                each.close()


@contextmanager
def mute(tried: Callable[[], None] = lambda: None) -> Iterator[Endpoint]:
    """A port that takes connections and says nothing; `tried` is called for each."""
    held: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                held.append(listener.accept()[0])
                tried()

    with FakeNode({}) as of, closing(socket.create_server(("127.0.0.1", 0))) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield msgspec.structs.replace(of.endpoint("mute"), admin=f"127.0.0.1:{listener.getsockname()[1]}")
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join(DEADLINE_S)
            for each in held:
                each.close()


def refused(profile: Profile, count: int = 1, timeout_ms: int = 5_000, **client: int) -> list[CommandFailed]:
    """How as many calls at once end, none of which may be answered."""

    async def all_at_once() -> list[CommandFailed]:
        admin = AdminClient(profile, open_link, **client)
        calls = (admin.call(p.GetClusterStatus(), timeout_ms) for _ in range(count))
        try:
            async with asyncio.timeout(DEADLINE_S):
                found = await asyncio.gather(*calls, return_exceptions=True)
        finally:
            admin.close()
        assert all(isinstance(each, CommandFailed) for each in found), found
        return [each for each in found if isinstance(each, CommandFailed)]

    return asyncio.run(all_at_once())


def asked(profile: Profile) -> tuple[msgspec.Struct, str]:
    async def once() -> tuple[msgspec.Struct, str]:
        admin = AdminClient(profile, open_link, patience_ms=int(DEADLINE_S * 1_000))
        try:
            reply, _ = await admin.call(p.GetClusterStatus(), int(DEADLINE_S * 1_000))
            assert admin.endpoint is not None
            return reply, admin.endpoint.node
        finally:
            admin.close()

    return asyncio.run(once())


def test_a_busy_node_is_asked_once_it_gets_round_to_it(tmp_path: Path) -> None:
    """Its connection goes through only when the next address has been tried: it was late for its own short deadline."""
    go = threading.Event()
    with FakeNode(STATUS) as node, relay(node, go) as busy, mute(go.set) as silent:
        profile = msgspec.structs.replace(node.profile(tmp_path), endpoints=(busy, silent))
        assert asked(profile) == (status(), "busy")


def test_who_is_quick_is_asked_and_the_busy_one_is_left(tmp_path: Path) -> None:
    """It never gets through, and is not waited for."""
    with FakeNode(STATUS) as node, relay(node, threading.Event()) as busy:
        assert asked(node.profile(tmp_path, before=(busy,))) == (status(), "node-1")


def test_calls_that_wait_for_the_same_silence_wait_once(tmp_path: Path) -> None:
    tries: list[None] = []
    with FakeNode(STATUS) as node, mute(lambda: tries.append(None)) as silent:
        profile = msgspec.structs.replace(node.profile(tmp_path), endpoints=(silent,))
        found = refused(profile, count=20)
    assert {each.code for each in found} == {"E-ADMIN-UNREACHABLE"}
    assert len(tries) <= 2, "one look whether it listens, and one handshake"


def test_patience_ends_with_the_commands_own(tmp_path: Path) -> None:
    """What the message says was waited is what was: no more than the call was given, however patient the client."""
    with FakeNode(STATUS) as node, mute() as silent:
        profile = msgspec.structs.replace(node.profile(tmp_path), endpoints=(silent,))
        (failed,) = refused(profile, timeout_ms=500, patience_ms=int(DEADLINE_S * 1_000))
    waited_ms = int(failed.message.rsplit(" ms", 1)[0].rsplit(" ", 1)[1])
    assert CONNECT_MS <= waited_ms <= 500


def test_with_endpoint_a_silent_node_is_looked_at_and_a_dead_one_s_address_is(tmp_path: Path, invoke: Invoke) -> None:
    with FakeNode(STATUS) as node, mute() as silent:
        node.write(tmp_path, before=(silent,))
        code, _, err = invoke("cluster", "status", "--endpoint", silent.admin, "-t", "1ms")
    assert (code, err.splitlines()[-1]) == (8, "hint: promovolvectl doctor -p local")
    assert "E-ADMIN-UNREACHABLE" in err
    code, _, err = invoke("cluster", "status", "--endpoint", silent.admin)
    assert (code, "without --endpoint" in err.splitlines()[-1]) == (8, True)


class Held:
    """Links that come up when a test says so, and what became of them."""

    def __init__(self) -> None:
        self.up = {"a": asyncio.Event(), "b": asyncio.Event()}
        self.both = asyncio.Event()
        self.lost: dict[str, Callable[[], None]] = {}
        self.closed: list[str] = []

    async def open(self, endpoint: Endpoint, _: object, on_lost: Callable[[], None]) -> Link:
        self.lost[endpoint.node] = on_lost
        if len(self.lost) == len(self.up):
            self.both.set()
        await self.up[endpoint.node].wait()
        return HeldLink(endpoint.node, self.closed)


class HeldLink:
    def __init__(self, name: str, closed: list[str]) -> None:
        self.name = name
        self._closed = closed

    def send(self, document: bytes) -> None:
        raise NoLink("is not there")

    async def receive(self) -> bytes:
        raise NoLink("is not there")

    def close(self) -> None:
        self._closed.append(self.name)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    async def listening(_: Endpoint) -> None:
        return

    monkeypatch.setattr(rules, "_listening", listening)
    with FakeNode({}) as node:
        return msgspec.structs.replace(node.profile(tmp_path), endpoints=(node.endpoint("a"), node.endpoint("b")))


def test_a_link_that_breaks_before_it_is_held_is_told_of_once_it_is(two: Profile) -> None:
    async def broken() -> None:
        held, told = Held(), asyncio.Event()

        async def holding() -> tuple[Link, Endpoint]:
            found = await connect(two, held.open, told.set)
            assert not told.is_set()
            return found

        opening = asyncio.create_task(holding())
        async with asyncio.timeout(DEADLINE_S):
            await held.both.wait()
            held.up["a"].set()
            held.lost["a"]()
            held.lost["b"]()
            assert not told.is_set()
            link, endpoint = await opening
            assert (endpoint.node, held.closed) == ("a", [])
            await told.wait()
            link.close()

    asyncio.run(broken())


def test_of_two_that_come_up_together_one_is_held_and_the_other_closed(two: Profile) -> None:
    async def together() -> list[str]:
        held = Held()
        opening = asyncio.create_task(connect(two, held.open, lambda: None))
        async with asyncio.timeout(DEADLINE_S):
            await held.both.wait()
            held.up["b"].set()
            held.up["a"].set()
            _, endpoint = await opening
        assert endpoint.node == "a"
        return held.closed

    assert asyncio.run(together()) == ["b"]


@pytest.mark.parametrize(
    ("last_begun_ms", "allowed_ms", "until_ms"),
    [
        (0, math.inf, 2_000),  # the only one
        (300, math.inf, 2_000),
        (1_200, math.inf, 2_200),  # the last of five has a second, all the same
        (1_200, 10_000, 2_200),
        (300, 1_000, 1_000),  # no longer than the command
        (300, 400, 600),  # but the short deadline that each has
        (0, -5, CONNECT_MS),
    ],
)
def test_how_long_late_ones_are_waited_for(last_begun_ms: int, allowed_ms: float, until_ms: int) -> None:
    assert ends_ms(last_begun_ms, 2_000, allowed_ms) == until_ms


def test_without_patience_the_last_has_its_short_deadline() -> None:
    assert ends_ms(900, CONNECT_MS, math.inf) == 900 + CONNECT_MS


def test_who_listens_and_who_does_not_are_told_apart() -> None:
    assert too_late(7, listens=True).code != too_late(7, listens=False).code
    assert str(too_late(7, listens=False)) == "no answer within 7 ms"
