"""Steady requests against a cluster while something happens to it, and what became of each."""

from __future__ import annotations

import bisect
import http.client
import itertools
import json
import select
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from cluster_world import Cluster, eventually

RATE = 100
WORKERS = 64
BEHIND = 4  # requests that may be made up for at once
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


@dataclass(frozen=True)
class Attempt:
    """One exchange with one api node that did not come to more than "ask another": when it was sent (monotonic), the
    node's address, 503 or 0 (no answer came), and the seconds after which a 503 said to come again."""

    sent: float
    address: str
    status: int
    retry_after: str = ""


@dataclass
class Beacons:
    """Impressions that were reported: `counted` were acknowledged, `unknown` may have been counted."""

    counted: int = 0
    unknown: int = 0
    refused: list[str] = field(default_factory=list)


class Load:
    """100 requests a second over all demonstration pages, from entering to leaving the context.

    Requests go to the api nodes in turn. One that gets no answer or a 503 goes to the next one, as from behind any load
    balancer, and to each once; `attempts` has those, and `answers` the last word that each request got.
    """

    def __init__(self, cluster: Cluster, addresses: Sequence[str] = ()) -> None:
        self._addresses = addresses or (urlsplit(cluster.http).netloc,)
        self._approved = {}
        self._targets = []
        for site in cluster.sites():
            shown = cluster.ask("site", "show", site["site"])
            self._approved[site["site"]] = set(shown["approved"])
            slots = [{"id": s["slot"], "w": s["width"], "h": s["height"]} for s in shown["slots"]]
            self._targets += [(site["site"], page["url"], slots) for page in cluster.pages(site["site"])]
        self.answers: list[Answer] = []
        self.attempts: list[Attempt] = []
        self.beacons = Beacons()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._local = threading.local()
        self._connections: list[http.client.HTTPConnection] = []
        self._pool = ThreadPoolExecutor(WORKERS)
        self._idle = threading.Semaphore(WORKERS)
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
        """What could not be sent in time, because the machine was busy or all workers waited for answers, is not sent
        all at once later: nobody's readers come so, and the edge sheds whom it has no room for at that moment."""
        due = time.monotonic()
        for number in itertools.count():
            if self._stop.is_set():
                return
            if self._idle.acquire(blocking=False):
                self._pool.submit(self._one, number).add_done_callback(lambda _: self._idle.release())
            due = max(due + 1 / RATE, time.monotonic() - BEHIND / RATE)
            self._stop.wait(max(0.0, due - time.monotonic()))

    def _one(self, number: int) -> None:
        site, url, slots = self._targets[number % len(self._targets)]
        sent = time.monotonic()
        body = json.dumps({"pub": site, "url": url, "imp": slots})
        status, text, _ = self._asked(number, "POST", "/v1/serve/batch", body)
        answer = self._judged(sent, site, status, text, slots)
        with self._lock:
            self.answers.append(answer)
        if status == 200 and number % BEACON_EACH == 0:
            for seat in json.loads(text)["seatbid"]:
                if "winner" in seat:
                    self._beacon(number, seat["winner"]["impUrl"])

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

    def _beacon(self, number: int, url: str) -> None:
        parts = urlsplit(url)
        status, text, again = self._asked(number, "GET", f"{parts.path}?{parts.query}", None)
        with self._lock:
            if status == 204 or (status == 409 and again):
                self.beacons.counted += 1
            elif status in (0, 503):
                self.beacons.unknown += 1
            else:
                self.beacons.refused.append(f"{status} {text[:200]}")

    def _asked(self, number: int, method: str, target: str, body: str | None) -> tuple[int, str, bool]:
        """Status and text of the first node that does not send the request to another one, or of the last; and whether
        one before it may have done what was asked."""
        status, text, again = 0, "", False
        for turn in range(len(self._addresses)):
            address = self._addresses[(number + turn) % len(self._addresses)]
            sent = time.monotonic()
            status, text, retry_after = self._exchange(address, method, target, body)
            if status not in (0, 503):
                break
            with self._lock:
                self.attempts.append(Attempt(sent, address, status, retry_after))
            again = again or status == 0
        return status, text, again

    def _exchange(self, address: str, method: str, target: str, body: str | None) -> tuple[int, str, str]:
        connection = self._connection(address)
        try:
            connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.getheader("retry-after", "")
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return 0, repr(error), ""

    def _connection(self, address: str) -> http.client.HTTPConnection:
        """This thread's own, kept alive; made anew where the other end has closed it meanwhile, which is said on it."""
        mine: dict[str, http.client.HTTPConnection] = self._local.__dict__.setdefault("connections", {})
        if address not in mine:
            mine[address] = http.client.HTTPConnection(address, timeout=15)
            with self._lock:
                self._connections.append(mine[address])
        idle = mine[address].sock
        if idle is not None and select.select([idle], [], [], 0)[0]:
            mine[address].close()
        return mine[address]


class Probes:
    """The readiness of each api node, asked for again and again from entering to leaving the context."""

    def __init__(self, addresses: Sequence[str]) -> None:
        # Of each probe: when it was asked, when it was answered, and whether by 200.
        self._seen: dict[str, list[tuple[float, float, bool]]] = {address: [] for address in addresses}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._watch, args=(address,), daemon=True) for address in addresses]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def outages(self, address: str) -> int:
        """How often it went from ready to not ready."""
        states = [ready for _, _, ready in self._seen[address]]
        return sum(before and not after for before, after in itertools.pairwise(states))

    def ready(self, address: str, at: float) -> bool:
        """Whether it surely was ready at a moment: in the last answer that had come before it, in the first one that
        was asked for after it, and in any between them."""
        seen = self._seen[address]
        before = bisect.bisect(seen, at, key=lambda probe: probe[1]) - 1
        after = bisect.bisect_left(seen, at, key=lambda probe: probe[0])
        return before >= 0 and all(ready for _, _, ready in seen[before : after + 1])

    def _watch(self, address: str) -> None:
        while not self._stop.wait(0.02):
            asked = time.monotonic()
            connection = http.client.HTTPConnection(address, timeout=5)
            try:
                connection.request("GET", "/ready")
                ready = connection.getresponse().status == 200
            except (OSError, http.client.HTTPException):
                ready = False
            finally:
                connection.close()
            self._seen[address].append((asked, time.monotonic(), ready))
