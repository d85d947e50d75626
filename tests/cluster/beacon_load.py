"""Durable writes at a steady rate, each with an id of its own: the beacons of page views, and what became of each."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qs, urlsplit

from cluster_world import Cluster, eventually

CONNECTIONS = 48
ANSWER_S = 10.0
BEACONS_MAX = 4  # of one page view: an impression and a click for each of two slots
Key = tuple[str, str]  # what is counted ("imp" or "click") and its request id


@dataclass
class Outcomes:
    """Every beacon that was sent is in exactly one of the first three: `expired` are those whose token ran out before
    any answer came, so that nobody will know. `refused` are answers that nobody should get."""

    counted: set[Key] = field(default_factory=set)
    unknown: dict[Key, str] = field(default_factory=dict)
    expired: set[Key] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)


class BeaconLoad:
    """`rate` beacons a second (impressions, and the clicks that belong to them) from entering to leaving. What a second
    falls short of, the next makes good."""

    def __init__(self, cluster: Cluster, rate: int) -> None:
        address = urlsplit(cluster.http)
        self._host, self._port = str(address.hostname), int(address.port or 80)
        self._bodies = list(bodies(cluster))
        self._rate = rate
        self._sent = 0
        self.outcomes = Outcomes()
        self.seconds = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.more(self._rate)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def offered_per_second(self) -> float:
        """Beacons that were sent, and those that page views without an answer would have led to."""
        return self._sent / self.seconds

    @property
    def acknowledged_per_second(self) -> float:
        return len(self.outcomes.counted) / self.seconds

    def more(self, count: int) -> None:
        """Waits until so many more beacons are acknowledged."""
        wanted = len(self.outcomes.counted) + count
        eventually(lambda: len(self.outcomes.counted), lambda found: found >= wanted, 90, f"{count} more beacons")

    def settle_unknown(self) -> None:
        """Sends those without an answer again, under the same ids, as a browser would: counted once all the same. A
        beacon's token lives three minutes, so it is called soon after what left them unanswered."""
        asyncio.run(self._again())

    async def _run(self) -> None:
        begun = time.monotonic()
        idle = [Connection(self._host, self._port) for _ in range(CONNECTIONS)]
        visits: set[asyncio.Task[None]] = set()
        number = 0
        while not self._stop.is_set():
            due = (time.monotonic() - begun) * self._rate
            if idle and self._sent + BEACONS_MAX * len(visits) < due:
                visit = asyncio.create_task(self._visit(idle.pop(), idle, self._bodies[number % len(self._bodies)]))
                visits.add(visit)
                visit.add_done_callback(visits.discard)
                number += 1
            else:
                await asyncio.sleep(0.002)
        await asyncio.gather(*visits)
        self.seconds += time.monotonic() - begun
        for connection in idle:
            connection.close()

    async def _visit(self, connection: Connection, idle: list[Connection], body: bytes) -> None:
        status, text = await connection.exchange("POST", "/v1/serve/batch", body)
        if status == 200:
            winners = [seat["winner"] for seat in json.loads(text)["seatbid"] if "winner" in seat]
            for winner in winners:
                await self._beacon(connection, "imp", winner["impUrl"])
                await self._beacon(connection, "click", winner["clickUrl"])
            self._sent += 2 * len(winners)  # an empty slot has none
        else:
            self._sent += BEACONS_MAX  # they were due, and a browser doesn't come again at once
            if status not in (0, 503):
                self.outcomes.refused.append(f"serve: {status} {text[:200]}")
        idle.append(connection)

    async def _beacon(self, connection: Connection, event: str, url: str) -> None:
        parts = urlsplit(url)
        key = (event, parse_qs(parts.query)["rid"][0])
        status, text = await connection.exchange("GET", f"{parts.path}?{parts.query}", None)
        if status == 204 or (status == 409 and key in self.outcomes.unknown):
            self.outcomes.unknown.pop(key, None)
            self.outcomes.counted.add(key)
        elif status in (0, 503):
            self.outcomes.unknown[key] = url
        elif status == 403 and "expired" in text and self.outcomes.unknown.pop(key, None):
            self.outcomes.expired.add(key)
        else:
            self.outcomes.refused.append(f"{event}: {status} {text[:200]}")

    async def _again(self) -> None:
        left = list(self.outcomes.unknown.copy().items())  # at once: the load itself goes on in its own thread

        async def send() -> None:
            connection = Connection(self._host, self._port)
            while left:
                (event, _), url = left.pop()
                await self._beacon(connection, event, url)
            connection.close()

        await asyncio.gather(*(send() for _ in range(CONNECTIONS // 4)))


class Connection:
    """One kept-alive connection; an exchange that fails answers 0, for it may have happened."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def exchange(self, method: str, target: str, body: bytes | None) -> tuple[int, str]:
        try:
            async with asyncio.timeout(ANSWER_S):
                if self._streams is None:
                    self._streams = await asyncio.open_connection(self._host, self._port)
                reader, writer = self._streams
                length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
                writer.write(
                    f"{method} {target} HTTP/1.1\r\nHost: {self._host}\r\n{length}\r\n".encode() + (body or b"")
                )
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = next((int(line[15:]) for line in head.split("\r\n") if line.startswith("content-length:")), 0)
                return int(head.split(" ", 2)[1]), (await reader.readexactly(size)).decode()
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            self.close()
            return 0, ""

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def bodies(cluster: Cluster) -> Iterator[bytes]:
    """A page view of each page: its first two slots."""
    for site in cluster.sites():
        shown = cluster.ask("site", "show", site["site"])
        slots = [{"id": s["slot"], "w": s["width"], "h": s["height"]} for s in shown["slots"]][:2]
        for page in cluster.pages(site["site"]):
            yield json.dumps({"pub": site["site"], "url": page["url"], "imp": slots}).encode()
