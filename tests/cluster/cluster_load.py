"""Steady requests against a cluster while something happens to it, and what became of each."""

from __future__ import annotations

import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from cluster_world import Cluster, eventually

RATE = 100
WORKERS = 64
BEACON_EACH = 10


@dataclass(frozen=True)
class Answer:
    """One serve request: when it was sent (seconds, monotonic), its status (0: none came), what is wrong with it; what
    it said when it is no 200, and how long that took."""

    sent: float
    site: str
    status: int
    wrong: str = ""
    winners: int = 0
    said: str = ""
    took_s: float = 0.0


@dataclass
class Beacons:
    """Impressions that were reported: `counted` were acknowledged, `unknown` may have been counted."""

    counted: int = 0
    unknown: int = 0
    refused: list[str] = field(default_factory=list)


class Load:
    """100 requests a second over all demonstration pages, from entering to leaving the context."""

    def __init__(self, cluster: Cluster) -> None:
        self._address = urlsplit(cluster.http).netloc
        self._approved = {}
        self._targets = []
        for site in cluster.sites():
            shown = cluster.ask("site", "show", site["site"])
            self._approved[site["site"]] = set(shown["approved"])
            slots = [{"id": s["slot"], "w": s["width"], "h": s["height"]} for s in shown["slots"]]
            self._targets += [(site["site"], page["url"], slots) for page in cluster.pages(site["site"])]
        self.answers: list[Answer] = []
        self.beacons = Beacons()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._local = threading.local()
        self._connections: list[http.client.HTTPConnection] = []
        self._pool = ThreadPoolExecutor(WORKERS)
        self._pacer = threading.Thread(target=self._pace, daemon=True)

    def __enter__(self) -> Self:
        self._pacer.start()
        self.answered(RATE // 2)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._pacer.join()
        self._pool.shutdown()
        for connection in self._connections:
            connection.close()

    def answered(self, more: int) -> None:
        """Waits until so many more requests were answered."""
        count = len(self.answers) + more
        eventually(lambda: len(self.answers), lambda found: found >= count, 60, f"{count} answers")

    def lasts(self, seconds: float) -> None:
        """Goes on for so long: what happens meanwhile is the test."""
        assert not self._stop.wait(seconds)

    def wrong(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.wrong]

    def failed(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.status != 200]

    def _pace(self) -> None:
        begun, sent = time.monotonic(), 0
        while not self._stop.is_set():
            self._pool.submit(self._one, sent)
            sent += 1
            self._stop.wait(max(0.0, begun + sent / RATE - time.monotonic()))

    def _one(self, number: int) -> None:
        site, url, slots = self._targets[number % len(self._targets)]
        sent = time.monotonic()
        body = json.dumps({"pub": site, "url": url, "imp": slots})
        status, text = self._exchange("POST", "/v1/serve/batch", body)
        answer = self._judged(sent, site, status, text, slots)
        with self._lock:
            self.answers.append(answer)
        if status == 200 and number % BEACON_EACH == 0:
            for seat in json.loads(text)["seatbid"]:
                if "winner" in seat:
                    self._beacon(seat["winner"]["impUrl"])

    def _judged(self, sent: float, site: str, status: int, text: str, slots: list[dict[str, Any]]) -> Answer:
        if status in (0, 503):
            return Answer(sent, site, status, said=text[:200], took_s=time.monotonic() - sent)
        if status != 200:
            return Answer(sent, site, status, f"{status} {text[:200]}")
        sizes = {slot["id"]: (slot["w"], slot["h"]) for slot in slots}
        winners = [(seat["id"], seat["winner"]) for seat in json.loads(text)["seatbid"] if "winner" in seat]
        for slot, winner in winners:
            if winner["creativeId"] not in self._approved[site]:
                return Answer(sent, site, status, f"{winner['creativeId']} is not approved on {site}")
            if (winner["width"], winner["height"]) != sizes[slot]:
                return Answer(sent, site, status, f"{winner['creativeId']} does not fit {slot}")
        return Answer(sent, site, status, winners=len(winners))

    def _beacon(self, url: str) -> None:
        parts = urlsplit(url)
        status, text = self._exchange("GET", f"{parts.path}?{parts.query}", None)
        with self._lock:
            if status == 204:
                self.beacons.counted += 1
            elif status in (0, 503):
                self.beacons.unknown += 1
            else:
                self.beacons.refused.append(f"{status} {text[:200]}")

    def _exchange(self, method: str, target: str, body: str | None) -> tuple[int, str]:
        connection = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = http.client.HTTPConnection(self._address, timeout=15)
            with self._lock:
                self._connections.append(connection)
        try:
            connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return 0, repr(error)
