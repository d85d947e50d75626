"""Hostile CBOR is refused with a reason, by the quick way and by the scan alike (reliability.md A.5)."""

from __future__ import annotations

from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_hostile import REFUSED, head

from node.core import limits
from node.core.errors import RemoteProtocolError
from node.wire.codec import dumps, loads
from node.wire.scan import maybe_not_finite, maybe_unsendable, scan


@pytest.mark.parametrize(("data", "reason"), [pytest.param(d, r, id=i) for i, d, r in REFUSED])
def test_hostile_input_is_refused_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        loads(data)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [pytest.param(d, r, id=i) for i, d, r in REFUSED if not i.startswith(("W1-", "W2", "W3", "W10"))],
)
def test_hostile_input_is_refused_inside_a_large_frame_too(data: bytes, reason: str) -> None:
    frame = b"\x82" + dumps(b"\x00" * limits.frame_prescan_bytes_min) + data
    with pytest.raises(RemoteProtocolError) as caught:
        loads(frame)
    assert caught.value.reason == reason


@pytest.mark.parametrize("filler", [b"", b"\x00" * limits.frame_prescan_bytes_min], ids=["small", "large"])
def test_a_document_cut_short_anywhere_is_refused(filler: bytes) -> None:
    document = dumps([filler, 1, "text", {"key": [300, 70_000, 1 << 40, -1, 1.5, None, True]}, b"abc"])
    starts = range(len(document)) if not filler else range(len(filler) + 4, len(document))
    for end in starts:
        with pytest.raises(RemoteProtocolError):
            loads(document[:end])
    assert loads(document)[1:3] == [1, "text"]


def test_tags_of_every_size_are_refused_by_the_quick_way() -> None:
    for tag in (*range(1_100), *range(1_100, 1 << 16, 211), 43_000, 55_799):
        with pytest.raises(RemoteProtocolError, match="tag"):
            loads(head(6, tag) + b"\x80")


def test_limits_are_exact() -> None:
    at_depth = b"\x81" * limits.frame_depth_max + b"\x00"
    assert loads(at_depth) == cbor2.loads(at_depth)
    full = head(4, limits.frame_items_max - 1) + b"\x00" * (limits.frame_items_max - 1)
    assert len(loads(full)) == limits.frame_items_max - 1
    assert loads(b"\x83\x01\x02\x03", items_max=4) == [1, 2, 3]
    with pytest.raises(RemoteProtocolError, match="too_many_items"):
        loads(b"\x83\x01\x02\x03", items_max=3)


@pytest.mark.parametrize("small_below", [1 << 30, 0], ids=["quick", "scan"])
@pytest.mark.parametrize(
    "bits", ["f97bff", "f9fbff", "fa7f7fffff", "faff000000", "fb7fefffffffffffff", "fbffe0000000000000"]
)
def test_the_largest_finite_floats_of_each_width_are_accepted(bits: str, small_below: int) -> None:
    data = bytes.fromhex(bits)
    assert outcome(data, small_below) == ("value", cbor2.loads(data))


def test_the_bytes_of_floats_that_are_not_finite_and_of_bignums_are_found_wherever_they_stand() -> None:
    for first in range(256):
        for second in range(256):
            not_finite = first in (0xF9, 0xFA, 0xFB) and (0x7C <= second <= 0x7F or second >= 0xFC)
            bignum = first in (0xC2, 0xC3) and 0x40 <= second <= 0x5B
            for before in (b"", b"\x83", bytes((first,)), b"\xfb\x3f\xc3\xa4"):
                data = before + bytes((first, second))
                assert maybe_not_finite(data) is not_finite, data
                assert maybe_unsendable(data) is (not_finite or bignum), data


scalars = (
    st.none() | st.booleans() | st.integers(-(1 << 64), (1 << 64) - 1) | st.text(max_size=40)
    | st.floats(allow_nan=False, allow_infinity=False) | st.binary(max_size=40)
)  # fmt: skip
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=30) | st.dictionaries(st.text(max_size=30), inner, max_size=30),
    max_leaves=60,
)
fragments = st.sampled_from([data for _, data, _ in REFUSED if len(data) < 40]) | values.map(cbor2.dumps)
soup = st.recursive(
    fragments,
    lambda inner: (
        st.lists(inner, max_size=5).map(lambda parts: head(4, len(parts)) + b"".join(parts))
        | st.lists(st.tuples(fragments | st.sampled_from([b"\x61a", b"\x78\x01a"]), inner), max_size=4).map(
            lambda pairs: head(5, len(pairs)) + b"".join(k + v for k, v in pairs)
        )
        | st.tuples(inner, st.integers(0, 200), st.binary(min_size=1, max_size=3)).map(
            lambda t: t[0][: t[1]] + t[2] + t[0][t[1] + 1 :]
        )
    ),
    max_leaves=8,
)


def outcome(data: bytes, small_below: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "frame_prescan_bytes_min", small_below)
        try:
            return "value", loads(data)
        except RemoteProtocolError as error:
            return "refused", error.reason


@given(values)
def test_built_ins_survive_both_ways(value: Any) -> None:
    data = dumps(value)
    assert outcome(data, 1 << 30) == outcome(data, 0) == ("value", value)


@given(soup | st.binary(max_size=200))
def test_both_ways_agree_and_raise_nothing_else(data: bytes) -> None:
    assert outcome(data, 1 << 30) == outcome(data, 0)


@given(values, st.data())
def test_scan_accepts_what_the_encoder_makes(value: Any, data: st.DataObject) -> None:
    encoded = dumps(value)
    scan(encoded)
    extra = data.draw(st.binary(min_size=1, max_size=5))
    with pytest.raises(RemoteProtocolError):
        scan(encoded + extra)
