"""One page of a list: as many items as were asked for, and no more than one answer can hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from node.core.limits import admin_page_bytes_max, admin_page_items_max

Item = TypeVar("Item", bound=msgspec.Struct)


def wanted(limit: int) -> int:
    """How many items a request may get that asks for so many; 0 leaves it to us."""
    return min(limit, admin_page_items_max) if limit > 0 else admin_page_items_max


def page(found: Iterable[tuple[str, Item]], limit: int, *, more: bool = False) -> tuple[tuple[Item, ...], str]:
    """The first items, and the name behind which the next page begins, empty when there is none. `found`: each with
    its name, in order; `more`: there are others behind them."""
    items: list[Item] = []
    last, size = "", 0
    for name, item in found:
        size += len(msgspec.msgpack.encode(item))
        if len(items) >= wanted(limit) or (items and size > admin_page_bytes_max):
            return tuple(items), last
        items.append(item)
        last = name
    return tuple(items), last if more else ""
