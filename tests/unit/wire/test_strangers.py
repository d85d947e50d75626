"""Floods and half-open connections of strangers, and the public bug reports S13, S14, S15, S18 in short."""

from __future__ import annotations

import asyncio
import random
import socket
import tracemalloc
from pathlib import Path

import pytest
import zmq
from wire_hostile import REFUSED
from wire_nodes import KEYS, Node, Run, raw_dealer, raw_frame
from wire_support import Chunk, Ping, tell, until, watching

from node.core import limits
from node.core.clock import MS, SystemClock
from node.core.ids import NodeId, ServiceRef
from node.wire.envelope import Envelope, Kind
from node.wire.ledger import STRANGER
from node.wire.registry import Lane
from node.wire.zmq_sockets import new_key_pair, use_curve

pytestmark = pytest.mark.parametrize("run", ["asyncio"], indirect=True)


def test_c3_a_node_with_keys_gets_nowhere_at_a_plain_one(run: Run) -> None:
    """C3, the other way round: CURVE to plain."""

    async def body() -> None:
        plain, keyed = Node("beta", insecure=True).bind(), Node("alpha")
        keyed.transport.connect(plain.address)
        keyed.transport.send("beta", tell(Ping(1)))
        await until(lambda: plain.count(STRANGER.name, "handshake") > 0, "it is counted")
        assert "plain" in plain.refused[0][2]
        assert not plain.received
        assert keyed.count("beta", "sent") == 0

    run(body)


def test_c7_half_open_connections_keep_nobody_out(run: Run) -> None:
    """C7: fifty connections that say nothing; a node gets in beside them, and they are dropped."""

    async def body() -> None:
        beta, alpha = Node("beta").bind(), Node("alpha").bind()
        host, port = beta.transport.control_address.split(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(50)]
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(1)))
        await until(lambda: beta.numbers() == [1], "the node gets in")
        assert beta.count(STRANGER.name, "handshake") == 0, "while they still hang"
        async with asyncio.timeout(limits.handshake_ms_max / 1000 + 5):
            for reader, writer in silent:
                while await reader.read(1_024):
                    pass
                writer.close()
        await until(lambda: beta.count(STRANGER.name, "handshake") == 50, "each is counted")

    run(body)


def test_c8_s14_a_flood_of_denied_keys_is_bounded(run: Run) -> None:
    """C8 S14: 300 handshakes under unknown keys; memory, rows and a node's messages stay as they were."""

    async def body() -> None:
        beta, alpha = Node("beta").bind(), Node("alpha").bind()
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell(Ping(0)))
        await until(lambda: beta.numbers() == [0], "the way is open")
        beta.refused.clear()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        with zmq.Context() as context:
            for number in range(300):
                pair = new_key_pair()
                with context.socket(zmq.DEALER) as dealer:
                    dealer.linger = 0
                    use_curve(dealer, pair, KEYS["beta"].public)
                    with watching(dealer, zmq.EVENT_HANDSHAKE_FAILED_AUTH) as denied:
                        dealer.connect(f"tcp://{beta.transport.control_address}")
                        await until(denied, "it is denied")
                if number % 50 == 0:
                    alpha.transport.send("beta", tell(Ping(number + 1)))
        await until(lambda: beta.count(STRANGER.name, "denied") == 300, "each is counted")
        await until(lambda: beta.numbers() == [0, 1, 51, 101, 151, 201, 251], "a node's messages arrive")
        beta.refused.clear()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert after - before < 1 << 20
        assert len(beta.transport.ledger.rows()) == 2
        assert beta.count(STRANGER.name, "handshake") == 0, "a denied key is counted once"

    run(body)


def test_s13_a_peer_that_restarts_again_and_again_is_reached_each_time(run: Run) -> None:
    """S13: twelve restarts at random points while both sides send; after each, both ways work again by themselves (what
    was given to a connection that was ending is lost), nothing is counted as sent to an incarnation that it did not
    reach."""

    async def body() -> None:
        rng = random.Random(13)
        alpha = Node("alpha").bind()
        beta = Node("beta", incarnation=1).bind()
        address = beta.address
        alpha.transport.connect(address)
        for incarnation in range(2, 14):
            beta.transport.connect(alpha.address)
            for number in range(rng.randrange(20)):
                alpha.transport.send("beta", tell(Ping(number)))
                await asyncio.sleep(0)
            alpha.received.clear()
            beta.transport.send(
                "alpha", Envelope(Kind.TELL, ServiceRef("alpha", "/x"), beta.transport._me, Ping(incarnation))
            )

            def reached(number: int = 1_000 + incarnation, to: Node = beta) -> bool:
                alpha.transport.send("beta", tell(Ping(number)))
                return number in to.numbers()

            def adds_up(to: Node = beta) -> bool:
                sent = {row.peer: row.sent for row in alpha.transport.ledger.rows("beta") if row.sent}
                return sent[to.transport._me] == to.transport.ledger.totals()["alpha"]["received"]

            await until(reached, "it is reached")
            await until(lambda n=incarnation: alpha.numbers() == [n], "and reaches the other")  # type: ignore[misc]
            await until(adds_up, "what was sent to it has reached it")
            beta.close()
            beta = Node("beta", incarnation=incarnation).bind(address.control, address.data)

    run(body)


def test_s15_asks_with_tiny_deadlines_each_have_one_outcome(run: Run) -> None:
    """S15: 2,000 asks with numbers of their own to a peer that answers each after a while, or at once; no frame is lost
    to a reader that gave up, and every ask is handled once."""

    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta").bind()
        alpha.transport.connect(beta.address)
        beta.transport.connect(alpha.address)
        loop, rng = asyncio.get_running_loop(), random.Random(15)
        handled: list[int] = []

        def answer(ask: Envelope) -> None:
            handled.append(ask.correlation)
            reply = Envelope(Kind.REPLY, ServiceRef("alpha", "/ask"), NodeId("beta", 7), ask.message, ask.correlation)
            loop.call_later(rng.random() * 0.002, beta.transport.send, "alpha", reply)

        beta.transport._receive = answer
        for number in range(1, 2_001):
            deadline_ns = SystemClock().mono_ns() + MS
            ask = Envelope(Kind.ASK, ServiceRef("beta", "/x"), NodeId("alpha", 7), Chunk(number), number, deadline_ns)
            alpha.transport.send("beta", ask)
            if number % 25 == 0:
                await asyncio.sleep(0)
        await until(lambda: len(alpha.received) == 2_000, "each is answered, if late", 20)
        assert sorted(handled) == list(range(1, 2_001))
        assert sorted(one.correlation for one in alpha.received) == handled

    run(body)


def test_s18_hostile_frames_by_the_thousand_leave_nothing_behind(run: Run) -> None:
    """S18: an enrolled peer sends the whole table W1 to W12 ten times over; the control lane's messages of another peer
    arrive meanwhile, each bad frame is counted, memory returns."""

    async def body() -> None:
        beta, gamma = Node("beta").bind(), Node("gamma").bind()
        gamma.transport.connect(beta.address)
        fitting = [data for _, data, _ in REFUSED if len(data) <= limits.frame_data_bytes_max]
        with zmq.Context() as context, raw_dealer(context, "alpha", beta, Lane.DATA) as dealer:
            dealer.sndhwm = 0
            tracemalloc.start()
            before, _ = tracemalloc.get_traced_memory()
            for time in range(10):
                for data in fitting:
                    dealer.send(data)
                gamma.transport.send("beta", tell(Ping(time), "gamma"))
                await until(lambda time=time: beta.numbers()[-1:] == [time], "the other's arrives")  # type: ignore[misc]
            wanted = 10 * len(fitting)
            await until(lambda: sum(beta.transport.ledger.totals()["alpha"].values()) == wanted, "all are counted", 30)
            dealer.send(raw_frame("alpha@7", 7, 1))
        beta.refused.clear()
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert after - before < 4 << 20
        assert beta.numbers() == list(range(10))

    run(body)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_silent_connection_is_ended_when_a_key_is_revoked(run: Run) -> None:
    """C5: one that has said nothing has shown no key that would let it stay."""

    async def body() -> None:
        beta = Node("beta").bind()
        host, port = beta.transport.control_address.split(":")
        with socket.create_connection((host, int(port))) as silent:
            silent.settimeout(1)
            loop = asyncio.get_running_loop()
            assert await loop.run_in_executor(None, silent.recv, 1_024), "its greeting of bytes"
            beta.transport.set_roster(type(beta.transport._roster)(beta.transport._roster.nodes[1:]))
            while await loop.run_in_executor(None, silent.recv, 1_024):
                pass
        before = descriptors()
        for _ in range(20):
            for door in beta.transport._listener._doors.values():
                door.connections.keep(lambda key: False)
        assert descriptors() <= before, "looking at descriptors leaves none behind"

    run(body)
