"""The hostile inputs W1 to W18 (reliability.md A.5), sent by an enrolled peer to a whole transport.

Each: refused, counted under the peer with its reason, without effect; the connection stays unless the row says
otherwise; a good message that comes later arrives.
"""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
from collections import Counter
from typing import Any

import pytest
import zmq
from wire_hostile import REFUSED
from wire_nodes import KEYS, Node, Run, raw_dealer, raw_frame
from wire_support import Chunk, Order, Owned, Ping, make_codec, tell, until, watching

from node.core import limits
from node.core.errors import RemoteProtocolError
from node.core.ids import NodeId, ServiceRef
from node.wire import envelope as envelopes
from node.wire import frames
from node.wire.codec import dumps
from node.wire.envelope import Envelope, Kind
from node.wire.ledger import STRANGER
from node.wire.nack import Nack
from node.wire.registry import Lane
from node.wire.roster import NodeEntry, Roster

pytestmark = pytest.mark.parametrize("run", ["asyncio"], indirect=True)
MEMORY_BYTES_MAX = 4 << 20


def encoded(message: Any, sender: str = "alpha", kind: Kind = Kind.TELL, correlation: int = 0) -> bytes:
    to = ServiceRef("beta", "/x")
    return envelopes.encode(Envelope(kind, to, NodeId(sender, 7), message, correlation), make_codec(), 0)


def good(first: int, sender: str = "alpha") -> bytes:
    return raw_frame(f"{sender}@7", 7, first, encoded(Ping(first), sender))


def counts(node: Node, peer: str) -> dict[str, int]:
    return node.transport.ledger.totals().get(peer, {})


def test_w1_to_w12_hostile_documents_are_refused_and_the_connection_stays(run: Run) -> None:
    """W1 W2 W3 W4 W5 W6 W7 W8 W9 W10 W11 W12: every document of the table, one after the other on one connection."""

    async def body() -> None:
        beta = Node("beta").bind()
        with zmq.Context() as context, raw_dealer(context, "alpha", beta, Lane.DATA) as dealer:
            dealer.sndhwm = 0
            with watching(dealer, zmq.EVENT_DISCONNECTED) as cut_off:
                fitting = [(data, reason) for _, data, reason in REFUSED if len(data) <= limits.frame_data_bytes_max]
                assert len(fitting) > 100
                for data, _ in fitting:
                    dealer.send(data)
                dealer.send(raw_frame("alpha@7", 7, 1, encoded(Chunk(1))))
                await until(lambda: beta.numbers() == [1], "the good one arrives behind them", 20)
                assert not cut_off()
        assert counts(beta, "alpha") == {**Counter(reason for _, reason in fitting), "received": 1}
        assert beta.transport.ledger.totals().keys() == {"alpha"}

    run(body)


@pytest.mark.parametrize(("name", "data"), [(name, data) for name, data, _ in REFUSED if len(data) > 10_000])
def test_large_hostile_documents_cost_little_memory(run: Run, name: str, data: bytes) -> None:
    async def body() -> None:
        tracemalloc.start()
        try:
            with pytest.raises(RemoteProtocolError):
                frames.unpack(data, 4 << 20)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < MEMORY_BYTES_MAX, name

    run(body)


def test_w13_a_frame_over_the_limit_disconnects_and_shows_as_lost_from_that_peer(run: Run) -> None:
    """W13: the connection ends; the peer connects again, works, and the number of its next message tells the loss."""

    async def body() -> None:
        beta = Node("beta").bind()
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(good(1))
            await until(lambda: beta.numbers() == [1], "the way is open")
            with watching(dealer, zmq.EVENT_DISCONNECTED) as cut_off:
                dealer.send(raw_frame("alpha@7", 7, 2, dumps("x" * (limits.frame_control_bytes_max + 1_000))))
                await until(cut_off, "the connection is dropped")
            dealer.send(good(3))
            await until(lambda: beta.numbers() == [1, 3], "the peer is back")
        assert counts(beta, "alpha") == {"received": 2, "lost": 1}

    run(body)


def test_w14_a_message_of_many_parts_disconnects_and_costs_nobody_else(run: Run) -> None:
    """W14: several parts, or none; the connection ends, the peer connects again and works."""

    async def body() -> None:
        beta, gamma = Node("beta").bind(), Node("gamma").bind()
        gamma.transport.connect(beta.address)
        gamma.transport.send("beta", tell(Ping(100), "gamma"))
        await until(lambda: beta.numbers() == [100], "the other peer's way is open")
        for parts in (2, 200_001):
            with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
                with watching(dealer, zmq.EVENT_DISCONNECTED) as cut_off:
                    dealer.send_multipart([good(1)] * parts)
                    await until(cut_off, "the connection is dropped")
                dealer.send(good(parts))
                await until(lambda parts=parts: beta.numbers()[-1:] == [parts], "the peer is back")  # type: ignore[misc]
        gamma.transport.send("beta", tell(Ping(101), "gamma"))
        await until(lambda: beta.numbers() == [100, 2, 200_001, 101], "the other peer notices nothing")
        assert counts(beta, "alpha")["multipart"] == 2
        assert gamma.transport._peers["beta"].lanes[Lane.CONTROL].greetings == 1
        assert counts(beta, "gamma") == {"received": 2}

    run(body)


GARBAGE = {"zeros": b"\x00" * 64, "http": b"GET / HTTP/1.1\r\n\r\n", "tls": b"\x16\x03\x01\x02\x00\x01" * 20}


@pytest.mark.parametrize("said", GARBAGE.values(), ids=GARBAGE)
def test_w15_what_does_not_speak_the_protocol_is_closed_and_counted(run: Run, said: bytes) -> None:
    """W15: garbage, HTTP, a TLS hello."""

    async def body() -> None:
        beta, alpha = Node("beta").bind(), Node("alpha").bind()
        host, port = beta.transport.control_address.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(said)
        async with asyncio.timeout(5 + limits.handshake_ms_max / 1000):
            with contextlib.suppress(ConnectionError):
                while await reader.read(1_024):
                    pass
        writer.close()
        await until(lambda: beta.count(STRANGER.name, "handshake") == 1, "it is counted")
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(1)))
        await until(lambda: beta.numbers() == [1], "a node still gets in")

    run(body)


def body_of(name: str, version: Any, fields: Any) -> bytes:
    return dumps([1, 0, "/x", "alpha@7", 0, 0, "", name, version, fields])


W16: list[tuple[str, bytes, str]] = [
    ("unregistered", body_of("test.unheard_of", 1, {}), "unregistered"),
    ("protocol", dumps([2, 0, "/x", "alpha@7", 0, 0, "", "test.ping", 1, {"number": 1}]), "protocol"),
    ("version of another kind", body_of("test.ping", "1", {"number": 1}), "malformed"),
    ("missing", body_of("test.ping", 1, {}), "invalid"),
    ("wrong type", body_of("test.ping", 1, {"number": "1"}), "invalid"),
    ("float for integer", body_of("test.ping", 1, {"number": 1.5}), "invalid"),
    ("body is no map", body_of("test.ping", 1, [1]), "malformed"),
    ("kind out of range", dumps([1, 9, "/x", "alpha@7", 0, 0, "", "test.ping", 1, {"number": 1}]), "malformed"),
    ("shard of another", dumps([1, 0, "site|x|0", "alpha@7", 0, 0, "", "test.ping", 1, {"number": 1}]), "malformed"),
]


def test_w16_messages_that_are_not_ours_are_refused_one_by_one(run: Run) -> None:
    """W16: unregistered, wrong version, a field missing, of the wrong type, out of range; a field more is no fault."""

    async def body() -> None:
        beta = Node("beta").bind()
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(raw_frame("alpha@7", 7, 1, *(data for _, data, _ in W16), encoded(Ping(1))))
            dealer.send(raw_frame("alpha@7", 7, 11, body_of("test.ping", 9, {"number": 2, "of_later": [1]})))
            await until(lambda: beta.numbers() == [1, 2], "the good one of the frame, and one of a later release")
        assert counts(beta, "alpha") == {**Counter(reason for _, _, reason in W16), "received": 2}

    run(body)


def test_an_ask_that_is_refused_is_told_so_once_for_a_frame(run: Run) -> None:
    """W16: a reply is owed to asks alone, as far as they can be read, and never to a reply or a refusal."""

    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        beta.transport.connect(alpha.address)
        asks = [dumps([1, 1, "/x", "alpha@9", n, 0, "", "test.unheard_of", 1, {}]) for n in (41, 42)]
        odd: list[Any] = [
            [1, 0, "/x", "alpha@9", 43, 0, "", "test.unheard_of", 1, {}],  # a tell
            [1, 2, "/x", "alpha@9", 44, 0, "", "test.unheard_of", 1, {}],  # a reply
            [1, 3, "/x", "alpha@9", 45, 0, "", "test.unheard_of", 1, {}],  # a rejection
            [1, True, "/x", "alpha@9", 46, 0, "", "test.unheard_of", 1, {}],
            [1, 1, "/x", "gamma@9", 47, 0, "", "test.unheard_of", 1, {}],  # somebody else's
            [1, 1, "/x", "alpha@9", 0, 0, "", "test.unheard_of", 1, {}],  # no number
            [1, 1, "/x", "alpha@9", -1, 0, "", "test.unheard_of", 1, {}],
            [1, 0, "/ask", "alpha@9", 0, 0, "", "wire.nack", 1, {"refusals": "none"}],  # a refusal
            "no envelope",
        ]
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(raw_frame("alpha@9", 7, 1, *asks, *map(dumps, odd)))
            await until(lambda: len(alpha.received) == 1, "the asker is told")
            dealer.send(raw_frame("alpha@9", 7, 12, *map(dumps, odd)))
            last = [1, 1, "/x", "alpha@9", 50, 0, "", "test.ping", 1, {}]
            dealer.send(raw_frame("alpha@9", 7, 21, dumps(last)))
            await until(lambda: len(alpha.received) == 2, "the next one that is owed an answer gets it")
        told = [[(r.correlation, r.reason) for r in one.message.refusals] for one in alpha.received]  # type: ignore[attr-defined]
        assert all(isinstance(one.message, Nack) and one.kind is Kind.TELL for one in alpha.received)
        assert told == [[(41, "unregistered"), (42, "unregistered")], [(50, "invalid")]]

    run(body)


def test_w17_a_frame_that_comes_again_is_refused(run: Run) -> None:
    """W17: the same once more, of an older incarnation, for an older incarnation of the receiver, by another peer."""

    async def body() -> None:
        beta = Node("beta").bind()
        older = raw_frame("alpha@6", 7, 1, encoded(Ping(60)).replace(b"alpha@7", b"alpha@6"))
        with zmq.Context() as context, raw_dealer(context, "alpha", beta) as dealer:
            dealer.send(older)
            for first in (1, 2, 3):
                dealer.send(good(first))
            dealer.send(good(2))
            dealer.send(older)
            dealer.send(raw_frame("alpha@7", 6, 4, encoded(Ping(4))))
            dealer.send(good(4))
            await until(lambda: beta.numbers()[-1:] == [4], "the next new one arrives")
            with raw_dealer(context, "gamma", beta) as other:
                other.send(good(5))
                other.send(good(1, "gamma"))
                await until(lambda: beta.numbers()[-1:] == [1], "another peer's own arrives")
        assert beta.numbers() == [60, 1, 2, 3, 4, 1]
        assert counts(beta, "alpha") == {"received": 5, "replayed": 2, "other_incarnation": 1}
        assert counts(beta, "gamma") == {"received": 1, "impostor": 1}

    run(body)


def test_w18_what_a_peer_may_not_send_is_refused(run: Run) -> None:
    """W18: the wrong lane, an operator's type from a peer, an entity host's from a crawler."""

    async def body() -> None:
        roles = {"alpha": ("crawler",), "beta": ("entity",), "gamma": ("entity", "api")}
        roster = Roster([NodeEntry(name, KEYS[name].public, of) for name, of in roles.items()])
        beta = Node("beta", roster=roster).bind()
        with zmq.Context() as context:
            for peer in ("alpha", "gamma"):
                with raw_dealer(context, peer, beta) as dealer:
                    messages = (Chunk(1), Order(2), Owned(3), Ping(4))
                    dealer.send(raw_frame(f"{peer}@7", 7, 1, *(encoded(one, peer) for one in messages)))
                    await until(lambda peer=peer: counts(beta, peer).get("received", 0) > 0, "the good one")  # type: ignore[misc]
        assert beta.numbers() == [4, 3, 4]
        assert counts(beta, "alpha") == {"wrong_lane": 1, "not_permitted": 2, "received": 1}
        assert counts(beta, "gamma") == {"wrong_lane": 1, "not_permitted": 1, "received": 2}
        details = {detail for who, reason, detail in beta.refused if reason == "not_permitted"}
        assert details == {"test.order is for operators alone", "test.owned is for entity"}

    run(body)
