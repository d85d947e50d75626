"""Where a page comes from: a file, a URL or standard input. What its main text is, the cluster finds."""

from __future__ import annotations

import http.client
import re
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from promovolvectl.cli.release import VERSION
from promovolvectl.cli.values import web_url
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

SOURCE_BYTES_MAX: Final = 2 << 20  # held in memory; the text that the cluster keeps of it is 8,000 characters
_FETCH_S: Final = 15
_PART_BYTES: Final = 64 << 10


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
    """Its characters, markup and all; raises CommandFailed (2) when it is no text."""
    if b"\x00" in source.data[:4096] and source.charset.lower().replace("-", "")[:5] != "utf16":
        raise CommandFailed(
            ExitStatus.USAGE, "E-NO-TEXT", f"{source.name} is not text", hint="promovolvectl page classify page.txt"
        )
    return _decoded(source)


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
            data = _whole(reply, url)
    except urllib.error.HTTPError as error:
        error.close()
        raise _unreadable(url, f"answered {error.code} {error.reason}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise _unreadable(url, f"could not be fetched: {reason}") from error
    if not kind.startswith("text/") and kind != "application/xhtml+xml":
        raise _unreadable(url, f"is {kind}, not text")
    return Source(url, data, charset, html=kind in ("text/html", "application/xhtml+xml"))


def _whole(reply: http.client.HTTPResponse, url: str) -> bytes:
    """As much as is held in memory, and one byte more where there is more. A page that goes on and on is not waited
    for: the connection's own time limit counts anew with each byte."""
    until_s, data = time.monotonic() + _FETCH_S, b""
    while len(data) <= SOURCE_BYTES_MAX:
        part = reply.read1(_PART_BYTES)
        if not part and reply.length:
            raise _unreadable(url, f"broke off {reply.length} bytes before its end")
        if not part:
            return data
        data += part
        if time.monotonic() > until_s:
            raise _unreadable(url, f"had not ended after {_FETCH_S} s")
    return data


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
