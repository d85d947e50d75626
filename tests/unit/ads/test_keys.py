import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.ads import keys
from node.core.errors import BadInput


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://e.com/a?fbclid=xyz", "https://e.com/a"),
        ("https://e.com/food/", "https://e.com/food/"),
        ("https://e.com/?utm_source=x&id=9&b=2#sec", "https://e.com/?id=9&b=2#sec"),
        ("https://E.com/A?b=2&a=1", "https://E.com/A?b=2&a=1"),
        ("https://e.com/?id=1&GCLID=2&x", "https://e.com/?id=1&x"),
        ("https://e.com/?", "https://e.com/?"),
        ("https://e.com/#?utm_source=fragment", "https://e.com/#?utm_source=fragment"),
    ],
)
def test_v29_only_trackers_go(url: str, expected: str) -> None:
    assert keys.page_url(url) == expected


@given(st.text(alphabet="abcutm_=&?#%/fbclid1", max_size=60))
def test_stripping_is_idempotent_and_keeps_everything_else(tail: str) -> None:
    once = keys.strip_trackers("https://e.com/" + tail)
    assert keys.strip_trackers(once) == once
    assert once.partition("#")[2] == ("https://e.com/" + tail).partition("#")[2]


def test_a_separator_in_a_url_is_encoded() -> None:
    assert keys.page_url("https://e.com/a|b?c=|") == "https://e.com/a%7Cb?c=%7C"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "   ",
        "e.com/a",
        "ftp://e.com/",
        "https://",
        "https://u:p@e.com/",
        "https://e.com/a b",
        "https://[::1/",
        "x" * 9000,
        "https://e.com/" + "a" * 2048,
    ],
)
def test_bad_urls_name_the_field(url: str) -> None:
    with pytest.raises(BadInput) as caught:
        keys.page_url(url, "url")
    assert caught.value.field == "url"


@pytest.mark.parametrize("site", ["news.example", "a", "localhost:8888", "x-y_z.example", "a" * 253])
def test_site_ids(site: str) -> None:
    assert keys.site_id(site) == site


@pytest.mark.parametrize("site", ["", "News.example", "a|b", "a/b", ".a", "a.", "a b", "é.example", "a" * 254, "a\n"])
def test_bad_site_ids(site: str) -> None:
    with pytest.raises(BadInput) as caught:
        keys.site_id(site)
    assert caught.value.field == "site"


@pytest.mark.parametrize("slot", ["", "a|b", "a b", "é", "a" * 129, "a\n", "a/b"])
def test_bad_slot_ids(slot: str) -> None:
    with pytest.raises(BadInput) as caught:
        keys.slot_id(slot)
    assert caught.value.field == "slot"


@given(
    st.from_regex(r"[a-z0-9][a-z0-9._:-]{0,20}[a-z0-9]", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9._:-]{1,128}", fullmatch=True),
)
def test_a_serve_key_splits_into_what_made_it(site: str, slot: str) -> None:
    assert keys.split_serve_key(keys.serve_key(keys.site_id(site), keys.slot_id(slot))) == (site, slot)


def test_a_key_of_three_parts_is_refused() -> None:
    for key in ("news.example", "news.example|", "|slot", "a|b|c"):
        with pytest.raises(BadInput):
            keys.split_serve_key(key)


def test_page_text_is_folded_and_cut_at_a_word() -> None:
    assert keys.fold_page_text("  a\n\tb\u00a0c ") == "a b c"
    long = keys.fold_page_text("word " * 5000)
    assert len(long) <= 8000
    assert long.endswith("word")
    assert len(keys.fold_page_text("x" * 9000)) == 8000


@given(st.text(max_size=300))
def test_folding_twice_changes_nothing(text: str) -> None:
    assert keys.fold_page_text(keys.fold_page_text(text)) == keys.fold_page_text(text)


@pytest.mark.parametrize("bad", ["", "a|b", "-a", "a" * 65, "a b"])
def test_entity_ids(bad: str) -> None:
    assert keys.entity_id("adv_1.x-Y", "advertiser") == "adv_1.x-Y"
    with pytest.raises(BadInput) as caught:
        keys.entity_id(bad, "campaign")
    assert caught.value.field == "campaign"
