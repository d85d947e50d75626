import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.errors import BadInput
from node.crawler.html_text import extract, looks_like_html

PROSE = "The goalkeeper saved the penalty and the striker scored. " * 5


def test_title_and_main_part_without_the_furniture() -> None:
    page = extract(
        "<!doctype html><html><head><title> Late \n winner </title><style>p{color:red}</style></head><body>"
        "<nav>Home Sport Finance</nav><header>Masthead</header>"
        f"<article><h1>Derby</h1><p>{PROSE}</p><script>alert('x')</script><aside>Read also</aside></article>"
        "<footer>Imprint</footer></body></html>"
    )
    assert page.title == "Late winner"
    assert page.text == f"Derby {PROSE}".strip()


def test_a_short_teaser_article_does_not_hide_the_page() -> None:
    page = extract(f"<body><article>Teaser</article><div>{PROSE}</div></body>")
    assert "goalkeeper" in page.text


def test_nested_articles_are_read_once() -> None:
    page = extract(f"<article>{PROSE}<article>inner words</article></article>")
    assert page.text.count("inner words") == 1


def test_words_of_neighbouring_blocks_stay_apart() -> None:
    assert extract("<p>one</p><p>two</p>three<br>four").text == "one two three four"


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1"])
def test_bytes_are_read_by_their_own_declaration(encoding: str) -> None:
    page = f'<html><head><meta charset="{encoding}"></head><body>Café</body></html>'.encode(encoding)
    assert extract(page).text == "Café"


@pytest.mark.parametrize(
    "hostile",
    ["<div>" * 200_000, "<a " * 300_000, "<!--" * 300_000, "<x><div></x>" * 90_000, "<b><p>" * 150_000, "\x00" * 1000],
)
def test_hostile_markup_ends_with_little_text(hostile: str) -> None:
    assert len(extract(hostile + "<p>tail").text) <= 8_000


def test_what_nests_too_deep_is_cut_and_the_rest_is_kept() -> None:
    page = extract(f"<p>{PROSE}</p>" + "<div>" * 1_000 + "deep")
    assert page.text == PROSE.strip()
    assert "kept" in extract("<div></div>" * 1_000 + "kept").text


def test_too_large_a_page_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        extract(b" " * ((2 << 20) + 1))
    assert caught.value.field == "page"


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    assert len(extract(text).text) <= 8_000


def test_markup_is_told_from_prose() -> None:
    assert looks_like_html("  <!DOCTYPE html><p>x")
    assert looks_like_html("<div class='a'>x</div>")
    assert not looks_like_html("If a < b and b > c, then prose <3")
