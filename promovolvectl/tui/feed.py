"""Keeps the subscription: another node when one is lost, with a backoff, for as long as the dashboard runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol, TypeVar

import msgspec

from node.admin.protocol import AdminEvent, Meta, StatusPush
from node.core.clock import MS, Clock, rfc3339
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint
from promovolvectl.tui.incoming import Happened, Heard, Incoming, Lost, Opened, Pushed

PUSH_MS: Final = 1_000
RETRY_MS_MIN: Final = 250
RETRY_MS_MAX: Final = 2_000  # an attempt at dead addresses comes on top; live again within 5 s is promised

Reply = TypeVar("Reply", bound=msgspec.Struct)


class Source(Protocol):
    """What the dashboard needs of the admin client; `promovolvectl.client.calls.AdminClient` is one."""

    @property
    def endpoint(self) -> Endpoint | None: ...

    def subscribe(
        self, min_interval_ms: int = 500, beat: Callable[[], None] | None = None
    ) -> AsyncIterator[StatusPush | AdminEvent]: ...

    async def ask(self, params: msgspec.Struct, reply: type[Reply], timeout_ms: int = 10_000) -> tuple[Reply, Meta]: ...

    def close(self) -> None: ...


class Feed:
    """One task's worth of following. `tell` is given everything that comes, in order, on the loop."""

    def __init__(self, source: Source, tell: Callable[[Incoming], None], clock: Clock) -> None:
        self._source = source
        self._tell = tell
        self._clock = clock
        self._now = asyncio.Event()

    def retry_now(self) -> None:
        """Ends the pause before the next attempt."""
        self._now.set()

    async def run(self) -> None:
        """Never returns; only cancelling ends it."""
        pause_ms = RETRY_MS_MIN
        while True:
            opened, problem = await self._follow()
            pause_ms = RETRY_MS_MIN if opened else min(RETRY_MS_MAX, pause_ms * 2)
            self._now.clear()
            self._tell(
                Lost(
                    at_ns=self._clock.mono_ns(),
                    at=rfc3339(self._clock.wall_ms()),
                    reason=problem.message,
                    retry_at_ns=self._clock.mono_ns() + pause_ms * MS,
                    denied=problem.status is ExitStatus.NOT_ALLOWED,
                )
            )
            try:
                async with asyncio.timeout(pause_ms / 1000):
                    await self._now.wait()
            except TimeoutError:
                continue

    def _beat(self) -> None:
        self._tell(Heard(self._clock.mono_ns()))

    async def _follow(self) -> tuple[bool, CommandFailed]:
        """Whether a node took the subscription, and how it ended."""
        opened = False
        try:
            async for push in self._source.subscribe(PUSH_MS, self._beat):
                if not opened:
                    opened = True
                    self._tell(Opened(self._clock.mono_ns(), _name_of(self._source.endpoint)))
                match push:
                    case StatusPush():
                        self._tell(Pushed(self._clock.mono_ns(), push))
                    case AdminEvent():
                        self._tell(Happened(push))
        except CommandFailed as problem:
            return opened, problem
        return opened, CommandFailed(ExitStatus.UNREACHABLE, "E-LOST", "the node ended the subscription")


def _name_of(endpoint: Endpoint | None) -> str:
    return (endpoint.node or endpoint.admin) if endpoint else ""
