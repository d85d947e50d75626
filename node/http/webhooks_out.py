"""Webhooks that are sent to others: a publisher's events, in their order, each at least once.

Where a receiver stands is a consumer of the log of facts in the state store, so that no restart loses or repeats more
than what was under way; a repeat has the id of the first, by which its receiver knows it. One node sends: the holder of
a lease. A receiver that does not take an event is tried again, ever more seldom, and holds up nobody but itself.
"""

from __future__ import annotations

import asyncio
import http.client
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final
from urllib.parse import urlsplit

import msgspec

from node.admin.states import States
from node.ads.entities.publisher import PublisherState
from node.core import limits
from node.core.clock import MS
from node.engine.engine import Engine
from node.http.access import Access, Receiver
from node.http.events import Event, event_of
from node.http.fact_log import FactLog
from node.http.webhooks import signature
from node.store.port import AcquireLease, AdvanceConsumer, Consumer, LeaseGranted, ReadConsumer
from node.store.projection import ProjectionRow

_log = logging.getLogger(__name__)

LEASE: Final = "webhooks"
FAULT: Final = "E-WEBHOOK"
FAULT_AFTER: Final = 3  # attempts: one or two fail anywhere
_BEGUN: Final = "begun"
# (url, headers, body) -> status; raises OSError.
Post = Callable[[str, dict[str, str], bytes], Awaitable[int]]


class _Standing:
    """How a receiver's next event fares."""

    def __init__(self) -> None:
        self.attempts = 0
        self.not_before_ns = 0


class WebhooksOut:
    """`round` is one look at all receivers; `run` takes them one after the other for ever."""

    def __init__(self, engine: Engine, states: States, access: Callable[[], Access], post: Post) -> None:
        self._engine = engine
        self._states = states
        self._access = access
        self._post = post
        self._log = FactLog(engine)
        self._standing: dict[str, _Standing] = {}

    async def run(self) -> None:
        while True:
            await self.round()
            await asyncio.sleep(limits.webhook_poll_ms / 1_000)

    async def round(self) -> None:
        receivers = self._access().receivers
        if not receivers or not self._engine.drain.accepts_work:
            return
        lease = await self._log.ask(AcquireLease(LEASE, str(self._engine.me), limits.webhook_lease_ms))
        if isinstance(lease, LeaseGranted):
            outcomes = await asyncio.gather(*(self._send(receiver) for receiver in receivers), return_exceptions=True)
            for receiver, outcome in zip(receivers, outcomes, strict=True):
                if isinstance(outcome, BaseException):
                    self._engine.counters["webhook_round_failed"] += 1
                    _log.error("webhooks to %s: %r", receiver.name, outcome)

    async def _send(self, receiver: Receiver) -> None:
        """What has happened since this receiver was last told of anything."""
        standing = self._standing.setdefault(receiver.name, _Standing())
        if self._now_ns() < standing.not_before_ns:
            return
        name = f"webhook.{receiver.name}"
        consumer = await self._log.ask(ReadConsumer(name, (_BEGUN,)))
        if not isinstance(consumer, Consumer):
            return
        if not consumer.rows:
            await self._begin(name, consumer.offset)
            return
        page = await self._log.read(consumer.offset)
        if page is None or not page[0]:
            return
        sites = await self._sites(receiver)
        told = consumer.offset
        until_ns = self._now_ns() + limits.webhook_round_ms_max * MS
        for fact in page[0]:
            event = event_of(fact)
            if event is not None and _wanted(receiver, event, sites):
                in_time = self._now_ns() < until_ns
                if not in_time or not await self._delivered(receiver, event, standing):
                    break
            told = fact.offset
        if told > consumer.offset:
            await self._log.ask(AdvanceConsumer(name, consumer.offset, told))

    async def _begin(self, name: str, offset: int) -> None:
        """A receiver that is new is told of what happens from now on."""
        newest = await self._log.newest()
        if newest is not None:
            await self._log.ask(AdvanceConsumer(name, offset, newest, (ProjectionRow(_BEGUN, b"1"),)))

    async def _sites(self, receiver: Receiver) -> frozenset[str] | None:
        """The sites that it is told of; None for all."""
        if not receiver.publisher:
            return None
        state = await self._states.one("publisher", receiver.publisher, PublisherState)
        return frozenset(state.sites if state is not None else ())

    async def _delivered(self, receiver: Receiver, event: Event, standing: _Standing) -> bool:
        """Whether to go on to the next event."""
        body = msgspec.json.encode({"type": event.type, "timestamp": event.at, "data": event.data})
        at_s = self._engine.world.clock.wall_ms() // 1_000
        try:
            status = await self._post(receiver.url, headers(f"evt-{event.offset}", at_s, body, receiver.keys), body)
            why = f"it answered {status}"
        except (OSError, http.client.HTTPException) as error:
            status, why = 0, f"{type(error).__name__}: {error}"
        if 200 <= status < 300:
            standing.attempts = 0
            self._engine.faults.clear(FAULT, receiver.name)
            self._engine.counters["webhook_sent"] += 1
            return True
        self._engine.counters["webhook_failed"] += 1
        standing.attempts += 1
        if standing.attempts >= limits.webhook_attempts_max:
            standing.attempts = 0
            self._engine.counters["webhook_given_up"] += 1
            return True
        wait_ms = min(limits.webhook_retry_ms_max, limits.webhook_retry_ms_min * 2 ** (standing.attempts - 1))
        jitter = 0.5 + self._engine.world.rng.random() / 2
        standing.not_before_ns = self._now_ns() + int(wait_ms * jitter) * MS
        if standing.attempts >= FAULT_AFTER:
            text = f"the webhook {receiver.name} does not take event {event.offset}: {why}"
            self._engine.faults.put(FAULT, receiver.name, text)
        return False

    def _now_ns(self) -> int:
        return self._engine.world.clock.mono_ns()


def _wanted(receiver: Receiver, event: Event, sites: frozenset[str] | None) -> bool:
    return (not receiver.events or event.type in receiver.events) and (sites is None or event.site in sites)


def headers(message_id: str, at_s: int, body: bytes, keys: Iterable[bytes]) -> dict[str, str]:
    """As Standard Webhooks has them; one signature for each key."""
    return {
        "content-type": "application/json",
        "webhook-id": message_id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join(signature(message_id, at_s, body, key) for key in keys),
    }


async def post(url: str, given: dict[str, str], body: bytes) -> int:
    """The status of a POST; follows no redirect. Raises OSError, or HTTPException for what is no HTTP."""
    return await asyncio.to_thread(_posted, url, given, body)


def _posted(url: str, given: dict[str, str], body: bytes) -> int:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=limits.webhook_timeout_ms / 1_000)
    try:
        target = parts.path or "/"
        connection.request("POST", f"{target}?{parts.query}" if parts.query else target, body, given)
        return connection.getresponse().status
    finally:
        connection.close()
