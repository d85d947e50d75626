"""Whether two who keep the pages of a site keep the same ones. Pages are compared by the xxh64 of their urls."""

from __future__ import annotations

from collections.abc import Iterable

import xxhash

from node.ads.messages import PagesLacking
from node.core.limits import lacking_pages_told_max


def page_hash(url: str) -> int:
    return int(xxhash.xxh64_intdigest(url.encode("utf-8"), 0))


def lacking(wanted: Iterable[int], kept: Iterable[str]) -> PagesLacking:
    """Those wanted that are not among the kept."""
    known = {page_hash(url) for url in kept}
    found = [page for page in wanted if page not in known]
    return PagesLacking(tuple(found[:lacking_pages_told_max]), len(found))
