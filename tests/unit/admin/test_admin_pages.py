"""Pages of lists: as many as were asked for, no more than an answer holds, and nothing twice or never."""

from __future__ import annotations

import msgspec
import pytest

from node.admin.pages import page, wanted
from node.core.limits import admin_page_bytes_max, admin_page_items_max


class Item(msgspec.Struct, frozen=True):
    name: str
    text: str = ""


def walked(items: list[Item], limit: int) -> list[list[str]]:
    """Every page, as somebody reads them who asks for `after` what the last one said."""
    pages: list[list[str]] = []
    after = ""
    while True:
        found, after = page(((i.name, i) for i in items if i.name > after), limit)
        pages.append([item.name for item in found])
        if not after:
            return pages


@pytest.mark.parametrize(("count", "limit"), [(0, 3), (2, 3), (3, 3), (7, 3), (2 * admin_page_items_max + 1, 0)])
def test_every_item_is_on_one_page(count: int, limit: int) -> None:
    items = [Item(f"{number:05d}") for number in range(count)]
    pages = walked(items, limit)
    assert [name for names in pages for name in names] == [item.name for item in items]
    assert all(len(names) == wanted(limit) for names in pages[:-1])


def test_a_page_holds_what_fits_an_answer_and_at_least_one() -> None:
    third = "x" * (admin_page_bytes_max // 3)
    items = [Item(f"{number:05d}", third) for number in range(5)] + [Item("z", 4 * third)]
    assert [len(names) for names in walked(items, 0)] == [2, 2, 1, 1]


def test_what_comes_behind_is_known_to_who_has_read_only_a_part() -> None:
    items = [("a", Item("a")), ("b", Item("b"))]
    assert page(items, 2, more=True)[1] == "b"
    assert page(items, 2, more=False)[1] == ""
    assert page([], 2, more=True) == ((), "")


def test_nobody_gets_more_than_a_page() -> None:
    most = admin_page_items_max
    assert [wanted(limit) for limit in (-1, 0, 1, 10**9)] == [most, most, 1, most]
