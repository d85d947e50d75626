"""The readable text of an HTML page, and its title.

Lexbor (through selectolax) parses like a browser does, in linear time and without running or fetching anything. The
text is that of the page's main part without navigation, forms, scripts and other furniture.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from node.ads.keys import fold_page_text
from node.core.errors import BadInput
from node.core.limits import html_bytes_max, html_depth_max

_FURNITURE = (
    "script, style, noscript, template, svg, math, iframe, object, canvas, nav, footer, aside, form, button, select, "
    "dialog, [hidden], [aria-hidden=true], [role=navigation], [role=banner], [role=contentinfo], [role=search]"
)
# In the order in which they are trusted to hold the page's subject; `body` is what every document has.
_MAIN_PARTS = ("article", "main", "[role=main]", "body")
# A part shorter than this is a teaser, not the subject.
_MAIN_CHARS_MIN = 200
# Tags that the parser closes by itself or that never hold anything: they don't deepen the tree.
_FLAT_TAGS = frozenset(
    {
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"),
        *("p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody", "tfoot"),
    }
)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)")
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([a-zA-Z0-9_.:-]{1,40})", re.IGNORECASE)
_DECLARATION_BYTES = 1_024
_LOOKS_LIKE_HTML = re.compile(r"<\s*(?:!doctype|html|head|body|article|main|div|p|h1|title|meta)\b", re.IGNORECASE)


class PageText(msgspec.Struct, frozen=True):
    """What a reader of the page would read: both are folded, the text is cut to 8,000 characters."""

    title: str
    text: str


def extract(html: str | bytes) -> PageText:
    """Title and main text. Bytes are decoded by the page's own declaration. Raises BadInput when it is too large.

    Broken markup is read as a browser would; what lies deeper than any real page goes is cut.
    """
    size = len(html)
    if size > html_bytes_max:
        raise BadInput("page", f"an HTML page has at most {html_bytes_max} bytes, this one has {size}")
    markup = html if isinstance(html, str) else _decode(html)
    tree = LexborHTMLParser(_cut_where_too_deep(markup))
    title_node = tree.css_first("title")
    title = " ".join(title_node.text().split())[:300] if title_node is not None else ""
    for node in tree.css(_FURNITURE):
        node.decompose()
    return PageText(title, fold_page_text(_main_text(tree)))


def looks_like_html(text: str) -> bool:
    """Whether a text is markup rather than prose, judged by its beginning."""
    return _LOOKS_LIKE_HTML.search(text[:2_000]) is not None


def _decode(page: bytes) -> str:
    """Decode by byte order mark, else by the declared charset, else as UTF-8; what can't be read is replaced."""
    if page.startswith(codecs.BOM_UTF8):
        return page.decode("utf-8-sig", "replace")
    if page.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return page.decode("utf-16", "replace")
    declared = _CHARSET.search(page[:_DECLARATION_BYTES])
    if declared is not None:
        name = declared[1].decode("ascii").lower()
        # What the web calls latin-1 and ascii is windows-1252; names of codecs that aren't text are not trusted.
        name = "cp1252" if name in ("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii") else name
        try:
            return page.decode(name, "replace")
        except (LookupError, UnicodeError):
            return page.decode("utf-8", "replace")
    return page.decode("utf-8", "replace")


def _cut_where_too_deep(html: str) -> str:
    """Cut before the tag that nests deeper than a real page does: the parser's time grows with the depth squared."""
    open_tags: Counter[str] = Counter()
    depth = 0
    for tag in _TAG.finditer(html):
        name = tag[2].lower()
        if name in _FLAT_TAGS:
            continue
        if not tag[1]:
            open_tags[name] += 1
            depth += 1
            if depth > html_depth_max:
                return html[: tag.start()]
        elif open_tags[name]:
            open_tags[name] -= 1
            depth -= 1
    return html


def _main_text(tree: LexborHTMLParser) -> str:
    for selector in _MAIN_PARTS:
        parts = tree.css(selector)
        text = "\n".join(_text(part) for part in parts if not _inside(part, selector))
        if len(text) >= _MAIN_CHARS_MIN or selector == "body":
            return text
    return ""


def _text(node: LexborNode) -> str:
    return node.text(separator=" ")


def _inside(node: LexborNode, selector: str) -> bool:
    """Whether a node of the same kind is around it, whose text already holds this one's."""
    above = node.parent
    while above is not None:
        if above.tag == selector:
            return True
        above = above.parent
    return False
