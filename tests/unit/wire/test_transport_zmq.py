"""Two transports over real loopback sockets, on asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import zmq
from wire_nodes import ANY, KEYS, ROSTER, Node, Run, free_address, raw_dealer, raw_frame
from wire_support import Chunk, Ping, make_codec, tell, until, watching

from node.core import limits
from node.core.clock import SystemClock
from node.core.errors import BadInput, LocalProtocolError, OperatingError
from node.core.ids import NodeId
from node.wire import envelope as envelopes
from node.wire.codec import dumps
from node.wire.envelope import Envelope
from node.wire.frames import HEAD_BYTES_MAX
from node.wire.ledger import STRANGER
from node.wire.link_zmq import LinkState
from node.wire.port import PeerAddress, SendOutcome
from node.wire.registry import Lane
from node.wire.roster import NodeEntry, Roster
from node.wire.transport_zmq import ZmqTransport
from node.wire.zmq_sockets import ROUTERS, SOCKET_OPTIONS, Use, new_context, new_key_pair, new_socket


def test_two_nodes_exchange_on_both_lanes(run: Run) -> None:
    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        beta.transport.connect(alpha.address)
        assert alpha.transport.send("beta", tell(Ping(1, "hé"))) is SendOutcome.SENT
        assert alpha.transport.send("beta", tell(Chunk(2, b"\x00" * 900_000))) is SendOutcome.SENT
        assert beta.transport.send("alpha", tell(Ping(3), "beta")) is SendOutcome.SENT
        await until(lambda: len(beta.received) == 2 and len(alpha.received) == 1, "all three arrive")
        assert {type(one.message) for one in beta.received} == {Ping, Chunk}
        assert alpha.received == [tell(Ping(3), "beta")]
        assert alpha.transport.ledger.totals() == {"beta": {"sent": 2, "received": 1}}
        assert beta.transport.ledger.totals() == {"alpha": {"sent": 1, "received": 2}}
        assert not alpha.refused
        assert not beta.refused

    run(body)


def test_batches_keep_the_order_of_each_lane(run: Run) -> None:
    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        total = 8_000
        for number in range(total):
            message = Chunk(number, b"x" * (number % 97)) if number % 2 else Ping(number)
            assert alpha.transport.send("beta", tell(message)) is SendOutcome.SENT
        await until(lambda: len(beta.received) == total, "all arrive")
        for kind, first in ((Ping, 0), (Chunk, 1)):
            got = [one.message.number for one in beta.received if isinstance(one.message, kind)]
            assert got == list(range(first, total, 2))

    run(body)


def test_c1_a_stranger_is_refused(run: Run) -> None:
    """C1: an unknown key; counted, named with its address, and told so."""

    async def body() -> None:
        stranger = new_key_pair()
        its_roster = Roster([NodeEntry("alpha", stranger.public), NodeEntry("beta", KEYS["beta"].public)])
        beta = Node("beta").bind()
        alpha = Node("alpha", stranger, its_roster)
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(1)))
        await until(lambda: beta.count(STRANGER.name, "denied") > 0, "the key is denied")
        assert beta.refused[0][:2] == ("127.0.0.1", "denied")
        assert stranger.public in beta.refused[0][2]
        assert not beta.received
        await until(lambda: alpha.link("beta") is LinkState.DENIED, "the stranger learns of it")
        assert alpha.count("beta", "sent") == 0
        assert alpha.transport.waiting("beta", Lane.CONTROL) == 1

    run(body)


def test_c2_a_peer_with_another_key_than_expected_gets_nothing(run: Run) -> None:
    """C2: and the retries are few: on each lane one when it is opened and when that is done anew, then 4 a second."""

    async def body() -> None:
        loop = asyncio.get_running_loop()
        beta = Node("beta").bind()
        began = loop.time()
        wrong = Roster([NodeEntry("alpha", KEYS["alpha"].public), NodeEntry("beta", KEYS["gamma"].public)])
        alpha = Node("alpha", roster=wrong)
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(1)))
        assert alpha.link("beta") is LinkState.CONNECTING
        await until(lambda: alpha.link("beta") is LinkState.REFUSED, "the key is found to be another")
        await until(lambda: beta.count(STRANGER.name, "handshake") >= 12, "it is tried again", 20)
        tried = beta.count(STRANGER.name, "handshake")
        lasted_ms = (loop.time() - began) * 1_000  # read after them: whoever is slow allows more, and causes none
        opened = 1 + lasted_ms / limits.reconnect_ms_max
        assert tried <= 2 * (opened + lasted_ms / limits.reconnect_ms_min)
        assert not beta.received
        assert alpha.count("beta", "sent") == 0

    run(body)


def test_c3_a_plain_client_is_refused(run: Run) -> None:
    """C3: plain to CURVE; what is counted says which side is plain."""

    async def body() -> None:
        beta = Node("beta").bind()
        with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.linger = 0
            with watching(dealer, zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL) as cut_off:
                dealer.connect(f"tcp://{beta.transport.control_address}")
                dealer.send(dumps([]))
                await until(cut_off, "the plain client is cut off")
        await until(lambda: beta.count(STRANGER.name, "handshake") > 0, "it is counted")
        assert "plain" in beta.refused[0][2]
        assert not beta.received
        assert not beta.transport.ledger.totals().get("alpha")

    run(body)


def test_c4_an_impostor_is_counted_and_dropped(run: Run) -> None:
    """C4: an enrolled node claims to be another."""

    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(1), "gamma"))
        alpha.transport.send("beta", tell(Ping(2), "alpha"))
        await until(lambda: len(beta.received) == 1, "the honest one of the same frame arrives")
        assert beta.numbers() == [2]
        assert beta.count("alpha", "impostor") == 1
        assert beta.refused == [("alpha", "impostor", "alpha@7 sent an envelope from gamma@7")]

    run(body)


def test_bad_frames_are_counted_by_reason_and_spoil_nothing_else(run: Run) -> None:
    async def body() -> None:
        beta = Node("beta").bind()
        good = envelopes.encode(tell(Ping(5)), make_codec(), 0)
        unknown = dumps([1, 0, "@x", "alpha@7", 0, 0, "", "test.unheard_of", 1, {}])
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(b"\xff garbage")
            dealer.send(b"\x81\xc1\x00")
            dealer.send(b"")
            dealer.send(dumps({"no": "array"}))
            dealer.send(b"\x84" + unknown + dumps("text") + good + dumps([1]))
            dealer.send(raw_frame("alpha@7", 7, 1, unknown, dumps("text"), good, dumps([1])))
            dealer.send(raw_frame("alpha@7", 7, 5, good))
            dealer.send(raw_frame("alpha@7", 7, 6, envelopes.encode(tell(Chunk(6)), make_codec(), 0)))
            await until(lambda: beta.count("alpha", "wrong_lane") == 1, "the last frame is handled")
        assert beta.numbers() == [5, 5]
        assert beta.transport.ledger.totals() == {
            "alpha": {"malformed": 6, "truncated": 1, "unregistered": 1, "received": 2, "wrong_lane": 1}
        }
        assert sum(1 for _, reason, _ in beta.refused if reason == "malformed") == 6

    run(body)


def test_a_frame_over_the_lanes_limit_is_refused_at_the_sender_and_cut_off_at_the_receiver(run: Run) -> None:
    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        too_much = "x" * limits.frame_control_bytes_max
        assert alpha.transport.send("beta", tell(Ping(1, too_much))) is SendOutcome.TOO_LARGE
        assert alpha.count("beta", "too_large") == 1
        fits = "x" * (
            limits.frame_control_bytes_max - len(envelopes.encode(tell(Ping(1)), make_codec(), 0)) - HEAD_BYTES_MAX - 2
        )
        assert alpha.transport.send("beta", tell(Ping(1, fits))) is SendOutcome.SENT
        with zmq.Context() as context, raw_dealer(context, "gamma", beta) as dealer:
            dealer.send(b"\x00" * (limits.frame_control_bytes_max + 1))
            await until(lambda: beta.count("gamma", "too_large") == 1, "one byte too much is counted")
            with watching(dealer, zmq.EVENT_DISCONNECTED) as cut_off:
                dealer.send(b"\x00" * (limits.frame_control_bytes_max + 1_000))
                await until(cut_off, "the connection is dropped")
        await until(lambda: len(beta.received) == 1, "what fits arrives")

    run(body)


def test_sends_flow_again_after_a_peer_restarts(run: Run) -> None:
    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(1)))
        await until(lambda: beta.numbers() == [1], "the first arrives")
        address = beta.address
        lane = alpha.transport._peers["beta"].lanes[Lane.CONTROL]
        beta.close()
        await until(lambda: alpha.link("beta") is LinkState.LOST, "the loss is noticed")
        await until(lambda: not lane.socket.getsockopt(zmq.EVENTS), "nothing can be sent")
        alpha.transport.send("beta", tell(Ping(2)))
        again = Node("beta").bind(address.control, address.data)
        alpha.transport.send("beta", tell(Ping(3)))
        await until(lambda: again.numbers() == [2, 3], "both arrive at the new process")
        assert alpha.link("beta") is LinkState.UP
        alpha.transport.disconnect("beta")
        assert alpha.transport.peers() == ()

    run(body)


@pytest.mark.parametrize("woken_by", ["signal", "timer"])
def test_a_queue_leaves_once_the_peer_is_there(run: Run, monkeypatch: pytest.MonkeyPatch, woken_by: str) -> None:
    if woken_by == "signal":
        monkeypatch.setattr(limits, "lane_retry_ms", 3_600_000)

    async def body() -> None:
        alpha, address = Node("alpha"), PeerAddress("beta", free_address(), free_address())
        alpha.transport.connect(address)
        if woken_by == "timer":
            for lane in alpha.transport._peers["beta"].lanes.values():
                asyncio.get_running_loop().remove_reader(lane.socket.fileno())
        for number in range(3_000):
            alpha.transport.send("beta", tell(Chunk(number, b"x" * 1_000)))
        beta = Node("beta").bind(address.control, address.data)
        await until(lambda: beta.numbers() == list(range(3_000)), "all arrive in order")

    run(body)


def test_bytes_that_have_left_count_no_more(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "lane_queue_bytes_max", 30_000)

    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        for turn in range(1, 6):
            for _ in range(2):
                assert alpha.transport.send("beta", tell(Chunk(1, b"x" * 14_000))) is SendOutcome.SENT
            assert alpha.transport.send("beta", tell(Chunk(1, b"x" * 14_000))) is SendOutcome.PEER_BUSY
            await until(lambda turn=turn: len(beta.received) == 2 * turn, "the two arrive")

    run(body)


def test_a_peer_that_is_not_there_makes_the_lane_busy_and_memory_stays_bounded(run: Run) -> None:
    async def body() -> None:
        alpha = Node("alpha")
        alpha.transport.connect(PeerAddress("beta", free_address(), free_address()))
        outcomes = {alpha.transport.send("beta", tell(Ping(n))) for n in range(limits.lane_high_water_messages)}
        assert outcomes == {SendOutcome.SENT}
        assert alpha.transport.send("beta", tell(Ping(0))) is SendOutcome.PEER_BUSY
        assert alpha.transport.send("beta", tell(Chunk(0))) is SendOutcome.SENT, "the lanes are independent"
        large = tell(Chunk(0, b"x" * 1_000_000))
        taken = 0
        while alpha.transport.send("beta", large) is SendOutcome.SENT:
            taken += 1
            assert taken * 1_000_000 <= limits.lane_queue_bytes_max
        assert taken == limits.lane_queue_bytes_max // 1_000_100
        assert alpha.count("beta", "peer_busy") == 2
        alpha.transport.disconnect("beta")
        assert alpha.count("beta", "disconnected") == limits.lane_high_water_messages + 1 + taken
        assert alpha.transport.send("beta", tell(Ping(1))) is SendOutcome.NO_ROUTE

    run(body)


def test_b1_a_peer_that_stops_reading_makes_the_lane_busy(run: Run) -> None:
    """B1: the data lane is full, asks are told PEER_BUSY, each counted by peer and type; the control lane goes on."""

    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Chunk(0)))
        alpha.transport.send("beta", tell(Ping(0)))
        await until(lambda: len(beta.received) == 2, "both ways are open")
        for door in beta.transport._listener._doors.values():
            door.reader.close()
        message = tell(Chunk(1, b"x" * 100_000))

        def busy() -> bool:
            return any(alpha.transport.send("beta", message) is SendOutcome.PEER_BUSY for _ in range(20))

        await until(busy, "the lane is full")
        sent = alpha.count("beta", "sent")
        assert sent < 4 * limits.lane_frames_max, "ZeroMQ takes no more than its high-water marks and the sockets hold"
        sent_control = alpha.count("beta", "sent")
        assert alpha.transport.send("beta", tell(Ping(1))) is SendOutcome.SENT
        await until(lambda: alpha.count("beta", "sent") > sent_control, "the control lane goes on")
        unsent = {row.type: row.unsent for row in alpha.transport.ledger.rows("beta") if row.unsent}
        assert unsent.keys() == {"test.chunk"}
        assert unsent["test.chunk"].keys() == {"peer_busy"}

    run(body)


def test_c5_a_revoked_key_is_disconnected_at_once_and_others_lose_nothing(run: Run) -> None:
    """C5: the live connection ends with the roster change, sending or not; the other peers' connections stay."""

    async def body() -> None:
        alpha, beta, gamma = (Node(name).bind() for name in KEYS)
        for node in (alpha, gamma):
            node.transport.connect(beta.address)
            beta.transport.connect(node.address)
        for node in (alpha, gamma):
            node.transport.send("beta", tell(Ping(1), node.name))
            node.transport.send("beta", tell(Chunk(1), node.name))
        await until(lambda: len(beta.received) == 4, "the ways are open")
        greeted = [one.greetings for one in gamma.transport._peers["beta"].lanes.values()]
        began = asyncio.get_running_loop().time()
        beta.transport.set_roster(Roster([entry for entry in ROSTER.nodes if entry.name != "alpha"]))
        for number in range(2, 200):
            gamma.transport.send("beta", tell(Ping(number), "gamma"))
        assert beta.transport.send("alpha", tell(Ping(2), "beta")) is SendOutcome.NO_ROUTE
        await until(lambda: alpha.link("beta") is LinkState.DENIED, "it is cut off, and told that it is denied", 3)
        for lane in alpha.transport._peers["beta"].lanes.values():
            assert not lane.open
        assert asyncio.get_running_loop().time() - began < 3
        await until(lambda: beta.numbers()[4:] == list(range(2, 200)), "the other's messages arrive in order")
        assert [one.greetings for one in gamma.transport._peers["beta"].lanes.values()] == greeted, "on one connection"
        assert beta.count("gamma", "lost") == 0
        beta.transport.set_roster(ROSTER)
        assert beta.transport.send("alpha", tell(Ping(4), "beta")) is SendOutcome.SENT
        alpha.transport.send("beta", tell(Ping(500)))
        await until(lambda: alpha.numbers() == [4] and beta.numbers()[-1] == 500, "both ways work again")

    run(body)


def test_a_receiver_that_fails_loses_only_its_own_envelope(run: Run) -> None:
    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        failures: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))

        def receive(envelope: Envelope) -> None:
            beta.received.append(envelope)
            if len(beta.received) == 1:
                raise RuntimeError("planted")

        beta.transport._receive = receive
        alpha.transport.connect(beta.address)
        for number in range(3):
            alpha.transport.send("beta", tell(Ping(number)))
        await until(lambda: beta.numbers() == [0, 1, 2], "the others arrive")
        assert [str(one["exception"]) for one in failures] == ["planted"]
        assert beta.count("alpha", "receive_failed") == 1

    run(body)


def test_an_unregistered_type_raises_whether_or_not_there_is_a_route(run: Run) -> None:
    async def body() -> None:
        alpha = Node("alpha")
        with pytest.raises(LocalProtocolError, match="not in the wire registry"):
            alpha.transport.send("nobody", Envelope(tell(Ping(1)).kind, tell(Ping(1)).to, NodeId("alpha", 7), Other(1)))
        assert alpha.transport.send("nobody", tell(Ping(1))) is SendOutcome.NO_ROUTE
        assert alpha.transport.ledger.totals() == {STRANGER.name: {"no_route": 1}}

    run(body)


class Other(Ping, frozen=True):
    pass


def test_a_port_in_use_is_named(run: Run) -> None:
    async def body() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(OperatingError, match=rf"port {port} .* in use") as caught:
                Node("alpha").bind(ANY, f"127.0.0.1:{port}")
        assert caught.value.code == "E-PORT-IN-USE"
        assert str(port) in caught.value.hint

    run(body)


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:99999", "127.0.0.1:x", "127.0.0.1:-1"]
)
def test_a_malformed_address_is_refused(run: Run, address: str) -> None:
    async def body() -> None:
        with pytest.raises(BadInput, match="not host:port"):
            Node("alpha").transport.connect(PeerAddress("beta", ANY, address))

    run(body)


def test_plain_tcp_only_on_loopback_and_only_when_asked_for(run: Run) -> None:
    async def body() -> None:
        alpha, beta = Node("alpha", insecure=True).bind(), Node("beta", insecure=True).bind()
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(1)))
        unlisted = Node("unlisted", KEYS["gamma"], insecure=True)
        unlisted.transport.connect(beta.address)
        unlisted.transport.send("beta", tell(Ping(2), "unlisted"))
        await until(lambda: beta.count(STRANGER.name, "impostor") > 0, "a name outside the roster is refused")
        await until(lambda: beta.numbers() == [1], "the listed one's arrives")
        for address in ("0.0.0.0:0", "192.0.2.1:5000", "example.org:5000", "[::]:0"):
            with pytest.raises(BadInput, match="loopback"):
                Node("gamma", insecure=True).bind(address)
            with pytest.raises(BadInput, match="loopback"):
                alpha.transport.connect(PeerAddress("gamma", address, ANY))
        with pytest.raises(OperatingError, match="insecure = true"):
            ZmqTransport(
                "cluster",
                NodeId("alpha", 1),
                None,
                ROSTER,
                make_codec(),
                SystemClock(),
                lambda _: None,
                lambda *_: None,
            )

    run(body)


@pytest.mark.parametrize("use", list(Use))
def test_socket_options_are_what_the_table_says(use: Use) -> None:
    with new_context() as context, new_socket(context, use) as one:
        assert one.getsockopt(zmq.TYPE) == (zmq.ROUTER if use in ROUTERS else zmq.DEALER)
        assert {option: one.getsockopt(option) for option, _ in SOCKET_OPTIONS[use]} == dict(SOCKET_OPTIONS[use])
        wanted = {zmq.LINGER, zmq.HANDSHAKE_IVL, zmq.TCP_MAXRT, zmq.TCP_KEEPALIVE, zmq.TCP_KEEPALIVE_IDLE, zmq.SNDHWM,
                  zmq.RCVHWM, zmq.MAXMSGSIZE}  # fmt: skip
        assert wanted <= dict(SOCKET_OPTIONS[use]).keys()
        assert all(value > 0 for _, value in SOCKET_OPTIONS[use]), "0 and -1 mean unbounded"
        if use in ROUTERS:
            with pytest.raises(zmq.ZMQError) as caught:  # ROUTER_MANDATORY can't be read back, but seen at work
                one.send_multipart([b"nobody", b"x"])
            assert caught.value.errno == zmq.EHOSTUNREACH
        else:
            assert dict(SOCKET_OPTIONS[use])[zmq.RECONNECT_IVL_MAX] == limits.reconnect_ms_max
