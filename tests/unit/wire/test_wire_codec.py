"""The registry's rules, the codec and the envelope, down to the bytes."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_support import Chunk, Ping, make_codec, tell

from node.core.clock import MS
from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.core.ids import EntityRef, NodeId, Ref, ServiceRef, SingletonRef
from node.wire import envelope as envelopes
from node.wire import frames
from node.wire.codec import Codec, dumps, loads
from node.wire.envelope import Envelope, Kind
from node.wire.registry import Lane, Registry, WireType

CODEC = make_codec()


class Stranger(msgspec.Struct, frozen=True):
    x: int = 0


class PingWithMore(msgspec.Struct, frozen=True):
    number: int
    note: str = ""
    colour: str = "blue"


def registry_with(*types: WireType) -> Registry:
    registry = Registry()
    for one in types:
        registry.register(one)
    return registry


def test_golden_envelope() -> None:
    envelope = Envelope(
        Kind.ASK, EntityRef("site", "example.org"), NodeId("alpha", 7), Ping(258, "hé"), 9, 1_500 * MS, "t-1"
    )
    expected = (
        "8a"  # array of 10
        "01"  # protocol 1
        "01"  # ask
        "73736974657c6578616d706c652e6f72677c3533"  # 'site|example.org|53'
        "67616c7068614037"  # 'alpha@7'
        "09"  # correlation
        "1901f4"  # 500 ms left
        "63742d31"  # 't-1'
        "69746573742e70696e67"  # 'test.ping'
        "01"  # version 1
        "a2" "666e756d626572" "190102" "646e6f7465" "6368c3a9"  # {'number': 258, 'note': 'hé'}
    )  # fmt: skip
    data = envelopes.encode(envelope, CODEC, 1_000 * MS)
    assert data.hex() == expected
    assert envelopes.decode(loads(data), CODEC, "beta", 3_000 * MS) == Envelope(
        Kind.ASK, EntityRef("site", "example.org"), NodeId("alpha", 7), Ping(258, "hé"), 9, 3_500 * MS, "t-1"
    )


@pytest.mark.parametrize(
    ("to", "arrives_as"),
    [
        (EntityRef("site", "a|b"), EntityRef("site", "a|b")),
        (SingletonRef("sites"), SingletonRef("sites")),
        (ServiceRef("beta", "/membership"), ServiceRef("beta", "/membership")),
    ],
)
def test_every_kind_of_reference_arrives(to: Ref, arrives_as: Ref) -> None:
    data = envelopes.encode(Envelope(Kind.TELL, to, NodeId("alpha", 1), Ping(1)), CODEC, 0)
    arrived = envelopes.decode(loads(data), CODEC, "beta", 0).to
    assert arrived == arrives_as
    assert type(arrived) is type(arrives_as)


def test_equal_looking_references_of_two_kinds_are_kept_apart() -> None:
    for to in (EntityRef("site", "/x"), ServiceRef("site", "/x"), EntityRef("site", "/x")):
        data = envelopes.encode(Envelope(Kind.TELL, to, NodeId("alpha", 1), Ping(1)), CODEC, 0)
        assert type(envelopes.decode(loads(data), CODEC, "beta", 0).to) is type(to)


def test_a_separator_in_an_entity_type_is_refused_at_the_sender() -> None:
    with pytest.raises(LocalProtocolError, match="separator"):
        envelopes.encode(tell(Ping(1), to=EntityRef("si|te", "x")), CODEC, 0)


@given(st.integers(1, 10_000), st.integers(0, 20_000), st.integers(0, 1 << 62))
def test_a_deadline_keeps_its_distance(left_ms: int, sender_ms: int, receiver_ns: int) -> None:
    deadline_ns = (sender_ms + left_ms) * MS
    sent = Envelope(Kind.ASK, SingletonRef("s"), NodeId("a", 1), Ping(1), 1, deadline_ns)
    arrived = envelopes.decode(loads(envelopes.encode(sent, CODEC, sender_ms * MS)), CODEC, "b", receiver_ns)
    assert arrived.deadline_ns - receiver_ns == left_ms * MS


GOOD: list[Any] = [1, 0, "site|example.org|53", "alpha@7", 0, 0, "", "test.ping", 1, {"number": 1}]


@pytest.mark.parametrize(
    ("position", "value", "reason"),
    [
        (0, 2, "protocol"),
        (1, 4, "malformed"),
        (1, -1, "malformed"),
        (1, True, "malformed"),
        (1, "0", "malformed"),
        (2, "site|example.org|999", "malformed"),
        (2, "site|example.org", "malformed"),
        (2, "|x|1", "malformed"),
        (2, 5, "malformed"),
        (3, "alpha", "malformed"),
        (3, "Alpha@7", "malformed"),
        (3, "alpha@-7", "malformed"),
        (3, "alpha@\N{SUPERSCRIPT TWO}", "malformed"),
        (4, -1, "malformed"),
        (4, 1 << 63, "malformed"),
        (5, 1.5, "malformed"),
        (6, None, "malformed"),
        (7, "test.unheard_of", "unregistered"),
        (7, 7, "malformed"),
        (8, "1", "malformed"),
        (9, [1], "malformed"),
        (9, {}, "invalid"),
        (9, {"number": "1"}, "invalid"),
        (9, {"number": 1.5}, "invalid"),
        (9, {"number": True}, "invalid"),
        (9, {"number": 1, "note": None}, "invalid"),
    ],
)
def test_one_wrong_element_is_refused(position: int, value: Any, reason: str) -> None:
    assert envelopes.decode(GOOD, CODEC, "beta", 0).message == Ping(1)
    with pytest.raises(RemoteProtocolError) as caught:
        envelopes.decode([*GOOD[:position], value, *GOOD[position + 1 :]], CODEC, "beta", 0)
    assert caught.value.reason == reason


@pytest.mark.parametrize("document", [None, 5, {}, GOOD[:9], [*GOOD, 1, 1]])
def test_what_is_no_envelope_is_refused(document: Any) -> None:
    with pytest.raises(RemoteProtocolError, match="ten elements"):
        envelopes.decode(document, CODEC, "beta", 0)


@pytest.mark.parametrize("failed", [-1, 1.5, "1", None, True, 1 << 63])
def test_how_often_it_failed_is_a_count(failed: Any) -> None:
    assert envelopes.decode([*GOOD, 4], CODEC, "beta", 0).deliveries == 4
    with pytest.raises(RemoteProtocolError) as caught:
        envelopes.decode([*GOOD, failed], CODEC, "beta", 0)
    assert caught.value.reason == "malformed"


def test_an_unregistered_type_raises_at_the_sender_naming_it() -> None:
    with pytest.raises(LocalProtocolError, match=r"test_wire_codec\.Stranger"):
        envelopes.encode(tell(Stranger()), CODEC, 0)


@pytest.mark.parametrize(
    "message",
    [
        Chunk(1, score=float("nan")),
        Chunk(1, score=float("-inf")),
        Ping(1 << 64),
        Ping(-(1 << 64) - 1),
        Ping(1, "\ud800"),
    ],
    ids=["nan", "-inf", "2^64", "-2^64-1", "surrogate"],
)
def test_what_a_receiver_would_refuse_raises_at_the_sender(message: msgspec.Struct) -> None:
    with pytest.raises(LocalProtocolError):
        CODEC.encode(message)


@given(st.builds(Chunk, st.integers(-(1 << 63), (1 << 63) - 1), st.binary(max_size=50),
                 st.floats(allow_nan=False, allow_infinity=False), st.lists(st.text()).map(tuple)))  # fmt: skip
def test_messages_survive(message: Chunk) -> None:
    assert CODEC.decode(CODEC.encode(message)) == message


def test_a_newer_peers_fields_are_ignored_and_an_older_peers_take_their_defaults() -> None:
    newer = Codec(registry_with(WireType("test.ping", 2, PingWithMore, Lane.CONTROL)))
    assert CODEC.decode(newer.encode(PingWithMore(1, "n", "red"))) == Ping(1, "n")
    assert newer.decode(CODEC.encode(Ping(1, "n"))) == PingWithMore(1, "n", "blue")


def test_a_former_field_name_is_understood() -> None:
    assert CODEC.message_of("test.chunk", 1, {"number": 1, "payload": b"x"}) == Chunk(1, b"x")


@pytest.mark.parametrize("name", ["ping", "Test.ping", "test.", "test.ping!", "", "test ping"])
def test_a_malformed_wire_name_is_refused(name: str) -> None:
    with pytest.raises(LocalProtocolError, match="wire name"):
        Registry().register(WireType(name, 1, Ping, Lane.DATA))


def test_a_name_or_a_class_is_registered_once() -> None:
    registry = registry_with(WireType("test.ping", 1, Ping, Lane.DATA))
    with pytest.raises(LocalProtocolError, match="twice"):
        registry.register(WireType("test.ping", 1, Chunk, Lane.DATA))
    with pytest.raises(LocalProtocolError, match="twice"):
        registry.register(WireType("test.pong", 1, Ping, Lane.DATA))
    assert [one.name for one in registry] == ["test.ping"]


def test_the_fingerprint_tells_releases_apart() -> None:
    prints = {
        registry_with(one).fingerprint()
        for one in (
            WireType("test.ping", 1, Ping, Lane.DATA),
            WireType("test.ping", 2, Ping, Lane.DATA),
            WireType("test.ping", 1, Ping, Lane.CONTROL),
            WireType("test.ping", 1, PingWithMore, Lane.DATA),
            WireType("test.pong", 1, Ping, Lane.DATA),
        )
    }
    assert len(prints) == 5
    order = [WireType("test.ping", 1, Ping, Lane.DATA), WireType("test.chunk", 1, Chunk, Lane.DATA)]
    assert registry_with(*order).fingerprint() == registry_with(*reversed(order)).fingerprint()


@given(st.lists(st.binary(max_size=60), max_size=80), st.integers(20, 700))
def test_frames_keep_order_and_size(payloads: list[bytes], bytes_max: int) -> None:
    queue = deque(frames.Queued(f"test.n{n}", dumps(payload)) for n, payload in enumerate(payloads))
    unpacked: list[Any] = []
    names: list[str] = []
    sender = frames.Sender(NodeId("alpha", 7))
    while queue:
        packed = frames.pack_next(queue, bytes_max)
        frame = sender.frame(packed, 70_000, len(names) + 1)
        assert len(frame) <= bytes_max or len(packed.names) == 1
        head, *elements = frames.head_of(loads(frame)), *loads(frame)[3:]
        assert head == ("alpha@7", 70_000, len(names) + 1)
        assert len(elements) == len(packed.names)
        assert sum(len(dumps(element)) for element in elements) == packed.payload_bytes
        unpacked += elements
        names += packed.names
    assert unpacked == payloads
    assert names == [f"test.n{n}" for n in range(len(payloads))]


@pytest.mark.parametrize(("frame", "reason"), [(b"\x80" * 65, "too_large"), (b"\xa0", "malformed"), (b"", "truncated")])
def test_a_frame_that_is_none_is_refused(frame: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        frames.unpack(frame, 64)
    assert caught.value.reason == reason
