"""Page views of urls that are not known: how many, of which urls, and what each was probably meant to be.

An url that is written in two ways is one page to its publisher and two here; of the second nothing is known, however
often it is viewed. So each is shown beside the known url that is nearest to it.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from node.core.limits import unknown_pages_kept
from node.wire.registry import wire_type

MINUTE_MS: Final = 60_000


@wire_type("ads.unknown_page")
class UnknownPage(msgspec.Struct, frozen=True):
    """`nearest` is empty where no known url is on the same host."""

    url: str
    views: int
    seen_ms: int
    nearest: str = ""


class UnknownPages:
    """The urls that were viewed last; those that were not for the longest are forgotten. All times are wall ms."""

    def __init__(self) -> None:
        self._views: dict[str, tuple[int, int]] = {}  # url: how often, and when last; the newest last
        self._minute, self._count, self._before = 0, 0, 0

    def viewed(self, url: str, now_ms: int) -> None:
        self._turn(now_ms)
        self._count += 1
        views, _ = self._views.pop(url, (0, 0))
        if len(self._views) >= unknown_pages_kept:
            del self._views[next(iter(self._views))]
        self._views[url] = (views + 1, now_ms)

    def last_minute(self, now_ms: int) -> int:
        """How many page views of unknown urls the last whole minute had."""
        self._turn(now_ms)
        return self._before

    def told(self, known: Collection[str]) -> tuple[UnknownPage, ...]:
        """The urls that are not known to this day, the most viewed first."""
        left = {url: seen for url, seen in self._views.items() if url not in known}
        near = _Nearest(known) if left else None
        found = (UnknownPage(url, *seen, near.of(url) if near else "") for url, seen in left.items())
        return tuple(sorted(found, key=lambda page: (-page.views, page.url)))

    def _turn(self, now_ms: int) -> None:
        minute = now_ms // MINUTE_MS
        if minute != self._minute:
            self._before = self._count if minute == self._minute + 1 else 0
            self._minute, self._count = minute, 0


class _Nearest:
    """Known urls in order: the one that shares the longest beginning with another stands right beside its place."""

    def __init__(self, known: Iterable[str]) -> None:
        self._plain = sorted((_plain(url), url) for url in known)

    def of(self, url: str) -> str:
        plain = _plain(url)
        place = bisect(self._plain, (plain, ""))
        beside = self._plain[max(place - 1, 0) : place + 1]
        found = [(_shared(plain, other), known) for other, known in beside if _host(other) == _host(plain)]
        return max(found, default=(0, ""))[1]


def _plain(url: str) -> str:
    """What is left when how it is written counts for nothing: scheme, `www.`, case, a slash at the end, a fragment."""
    rest = url.lower().partition("://")[2].partition("#")[0].removeprefix("www.")
    path, mark, query = rest.partition("?")
    return f"{path.rstrip('/')}{mark}{query}"


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (left, right) in enumerate(pairs) if left != right), min(len(one), len(other)))


def _host(plain: str) -> str:
    return plain.partition("/")[0].partition("?")[0]
