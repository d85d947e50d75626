"""Where a page's text comes from: a file, a URL or standard input; HTML gives its main text."""

from __future__ import annotations

import re
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

from node.core import limits
from promovolvectl.cli.release import VERSION
from promovolvectl.cli.values import web_url
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

SOURCE_BYTES_MAX: Final = 2 << 20  # held in memory; the text that is kept of it is 8,000 characters
_FETCH_S: Final = 15
_FOLDED: Final = 16  # the cluster folds white space before it cuts; this much is always enough for it
_HTML: Final = re.compile(rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)[\s>]", re.I | re.S)
_SKIPPED: Final = frozenset(
    ("script", "style", "noscript", "template", "svg", "nav", "header", "footer", "aside", "form", "iframe", "button")
)
_BREAKS: Final = frozenset(("p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "h5", "h6", "section", "article"))
_VOID: Final = frozenset(("br", "img", "hr", "input", "meta", "link", "source", "wbr", "area", "base", "col", "embed"))


@dataclass(frozen=True, slots=True)
class Source:
    """Bytes of a page and what is said about them."""

    name: str
    data: bytes
    charset: str = ""
    html: bool = False


def read(where: str) -> Source:
    """Raises CommandFailed: 2 for what can't be a source, 17 for what can't be read."""
    if where == "-":
        return _bounded(Source("standard input", sys.stdin.buffer.read(SOURCE_BYTES_MAX + 1)))
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", where):
        return _bounded(_fetched(web_url(where, "the URL")))
    path = Path(where)
    try:
        with path.open("rb") as stream:
            return _bounded(Source(str(path), stream.read(SOURCE_BYTES_MAX + 1)))
    except OSError as error:
        raise _unreadable(where, error.strerror or "can't be read") from error


def text_of(source: Source) -> str:
    """The text to classify, cut to what a classifier can need; raises CommandFailed (2) when there is none."""
    if b"\x00" in source.data[:4096] and source.charset.lower().replace("-", "")[:5] != "utf16":
        raise CommandFailed(
            ExitStatus.USAGE, "E-NO-TEXT", f"{source.name} is not text", hint="promovolvectl page classify page.txt"
        )
    decoded = _decoded(source)
    text = main_text(decoded) if source.html or _HTML.match(source.data[:2048].lstrip(b"\xef\xbb\xbf")) else decoded
    text = re.sub(r"[ \t\r\f\v]+", " ", text).strip()
    if not re.search(r"\w", text):
        raise CommandFailed(
            ExitStatus.USAGE,
            "E-NO-TEXT",
            f"{source.name} holds no text",
            hint="a page that a script fills has no text of its own: save what the browser shows",
        )
    return text[: _FOLDED * limits.page_text_chars_max]


def main_text(html: str) -> str:
    """Title and main text of an HTML page, without what surrounds them. Broken HTML gives what can be read of it."""
    parser = _MainText()
    parser.feed(html)
    parser.close()
    body = "".join(parser.main) if re.search(r"\w", "".join(parser.main)) else "".join(parser.all)
    return re.sub(r"\n\s*\n+", "\n", f"{''.join(parser.title).strip()}\n{body}").strip()


class _MainText(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.main: list[str] = []
        self.all: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BREAKS:
            self._add("\n")
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:  # an end tag closes what was left open inside it
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]
        if tag in _BREAKS:
            self._add("\n")

    def handle_data(self, data: str) -> None:
        if "title" in self._open and "svg" not in self._open:
            self.title.append(data)
        elif not _SKIPPED.intersection(self._open):
            self._add(data)

    def _add(self, text: str) -> None:
        if _SKIPPED.intersection(self._open) or "head" in self._open:
            return
        self.all.append(text)
        if "main" in self._open or "article" in self._open:
            self.main.append(text)


class _SameKind(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        web_url(newurl, "the redirect")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _fetched(url: str) -> Source:
    opener = urllib.request.build_opener(_SameKind)
    request = urllib.request.Request(url, headers={"User-Agent": f"promovolvectl/{VERSION}", "Accept": "text/*"})  # noqa: S310
    try:
        with opener.open(request, timeout=_FETCH_S) as reply:
            kind = reply.headers.get_content_type()
            charset = reply.headers.get_content_charset() or ""
            data = reply.read(SOURCE_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        raise _unreadable(url, f"answered {error.code} {error.reason}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise _unreadable(url, f"could not be fetched: {reason}") from error
    if not kind.startswith("text/") and kind != "application/xhtml+xml":
        raise _unreadable(url, f"is {kind}, not text")
    return Source(url, data, charset, html=kind in ("text/html", "application/xhtml+xml"))


def _decoded(source: Source) -> str:
    declared = re.search(rb"<meta[^>]+charset=[\"']?([A-Za-z0-9_-]+)", source.data[:4096], re.I)
    for charset in (source.charset, "utf-8-sig", declared[1].decode() if declared else ""):
        try:
            return source.data.decode(charset) if charset else source.data.decode("utf-8-sig")
        except (UnicodeDecodeError, LookupError):
            continue
    return source.data.decode("cp1252", errors="replace")


def _bounded(source: Source) -> Source:
    if len(source.data) > SOURCE_BYTES_MAX:
        raise _unreadable(source.name, f"is larger than {SOURCE_BYTES_MAX >> 20} MiB")
    return source


def _unreadable(where: str, reason: str) -> CommandFailed:
    return CommandFailed(ExitStatus.LOCAL_FILE, "E-SOURCE", f"{where}: {reason}", about=where)
