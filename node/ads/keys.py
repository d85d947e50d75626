"""What names a page, a site, a slot and a ServeIndex entry, and the checks at the border.

A page is its url with known trackers stripped and nothing else touched: an unknown parameter may select the
content, a trailing slash may be another page.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from node.core.errors import BadInput
from node.core.limits import page_text_chars_max, site_id_chars_max, slot_id_chars_max, url_chars_max

SEPARATOR = "|"

_SITE_ID = re.compile(r"[a-z0-9](?:[a-z0-9._:-]*[a-z0-9])?", re.ASCII)
_SLOT_ID = re.compile(r"[A-Za-z0-9._:-]+", re.ASCII)
_ENTITY_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_PRODUCT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,15}", re.ASCII)
_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")

_TRACKER_PREFIXES = ("utm_", "hsa_", "pk_", "mtm_")
_TRACKERS = frozenset(
    {
        "fbclid",
        "gclid",
        "gclsrc",
        "dclid",
        "wbraid",
        "gbraid",
        "gad_source",
        "gad_campaignid",
        "msclkid",
        "ttclid",
        "twclid",
        "li_fat_id",
        "igshid",
        "igsh",
        "yclid",
        "ysclid",
        "_hsenc",
        "_hsmi",
        "__hssc",
        "__hstc",
        "hsctatracking",
        "mkt_tok",
        "mc_cid",
        "mc_eid",
        "_openstat",
        "vero_id",
        "oly_anon_id",
        "oly_enc_id",
        "s_cid",
        "epik",
        "srsltid",
    }
)


def site_id(text: str, field: str = "site") -> str:
    """Check a site id: lower-case, host-like (letters, digits, `. - _ :`), at most 253 characters."""
    if not text:
        raise BadInput(field, "a site id is required")
    if len(text) > site_id_chars_max:
        raise BadInput(field, f"a site id has at most {site_id_chars_max} characters, this one has {len(text)}")
    if not _SITE_ID.fullmatch(text):
        text = f"{text[:80]!r} is not a site id: lower-case and host-like, for example 'news.example'"
        raise BadInput(field, text, hint="promovolvectl site list")
    return text


def slot_id(text: str, field: str = "slot") -> str:
    """Check a slot id: 1 to 128 of `A-Z a-z 0-9 . _ : -`."""
    if not text:
        raise BadInput(field, "a slot id is required")
    if len(text) > slot_id_chars_max:
        raise BadInput(field, f"a slot id has at most {slot_id_chars_max} characters, this one has {len(text)}")
    if not _SLOT_ID.fullmatch(text):
        raise BadInput(field, f"{text[:80]!r} is not a slot id: letters, digits and . _ : - only")
    return text


def entity_id(text: str, field: str) -> str:
    """Check an id of an advertiser, campaign, creative or publisher: 1 to 64 letters, digits and `. _ -`."""
    if not _ENTITY_ID.fullmatch(text):
        raise BadInput(field, f"{text[:80]!r} is not an id: 1 to 64 letters, digits, '.', '_' and '-'")
    return text


def product_id(text: str, field: str = "product") -> str:
    """Check an id of the IAB Ad Product Taxonomy: 1 to 16 letters, digits and hyphens."""
    if not _PRODUCT_ID.fullmatch(text):
        raise BadInput(field, f"{text[:40]!r} is not a product category: an id such as 1052")
    return text


def serve_key(site: str, slot: str) -> str:
    """The ServeIndex key `site|slot` of two ids that were checked."""
    return f"{site}{SEPARATOR}{slot}"


def split_serve_key(key: str) -> tuple[str, str]:
    """(site, slot) of a ServeIndex key; raises BadInput naming `key`."""
    site, separator, slot = key.partition(SEPARATOR)
    if not separator:
        raise BadInput("key", f"{key[:80]!r} is not site|slot")
    return site_id(site, "key"), slot_id(slot, "key")


def page_url(text: str, field: str = "url") -> str:
    """The page's identity: an http(s) url of at most 2,048 characters without its trackers.

    `|` separates fields in signed data and keys, so it is percent-encoded, which names the same page.
    Raises BadInput naming `field`.
    """
    trimmed = text.strip()
    if not trimmed:
        raise BadInput(field, "a page url is required")
    # Cut before parsing, so that a hostile length costs nothing; trackers may take an honest url above the cap.
    if len(trimmed) > 4 * url_chars_max:
        raise BadInput(field, f"a page url has at most {url_chars_max} characters")
    if _UNPRINTABLE.search(trimmed):
        raise BadInput(field, "a page url holds no spaces or control characters")
    try:
        parts = urlsplit(trimmed)
        host = parts.hostname
    except ValueError as error:
        raise BadInput(field, f"not a url: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadInput(field, "a page url starts with http:// or https:// and names a host")
    if parts.username is not None or parts.password is not None:
        raise BadInput(field, "a page url carries no user name or password")
    stripped = strip_trackers(trimmed).replace(SEPARATOR, "%7C")
    if len(stripped) > url_chars_max:
        raise BadInput(field, f"a page url has at most {url_chars_max} characters, this one has {len(stripped)}")
    return stripped


def strip_trackers(url: str) -> str:
    """Remove known tracking parameters; all else, order and host case and trailing slash included, stays as it is."""
    rest, hash_mark, fragment = url.partition("#")
    base, question_mark, query = rest.partition("?")
    if not question_mark:
        return url
    pairs = query.split("&")
    kept = [pair for pair in pairs if not _is_tracker(pair.partition("=")[0])]
    if len(kept) == len(pairs):
        return url
    return base + ("?" + "&".join(kept) if kept else "") + hash_mark + fragment


def _is_tracker(name: str) -> bool:
    lowered = name.lower()
    return lowered in _TRACKERS or lowered.startswith(_TRACKER_PREFIXES)


def fold_page_text(text: str) -> str:
    """Fold runs of whitespace to one space and cut to 8,000 characters, at a word's end where there is one near."""
    # Only what can survive the cut is folded: a page of many megabytes must not cost more than its beginning.
    folded = " ".join(text[: 16 * page_text_chars_max].split())
    if len(folded) <= page_text_chars_max:
        return folded
    cut = folded[:page_text_chars_max]
    if folded[page_text_chars_max] == " ":
        return cut
    last_space = cut.rfind(" ")
    return cut[:last_space] if last_space > page_text_chars_max - 200 else cut
