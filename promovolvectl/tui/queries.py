"""Questions that a screen has, and when each is due again.

What nobody looks at is not asked: the queries of the screen that is seen are wanted, all others rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from node.admin.protocol import REPLIES
from node.core.clock import SECOND, Clock
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.tui.feed import Source
from promovolvectl.tui.incoming import Asked, Incoming, Told, Untold
from promovolvectl.tui.state import Report, State

ASK_MS: Final = 4_000
AT_ONCE_MAX: Final = 4  # questions under way; a screen must not crowd a node
PAUSE_NS: Final = SECOND  # events come in crowds, an answer serves all of them
AFTER_PROBLEM_NS: Final = 3 * SECOND


@dataclass(frozen=True, slots=True)
class Query:
    """`every_s`: how old an answer may become, 0 for one that is asked only once and when the person says so.
    `topics`: events after which it is asked anew, by their beginnings."""

    params: msgspec.Struct
    every_s: float = 5.0
    topics: tuple[str, ...] = ()
    wait_ms: int = ASK_MS


def due(query: Query, report: Report, now_ns: int, *, stirred: bool = False, wished: bool = False) -> bool:
    """Whether to ask now. `stirred`: something happened that the answer may not know of; `wished`: the person did."""
    if report.asking:
        return False
    if wished or not report.tried_ns:
        return True
    since_ns = now_ns - report.tried_ns
    if report.problem:
        return since_ns >= AFTER_PROBLEM_NS
    if stirred:
        return since_ns >= PAUSE_NS
    return bool(query.every_s) and since_ns >= query.every_s * SECOND


class Asker:
    """Asks what is wanted and due. `tell` is given questions and answers, on the loop; `state` is what they led to."""

    def __init__(
        self, source: Source, tell: Callable[[Incoming], None], state: Callable[[], State], clock: Clock
    ) -> None:
        self._source = source
        self._tell = tell
        self._state = state
        self._clock = clock
        self._stirred: set[msgspec.Struct] = set()
        self._wished: set[msgspec.Struct] = set()
        self._wanted: tuple[Query, ...] = ()
        self._tasks: dict[msgspec.Struct, asyncio.Task[None]] = {}

    def want(self, queries: Iterable[Query]) -> None:
        """These are wanted from now on, and no others; asks those that are due while the cluster is there."""
        self._wanted = tuple(queries)
        asked = {query.params for query in self._wanted}
        self._stirred &= asked
        self._wished &= asked
        if not self._state().connected:
            return
        now_ns = self._clock.mono_ns()
        for query in self._wanted:
            if len(self._tasks) >= AT_ONCE_MAX:
                return
            params = query.params
            if params in self._tasks:
                continue
            report = self._state().report(params)
            if due(query, report, now_ns, stirred=params in self._stirred, wished=params in self._wished):
                self._stirred.discard(params)
                self._wished.discard(params)
                self._tasks[query.params] = asyncio.create_task(self._ask(query))

    def happened(self, topic: str) -> None:
        """An event: what is wanted and depends on its topic is asked again, soon."""
        self._stirred |= {query.params for query in self._wanted if topic.startswith(query.topics or ("\0",))}

    def again(self) -> None:
        """The person wants fresh answers to what is wanted."""
        self._wished |= {query.params for query in self._wanted}

    def close(self) -> None:
        """Gives up what is under way."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    async def _ask(self, query: Query) -> None:
        params = query.params
        self._tell(Asked(params))
        try:
            expected: Any = REPLIES.get(type(params), msgspec.Struct)
            value, meta = await self._source.ask(params, expected, query.wait_ms)
            self._tell(Told(self._clock.mono_ns(), params, value, meta))
        except CommandFailed as failed:
            denied = failed.status is ExitStatus.NOT_ALLOWED
            self._tell(Untold(self._clock.mono_ns(), params, failed.message, denied))
        finally:
            self._tasks.pop(params, None)
        self.want(self._wanted)
