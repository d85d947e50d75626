"""Hostile documents by their ids in the fault catalogue (reliability.md A.5), each with the reason of its refusal."""

from __future__ import annotations

import struct

import cbor2

from node.wire.codec import dumps


def head(major: int, value: int) -> bytes:
    if value < 24:
        return bytes([major << 5 | value])
    for info, width in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if value < 1 << 8 * width:
            return bytes([major << 5 | info]) + value.to_bytes(width, "big")
    raise AssertionError(value)


def colliding_bignums(count: int) -> bytes:
    prime = (1 << 61) - 1  # hashes of integers are taken modulo it
    keys = b"".join(b"\xc2" + cbor2.dumps((i * prime << 64).to_bytes(20, "big")) + b"\x00" for i in range(1, count + 1))
    return head(5, count) + keys


DEEP = 100_000
REFUSED: list[tuple[str, bytes, str]] = [
    ("W1-arrays", b"\x81" * DEEP + b"\x00", "too_deep"),
    ("W1-maps", b"\xa1\x61a" * DEEP + b"\x00", "too_deep"),
    ("W1-tags", b"\xc6" * DEEP + b"\x00", "malformed"),
    ("W1-indefinite", b"\x9f" * DEEP, "malformed"),
    ("W1-33-arrays", b"\x81" * 33 + b"\x00", "too_deep"),
    ("W1-33-maps", b"\xa1\x61a" * 33 + b"\x00", "too_deep"),
    *[
        (f"W2-major{major}-{claim:x}", head(major, claim) + b"\x00" * 8, "truncated")
        for major in (2, 3, 4, 5)
        for claim in (100, 1 << 32, (1 << 63) - 1, (1 << 64) - 1)
    ],
    ("W3-empty-arrays", head(4, 1_048_000) + b"\x80" * 1_048_000, "too_many_items"),
    ("W3-nested", head(4, 20) + 20 * (head(4, 50_000) + b"\x80" * 50_000), "too_many_items"),
    ("W3-maps", head(5, 40_000) + b"".join(dumps(f"{i:05}") + b"\x00" for i in range(40_000)), "too_many_items"),
    ("W4-colliding-bignum-keys", colliding_bignums(20_000), "malformed"),
    ("W5-text", b"\x7f\x61a\xff", "malformed"),
    ("W5-bytes", b"\x5f\x41a\xff", "malformed"),
    ("W5-array", b"\x9f\x00\xff", "malformed"),
    ("W5-map", b"\xbf\x61a\x00\xff", "malformed"),
    ("W5-nested", b"\x81\x9f\x5f\xff\xff", "malformed"),
    ("W5-unterminated", b"\x9f\x00", "malformed"),
    ("W5-break-alone", b"\xff", "malformed"),
    ("W5-key", b"\xa1\x7f\x61a\xff\x00", "malformed"),
    *[
        (f"W6-{form}-{value}", prefix + struct.pack(form, value), "malformed")
        for prefix, form in ((b"\xf9", "!e"), (b"\xfa", "!f"), (b"\xfb", "!d"))
        for value in (float("nan"), float("inf"), float("-inf"))
    ],
    ("W6-nan-payload", b"\xfb\x7f\xf0\x00\x00\x00\x00\x00\x01", "malformed"),
    ("W6-nan-deep", dumps({"a": [1, {"b": [2]}]})[:-1] + b"\xf9\x7e\x00", "malformed"),
    ("W6-nan-key", b"\xa1\xf9\x7e\x00\x00", "malformed"),
    ("W7-twice", b"\xa2\x61a\x00\x61a\x01", "malformed"),
    ("W7-longer-form", b"\xa2\x61a\x00\x78\x01a\x01", "malformed"),
    ("W7-int-key", b"\xa1\x01\x00", "malformed"),
    ("W7-float-key", b"\xa1\xf9\x3c\x00\x00", "malformed"),
    ("W7-true-key", b"\xa1\xf5\x00", "malformed"),
    ("W7-bytes-key", b"\xa1\x41a\x00", "malformed"),
    ("W7-inner-bytes-key", b"\x81\xa1\x61a\xa1\x41a\x00", "malformed"),
    ("W7-array-key", b"\xa1\x80\x00", "malformed"),
    *[
        (f"W8-tag{tag}", head(6, tag) + content, "malformed")
        for tag, content in (
            (0, dumps("2026-01-01T00:00:00Z")), (1, b"\x00"), (2, b"\x41\x01"), (3, b"\x41\x01"),
            (4, b"\x82\x1a\x3b\x9a\xca\x00\x01"), (5, b"\x82\x1a\x3b\x9a\xca\x00\x01"), (25, b"\x00"),
            (28, b"\x81\xd8\x1d\x00"), (29, b"\x00"), (30, b"\x82\x01\x00"), (35, b"\x61("), (36, b"\x61a"),
            (37, b"\x50" + b"0" * 16), (52, b"\x44abcd"), (54, b"\x50" + b"0" * 16), (100, b"\x00"),
            (256, b"\x81\x61a"), (258, b"\x81\x00"), (260, b"\x44abcd"), (261, b"\xa1\x44abcd\x18\x18"),
            (1004, dumps("2026-01-01")), (43000, b"\x82\x00\x01"), (55799, b"\x00"), ((1 << 64) - 1, b"\x00"),
        )
    ],
    ("W9-bignum", b"\xc2" + head(2, 1 << 20) + b"\xff" * (1 << 20), "malformed"),
    ("W9-small-bignum", b"\xc3\x49" + b"\xff" * 9, "malformed"),
    ("W10-trailing", b"\x00\x00", "malformed"),
    ("W10-trailing-big", dumps(b"x" * 20_000) + b"\x00", "malformed"),
    ("W10-empty", b"", "truncated"),
    ("W10-map-without-value", b"\xa1\x61a", "truncated"),
    ("W11-bad-utf8", b"\x62\xc3\x28", "malformed"),
    ("W11-surrogate", b"\x63\xed\xa0\x80", "malformed"),
    ("W12-undefined", b"\xf7", "malformed"),
    ("W12-undefined-inside", b"\xa1\x61a\x81\xf7", "malformed"),
    ("W12-simple-0", b"\xe0", "malformed"),
    ("W12-simple-19", b"\xf3", "malformed"),
    ("W12-simple-99", b"\xf8\x63", "malformed"),
    ("W12-simple-20-long", b"\xf8\x14", "malformed"),
    *[(f"W12-reserved-{major}-{info}", bytes([major << 5 | info]), "malformed")
      for major in range(8) for info in (28, 29, 30)],
]  # fmt: skip
