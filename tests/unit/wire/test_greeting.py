"""The handshake: readable refusals on both sides, and two releases that work together."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from wire_nodes import Node, Run
from wire_support import Ping, tell, until

from node.core.ids import EntityRef, NodeId
from node.wire.codec import Codec
from node.wire.envelope import Envelope, Kind
from node.wire.greeting import PROTOCOLS, Acquaintance, Greeter, Hello, Unwelcome, Welcome
from node.wire.link_zmq import LinkState
from node.wire.nack import Nack
from node.wire.port import PeerAddress, SendOutcome
from node.wire.registry import Lane, Registry, WireType


class OldReading(msgspec.Struct, frozen=True):
    number: int


class NewReading(msgspec.Struct, frozen=True):
    number: int
    unit: str = "kelvin"


class Forecast(msgspec.Struct, frozen=True):
    number: int


def release(*types: WireType) -> Codec:
    registry = Registry()
    for one in (*types, WireType("wire.nack", 1, Nack, Lane.DATA)):
        registry.register(one)
    return Codec(registry)


OLD = release(WireType("test.reading", 1, OldReading, Lane.CONTROL))
NEW = release(
    WireType("test.reading", 2, NewReading, Lane.CONTROL), WireType("test.forecast", 1, Forecast, Lane.CONTROL)
)


def tell_ping(number: int) -> Envelope:
    return tell(Ping(number))


def message(node: Node, what: Any, kind: Kind = Kind.TELL) -> Envelope:
    return Envelope(kind, EntityRef("site", "x"), NodeId(node.name, 7), what, 1 if kind is Kind.ASK else 0)


def test_two_releases_work_together(run: Run) -> None:
    """Version skew of one release: a field and a type more on one side."""

    async def body() -> None:
        old, new = Node("alpha", codec=OLD).bind(), Node("beta", codec=NEW).bind()
        old.transport.connect(new.address)
        new.transport.connect(old.address)
        old.transport.send("beta", message(old, OldReading(1)))
        new.transport.send("alpha", message(new, NewReading(2, "celsius")))
        await until(lambda: len(old.received) == len(new.received) == 1, "each reads the other's")
        assert new.received[0].message == NewReading(1, "kelvin")
        assert old.received[0].message == OldReading(2)
        outcome = new.transport.send("alpha", message(new, Forecast(3), Kind.ASK))
        assert outcome is SendOutcome.UNKNOWN_TYPE
        new.transport.send("alpha", message(new, NewReading(4)))
        await until(lambda: old.numbers() == [2, 4], "what it knows still arrives")
        (to_old,), (to_new,) = new.transport.peers(), old.transport.peers()
        assert (to_old.unknown_there, to_old.unknown_here) == (("test.forecast",), ())
        assert (to_new.unknown_there, to_new.unknown_here) == ((), ("test.forecast",))
        assert to_old.counts == {"sent": 2, "received": 1, "unknown_type": 1}
        assert to_new.counts == {"sent": 1, "received": 2}

    run(body)


def test_what_was_queued_before_the_releases_met_is_refused_on_arrival(run: Run) -> None:
    async def body() -> None:
        old, new = Node("alpha", codec=OLD).bind(), Node("beta", codec=NEW).bind()
        old.transport.connect(new.address)
        new.transport.connect(old.address)
        assert new.transport.send("alpha", message(new, Forecast(3), Kind.ASK)) is SendOutcome.SENT
        await until(lambda: len(new.received) == 1, "the asker is told")
        (refusal,) = new.received[0].message.refusals  # type: ignore[attr-defined]
        assert (refusal.correlation, refusal.reason, refusal.detail) == (1, "unregistered", "test.forecast")

    run(body)


def test_a_node_of_another_cluster_is_told_so_and_both_sides_say_it(run: Run) -> None:
    async def body() -> None:
        alpha, beta = Node("alpha", cluster="north").bind(), Node("beta", cluster="south").bind()
        alpha.transport.connect(beta.address)
        alpha.transport.send("beta", tell_ping(1))
        await until(lambda: alpha.link("beta") is LinkState.REFUSED, "it is refused")
        (report,) = alpha.transport.peers()
        assert report.why == "cluster.name is 'north' here and 'south' there"
        assert report.waiting_control == 1, "nothing has left"
        assert ("alpha", "unwelcome", "cluster.name is 'north' there and 'south' here") in beta.refused
        assert not beta.received

    run(body)


def test_an_address_where_another_node_of_the_roster_answers(run: Run) -> None:
    """Without keys nothing but the greeting can tell."""

    async def body() -> None:
        alpha, beta = Node("alpha", insecure=True).bind(), Node("beta", insecure=True).bind()
        alpha.transport.connect(PeerAddress("gamma", beta.address.control, beta.address.data))
        alpha.transport.send("gamma", tell_ping(1))
        await until(lambda: alpha.link("gamma") is LinkState.REFUSED, "it is refused")
        assert alpha.transport.peers()[0].why == "node.name is 'gamma' here and 'beta' there"
        assert not beta.received

    run(body)


def test_a_restarted_peer_is_met_anew(run: Run) -> None:
    async def body() -> None:
        alpha, beta = Node("alpha").bind(), Node("beta", incarnation=1).bind()
        address = beta.address
        alpha.transport.connect(address)
        for number in (1, 2, 3):
            alpha.transport.send("beta", tell_ping(number))
        await until(lambda: beta.numbers() == [1, 2, 3], "the first incarnation takes them")
        beta.close()
        await until(lambda: alpha.link("beta") is LinkState.LOST, "the loss is noticed")
        alpha.transport.send("beta", tell_ping(4))
        again = Node("beta", incarnation=2).bind(address.control, address.data)
        await until(lambda: again.numbers() == [4], "the second takes what waited")
        assert again.transport.ledger.totals() == {"alpha": {"received": 1}}, "numbered from 1 for it"
        rows = {(row.peer, row.type): row.sent for row in alpha.transport.ledger.rows("beta")}
        assert rows == {(NodeId("beta", 1), "test.ping"): 3, (NodeId("beta", 2), "test.ping"): 1}

    run(body)


ME, YOU = NodeId("alpha", 1), NodeId("beta", 2)


@pytest.mark.parametrize(
    ("change", "key", "there", "here"),
    [
        ({"cluster": "other"}, "cluster.name", "other", "c"),
        ({"to": "gamma"}, "node.name", "gamma", "beta"),
        ({"protocols": (7, 9)}, "protocol", "7-9", "1-1"),
    ],
)
def test_each_mismatch_names_the_key_and_both_values(change: dict[str, Any], key: str, there: str, here: str) -> None:
    listening = Greeter("c", YOU, OLD.registry)
    hello = Greeter("c", ME, OLD.registry).hello("beta")
    assert isinstance(listening.answer(hello), Welcome)
    assert listening.answer(msgspec.structs.replace(hello, **change)) == Unwelcome(key, there, here)


def test_the_side_that_connects_checks_the_answer_too() -> None:
    mine = Greeter("c", ME, NEW.registry)
    welcome = Welcome("c", YOU, PROTOCOLS, "0", ("test.reading", "test.gone", "wire.nack"))
    known = Acquaintance(YOU, frozenset({"test.forecast"}), frozenset({"test.gone"}))
    assert mine.meet(welcome, "beta") == known
    assert mine.meet(welcome, "gamma") == Unwelcome("node.name", "gamma", "beta")
    assert mine.meet(msgspec.structs.replace(welcome, cluster="d"), "beta") == Unwelcome("cluster.name", "c", "d")
    older = msgspec.structs.replace(welcome, protocols=(0, 0))
    assert mine.meet(older, "beta") == Unwelcome("protocol", "1-1", "0-0")
    assert isinstance(mine.hello("beta"), Hello)
