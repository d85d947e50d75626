"""Pre-scan of CBOR bytes: refuses, before anything is built, what the decoder would have to build to notice.

One iterative pass over the heads (RFC 8949, section 3) counts items and depth and checks every claimed length against
the bytes that are left. Refused: tags (so bignums, too), indefinite lengths, floats that are not finite, undefined and
unassigned simple values, map keys that are not text, duplicate keys, trailing bytes. UTF-8 is left to the decoder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NoReturn

from node.core import limits
from node.core.errors import RemoteProtocolError

_Pairs = tuple[tuple[int, Callable[[bytes], object]], ...]


def _pairs(firsts: bytes, seconds: bytes) -> _Pairs:
    """Each first byte, and a search for it with one of the second bytes behind it. A pattern that begins with one byte
    is searched for as quickly as memory is read; one that begins with a set of them took longer than all of encoding.
    """
    return tuple((first, re.compile(re.escape(bytes((first,))) + seconds).search) for first in firsts)


_NOT_FINITE: Final = _pairs(b"\xfb\xfa\xf9", rb"[\x7c-\x7f\xfc-\xff]")
_BIGNUMS: Final = _pairs(b"\xc2\xc3", rb"[\x40-\x5b]")
_UNSENDABLE: Final = (*_NOT_FINITE, *_BIGNUMS)


def maybe_not_finite(data: bytes) -> bool:
    """Whether two bytes stand in `data` that every float which is not finite holds.

    Others may hold them too, so that then a scan must decide. Text never does: 0xf9 and above don't occur in UTF-8.
    """
    return _any(data, _NOT_FINITE)


def maybe_unsendable(data: bytes) -> bool:
    """Those, or two that every bignum holds: in UTF-8, 0xc2 and 0xc3 are followed by 0x80 or more."""
    return _any(data, _UNSENDABLE)


def _any(data: bytes, pairs: _Pairs) -> bool:
    for first, search in pairs:  # noqa: SIM110 - a generator would take longer than this does
        if first in data and search(data):
            return True
    return False


_TEXT: Final = 3
_MAP: Final = 5
_LOOK: Final = -1


def _skip_of(head: int) -> int:
    """Bytes that follow a head whose item needs no further look: integers, short strings, false, true, null, and the
    containers that are empty."""
    major, info = head >> 5, head & 0x1F
    if major <= 1 and info <= 27:
        return 0 if info < 24 else 1 << (info - 24)
    if major in (2, _TEXT) and info < 24:
        return info
    return 0 if head in (0x80, 0xA0, 0xF4, 0xF5, 0xF6) else _LOOK


_SKIP: Final = tuple(_skip_of(head) for head in range(256))


def scan(data: bytes, *, items_max: int = limits.frame_items_max, depth_max: int = limits.frame_depth_max) -> None:
    """Raises RemoteProtocolError when `data` is not one document within the limits.

    `items_max` counts every item of the document, keys and containers included; `depth_max` counts nested
    containers that are not empty.
    """
    size = len(data)
    at, items, left = 0, 1, 1
    keys: set[bytes] | None = None
    outer: list[tuple[int, set[bytes] | None]] = []
    try:
        while True:
            while left == 0:
                if not outer:
                    if at != size:
                        _refuse("malformed", "trailing bytes" if at < size else "truncated")
                    return
                left, keys = outer.pop()
            left -= 1
            if keys is not None:
                at = _key(data, at, size, keys)
            head = data[at]
            at += 1
            skip = _SKIP[head]
            if skip >= 0:
                at += skip
            elif 0x80 <= head <= 0xBF:
                count, at = _claim(data, at, head)
                is_map = head >> 5 == _MAP
                items += count * 2 if is_map else count
                if count and len(outer) >= depth_max:
                    _refuse("too_deep", f"more than {depth_max} nested containers")
                if count > size - at:
                    _refuse("truncated", f"{count} items are claimed, {size - at} bytes are left")
                if items > items_max:
                    _refuse("too_many_items", f"more than {items_max}")
                outer.append((left, keys))
                left, keys = count, set() if is_map else None
            else:
                at = _long(data, at, size, head)
    except IndexError:
        _refuse("truncated", f"the document goes on after its {size} bytes")


def _key(data: bytes, at: int, size: int, keys: set[bytes]) -> int:
    """Takes a map's key; the position behind it."""
    head = data[at]
    if head >> 5 != _TEXT:
        _refuse("malformed", "a map key is not text")
    length, start = _claim(data, at + 1, head)
    end = start + length
    if end > size:
        _refuse("truncated", f"a key claims {length} bytes, {size - start} are left")
    before = len(keys)
    keys.add(data[start:end])
    if len(keys) == before:
        _refuse("malformed", "a map key stands twice")
    return end


def _long(data: bytes, at: int, size: int, head: int) -> int:
    """Takes a string with a length of its own, or a float; refuses everything else. The position behind it."""
    major = head >> 5
    if major in (2, _TEXT):
        length, start = _claim(data, at, head)
        if length > size - start:
            _refuse("truncated", f"a string claims {length} bytes, {size - start} are left")
        return start + length
    if major == 6:
        _refuse("malformed", "a tag")
    if head == 0xF9:
        finite, end = data[at] & 0x7C != 0x7C, at + 2
    elif head == 0xFA:
        finite, end = data[at] & 0x7F != 0x7F or data[at + 1] < 0x80, at + 4
    elif head == 0xFB:
        finite, end = data[at] & 0x7F != 0x7F or data[at + 1] < 0xF0, at + 8
    else:
        _refuse("malformed", f"head 0x{head:02x}")
    if not finite:
        _refuse("malformed", "a float that is not finite")
    return end


def _claim(data: bytes, at: int, head: int) -> tuple[int, int]:
    """The count or length that a head claims, and the position behind the head; raises IndexError when cut short."""
    info = head & 0x1F
    if info < 24:
        return info, at
    if info > 27:
        _refuse("malformed", "an indefinite length" if info == 31 else f"head 0x{head:02x}")
    width = 1 << (info - 24)
    end = at + width
    if end > len(data):
        raise IndexError
    return int.from_bytes(data[at:end], "big"), end


def _refuse(reason: str, detail: str) -> NoReturn:
    raise RemoteProtocolError(reason, detail)
