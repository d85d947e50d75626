"""`request_id`: who asks the same again under the same id is answered what the first was, and nothing happens twice.

Kept by the node that was asked, bounded. A plan's commit and a replay keep their ids themselves, at the cluster; what
else changes something can be repeated on another node without harm: it answers that nothing changed.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import msgspec

from node.admin import protocol as p
from node.core.limits import repeats_kept_max

_ELSEWHERE = (p.CommitPlan, p.StartReplay)
_CONFLICT = 4
Answered = tuple[msgspec.Struct, p.Meta]


class Repeats:
    """Changes by their operator and id, while they are carried out and some time after."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[msgspec.Struct, asyncio.Future[Answered]]] = OrderedDict()

    async def once(self, who: str, request: msgspec.Struct, change: Callable[[], Awaitable[Answered]]) -> Answered:
        """What `change` answers, or answered. One that failed is not remembered: trying again is what the id is for.
        Raises AdminRefusal for an id that stands for another request."""
        name = getattr(request, "request_id", "")
        if not name or isinstance(request, _ELSEWHERE):
            return await change()
        known = self._known.get((who, name))
        if known is not None:
            if known[0] != request:
                text = f"the request id {name[:60]!r} stands for another request"
                raise p.AdminRefusal(_CONFLICT, "E-CONFLICT", text, hint="choose another --request-id", about=name[:60])
            return await asyncio.shield(known[1])
        task = asyncio.ensure_future(change())
        self._known[who, name] = request, task
        while len(self._known) > repeats_kept_max:
            self._known.popitem(last=False)
        kept = False
        try:
            answer, meta = await asyncio.shield(task)
            kept = not isinstance(answer, p.AdminError)
            return answer, meta
        finally:
            if not kept:
                self._known.pop((who, name), None)
