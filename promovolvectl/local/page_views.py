"""Load on a living cluster: page views over HTTP, as many at a time as there are connections, each a thread of its own.

What is measured includes this program: it says how long a page view took from here, not how much a node can bear.
"""

from __future__ import annotations

import http.client
import itertools
import json
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

_PATH: Final = "/v1/serve/batch"
_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class PageView:
    """What one request asks: a page of a site, and its slots as `(name, width, height)`."""

    site: str
    url: str
    slots: tuple[tuple[str, int, int], ...]

    def body(self) -> bytes:
        imps = [{"id": name, "w": width, "h": height} for name, width, height in self.slots]
        return json.dumps({"pub": self.site, "url": self.url, "imp": imps}).encode()


@dataclass(slots=True)
class Seen:
    """What one node answered: how long each answer took, how many slots were filled of those asked for, and what went
    wrong by its name."""

    took_ms: list[float] = field(default_factory=list)
    slots: int = 0
    filled: int = 0
    failed: dict[str, int] = field(default_factory=dict)


def load(
    nodes: dict[str, str], views: Sequence[PageView], *, seconds: float, connections: int, stop: threading.Event
) -> dict[str, Seen]:
    """Page views in turn, at `nodes` (base URLs by name) in turn, until the time is over or `stop` is set."""
    seen = {name: Seen() for name in nodes}
    lock = threading.Lock()
    turn = itertools.cycle(views)
    until = time.monotonic() + seconds

    def work(name: str, base: str) -> None:
        connection: http.client.HTTPConnection | None = None
        while time.monotonic() < until and not stop.is_set():
            with lock:
                view = next(turn)
            connection = connection or _opened(base)
            began = time.perf_counter()
            try:
                connection.request("POST", _PATH, view.body(), {"Content-Type": "application/json"})
                answer = connection.getresponse()
                body = answer.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                connection = None
                with lock:
                    _count(seen[name].failed, type(error).__name__)
                stop.wait(0.05)  # a node that is away must not be asked in a tight loop
                continue
            took_ms = (time.perf_counter() - began) * 1_000
            with lock:
                _note(seen[name], view, answer.status, body, took_ms)
        if connection is not None:
            connection.close()

    workers = [
        threading.Thread(target=work, args=place, daemon=True) for place in itertools.islice(_round(nodes), connections)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return seen


def spread(values: Sequence[float]) -> tuple[float, float, float, float]:
    """Median, 99th percentile, least and most; none of nothing."""
    ordered = sorted(values)
    if not ordered:
        return 0.0, 0.0, 0.0, 0.0
    return statistics.median(ordered), ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], ordered[0], ordered[-1]


def _round(nodes: dict[str, str]) -> Iterator[tuple[str, str]]:
    return itertools.cycle(nodes.items())


def _note(seen: Seen, view: PageView, status: int, body: bytes, took_ms: float) -> None:
    if status not in (200, 204):
        _count(seen.failed, f"HTTP {status}")
        return
    seen.took_ms.append(took_ms)
    seen.slots += len(view.slots)
    document: dict[str, Any] = json.loads(body) if status == 200 else {"seatbid": []}
    seen.filled += sum(seat.get("winner") is not None for seat in document["seatbid"])


def _opened(base: str) -> http.client.HTTPConnection:
    address = urlsplit(base)
    return http.client.HTTPConnection(address.hostname or "", address.port or 80, timeout=_TIMEOUT_S)


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1
