"""Whether every page that an LMDB file refers to lies within it, found by reading the file, never by mapping it.

A file may be shorter than its header says and still be whole: pages that one transaction takes from the end and gives
back before its commit are counted in the header but never written. So a short file is walked from its root; each page
number is compared with the length before the page is read. Nothing else of a page is trusted or checked.

The layout is that of LMDB 0.9 on 64-bit machines, in the machine's byte order (`lmdb.h` and `mdb.c` call the parts
MDB_meta, MDB_db, MDB_page and MDB_node).
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MAGIC: Final = 0xBEEFC0DE
_HEAD: Final = struct.Struct("=QHHHH")  # page number, padding, flags, end of the node pointers, start of the nodes
_OVERFLOW: Final = struct.Struct("=I")  # at byte 12 of an overflow page: how many pages it has
_META: Final = struct.Struct("=IIQQ48s48sQQ")  # magic, version, address, map size, two databases, last page, txn
_DB_ROOT: Final = struct.Struct("=Q")  # at byte 40 of a database's record
_NODE: Final = struct.Struct("=HHHH")  # low, high, flags, size of the key
_BRANCH, _LEAF, _BIG, _SUB = 1, 2, 1, 2
_NO_PAGE: Final = (1 << 64) - 1
_META_PAGES: Final = 2


class _Broken(Exception):
    """The walk met something that no whole file has."""


def missing_page(file: Path, page_bytes: int) -> str:
    """What is referred to but not there, or nothing. The caller holds the file's write lock. Raises OSError."""
    handle = os.open(file, os.O_RDONLY)
    try:
        _Walk(handle, page_bytes).run()
    except (_Broken, struct.error) as problem:
        return f"{file}: {problem}"
    finally:
        os.close(handle)
    return ""


class _Walk:
    def __init__(self, handle: int, page_bytes: int) -> None:
        self._handle = handle
        self._page_bytes = page_bytes
        self._pages = os.fstat(handle).st_size // page_bytes

    def run(self) -> None:
        roots = self._roots()
        seen: set[int] = set()
        while roots:
            number = roots.pop()
            if number in seen:
                raise _Broken(f"page {number} is referred to twice")
            seen.add(number)
            roots += self._children(number)

    def _read(self, number: int, count: int = 1) -> bytes:
        if not 0 <= number <= self._pages - count:
            raise _Broken(f"page {number} is referred to, the file has {self._pages}")
        return os.pread(self._handle, self._page_bytes, number * self._page_bytes)

    def _roots(self) -> list[int]:
        """The roots of the two databases of the newer header page."""
        metas = [_META.unpack_from(self._read(number), _HEAD.size) for number in range(_META_PAGES)]
        valid = [meta for meta in metas if meta[0] == _MAGIC]
        if not valid:
            raise _Broken("neither header page is one")
        newest = max(valid, key=lambda meta: int(meta[7]))
        return [root for root in map(_root_of, newest[4:6]) if root != _NO_PAGE]

    def _children(self, number: int) -> list[int]:
        page = self._read(number)
        _, _, flags, lower, _ = _HEAD.unpack_from(page)
        if flags & _BRANCH:
            return [low | high << 16 | more << 32 for low, high, more, _, _ in _nodes(page, lower)]
        if not flags & _LEAF:
            raise _Broken(f"page {number} is neither a branch nor a leaf")
        roots = []
        for _, _, kind, key_bytes, at in _nodes(page, lower):
            data = at + _NODE.size + key_bytes
            if kind & _BIG:
                self._overflow(*_DB_ROOT.unpack_from(page, data))
            elif kind & _SUB:
                root = _root_of(page[data : data + 48])
                roots += [root] if root != _NO_PAGE else []
        return roots

    def _overflow(self, number: int) -> None:
        (count,) = _OVERFLOW.unpack_from(self._read(number), 12)
        self._read(number, count)


def _root_of(database: bytes) -> int:
    return int(_DB_ROOT.unpack_from(database, 40)[0])


def _nodes(page: bytes, lower: int) -> Iterator[tuple[int, int, int, int, int]]:
    """The nodes of a page, each with its place."""
    for pointer in range(_HEAD.size, lower, 2):
        at = int.from_bytes(page[pointer : pointer + 2], sys.byteorder)
        low, high, flags, key_bytes = _NODE.unpack_from(page, at)
        yield low, high, flags, key_bytes, at
