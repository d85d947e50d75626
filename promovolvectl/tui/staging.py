"""Plans that a dialog asks for: each is either committed or taken off the cluster's list again, whatever became of the
dialog meanwhile. It is never waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from node.admin.protocol import DiscardPlan, Plan
from promovolvectl.client.errors import CommandFailed

Send = Callable[[msgspec.Struct], Awaitable[msgspec.Struct]]


class Staging:
    """`send` asks the cluster; its tasks outlive the dialogs that began them."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, params: msgspec.Struct) -> msgspec.Struct:
        """The cluster's answer; raises CommandFailed."""
        return await self._send(params)

    async def plan(self, params: msgspec.Struct) -> msgspec.Struct:
        """The cluster's plan; raises CommandFailed. Who is cancelled while it is made wants it no more: the answer is
        awaited by a task of its own, which discards it."""
        found: asyncio.Future[msgspec.Struct] = asyncio.get_running_loop().create_future()
        self._begin(self._make(params, found))
        return await found

    def discard(self, plan: Plan) -> None:
        """Forgets a plan that isn't wanted."""
        self._begin(self._discard(plan))

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _make(self, params: msgspec.Struct, found: asyncio.Future[msgspec.Struct]) -> None:
        try:
            answer = await self._send(params)
        except Exception as failed:  # whatever it is, who waits for the plan is told
            if not found.done():
                found.set_exception(failed)
            return
        if not found.done():
            found.set_result(answer)
        elif isinstance(answer, Plan):
            await self._discard(answer)

    async def _discard(self, plan: Plan) -> None:
        if not plan.changed:
            return  # nobody keeps one that changes nothing, and a refusal would be on record
        try:
            await self._send(DiscardPlan(id=plan.id))
        except CommandFailed:
            return  # it is gone already, or ages out; nobody who has left the dialog has to hear of it
