"""Requests about what nodes have written down: their logs and events, and how much they log. Each answer has a cursor
that asks any node for what came after it."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from node.admin import cursors
from node.admin import protocol as p
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.held_plans import HeldPlans, Result
from node.admin.outcomes import ask, no_member, read
from node.admin.protocol import diagnosis as d
from node.admin.type_patterns import expect_topics, strange_topics
from node.core import limits
from node.core.clock import rfc3339
from node.core.errors import BadInput
from node.core.ids import ServiceRef
from node.engine import diagnosis_messages as n
from node.engine.messages import NodeDone

if TYPE_CHECKING:
    from node.admin.server import AdminServer

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
STARTED_ANEW = -1


class JournalRequests:
    """Handlers by request type."""

    def __init__(self, server: AdminServer, held: HeldPlans) -> None:
        self._server = server
        self._engine = server.engine
        self._held = held
        server.handlers |= {
            d.GetLogs: self.logs,
            d.GetLogLevels: self.levels,
            d.StageLogLevel: self.stage_level,
            d.GetEventList: self.events,
        }

    # ---- logs

    async def logs(self, request: d.GetLogs, call: p.Meta) -> tuple[d.LogList, p.Meta]:
        after = cursors.read(request.cursor)
        level = getattr(logging, _level(request.level)) if request.level else 0

        def wanted(name: str) -> n.GetLogs:
            start, number = after.get(name, (0, 0))
            return n.GetLogs(number, start, request.since_ms, level, request.text, request.limit)

        pages, missing = await self._server.gatherer.each_its_own(
            {name: wanted(name) for name in self._some(request.node)}, n.LogPage
        )
        lines = []
        for page in pages:
            lost = _lost(after.get(page.node), page.incarnation, page.lost)
            if lost:
                at_ms = page.rows[0].at_ms if page.rows else self._engine.world.clock.wall_ms()
                gap = d.LogItem(at="", node=page.node, level="", logger="", text="", gap=lost)
                lines.append((at_ms, page.node, 0, gap))
            for row in page.rows:
                item = d.LogItem(
                    at=rfc3339(row.at_ms), node=page.node, level=row.level, logger=row.logger, text=row.text
                )
                lines.append((row.at_ms, page.node, row.number, item))
        lines.sort(key=lambda line: line[:3])
        cursor = cursors.written(after | {page.node: (page.incarnation, page.last) for page in pages})
        items = tuple(line[3] for line in lines)
        return d.LogList(items=items, cursor=cursor), self._server.with_missing(call, missing)

    async def levels(self, request: d.GetLogLevels, call: p.Meta) -> tuple[d.LogLevels, p.Meta]:
        [name] = self._some(request.node) if request.node else [self._engine.me.name]
        found: n.LogLevels = await read(self._engine, ServiceRef(name, "/node"), n.GetLogLevels(), NODE_DEADLINE_MS)
        items = tuple(
            d.LogLevelItem(logger=row.logger, level=row.level, left_s=row.left_s or None) for row in found.rows
        )
        return d.LogLevels(node=found.node, items=items), call

    async def stage_level(self, request: d.StageLogLevel, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        """What it would be, against what it is: asked of the node, so that a plan of nothing is none."""
        before, _ = await self.levels(d.GetLogLevels(node=request.node), call)
        level = _level(request.level) if request.level else ""
        if level and not 1 <= request.for_s <= limits.log_level_s_max:
            raise BadInput("for", f"a level is set for 1 s to {limits.log_level_s_max} s")
        held = next((row for row in before.items if row.logger == request.logger), None)
        for_a_time = held is not None and held.left_s is not None
        now = held.level if held else "as its parent's"
        words = f"{level} for {request.for_s} s, then as before" if level else "as before, at once"
        plan = self._held.hold(
            "log-level",
            f"node/{before.node}",
            lambda _reason: self._set_level(before.node, request.logger, level, request.for_s),
            changed=bool(level) or for_a_time,
            notes=(f"{request.logger}: {now} → {words}",),
        )
        return plan, call

    async def _set_level(self, node: str, logger: str, level: str, for_s: int) -> Result:
        order = n.SetLogLevel(logger, level, for_s)
        done: NodeDone = await ask(self._engine, ServiceRef(node, "/node"), order, NODE_DEADLINE_MS)
        return {"changed": done.changed}

    # ---- events

    async def events(self, request: d.GetEventList, call: p.Meta) -> tuple[d.EventList, p.Meta]:
        strange = strange_topics(request.topics)
        if strange:
            expect_topics(strange, await self._topics_kept(request.node))
        after = cursors.read(request.cursor)
        wanted = {name: n.GetEvents(*reversed(after.get(name, (0, 0)))) for name in self._some(request.node)}
        pages, missing = await self._server.gatherer.each_its_own(wanted, n.EventPage)
        items = event_items(pages, after, request.topics, request.since_ms)
        cursor = cursors.written(after | {page.node: (page.incarnation, page.last) for page in pages})
        return d.EventList(items=items, cursor=cursor), self._server.with_missing(call, missing)

    async def _topics_kept(self, node: str) -> set[str]:
        """Of all events that are kept, those that only a later release knows, too."""
        pages, _ = await self._server.gatherer.each_its_own(
            {name: n.GetEvents() for name in self._some(node)}, n.EventPage
        )
        return {event.topic for page in pages for event in page.events}

    def _some(self, name: str) -> list[str]:
        members = self._engine.view.members
        if name and name not in members:
            raise no_member(self._engine, name)
        return [name] if name else sorted(members)


def event_items(
    pages: Sequence[n.EventPage], after: dict[str, cursors.Position], topics: Sequence[str], since_ms: int
) -> tuple[d.EventItem, ...]:
    """Of all nodes in order of time. An event that a node told all others is taken from that node, if it answered."""
    answered = {page.node for page in pages}
    found: list[tuple[int, str, int, d.EventItem]] = []
    for page in pages:
        lost = _lost(after.get(page.node), page.incarnation, page.lost)
        if lost:
            at_ms = page.events[0].at_ms if page.events else 0
            words = "it started anew; what it saw before is gone" if lost < 0 else f"{lost} events are kept no more"
            gap = d.EventItem(at="", topic="gap", object=f"node/{page.node}", text=words, node=page.node, gap=lost)
            found.append((at_ms, page.node, -1, gap))
        for index, event in enumerate(page.events):
            if event.node != page.node and event.node in answered:
                continue
            if event.at_ms < since_ms or (topics and not _fits(event.topic, topics)):
                continue
            item = d.EventItem(
                at=rfc3339(event.at_ms), topic=event.topic, object=event.object, text=event.text, node=event.node
            )
            found.append((event.at_ms, page.node, index, item))
    found.sort(key=lambda one: one[:3])
    return tuple(one[3] for one in found)


def _fits(topic: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(topic, pattern) for pattern in patterns)


def _lost(before: cursors.Position | None, incarnation: int, lost: int) -> int:
    """How many are missing between what was read before and what comes now; -1 when the node started anew."""
    if before is None:
        return 0
    return lost if before[0] == incarnation else STARTED_ANEW


def _level(text: str) -> str:
    """Raises BadInput."""
    if text.upper() not in LEVELS:
        raise BadInput("level", f"{text!r:.40} is not one of {', '.join(LEVELS).lower()}")
    return text.upper()
