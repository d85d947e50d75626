"""A day's beacons as a careless network delivers them: late, overtaken, more than once; with the sender's own books.

Every ad that a page view was given is reported by an impression, each second one by a click, each fourth by a call to
action. Each is sent until it is known to be counted, so that in the end the books hold exactly what the cluster has
promised to have counted.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qs, urlsplit

from beacon_load import Connection, bodies
from cluster_world import Cluster, eventually

from node.ads.money import impression_cost_micros, parse_money

CONNECTIONS = 48
AGAIN_S = 0.5
COPIES = (1, 1, 1, 1, 1, 2, 2, 2, 3, 5)
PER_VIEW = 3.5  # events: two slots a page, an impression each, half a click and a quarter of a call to action


class Event(NamedTuple):
    """What may be counted once: `kind` imp, click or cta; `micros` is what it costs."""

    kind: str
    request_id: str
    campaign: str
    creative: str
    site: str
    micros: int


@dataclass
class Books:
    """`counted` were acknowledged, as the first of its copies (`firsts`) or as one of the others; `unheard` were sent
    at least once without an answer; `expired` came too late. `refused` are answers that nobody should get."""

    events: set[Event] = field(default_factory=set)
    counted: set[Event] = field(default_factory=set)
    firsts: Counter[Event] = field(default_factory=Counter)
    unheard: set[Event] = field(default_factory=set)
    expired: set[Event] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    copies: int = 0


class DayLoad:
    """`rate` events a second from entering until `finish`; a late copy is sent up to `late_s` after its page view."""

    def __init__(self, cluster: Cluster, rate: int, late_s: float, rng: random.Random) -> None:
        address = urlsplit(cluster.http)
        self._host, self._port = str(address.hostname), int(address.port or 80)
        self._views = itertools.cycle(list(bodies(cluster)))
        self._every_s = PER_VIEW / rate
        self._late_s = late_s
        self._rng = rng
        self._due: list[tuple[float, int, Event, str]] = []  # when, a number that keeps their order, what, its url
        self._numbers = itertools.count()
        self.books = Books()
        self._last_view = threading.Event()
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.counted(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._given_up.set()
        self._thread.join()

    def counted(self, more: int) -> None:
        """Waits until so many more events are acknowledged."""
        wanted = len(self.books.counted) + more
        eventually(lambda: len(self.books.counted), lambda found: found >= wanted, 120, f"{more} more events")

    def finish(self, within_s: float) -> None:
        """No more page views; waits until every copy of every event has had its last answer."""
        self._last_view.set()
        eventually(self._thread.is_alive, lambda alive: not alive, within_s, "the last answer of every beacon")

    async def _run(self) -> None:
        idle = [Connection(self._host, self._port) for _ in range(CONNECTIONS)]
        busy: set[asyncio.Task[None]] = set()
        next_view = time.monotonic()
        while not self._given_up.is_set() and (busy or self._due or not self._last_view.is_set()):
            now = time.monotonic()
            work: Any = None
            if idle and self._due and self._due[0][0] <= now:
                _, _, event, url = heapq.heappop(self._due)
                work = self._beacon(idle.pop(), idle, event, url)
            elif idle and next_view <= now and not self._last_view.is_set():
                next_view = max(next_view + self._every_s, now - 1)  # what an outage has held up is not made up for
                work = self._view(idle.pop(), idle)
            if work is None:
                await asyncio.sleep(0.002)
                continue
            task = asyncio.create_task(work)
            busy.add(task)
            task.add_done_callback(lambda ended: self._ended(busy, ended))
        await asyncio.gather(*busy)
        for connection in idle:
            connection.close()

    def _ended(self, busy: set[asyncio.Task[None]], task: asyncio.Task[None]) -> None:
        busy.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.books.refused.append(repr(error))

    async def _view(self, connection: Connection, idle: list[Connection]) -> None:
        status, text = await connection.exchange("POST", "/v1/serve/batch", next(self._views))
        idle.append(connection)
        if status == 200:
            for seat in json.loads(text)["seatbid"]:
                if "winner" in seat:
                    self._plan(seat["winner"]["impUrl"], "imp")
                    if self._rng.random() < 0.5:
                        self._plan(seat["winner"]["clickUrl"], "click")
                    if self._rng.random() < 0.25:
                        self._plan(seat["winner"]["ctaUrl"], "cta")
        elif status not in (0, 503):
            self.books.refused.append(f"serve: {status} {text[:200]}")

    def _plan(self, url: str, kind: str) -> None:
        """The copies of an event, each on a way of its own: a click may come before its impression."""
        named = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        micros = impression_cost_micros(parse_money(named["cpm"], "cpm")) if kind == "imp" else 0
        event = Event(kind, named["rid"], named["camp"], named["cid"], named["pub"], micros)
        self.books.events.add(event)
        for _ in range(self._rng.choice(COPIES)):
            self._send_in(self._delay_s(), event, url)

    def _delay_s(self) -> float:
        return self._rng.choice((0.0, 0.0, self._rng.uniform(0, 2), self._rng.uniform(0, self._late_s)))

    def _send_in(self, seconds: float, event: Event, url: str) -> None:
        heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), event, url))

    async def _beacon(self, connection: Connection, idle: list[Connection], event: Event, url: str) -> None:
        parts = urlsplit(url)
        status, text = await connection.exchange("GET", f"{parts.path}?{parts.query}", None)
        idle.append(connection)
        books = self.books
        books.copies += 1
        if status in (204, 409):
            books.counted.add(event)
            books.firsts[event] += status == 204
        elif status in (0, 503):
            books.unheard.add(event)
            self._send_in(AGAIN_S, event, url)
        elif status == 403 and "expired" in text:
            books.expired.add(event)
        else:
            books.refused.append(f"{event.kind}: {status} {text[:200]}")
