"""Server-sent events out of the log of facts: whoever comes back goes on behind the last event that it saw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from node.core import limits
from node.core.clock import MS
from node.engine.engine import Engine
from node.http.call import Call, Stream
from node.http.events import beat, event_of, frame
from node.http.fact_log import FactLog
from node.http.problem import ProblemError, bad_request, unavailable

HEADER: Final = "Last-Event-ID"
_RETRY: Final = b"retry: 2000\n\n"  # milliseconds that a browser waits before it comes back


class EventStreams:
    """Opens streams; at most so many at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._log = FactLog(engine)
        self.open_count = 0

    async def open(self, call: Call, sites: Callable[[str], bool], still: Callable[[], bool]) -> Stream:
        """The events of the sites that `sites` says yes to, while `still` does. Raises ProblemError."""
        given = call.header(b"last-event-id")
        if given and not (given.isdigit() and len(given) <= limits.event_id_digits_max):
            raise bad_request(HEADER, "is not the id of an event")
        newest = await self._log.newest()
        if newest is None:
            raise unavailable("the log of facts can't be read now")
        if given and int(given) > newest:
            raise bad_request(HEADER, "is of an event that has not happened")
        if self.open_count >= limits.event_streams_max:
            text = f"{limits.event_streams_max} streams are open at this node"
            raise ProblemError(503, "Overloaded", text, retry_after_s=5)
        return Stream(self._parts(int(given) if given else newest, sites, still))

    async def _parts(self, after: int, sites: Callable[[str], bool], still: Callable[[], bool]) -> AsyncIterator[bytes]:
        self.open_count += 1
        try:
            yield _RETRY
            beaten_ns = self._now_ns()
            while still() and self._engine.drain.accepts_work:
                # A store that does not answer now is asked again with the next look.
                facts, more = await self._log.read(after) or ((), False)
                for fact in facts:
                    event = event_of(fact)
                    if event is not None and sites(event.site):
                        yield frame(event)
                after = facts[-1].offset if facts else after
                if self._now_ns() - beaten_ns >= limits.event_beat_ms * MS:
                    beaten_ns = self._now_ns()
                    yield beat(after)
                if not more:
                    await asyncio.sleep(limits.event_poll_ms / 1_000)
        finally:
            self.open_count -= 1

    def _now_ns(self) -> int:
        return self._engine.world.clock.mono_ns()
