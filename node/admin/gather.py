"""Asking every member for its report, at once, each with its own deadline; who did not answer is named."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from node.actors.runtime import outcome_of
from node.admin.asking import patience_ms
from node.admin.protocol import Missing
from node.core.clock import rfc3339
from node.core.hashing import MAP_COUNT
from node.core.ids import ServiceRef
from node.engine.engine import Engine
from node.engine.messages import (
    DecisionsReport,
    GetDecisions,
    GetNodeReport,
    GetReplicaEntry,
    NodeReport,
    ReplicaEntryReport,
)
from node.engine.nodeservice import NodeService

NODE_DEADLINE_MS = 2_000
S = TypeVar("S", bound=msgspec.Struct)


class Gatherer:
    """Gathers from the members that this node knows."""

    def __init__(self, engine: Engine, service: NodeService) -> None:
        self._engine = engine
        self._service = service

    async def reports(
        self, *, coverage: bool = True, but: tuple[Missing, ...] = ()
    ) -> tuple[dict[str, NodeReport], tuple[Missing, ...]]:
        """Reports by node, and the members that gave none. Who looks again leaves out those who were silent before
        (`but`, who stay missing): each would cost its whole deadline once more."""
        silent = {each.node for each in but}
        names = [name for name in sorted(self._engine.view.members) if name not in silent]
        found = await asyncio.gather(*(self._report(name, coverage=coverage) for name in names))
        # A report that is not of this release's shape is none: nobody's answer may break everybody's view.
        found = [r if not isinstance(r, NodeReport) or len(r.maps) == MAP_COUNT else None for r in found]
        reports = {report.node: report for report in found if isinstance(report, NodeReport)}
        return reports, (*but, *self._missing(names, found))

    async def entries(
        self, key: str, *, local: bool = False
    ) -> tuple[dict[str, ReplicaEntryReport], tuple[Missing, ...]]:
        """A key as each node's replica holds it, or as this one's alone."""
        names = [self._engine.me.name] if local else sorted(self._engine.view.members)
        found = await asyncio.gather(*(self._entry(name, key) for name in names))
        entries = {entry.node: entry for entry in found if isinstance(entry, ReplicaEntryReport)}
        return entries, self._missing(names, found)

    async def decisions(self, limit: int) -> tuple[dict[str, DecisionsReport], tuple[Missing, ...]]:
        """The newest split-brain decisions of each node."""
        names = sorted(self._engine.view.members)
        found = await asyncio.gather(*(self._decisions(name, limit) for name in names))
        reports = {report.node: report for report in found if isinstance(report, DecisionsReport)}
        return reports, self._missing(names, found)

    async def _decisions(self, name: str, limit: int) -> object:
        if name == self._engine.me.name:
            return self._service.decisions(limit)
        return await self._asked(name, GetDecisions(limit))

    async def each(
        self, nodes: Iterable[str], message: msgspec.Struct, answer: type[S]
    ) -> tuple[list[S], list[Missing]]:
        """What each of the nodes answers, at once, in the order of their names; and those that did not."""
        answers, missing = await self.each_its_own(dict.fromkeys(nodes, message), answer)
        return answers, list(missing)

    async def each_its_own(
        self, messages: Mapping[str, msgspec.Struct], answer: type[S]
    ) -> tuple[list[S], tuple[Missing, ...]]:
        """The same, with a message for each node."""
        names = sorted(messages)
        found = await asyncio.gather(*(self._asked(name, messages[name]) for name in names))
        answers = [outcome for outcome in found if isinstance(outcome, answer)]
        by_name = zip(names, found, strict=True)
        return answers, tuple(
            self.silent(name, outcome) for name, outcome in by_name if not isinstance(outcome, answer)
        )

    async def _asked(self, name: str, message: msgspec.Struct) -> object:
        for_ms = patience_ms(self._engine.world.clock, NODE_DEADLINE_MS)
        return await outcome_of(lambda done: self._engine.ask(ServiceRef(name, "/node"), message, for_ms, done))

    async def _report(self, name: str, *, coverage: bool) -> object:
        if name == self._engine.me.name:
            return self._service.report(coverage=coverage)
        return await self._asked(name, GetNodeReport(coverage))

    async def _entry(self, name: str, key: str) -> object:
        if name == self._engine.me.name:
            return self._service.index.entry(key)
        return await self._asked(name, GetReplicaEntry(key))

    def _missing(self, names: list[str], outcomes: list[object]) -> tuple[Missing, ...]:
        return tuple(
            self.silent(name, outcome)
            for name, outcome in zip(names, outcomes, strict=True)
            if not isinstance(outcome, (NodeReport, ReplicaEntryReport, DecisionsReport))
        )

    def silent(self, name: str, outcome: object = None) -> Missing:
        """A node that gave no answer, as the operator is told."""
        reason = getattr(outcome, "failure", None)
        now = rfc3339(self._engine.world.clock.wall_ms())
        return Missing(node=name, reason=reason.value if reason else "no answer", since=now)
