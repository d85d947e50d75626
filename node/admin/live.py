"""Live views: a status push when it changed, and the cluster's events as they come.

One gathering serves all subscribers. Nothing is gathered while nobody watches, and little while nothing happens.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from node.actors.bus import Gap, Subscription
from node.admin import protocol as p
from node.admin import views
from node.admin.asking import ANSWER_MS, ends_ns
from node.admin.pace import REST_MS, nothing_new, pause_ms
from node.core.clock import MS, rfc3339
from node.core.errors import OperatingError
from node.engine.events import EVENTS, NodeEvent
from node.wire.port import SendOutcome

if TYPE_CHECKING:
    from node.admin.server import AdminServer, Reply

_log = logging.getLogger(__name__)
LOOK_MS = 1_000
# A subscriber says so again within this time, or it is gone: whose connection has ended is found out by the next push,
# one that stands still by its silence.
SUBSCRIBER_MS_MAX = 30_000


@dataclass(slots=True)
class _Watcher:
    number: int
    interval_ms: int
    reply: Reply
    heard_ns: int
    pushed_ns: int = 0


class Live:
    """Subscribers by connection."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._watchers: dict[Any, _Watcher] = {}
        self._task: asyncio.Task[None] | None = None
        self._events: Subscription | None = None
        self._stirred = asyncio.Event()  # an event, or another watcher: the next look is due

    def subscribe(self, client: Any, number: int, request: p.Subscribe, reply: Reply) -> None:
        """Start pushing to a connection, or renew its subscription."""
        now_ns = self._server.engine.world.clock.mono_ns()
        known = self._watchers.get(client)
        if known is not None and known.number == number:
            known.heard_ns = now_ns
            return
        self._watchers[client] = _Watcher(number, max(100, request.min_interval_ms), reply, now_ns)
        self._stirred.set()
        if self._events is None:
            self._events = self._server.engine.system.bus.subscribe(EVENTS, self._on_events)
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="admin-live")

    def close(self) -> None:
        self._watchers.clear()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self._events is not None:
            self._events.close()
            self._events = None

    def _on_events(self, subscription: Subscription) -> None:
        while True:
            event = subscription.take()
            if event is None:
                break
            self._stirred.set()
            message = _as_event(event)
            for client in list(self._watchers):
                self._push(client, self._server.meta(), message)

    async def _run(self) -> None:
        clock = self._server.engine.world.clock
        last: p.ClusterStatus | None = None
        quiet = 0
        while self._watchers:
            began_ns = clock.mono_ns()
            quiet = 0 if self._stirred.is_set() else quiet
            self._stirred.clear()
            self._forget_silent(began_ns)
            try:
                status, meta = await self._look(began_ns)
            except Exception as error:
                # One status that can't be had must not end the pushes for good.
                if isinstance(error, OperatingError):
                    _log.warning("live status: %s", error.message)
                else:
                    _log.exception("live status failed")
                quiet = 0
            else:
                self._push_status(status, meta, changed=status != last)
                quiet = quiet + 1 if nothing_new(last, status) else 0
                last = status
            await self._rest((clock.mono_ns() - began_ns) // MS, quiet)
        self._task = None
        self.close()

    async def _look(self, began_ns: int) -> tuple[p.ClusterStatus, p.Meta]:
        """The status, soon: who is known to be out of reach is not waited for, and nobody for longer than `LOOK_MS`,
        so that a death is seen within 5 s, whenever in a look it comes."""
        ends_ns.set(began_ns + (LOOK_MS + ANSWER_MS) * MS)
        view, silent = self._server.engine.view, self._server.gatherer.silent
        gone = tuple(silent(name) for name in sorted(view.members) if not view.reachable(name))
        return await self._server.status(self._server.meta(), but=gone)

    def _push_status(self, status: p.ClusterStatus, meta: p.Meta, *, changed: bool) -> None:
        now_ns = self._server.engine.world.clock.mono_ns()
        push = p.StatusPush(status=status, meta=meta, health=views.health(status))
        for client, watcher in list(self._watchers.items()):
            if changed or now_ns - watcher.pushed_ns > REST_MS * MS:
                watcher.pushed_ns = now_ns
                self._push(client, meta, push)

    async def _rest(self, passed_ms: int, quiet: int) -> None:
        """Until the next look is due; what happens meanwhile brings it on, but not before the watchers' interval."""
        shortest_ms = min((watcher.interval_ms for watcher in self._watchers.values()), default=0)
        await asyncio.sleep(max(0, shortest_ms - passed_ms) / 1_000)
        left_ms = pause_ms(shortest_ms, quiet) - max(shortest_ms, passed_ms)
        try:
            async with asyncio.timeout(left_ms / 1_000):
                await self._stirred.wait()
        except TimeoutError:
            return

    def _push(self, client: Any, meta: p.Meta, message: msgspec.Struct) -> None:
        """To one subscriber, who is forgotten when nobody is there any more."""
        watcher = self._watchers[client]
        if self._server.push(watcher.number, meta, message, watcher.reply) is SendOutcome.NO_ROUTE:
            del self._watchers[client]
            self._stirred.set()

    def _forget_silent(self, now_ns: int) -> None:
        for client in [c for c, w in self._watchers.items() if now_ns - w.heard_ns > SUBSCRIBER_MS_MAX * MS]:
            del self._watchers[client]


def _as_event(event: msgspec.Struct | Gap) -> p.AdminEvent:
    if isinstance(event, NodeEvent):
        return p.AdminEvent(
            at=rfc3339(event.at_ms), topic=event.topic, object=event.object, text=event.text, node=event.node
        )
    lost = event.lost if isinstance(event, Gap) else 0
    return p.AdminEvent(at="", topic="gap", object="events", text=f"{lost} events were lost", gap=lost)
