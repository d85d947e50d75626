"""The asyncio driver of the state store: group commit.

What waits in a lane goes as one batch, one transaction, to the store's `apply` in a worker thread; meanwhile the next
batch gathers. A store that serves several batches at once is given a lane for each kind of request that must not wait
for another (`node.store.lanes`); within a lane the order of the requests is kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from node.actors.supervision import describe
from node.core import limits
from node.core.clock import MS, Clock
from node.core.faultpoints import reach
from node.store.keys import body_of
from node.store.lanes import PROBES, Lane, one_lane
from node.store.port import Answer, Request, StateChange, StateStore, StoreFailed

_log = logging.getLogger(__name__)


class StoreDriver:
    """The state store behind one worker thread for each lane."""

    def __init__(self, store: StateStore, clock: Clock, lane_of: Callable[[Request], Lane] = one_lane) -> None:
        self._store = store
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._lane_of = lane_of
        self._lanes: dict[Lane, _Queue] = {}
        self._closing = False
        self.batches = 0
        self.requests = 0

    def submit(self, request: Request, done: Callable[[Answer], None]) -> None:
        """Ports.submit: the answer comes on the loop. While closing it is StoreFailed, definite."""
        if self._closing:
            self._loop.call_soon(done, StoreFailed("E-STORE-CLOSED", "the store is closing", True))
            return
        lane = self._lane_of(request)
        queue = self._lanes.get(lane)
        if queue is None:
            queue = self._lanes[lane] = _Queue(lane)
        queue.waiting.append((request, done))
        queue.idle.clear()
        if not queue.since_ns and not queue.soon:
            queue.soon = True  # the rest of this loop turn's requests go into the same batch
            self._loop.call_soon(self._next, queue)

    @property
    def blocked_since_ns(self) -> int | None:
        """When the oldest batch under way was handed over, if that is longer ago than `store_wait_ms_max`: a fault."""
        since_ns = min((queue.since_ns for queue in self._lanes.values() if queue.since_ns), default=0)
        waited_ns = self._clock.mono_ns() - since_ns
        return since_ns if since_ns and waited_ns > limits.store_wait_ms_max * MS else None

    @property
    def failure(self) -> StoreFailed | None:
        """Why the newest batch of some lane was not served: a fault that lasts until one of that lane is."""
        return next((queue.failure for queue in self._lanes.values() if queue.failure), None)

    def look_again(self) -> None:
        """Ask in lanes that were not served and that nobody uses now: a fault must not outlast its cause."""
        for lane, probe in PROBES.items():
            queue = self._lanes.get(lane)
            if queue is not None and queue.failure and queue.idle.is_set():
                self.submit(probe, lambda _answer: None)

    @property
    def queued(self) -> int:
        return sum(len(queue.waiting) for queue in self._lanes.values())

    def standing(self) -> tuple[tuple[str, str, int, int], ...]:
        """Of each lane at work: `("store", its name, requests waiting, milliseconds of the transaction under way)`."""
        now_ns = self._clock.mono_ns()
        return tuple(
            ("store", lane.value, len(queue.waiting), (now_ns - queue.since_ns) // MS)
            for lane, queue in self._lanes.items()
            if queue.since_ns
        )

    async def close(self) -> None:
        """Answer what was submitted, then close the store. Waits as long as the store takes: what was accepted may
        be a promise."""
        self._closing = True
        for queue in self._lanes.values():
            await queue.idle.wait()
        await asyncio.to_thread(self._store.close)
        for queue in self._lanes.values():
            queue.worker.shutdown(wait=True)

    def _next(self, queue: _Queue) -> None:
        queue.soon = False
        if not queue.waiting:
            queue.since_ns = 0
            queue.idle.set()
            return
        batch = queue.take()
        queue.since_ns = max(1, self._clock.mono_ns())
        self.batches += 1
        self.requests += len(batch)
        future = queue.worker.submit(self._store.apply, [request for request, _ in batch])
        applied = partial(self._applied, queue, [done for _, done in batch])
        future.add_done_callback(lambda ended: self._loop.call_soon_threadsafe(applied, ended))

    def _applied(self, queue: _Queue, dones: Sequence[Callable[[Answer], None]], future: Future[list[Answer]]) -> None:
        error = future.exception()
        if error is None:
            answers = future.result()
        else:
            _log.error("the state store failed", exc_info=error)
            answers = [StoreFailed("E-STORE", describe(error), definite=False)] * len(dones)
        queue.failure = _not_served(answers)
        self._next(queue)  # the worker goes on while the answers are handled here
        for done, answer in zip(dones, answers, strict=True):
            try:
                done(answer)
            except Exception:
                _log.exception("a caller of the state store failed on its answer")
        reach("store.after_answer")


class _Queue:
    """One lane: what waits, and the worker that serves it."""

    def __init__(self, lane: Lane) -> None:
        self.worker = ThreadPoolExecutor(1, thread_name_prefix=f"node-store-{lane.value}")
        self.waiting: deque[tuple[Request, Callable[[Answer], None]]] = deque()
        self.since_ns = 0  # when the batch under way was handed over, 0 when there is none
        self.soon = False
        self.failure: StoreFailed | None = None
        self.idle = asyncio.Event()
        self.idle.set()

    def take(self) -> list[tuple[Request, Callable[[Answer], None]]]:
        """The next batch: bounded in requests, and in the bytes that a transaction holds in memory."""
        batch: list[tuple[Request, Callable[[Answer], None]]] = []
        size = 0
        while self.waiting and len(batch) < limits.store_batch_requests_max:
            request = self.waiting[0][0]
            if isinstance(request, StateChange):
                size += len(body_of(request)) + sum(len(fact.body) for fact in request.facts)
            if batch and size > limits.store_batch_bytes_max:
                break
            batch.append(self.waiting.popleft())
        return batch


def _not_served(answers: Sequence[Answer]) -> StoreFailed | None:
    """What kept the store from serving a batch; a request that it refused for itself says nothing of the store."""
    first = answers[0]
    if isinstance(first, StoreFailed) and first.code.startswith("E-STORE") and all(one == first for one in answers):
        return first
    return None
