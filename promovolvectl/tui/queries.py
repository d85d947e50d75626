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
from promovolvectl.tui.state import REPORTS_MAX, Report, State

ASK_MS: Final = 4_000
AT_ONCE_MAX: Final = 4  # questions under way; a screen must not crowd a node
PAUSE_S: Final = 1.0  # events come in crowds, an answer serves all of them
AFTER_PROBLEM_NS: Final = 3 * SECOND
ANY: Final = ("",)  # every event


@dataclass(frozen=True, slots=True)
class Query:
    """`every_s`: how old an answer may become, 0 for one that can't become old. `topics`: events after which it is
    asked anew, by their beginnings; `rest_s`: not before an answer is so old, for one that costs the nodes much."""

    params: msgspec.Struct
    every_s: float = 5.0
    topics: tuple[str, ...] = ()
    wait_ms: int = ASK_MS
    rest_s: float = PAUSE_S


def due(query: Query, report: Report, now_ns: int, *, stirred: bool = False, wished: bool = False) -> bool:
    """Whether to ask now. `stirred`: something happened that the answer may not know of; `wished`: the person did."""
    if report.asking:
        return False
    if wished or not report.tried_ns:
        return True
    since_ns = now_ns - report.tried_ns
    if report.problem:
        return since_ns >= AFTER_PROBLEM_NS
    if stirred and since_ns >= query.rest_s * SECOND:
        return True
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
        self._topics: dict[msgspec.Struct, tuple[str, ...]] = {}
        self._tasks: dict[msgspec.Struct, asyncio.Task[None]] = {}

    def want(self, queries: Iterable[Query]) -> None:
        """These are wanted from now on, and no others; asks those that are due while the cluster is there."""
        self._wanted = tuple(queries)
        self._wished &= {query.params for query in self._wanted}
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
                self._remember(query)
                self._tasks[query.params] = asyncio.create_task(self._ask(query))

    def happened(self, topic: str) -> None:
        """An event: whatever depends on its topic is asked again, soon; what is not wanted now, once it is again."""
        self._stirred |= {params for params, topics in self._topics.items() if topic.startswith(topics)}

    def again(self) -> None:
        """The person wants fresh answers to what is wanted."""
        self._wished |= {query.params for query in self._wanted}

    def close(self) -> None:
        """Gives up what is under way."""
        for task in self._tasks.values():
            task.cancel()
        self._tasks.clear()

    def _remember(self, query: Query) -> None:
        """An answer is kept while nobody looks, and events go by: it must not be taken for a fresh one then."""
        self._topics.pop(query.params, None)
        self._topics[query.params] = query.topics
        for old in list(self._topics)[:-REPORTS_MAX]:
            del self._topics[old]
            self._stirred.discard(old)

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
