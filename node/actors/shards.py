"""The shards that this node owns: start, stop without losing mail, and the paced start of remembered entities."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from node.actors.cell import Cell, Phase, Shard, ShardTally
from node.actors.kernel import Kernel
from node.actors.lifecycle import Lifecycle
from node.actors.mailbox import travels
from node.actors.timers import Call
from node.core import limits
from node.core.check import invariant
from node.core.clock import MS
from node.core.ids import EntityRef
from node.store.port import Answer, ListStates, StatePage


@dataclass(frozen=True, slots=True)
class _More:
    """A place in the start queue behind which the shard has more entities."""

    shard: Shard
    after: tuple[str, str]


class Shards:
    """Owned shards; which these are is decided by the region."""

    def __init__(self, kernel: Kernel, lifecycle: Lifecycle) -> None:
        self._kernel = kernel
        self._lifecycle = lifecycle
        self._remembered = tuple(sorted(t.kind for t in kernel.types.values() if t.remember and t.durable is not None))
        self._to_start: deque[tuple[Shard, EntityRef] | _More] = deque()
        self._ticking = False

    def started(self, number: int, epoch: int) -> None:
        """This node owns the shard under `epoch`; a greater one for a running shard replaces it."""
        kernel = self._kernel
        shard = kernel.shards.get(number)
        if shard is not None:
            invariant(not shard.stopping and epoch >= shard.epoch, "I5 a shard starts once", shard=number, epoch=epoch)
            shard.epoch = epoch
            return
        shard = Shard(number, epoch)
        kernel.shards[number] = shard
        if self._remembered:
            self._list(shard, None)

    def stopping(self, number: int, on_stopped: Callable[[ShardTally], None]) -> None:
        """Stop the shard: waiting mail bounces at once and in order, kept replies are answered (within
        `stopping_replies_ms_max`), writes are flushed, then `on_stopped`."""
        kernel = self._kernel
        shard = kernel.shards.get(number)
        if shard is None:
            kernel.later_outside(on_stopped, ShardTally(0, 0, 0, 0))
            return
        shard.on_stopped.append(on_stopped)
        if shard.stopping:
            return
        shard.stopping = True
        shard.entities = len(shard.cells)
        if not shard.cells:
            self._lifecycle.shard_ended(shard)
        for cell in tuple(shard.cells):
            self._stop(cell)
        if shard.cells:
            shard.replies_end = Call(lambda _: self._end_replies(shard))
            kernel.timers.add(kernel.clock.mono_ns() + limits.stopping_replies_ms_max * MS, shard.replies_end)

    def _end_replies(self, shard: Shard) -> None:
        for cell in tuple(shard.cells):
            self._lifecycle.fail_kept(cell, None)
            self._lifecycle.settle(cell)

    def _stop(self, cell: Cell) -> None:
        kernel = self._kernel
        cell.phase = Phase.STOPPING
        cell.room = 0
        kernel.quarantine.pop(cell.ref, None)
        if cell.mailbox:
            waiting = tuple(cell.mailbox)
            cell.mailbox.clear()  # in place: the dispatcher may be walking it
            for item in waiting:
                if travels(item):
                    kernel.count("bounced")
                    cell.shard.bounced += 1
                    kernel.ports.bounce(kernel.envelope_of(cell.ref, item))
                elif kernel.runs_stopping(cell, item):
                    cell.mailbox.append(item)
                else:
                    kernel.dead.count("own_stopping", item.origin.value)
        kernel.schedule(cell)
        self._lifecycle.settle(cell)

    # ---- remembering

    def _list(self, shard: Shard, after: tuple[str, str] | None) -> None:
        kernel = self._kernel
        if not self._owned(shard):
            return
        request = ListStates(
            self._remembered, shard=shard.number, after=after, limit=limits.remember_page_entities, bodies=False
        )
        kernel.ports.submit(request, lambda answer: kernel.later(self._listed, shard, after, answer))

    def _listed(self, shard: Shard, after: tuple[str, str] | None, answer: Answer) -> None:
        kernel = self._kernel
        if not isinstance(answer, StatePage):
            kernel.count("remember_failed")
            retry_ns = kernel.clock.mono_ns() + limits.restart_backoff_ms_min * MS
            kernel.timers.add(retry_ns, Call(lambda _: self._list(shard, after)))
            return
        for record in answer.records:
            self._to_start.append((shard, EntityRef(record.kind, record.id)))
        if answer.more and answer.records:
            last = answer.records[-1]
            self._to_start.append(_More(shard, (last.kind, last.id)))
        if not self._ticking:
            self._tick(kernel.clock.mono_ns())

    def _tick(self, now_ns: int) -> None:
        kernel = self._kernel
        pace = max(1, limits.remember_starts_per_s * limits.remember_tick_ms // 1_000)
        budget = pace
        while budget and self._to_start:
            item = self._to_start.popleft()
            if isinstance(item, _More):
                self._list(item.shard, item.after)
                continue
            shard, ref = item
            if self._owned(shard) and ref not in kernel.cells:
                self._lifecycle.begin(shard, kernel.types[ref.kind], ref)
                kernel.count("remembered")
                budget -= 1
        self._ticking = bool(self._to_start) or budget < pace
        if self._ticking:
            kernel.timers.add(now_ns + limits.remember_tick_ms * MS, Call(self._tick))

    def _owned(self, shard: Shard) -> bool:
        return self._kernel.shards.get(shard.number) is shard and not shard.stopping
