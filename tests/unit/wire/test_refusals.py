"""Refusals of a listener and of its neighbours that no other test comes to: greetings that are not what they say they
are, what is read after its key is gone, who may ask the gate, what can't be bound or is too old to be safe."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import zmq
from wire_nodes import ANY, KEYS, ROSTER, Node, Run, raw_dealer, raw_frame
from wire_support import Ping, make_codec, tell, until, watching
from zmq.utils import z85

from node.core import limits
from node.core.clock import SystemClock
from node.core.errors import OperatingError
from node.core.ids import NodeId
from node.wire import envelope as envelopes
from node.wire.codec import Codec, dumps
from node.wire.connections_zmq import Connections
from node.wire.greeting import GREETINGS, PROTOCOLS, Greeter, Welcome
from node.wire.ledger import STRANGER
from node.wire.link_zmq import LinkState
from node.wire.port import PeerAddress, SendOutcome
from node.wire.registry import Lane, Registry, WireType
from node.wire.roster import KeyPair, Roster
from node.wire.transport_zmq import ZmqTransport
from node.wire.zmq_io import Gate, Reader
from node.wire.zmq_sockets import Use, bind, new_context, new_key_pair, new_socket, rebind

pytestmark = pytest.mark.parametrize("run", ["asyncio"], indirect=True)
LANES = pytest.mark.parametrize("lane", list(Lane))


def hello(name: str, to: str = "beta") -> bytes:
    return GREETINGS.encode(Greeter("cluster", NodeId(name, 7), make_codec().registry).hello(to))


async def answers(dealer: Any, count: int) -> list[Any]:
    """The messages that a raw connection is given, once there are so many."""
    got: list[Any] = []

    def arrived() -> bool:
        with contextlib.suppress(zmq.Again):
            while True:
                got.append(GREETINGS.decode(dealer.recv(zmq.NOBLOCK)))
        return len(got) >= count

    await until(arrived, f"{count} answers")
    return got


@LANES
def test_c4_who_greets_under_another_nodes_name_is_not_welcomed(run: Run, lane: Lane) -> None:
    """C4: an enrolled key; the name is one of the roster, or none of it. Under its own name it is welcome at once."""

    async def body() -> None:
        beta = Node("beta").bind()
        with zmq.Context() as context, raw_dealer(context, "alpha", beta, lane) as dealer:
            for name in ("gamma", "delta", "beta", "alpha"):
                dealer.send(hello(name))
            (only,) = await answers(dealer, 1)
        assert isinstance(only, Welcome)
        said = [detail for peer, reason, detail in beta.refused if (peer, reason) == ("alpha", "impostor")]
        assert said == [f"alpha greets as {name}@7" for name in ("gamma", "delta", "beta")]
        assert beta.transport.ledger.totals() == {"alpha": {"impostor": 3}}, "nothing is held against those it named"

    run(body)


def test_without_keys_a_name_that_is_not_in_the_roster_is_not_welcomed(run: Run) -> None:
    async def body() -> None:
        beta = Node("beta", insecure=True).bind()
        with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.linger = 0
            dealer.connect(f"tcp://{beta.transport.control_address}")
            dealer.send(hello("delta"))
            dealer.send(hello("gamma"))
            (only,) = await answers(dealer, 1)
        assert isinstance(only, Welcome)
        assert beta.refused == [(STRANGER.name, "impostor", "? greets as delta@7")]

    run(body)


def test_what_is_no_hello_gets_no_answer_and_is_counted(run: Run) -> None:
    """The two greetings that only a listener sends, one that nobody knows, and a Hello without its fields."""

    async def body() -> None:
        beta = Node("beta").bind()
        welcome = Welcome("cluster", NodeId("alpha", 7), PROTOCOLS, "0")
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(GREETINGS.encode(welcome))
            dealer.send(make_codec().encode(Ping(1)))
            dealer.send(dumps(["wire.hello", 1, {"cluster": "cluster"}]))
            dealer.send(hello("alpha"))
            (only,) = await answers(dealer, 1)
        assert isinstance(only, Welcome)
        assert beta.refused[0][1:] == ("malformed", "Welcome is no greeting")
        assert beta.transport.ledger.totals() == {"alpha": {"malformed": 1, "unregistered": 1, "invalid": 1}}

    run(body)


def test_what_was_read_after_its_key_was_revoked_is_refused_and_its_connection_ended(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C5: it had arrived before the roster changed. Ending the connection does not hang on its having been found."""

    async def body() -> None:
        beta = Node("beta").bind()
        door = beta.transport._listener._doors[Lane.CONTROL]
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(hello("alpha"))
            await answers(dealer, 1)
            with watching(dealer, zmq.EVENT_DISCONNECTED) as cut_off:
                dealer.send(raw_frame("alpha@7", 7, 1, envelopes.encode(tell(Ping(1)), make_codec(), 0)))
                assert door.router.poll(5_000), "it has arrived, and the loop has not run since"
                door.reader.wake()  # what was looked at is not signalled any more
                monkeypatch.setattr(Connections, "keep", lambda *_: 0)
                beta.transport.set_roster(Roster([entry for entry in ROSTER.nodes if entry.name != "alpha"]))
                await until(lambda: beta.count(STRANGER.name, "revoked") == 1, "it is counted")
                await until(cut_off, "its connection is ended")
        assert beta.refused[0][1:] == ("revoked", "the key of alpha is no longer in the roster")
        assert not beta.received

    run(body)


def test_a_greeting_that_can_not_be_answered_is_counted_and_others_are_welcome(run: Run) -> None:
    """Greetings come quicker than a connection takes the answers, of which it is given one at a time."""

    async def body() -> None:
        beta, gamma = Node("beta").bind(), Node("gamma").bind()
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:

            def unanswered() -> bool:
                for _ in range(20):
                    dealer.send(hello("alpha"))
                return beta.count("alpha", "greeting_unanswered") > 0

            await until(unanswered, "one is not answered")
            assert all(isinstance(one, Welcome) for one in await answers(dealer, 1))
            gamma.transport.connect(beta.address)
            gamma.transport.send("beta", tell(Ping(1), "gamma"))
            await until(lambda: beta.numbers() == [1], "another is welcome")
        assert ("alpha", "greeting_unanswered", "its connection takes no answer; it will ask again") in beta.refused

    run(body)


def test_an_answer_that_is_none_keeps_messages_back_and_is_told(run: Run) -> None:
    """From the other side: what listens under the expected key answers with what can't be read."""

    async def body() -> None:
        alpha = Node("alpha")
        for lie, why in ((b"\xff", "malformed"), (hello("beta", "alpha"), "")):
            alpha.refused.clear()
            with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
                router.linger = 0
                router.curve_server = True
                router.curve_secretkey = KEYS["beta"].secret.encode()
                port = router.bind_to_random_port("tcp://127.0.0.1")
                alpha.transport.connect(PeerAddress("beta", f"127.0.0.1:{port}", f"127.0.0.1:{port}"))
                alpha.transport.send("beta", tell(Ping(1)))
                greeted: list[bytes] = []

                def asked(router: Any = router, greeted: list[bytes] = greeted) -> bool:
                    if router.poll(0):
                        greeted[:] = router.recv_multipart()
                    return bool(greeted)

                await until(asked, "it is greeted")
                router.send_multipart([greeted[0], lie])
                if why:
                    await until(lambda: bool(alpha.refused), "it is told")
                    assert alpha.refused[0][:2] == ("beta", "unwelcome")
                    assert why in alpha.refused[0][2]
                assert alpha.count("beta", "sent") == 0
                assert alpha.transport.waiting("beta", Lane.CONTROL) >= 1

    run(body)


KNOWN = z85.decode(KEYS["alpha"].public)
ZAP = {
    "a key that is known": (b"node", b"CURVE", [KNOWN], b"200"),
    "a key that is not": (b"node", b"CURVE", [z85.decode(KEYS["gamma"].public)], b"400"),
    "of another domain": (b"admin", b"CURVE", [KNOWN], b"400"),
    "of no domain": (b"", b"CURVE", [KNOWN], b"400"),
    "a password": (b"node", b"PLAIN", [b"alpha", b"secret"], b"400"),
    "another mechanism": (b"node", b"GSSAPI", [KNOWN], b"400"),
    "no mechanism": (b"node", b"NULL", [], b"400"),
    "two keys": (b"node", b"CURVE", [KNOWN, KNOWN], b"400"),
}


@pytest.mark.parametrize(("domain", "mechanism", "credentials", "status"), ZAP.values(), ids=ZAP)
def test_the_gate_lets_in_known_keys_of_its_own_domain_alone(
    run: Run, domain: bytes, mechanism: bytes, credentials: list[bytes], status: bytes
) -> None:
    """As the library asks it (ZeroMQ RFC 27): another socket of the context must not let anybody in by this gate."""

    async def body() -> None:
        denied: list[tuple[str, str]] = []
        with zmq.Context() as context:
            users = {KEYS["alpha"].public: "alpha"}
            gate = Gate(context, "node", users.get, lambda *who: denied.append(who))
            with context.socket(zmq.REQ) as library:
                library.linger = 0
                library.connect("inproc://zeromq.zap.01")
                library.send_multipart([b"1.0", b"7", domain, b"127.0.0.9", b"", mechanism, *credentials])
                await until(lambda: bool(library.poll(0)), "it answers")
                version, sequence, given, _, user, metadata = library.recv_multipart()
            assert (version, sequence, given) == (b"1.0", b"7", status)
            if status == b"200":
                assert user == b"alpha"
                assert KEYS["alpha"].public.encode() in metadata
            else:
                assert (user, metadata) == (b"", b"")
                await until(lambda: [who for who, _ in denied] == ["127.0.0.9"], "it is told of whom")
            gate.close()

    run(body)


def test_a_message_of_fewer_or_more_parts_than_a_reader_takes_is_surplus(run: Run) -> None:
    async def body() -> None:
        taken: list[list[bytes]] = []
        surplus: list[bytes] = []
        with zmq.Context() as context, context.socket(zmq.PAIR) as near, context.socket(zmq.PAIR) as far:
            near.bind("inproc://parts")
            far.connect("inproc://parts")
            reader = Reader(
                near,
                2,
                SystemClock(),
                lambda frames: taken.append([one.bytes for one in frames]),
                lambda frame: surplus.append(frame.bytes),
            )
            for parts in ([b"alone"], [b"a", b"1"], [b"b", b"2", b"3", b"4"], [b"c", b"5"]):
                far.send_multipart(parts)
            await until(lambda: taken[-1:] == [[b"c", b"5"]], "all are read")
            reader.close()
        assert taken == [[b"a", b"1"], [b"c", b"5"]]
        assert surplus == [b"alone", b"2"]

    run(body)


def test_connections_that_came_and_went_are_forgotten(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> None:
        monkeypatch.setattr(limits, "connections_proven_max", 4)
        beta = Node("beta").bind()
        proven = beta.transport._listener._doors[Lane.CONTROL].connections._proven
        connections = beta.transport._listener._doors[Lane.CONTROL].connections
        with zmq.Context() as context, raw_dealer(context, "gamma", beta) as stays:
            stays.send(hello("gamma"))
            await answers(stays, 1)
            (kept,) = proven
            for _ in range(12):
                with raw_dealer(context, "alpha", beta) as dealer:
                    dealer.send(hello("alpha"))
                    await answers(dealer, 1)
                await until(lambda: len(list(connections._live())) == 1, "it has gone")
                assert len(connections._proven) <= 5
            assert kept in connections._proven, "one that is up is not forgotten"

    run(body)


def test_a_library_that_strangers_could_crash_is_not_used(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zmq, "zmq_version_info", lambda: (4, 3, 2))
    with pytest.raises(OperatingError, match="older than") as caught:
        new_context()
    assert caught.value.code == "E-ZMQ-VERSION"
    monkeypatch.undo()
    monkeypatch.setattr(zmq, "has", lambda what: what != "curve")
    with pytest.raises(OperatingError, match="CURVE"):
        new_context()


def test_an_address_that_is_not_this_hosts_is_named(run: Run) -> None:
    with zmq.Context() as context, new_socket(context, Use.CONTROL_IN) as socket:
        with pytest.raises(OperatingError, match=r"192\.0\.2\.1:0") as caught:
            bind(socket, "192.0.2.1:0")
        assert caught.value.code == "E-BIND"


def test_an_address_that_somebody_took_meanwhile_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between letting go of it and listening anew, as when a key is rotated."""
    monkeypatch.setattr("node.wire.zmq_sockets._REBIND_ATTEMPTS", 3)
    with zmq.Context() as context, new_socket(context, Use.CONTROL_IN) as ours, context.socket(zmq.ROUTER) as theirs:
        address = bind(theirs, ANY)
        monkeypatch.setattr(type(ours), "unbind", lambda *_: None)
        with pytest.raises(OperatingError, match="in use") as caught:
            rebind(ours, address)
        assert caught.value.code == "E-PORT-IN-USE"


@pytest.mark.parametrize("where", ["start", "show"])
def test_halves_of_two_key_pairs_are_refused_before_anybody_is_shown_them(run: Run, where: str) -> None:
    async def body() -> None:
        mixed = KeyPair(new_key_pair().public, KEYS["beta"].secret)
        if where == "start":
            with pytest.raises(OperatingError) as caught:
                Node("beta", mixed)
        else:
            beta, alpha = Node("beta").bind(), Node("alpha").bind()
            with pytest.raises(OperatingError) as caught:
                beta.transport.show(mixed)
            alpha.transport.connect(beta.address)
            alpha.transport.send("beta", tell(Ping(1)))
            await until(lambda: beta.numbers() == [1], "it is reached by the key that it has")
        assert caught.value.code == "E-KEY-FILE"

    run(body)


def test_a_node_without_keys_must_say_so(run: Run) -> None:
    async def body() -> None:
        codec = make_codec()
        with pytest.raises(OperatingError, match="insecure") as caught:
            ZmqTransport("c", NodeId("beta", 7), None, ROSTER, codec, SystemClock(), print, print)
        assert caught.value.code == "E-KEY-FILE"

    run(body)


def test_a_peer_that_is_not_in_the_roster_is_told_of_and_connected_once_it_is(run: Run) -> None:
    async def body() -> None:
        beta = Node("beta").bind()
        alpha = Node("alpha", roster=Roster([entry for entry in ROSTER.nodes if entry.name != "beta"]))
        alpha.transport.connect(beta.address)
        assert alpha.refused == [("beta", "not_in_roster", "it is connected once the roster knows it")]
        assert alpha.transport.send("beta", tell(Ping(1))) is SendOutcome.NO_ROUTE
        alpha.transport.set_roster(ROSTER)
        alpha.transport.send("beta", tell(Ping(2)))
        await until(lambda: beta.numbers() == [2], "it is connected")

    run(body)


@pytest.mark.parametrize("connected", [False, True], ids=["no way back", "no word for it"])
def test_a_refusal_that_can_not_be_sent_is_not_tried(run: Run, connected: bool) -> None:
    """Where there is no way back to an asker, or this release has no type for refusals; what follows is read."""

    async def body() -> None:
        registry = Registry()
        registry.register(WireType("test.ping", 1, Ping, Lane.CONTROL))
        alpha, beta = Node("alpha").bind(), Node("beta", codec=Codec(registry) if connected else None).bind()
        if connected:
            beta.transport.connect(alpha.address)
            await until(lambda: beta.link("alpha") is LinkState.UP, "there is a way back")
        ask = dumps([1, 1, "/x", "alpha@9", 41, 0, "", "test.unheard_of", 1, {}])
        good = dumps([1, 0, "/x", "alpha@9", 0, 0, "", "test.ping", 1, {"number": 5}])
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(raw_frame("alpha@9", 7, 1, ask))
            dealer.send(raw_frame("alpha@9", 7, 2, good))
            await until(lambda: beta.numbers() == [5], "the next one is read")
        assert beta.transport.ledger.totals() == {"alpha": {"unregistered": 1, "received": 1}}
        assert not alpha.received

    run(body)


@pytest.mark.parametrize(
    ("sender", "receiver", "first"),
    [
        ("alpha@x", 7, 1),
        ("alpha@", 7, 1),
        ("alpha@-7", 7, 1),
        ("alpha@7", 7, 0),
        ("alpha@7", 7, -1),
        ("alpha@7", 7, 1 << 63),
        ("alpha@7", 7, True),
        ("alpha@7", 7, 1.0),
        ("alpha@7", "7", 1),
        (7, 7, 1),
    ],
)
def test_a_frame_whose_head_is_none_is_refused_and_the_next_is_taken(
    run: Run, sender: object, receiver: object, first: object
) -> None:
    async def body() -> None:
        beta = Node("beta").bind()
        ping = envelopes.encode(tell(Ping(1)), make_codec(), 0)
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(b"\x84" + dumps(sender) + dumps(receiver) + dumps(first) + ping)
            dealer.send(raw_frame("alpha@7", 7, 1, ping))
            await until(lambda: beta.numbers() == [1], "the good one arrives")
        assert beta.transport.ledger.totals() == {"alpha": {"malformed": 1, "received": 1}}

    run(body)
