"""The asyncio driver: turns the system when there is work, runs blocking calls in threads.

With `store_driver` and `watchdog` the only module of this package with an event loop or threads. The system needs the
driver's `wake` and `execute` in its ports and the driver needs the system, so: make the driver, make the system with
its methods, then `drive(system)`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Protocol

from node.actors.actor import Failed, Failure
from node.actors.flight import AtWork
from node.actors.supervision import describe
from node.actors.watchdog import Watchdog
from node.core import limits
from node.core.clock import MS, Clock
from node.core.errors import LocalProtocolError

_log = logging.getLogger(__name__)


class Driven(Protocol):
    """What can be turned: an actor system, or an engine around one."""

    def turn(self, now_ns: int) -> bool: ...

    def next_wake_ns(self) -> int | None: ...

    def at_work(self) -> AtWork | None: ...


async def outcome_of(start: Callable[[Callable[[Any], None]], None]) -> Any:
    """Awaits what `start` hands to its callback: how the edges, which alone await, ask the machinery."""
    future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def settle(outcome: Any) -> None:
        if not future.done():  # its waiter may have gone away
            future.set_result(outcome)

    start(settle)
    return await future


async def outcomes_of(starts: Sequence[Callable[[Callable[[Any], None]], None]]) -> list[Any]:
    """As `outcome_of`, of several that are started together; in their order. A task for each would cost more than what
    is asked."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    outcomes: list[Any] = [None] * len(starts)
    waiting = len(starts)

    def settle(at: int, outcome: Any) -> None:
        nonlocal waiting
        outcomes[at] = outcome
        waiting -= 1
        if not waiting and not future.done():
            future.set_result(None)

    for at, start in enumerate(starts):
        start(partial(settle, at))
    if starts:
        await future
    return outcomes


class Runtime:
    """Drives one system on the running loop. `executors`: names of blocking executors, with their threads."""

    def __init__(self, clock: Clock, executors: Mapping[str, int]) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._system: Driven | None = None
        self._executors = {name: _Executor(self._loop, clock, name, threads) for name, threads in executors.items()}
        self._soon: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = 0
        self._closed = False
        self._watchdog: Watchdog | None = None

    def drive(self, system: Driven) -> None:
        """Start turning the system, and watch that none of its handlers holds it up."""
        self._system = system
        self._watchdog = Watchdog(self._clock, system.at_work)
        self.wake()

    def wake(self) -> None:
        """Ports.wake."""
        if self._soon is None and self._system is not None and not self._closed:
            self._soon = self._loop.call_soon(self._turn)

    def execute(
        self, executor: str, fn: Callable[..., Any], args: tuple[Any, ...], done: Callable[[object], None]
    ) -> bool:
        """Ports.execute. Raises LocalProtocolError for an executor that this node does not have."""
        found = self._executors.get(executor)
        if found is None:
            raise LocalProtocolError(f"no executor {executor!r} on this node")
        return not self._closed and found.submit(fn, args, done)

    def executor_load(self) -> dict[str, int]:
        """Calls queued or running, of each executor."""
        return {name: executor.load for name, executor in self._executors.items()}

    def standing(self) -> tuple[tuple[str, str, int, int], ...]:
        """Of each executor with work: `("executor", its name, calls queued or running, milliseconds of the oldest)`."""
        return tuple(
            ("executor", name, executor.load, executor.oldest_ms())
            for name, executor in self._executors.items()
            if executor.load
        )

    async def close(self) -> None:
        """Stop turning; wait for blocking work a while, then leave it to end on its own."""
        self._closed = True
        if self._watchdog is not None:
            self._watchdog.close()
        for handle in (self._soon, self._timer):
            if handle is not None:
                handle.cancel()
        await asyncio.gather(*(executor.close() for executor in self._executors.values()))

    def _turn(self) -> None:
        self._soon = None
        system = self._system
        if system is None or self._closed:
            return
        more = True  # a turn that raises (a fault of ours, which the loop reports) must not be the last
        try:
            more = system.turn(self._clock.mono_ns())
        finally:
            if more:
                self.wake()
            else:
                self._sleep(system.next_wake_ns())

    def _sleep(self, wake_ns: int | None) -> None:
        if self._timer is not None:
            if wake_ns == self._timer_ns:
                return
            self._timer.cancel()
            self._timer = None
        if wake_ns is not None:
            self._timer_ns = wake_ns
            # Rounded up: uvloop counts in milliseconds, and a timer that comes early would spin until it is due.
            delay_s = max(0, -(-(wake_ns - self._clock.mono_ns()) // MS)) / 1_000
            self._timer = self._loop.call_later(delay_s, self._timer_due)

    def _timer_due(self) -> None:
        self._timer = None
        self.wake()


class _Executor:
    """A bounded thread pool; `load` counts what is queued or runs, up to its threads and `executor_queue_max`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock, name: str, threads: int) -> None:
        self._loop = loop
        self._clock = clock
        self._since_ns: dict[int, int] = {}  # of each call, by the order in which they came
        self._count = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"node-{name}")
        self._load_max = threads + limits.executor_queue_max
        self._idle = asyncio.Event()
        self._idle.set()
        self.load = 0

    def submit(self, fn: Callable[..., Any], args: tuple[Any, ...], done: Callable[[object], None]) -> bool:
        if self.load >= self._load_max:
            return False
        self.load += 1
        self._idle.clear()
        self._count += 1
        number = self._count
        self._since_ns[number] = self._clock.mono_ns()
        future = self._pool.submit(fn, *args)
        future.add_done_callback(lambda ended: self._loop.call_soon_threadsafe(self._ended, number, done, ended))
        return True

    def oldest_ms(self) -> int:
        """How long the oldest call has waited and run; 0 when there is none."""
        return (self._clock.mono_ns() - next(iter(self._since_ns.values()))) // MS if self._since_ns else 0

    def _ended(self, number: int, done: Callable[[object], None], future: Future[Any]) -> None:
        self.load -= 1
        del self._since_ns[number]
        if not self.load:
            self._idle.set()
        if future.cancelled():
            done(Failed(Failure.STOPPED, "the node is stopping"))
            return
        error = future.exception()
        done(future.result() if error is None else Failed(Failure.FAILED, describe(error)))

    async def close(self) -> None:
        try:
            async with asyncio.timeout(limits.executors_close_ms_max / 1_000):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("blocking work did not end in time; left behind: %d calls", self.load)
        self._pool.shutdown(wait=False, cancel_futures=True)
