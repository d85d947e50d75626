"""A follower applies the log of facts to one projection, each fact exactly once.

```
        every poll                offset known            page of facts
idle ─────────────▶ asking ───────────────▶ reading ────────────────▶ loading
  ▲                                            │ no facts               │ rows that they change
  │◀───────────────────────────────────────────┘                        ▼
  │◀── caught up, or refused: somebody else advanced it ──────────── advancing ──▶ reading, while there is more
```

What its driver owes: it carries out each request and answers it once; it calls `step` with `Tick` as long as this node
is the one to follow. Two followers at once do no harm: the store lets only one of them move the offset, the other
learns where it is. A failure of the store ends the round; the next one begins with the offset, so that an indefinite
one is resolved by looking.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Protocol

from node.core import limits
from node.core.clock import MS
from node.store.port import (
    AdvanceConsumer,
    Advanced,
    Answer,
    Consumer,
    FactPage,
    ReadConsumer,
    ReadFacts,
    Request,
    StoredFact,
    StoreFailed,
)
from node.store.projection import ProjectionRow


class Projection(Protocol):
    """The rule: which rows facts change, and into what."""

    def keys(self, facts: Sequence[StoredFact]) -> tuple[str, ...]:
        """Rows that are needed to apply the facts."""
        ...

    def fold(self, facts: Sequence[StoredFact], rows: Mapping[str, bytes]) -> Mapping[str, bytes]:
        """The rows as they are after the facts, given those that there are; empty bytes remove one."""
        ...


class Stage(enum.Enum):
    """What the follower waits for."""

    IDLE = "idle"
    ASKING = "asking"
    READING = "reading"
    LOADING = "loading"
    ADVANCING = "advancing"


class Follower:
    """One consumer of the log, under `name`; a request goes out, its answer comes back by `answered`."""

    def __init__(self, name: str, projection: Projection) -> None:
        self._name = name
        self._projection = projection
        self._next_ns = 0
        self._facts: tuple[StoredFact, ...] = ()
        self.stage = Stage.IDLE
        self.offset = 0  # where it is known to stand
        self.applied = 0
        self.conflicts = 0
        self.failure = ""
        self.failures = 0  # since the start, and of them the last: when its round began, and what it was
        self.failed_ns = 0
        self.last_failure = ""
        self._begun_ns = 0

    def tick(self, now_ns: int) -> Request | None:
        """Begin a round when one is due."""
        if self.stage is not Stage.IDLE or now_ns < self._next_ns:
            return None
        self._next_ns = now_ns + limits.facts_poll_ms * MS
        self._begun_ns = now_ns
        self.stage = Stage.ASKING
        return ReadConsumer(self._name)

    def answered(self, answer: Answer) -> Request | None:
        """The answer to the last request, and what to ask next."""
        match self.stage, answer:
            case Stage.ASKING, Consumer(offset=offset):
                return self._read(offset)
            case Stage.READING, FactPage(facts=facts) if facts:
                self._facts = facts
                self.stage = Stage.LOADING
                return ReadConsumer(self._name, self._projection.keys(facts))
            case Stage.LOADING, Consumer(offset=self.offset, rows=rows):
                self.stage = Stage.ADVANCING
                after = self._projection.fold(self._facts, {row.key: row.body for row in rows})
                changed = tuple(ProjectionRow(key, after[key]) for key in sorted(after))
                return AdvanceConsumer(self._name, self.offset, self._facts[-1].offset, changed)
            case Stage.ADVANCING, Advanced(offset=offset):
                self.applied += len(self._facts)
                return self._read(offset)
            case _:
                self._rest(answer)
                return None

    def _read(self, offset: int) -> Request:
        self.offset = offset
        self.stage = Stage.READING
        return ReadFacts(after=offset, limit=limits.facts_page)

    def _rest(self, answer: Answer) -> None:
        """The round is over: nothing new, or refused, or somebody else advanced the consumer meanwhile."""
        self.conflicts += self.stage in (Stage.LOADING, Stage.ADVANCING) and not isinstance(answer, StoreFailed)
        self.failure = f"{answer.code}: {answer.message}" if isinstance(answer, StoreFailed) else ""
        if self.failure:
            self.failures += 1
            self.failed_ns, self.last_failure = self._begun_ns, self.failure
        self.stage = Stage.IDLE
        self._facts = ()
