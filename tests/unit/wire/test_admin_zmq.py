"""The admin listener and an operator's connection over real loopback sockets, on asyncio and on uvloop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
import uvloop
from wire_support import until

from node.core import limits
from node.core.clock import SystemClock
from node.core.errors import BadInput, LocalProtocolError, OperatingError
from node.wire.admin_client_zmq import AdminConnection
from node.wire.admin_zmq import AdminClient, AdminListener
from node.wire.link_zmq import LinkState
from node.wire.port import SendOutcome
from node.wire.roster import KeyPair, NodeEntry, OperatorEntry, OperatorRole, Roster
from node.wire.zmq_sockets import new_key_pair

T = TypeVar("T")
NODE, ANN, BOB, EVE = (new_key_pair() for _ in range(4))
ROSTER = Roster(
    [NodeEntry("alpha", NODE.public)],
    [OperatorEntry("ann", ANN.public, OperatorRole.ADMIN), OperatorEntry("bob", BOB.public)],
)
Run = Callable[[Callable[[], Awaitable[None]]], None]
opened: list[AdminListener | AdminConnection] = []


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def runner(body: Callable[[], Awaitable[None]]) -> None:
        async def with_cleanup() -> None:
            try:
                await body()
            finally:
                while opened:
                    opened.pop().close()

        with asyncio.Runner(loop_factory=factory) as loop_runner:
            loop_runner.run(with_cleanup())

    return runner


class Server:
    """A listener that keeps what it gets."""

    def __init__(self, address: str = "127.0.0.1:0", secret: KeyPair = NODE) -> None:
        self.requests: list[tuple[AdminClient, bytes]] = []
        self.refused: list[tuple[str, str, str]] = []
        self.listener = AdminListener(
            secret,
            ROSTER,
            SystemClock(),
            lambda *request: self.requests.append(request),
            lambda *what: self.refused.append(what),
        )
        opened.append(self.listener)
        self.listener.bind(address)


def dial(server: Server, pair: KeyPair, server_key: str = NODE.public) -> AdminConnection:
    connection = AdminConnection(server.listener.address, server_key, pair)
    opened.append(connection)
    return connection


async def within(awaitable: Awaitable[T]) -> T:
    async with asyncio.timeout(10):
        return await awaitable


def test_requests_are_answered_and_events_pushed_to_the_right_client(run: Run) -> None:
    async def body() -> None:
        server = Server()
        ann, ann_too, bob = dial(server, ANN), dial(server, ANN), dial(server, BOB)
        for connection, request in ((ann, b"1"), (ann_too, b"2"), (bob, b"3")):
            await within(connection.connected())
            connection.send(request)
        await until(lambda: len(server.requests) == 3, "all requests arrive")
        by_request = {data: client for client, data in server.requests}
        assert [by_request[key].operator for key in (b"1", b"2", b"3")] == ["ann", "ann", "bob"]
        for data, client in by_request.items():
            assert server.listener.send(client, b"re " + data) is SendOutcome.SENT
            assert server.listener.send(client, b"event " + data) is SendOutcome.SENT
        for connection, data in ((ann, b"1"), (ann_too, b"2"), (bob, b"3")):
            assert await within(connection.receive()) == b"re " + data
            assert await within(connection.receive()) == b"event " + data
        assert server.listener.counters == {"received": 3, "sent": 6}

    run(body)


@pytest.mark.parametrize("pair", [EVE, NODE], ids=["stranger", "a-node's-key"])
def test_a_key_that_is_no_operators_is_denied_with_words(run: Run, pair: KeyPair) -> None:
    async def body() -> None:
        server = Server()
        eve = dial(server, pair)
        eve.send(b"let me in")
        with pytest.raises(OperatingError) as caught:
            await within(eve.connected())
        assert caught.value.code == "E-ADMIN-DENIED"
        with pytest.raises(OperatingError) as caught:
            await within(eve.receive())
        assert caught.value.code == "E-ADMIN-DENIED"
        assert not server.requests
        assert server.refused[0][:2] == ("127.0.0.1", "denied")
        assert pair.public in server.refused[0][2]

    run(body)


def test_a_node_with_another_key_than_expected_is_refused_with_words(run: Run) -> None:
    async def body() -> None:
        server = Server()
        ann = dial(server, ANN, server_key=EVE.public)
        with pytest.raises(OperatingError, match="expected key") as caught:
            await within(ann.connected())
        assert caught.value.code == "E-ADMIN-KEY"
        assert not server.requests

    run(body)


def test_an_address_where_nobody_listens_is_waited_for_until_its_caller_gives_up(run: Run) -> None:
    async def body() -> None:
        server = Server()
        ann = dial(server, ANN)
        await within(ann.connected())
        server.listener.close()
        await until(lambda: ann.state is LinkState.LOST, "the loss is noticed")
        bob = dial(server, BOB)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await bob.connected()
        assert bob.state is not LinkState.UP
        Server(server.listener.address)
        await within(ann.connected())
        assert ann.state is LinkState.UP

    run(body)


def test_a_client_that_does_not_read_is_busy_and_hurts_nobody_else(run: Run) -> None:
    async def body() -> None:
        server = Server()
        slow, quick = dial(server, ANN), dial(server, BOB)
        for connection in (slow, quick):
            await within(connection.connected())
            connection.send(b"subscribe")
        await until(lambda: len(server.requests) == 2, "both have subscribed")
        clients = {client.operator: client for client, _ in server.requests}
        event = b"x" * 50_000
        pushed = 0

        def busy() -> bool:
            nonlocal pushed
            while server.listener.send(clients["ann"], event) is SendOutcome.SENT:
                pushed += 1
            return len(slow._inbox) == limits.admin_frames_max

        await until(busy, "the slow client holds all it may, and the server's queue is full")
        assert server.listener.send(clients["bob"], b"news") is SendOutcome.SENT
        assert await within(quick.receive()) == b"news"
        received = 0
        async with asyncio.timeout(10):
            async for document in slow:
                assert document == event
                received += 1
                if received == pushed:
                    break
        assert server.listener.counters["busy"] >= 1

    run(body)


def test_a_client_that_is_gone_or_revoked_gets_nothing(run: Run) -> None:
    async def body() -> None:
        server = Server()
        ann, bob = dial(server, ANN), dial(server, BOB)
        ann.send(b"1")
        bob.send(b"2")
        await until(lambda: len(server.requests) == 2, "both requests arrive")
        clients = {client.operator: client for client, _ in server.requests}
        ann.close()
        await until(lambda: server.listener.send(clients["ann"], b"x") is SendOutcome.NO_ROUTE, "ann is gone")
        server.listener.set_roster(Roster(ROSTER.nodes, [OperatorEntry("bob", EVE.public)]))
        assert server.listener.send(clients["bob"], b"x") is SendOutcome.NO_ROUTE
        await until(lambda: bob.state is LinkState.DENIED, "the session under the old key has ended (C5)")
        assert server.listener.counters["ended"] >= 1
        assert len(server.requests) == 2
        with pytest.raises(OperatingError, match="closed"):
            await within(ann.receive())
        with pytest.raises(LocalProtocolError):
            ann.send(b"x")

    run(body)


def test_an_answer_found_after_the_listener_has_closed_goes_nowhere(run: Run) -> None:
    async def body() -> None:
        server = Server()
        ann = dial(server, ANN)
        ann.send(b"1")
        await until(lambda: len(server.requests) == 1, "the request arrives")
        [(client, _)] = server.requests
        server.listener.close()
        assert server.listener.send(client, b"late") is SendOutcome.NO_ROUTE
        assert server.listener.counters["gone"] == 1

    run(body)


def test_bounds_are_checked_before_anything_is_sent(run: Run) -> None:
    async def body() -> None:
        server = Server()
        ann = dial(server, ANN)
        await within(ann.connected())
        largest = b"x" * limits.admin_request_bytes_max
        with pytest.raises(LocalProtocolError, match="exceeds"):
            ann.send(largest + b"x")
        ann.send(largest)
        await until(lambda: len(server.requests) == 1, "the largest request arrives")
        client = server.requests[0][0]
        assert server.listener.send(client, largest + b"x") is SendOutcome.TOO_LARGE
        assert server.listener.send(client, largest) is SendOutcome.SENT
        assert await within(ann.receive()) == largest

    run(body)


def test_requests_to_a_node_that_is_away_are_bounded(run: Run) -> None:
    async def body() -> None:
        server = Server()
        server.listener.close()
        ann = dial(server, ANN)
        for _ in range(limits.admin_frames_max):
            ann.send(b"x")
        with pytest.raises(OperatingError) as caught:
            ann.send(b"x")
        assert caught.value.code == "E-ADMIN-BUSY"

    run(body)


def test_a_port_in_use_is_named(run: Run) -> None:
    async def body() -> None:
        address = Server().listener.address
        with pytest.raises(OperatingError, match="in use") as caught:
            Server(address)
        assert caught.value.code == "E-PORT-IN-USE"
        with pytest.raises(BadInput):
            AdminConnection("nowhere", NODE.public, ANN)

    run(body)


def test_a_pending_receive_ends_when_the_connection_is_closed(run: Run) -> None:
    async def body() -> None:
        ann = dial(Server(), ANN)
        pending = asyncio.ensure_future(ann.receive())
        await within(ann.connected())
        ann.close()
        with pytest.raises(OperatingError, match="closed"):
            await within(pending)

    run(body)
