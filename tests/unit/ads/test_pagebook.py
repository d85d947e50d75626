"""Which shelf a page is on, and what a site keeps of too many pages."""

from hypothesis import given, settings
from hypothesis import strategies as st

from node.ads.messages import PageEntry
from node.ads.pagebook import PageBook, newer, page_bytes
from node.core import limits


def page(n: int, at_ms: int = 0, slots: tuple[str, ...] = ("top",), pad: int = 0) -> PageEntry:
    return PageEntry(f"https://e.example/{n}{'x' * pad}", (("654", 0.9),), slots, at_ms or n)


def test_pages_fill_a_shelf_before_the_next_and_stay_where_they_are() -> None:
    book = PageBook()
    assert [book.put(page(n)) for n in range(1, 70)] == [0] * 32 + [1] * 32 + [2] * 5
    assert book.put(page(3, at_ms=1_000)) == 0
    assert list(book.pages)[-1] == page(3).url, "the newest classification is last"
    assert book.shelves == 3


def test_v31_at_the_cap_a_new_page_drops_the_oldest_and_an_update_drops_none() -> None:
    book = PageBook()
    for n in range(1, limits.site_pages_max + 1):
        book.put(page(n))
    book.put(page(7, at_ms=10**6))
    assert len(book.pages) == limits.site_pages_max
    assert book.put(page(10**5, at_ms=10**6)) == 312
    assert book.put(page(10**5 + 1, at_ms=10**6)) == 0, "in the room that the first dropped page left"
    assert page(1).url not in book.pages
    assert len(book.pages) == limits.site_pages_max
    assert book.take_drops(0) == (page(1).url, page(2).url)
    assert book.take_drops(0) == ()
    assert book.shelves == -(-limits.site_pages_max // limits.shelf_pages_max)


def test_long_urls_are_bounded_by_bytes() -> None:
    book = PageBook()
    for n in range(3_000):
        book.put(page(n + 1, pad=1_900))
    book.learn(book.shelves, page(3_001, pad=1_900))
    assert sum(map(page_bytes, book.pages.values())) <= limits.site_page_bytes_max
    assert 1_900 < len(book.pages) < 3_000
    assert list(book.pages)[-1] == page(3_001, pad=1_900).url


def test_dropped_pages_that_are_read_again_are_dropped_again() -> None:
    book = PageBook()
    kept = [page(n) for n in range(1, limits.site_pages_max + 11)]
    for number in range(0, len(kept), limits.shelf_pages_max):
        book.read(number // limits.shelf_pages_max, kept[number : number + limits.shelf_pages_max])
    book.arrange()
    assert list(book.pages) == [p.url for p in kept[10:]]
    assert set(book.take_drops(0)) == {p.url for p in kept[:10]}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=20
    )
)
def test_whatever_the_order_of_reading_the_newest_record_of_a_page_holds(
    records: list[tuple[int, int, int, int]],
) -> None:
    def read(order: list[tuple[int, int, int, int]]) -> PageBook:
        book = PageBook()
        for shelf, n, at_ms, slots in order:
            book.read(shelf, (page(n, at_ms, tuple(f"s{k}" for k in range(slots))),))
        book.arrange()
        return book

    there, back = read(records), read(records[::-1])
    assert dict(there.pages) == dict(back.pages)
    for url, held in there.pages.items():
        assert not any(
            newer(page(n, at_ms, tuple(f"s{k}" for k in range(slots))), held)
            for _, n, at_ms, slots in records
            if page(n).url == url
        )
