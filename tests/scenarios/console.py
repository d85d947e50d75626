"""An operator's console in a story: requests go through a simulated node's own admin server, answered in virtual time.

The handlers are coroutines; their loop is turned by hand, a look at a time, while the story's time passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import msgspec

from node.admin import protocol as p
from node.admin.server import AdminServer
from node.sim.process import TextClassifier
from node.sim.story import Story

ANSWER_S = 10


class Console:
    """At one node; a new one is needed after that node's restart. `ask` raises AdminRefusal."""

    def __init__(self, s: Story, node: str, roster: tuple[str, ...] = ()) -> None:
        process = s.host(node).process
        assert process is not None
        assert process.engine is not None
        assert process.service is not None
        self._s = s
        self.server = AdminServer(process.engine, process.service, TextClassifier(), roster)

    def ask(self, request: msgspec.Struct) -> Any:
        return self.asked(request)[0]

    def asked(self, request: msgspec.Struct) -> tuple[Any, p.Meta]:
        """The answer, with who observed it and who is missing."""
        return self._through(self.server.handlers[type(request)](request, self.server.meta()))

    def plan_and_commit(self, stage: msgspec.Struct, reason: str = "") -> p.Operation | p.Plan:
        """As the command does it: a plan that changes nothing is not committed."""
        plan: p.Plan = self.ask(stage)
        if not plan.changed:
            return plan
        operation: p.Operation = self.ask(p.CommitPlan(id=plan.id, reason=reason, request_id=plan.id))
        return operation

    def _through(self, answer: Awaitable[Any]) -> Any:
        loop = asyncio.new_event_loop()
        task = asyncio.ensure_future(answer, loop=loop)

        def answered(_: Story) -> str:
            loop.call_soon(loop.stop)
            loop.run_forever()
            return "" if task.done() else "not answered"

        try:
            self._s.until(answered, within_s=ANSWER_S)
            return task.result()
        finally:
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            loop.close()
