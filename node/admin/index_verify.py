"""Checks of whole replica files: each node has its own checked by a process of its own, while it serves.

One check at a time on a node; who asks while one runs is told about that one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from node.admin import index_views
from node.admin import protocol as p
from node.admin.index_requests import IndexRequests
from node.core.clock import MS
from node.core.limits import index_problems_max
from node.engine.index_messages import FileProblem, IndexVerified, VerifyIndex
from node.store.replica_report import ReplicaReport, VerifyProgress
from node.wire.envelope import Envelope

if TYPE_CHECKING:
    from node.admin.server import AdminServer

# Checks this node's file, telling how far it is; see `node.store.replica_check`.
Check = Callable[[Callable[[VerifyProgress], None]], Awaitable[ReplicaReport]]


class IndexVerify:
    """Both sides: the check of this node's file, and the operators' requests about all nodes' checks."""

    def __init__(self, server: AdminServer, index: IndexRequests, check: Check) -> None:
        self._server = server
        self._engine = server.engine
        self._index = index
        self._check = check
        self._task: asyncio.Task[None] | None = None
        self._began_ns = 0
        self._seen = IndexVerified(self._engine.me.name, "none")
        self._engine.services[VerifyIndex] = self._wanted
        server.handlers |= {p.StartVerify: self.start, p.GetVerify: self.look}

    async def start(self, request: p.StartVerify, call: p.Meta) -> tuple[p.ServeIndexVerify, p.Meta]:
        return await self._gathered(request.nodes, VerifyIndex(True), call)

    async def look(self, request: p.GetVerify, call: p.Meta) -> tuple[p.ServeIndexVerify, p.Meta]:
        return await self._gathered(request.nodes, VerifyIndex(False), call)

    async def _gathered(
        self, names: tuple[str, ...], message: VerifyIndex, call: p.Meta
    ) -> tuple[p.ServeIndexVerify, p.Meta]:
        found, missing = await self._server.gatherer.each(self._index.nodes(names), message, IndexVerified)
        return index_views.verified(found), self._server.with_missing(call, tuple(missing))

    def _wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, VerifyIndex):
            if message.start and self._seen.state != "running":
                self._began_ns = self._engine.world.clock.mono_ns()
                self._seen = IndexVerified(self._engine.me.name, "running")
                self._task = asyncio.create_task(self._run(), name="replica-check")
            self._engine.reply(envelope, self._seen)

    async def _run(self) -> None:
        try:
            report = await self._check(self._progress)
            problems = report.problems[:index_problems_max]
            self._seen = IndexVerified(
                self._engine.me.name,
                "done",
                report.checked,
                report.checked,
                report.problems_found,
                tuple(FileProblem(one.kind, one.text, one.map, one.key) for one in problems),
                report.complete,
                report.file_bytes,
                report.live_bytes,
                self._elapsed_ms(),
            )
        except OSError as error:
            problem = FileProblem("structure", f"the check could not be started: {error}", -1, "")
            self._seen = IndexVerified(self._engine.me.name, "done", problems_found=1, problems=(problem,))

    def _progress(self, progress: VerifyProgress) -> None:
        self._seen = IndexVerified(
            self._engine.me.name,
            "running",
            progress.checked,
            progress.total,
            progress.problems,
            elapsed_ms=self._elapsed_ms(),
        )

    def _elapsed_ms(self) -> int:
        return (self._engine.world.clock.mono_ns() - self._began_ns) // MS

    async def close(self) -> None:
        """Ends a check that runs, and its process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
