"""The providers that ask a service: `gemini`, `openai`, `anthropic`. One adapter; what they differ in is their `Wire`.

`classify` blocks, and is called on a thread of its own; all that it decides by belongs to the event loop alone, where
the question is asked. Whatever ends without a judgement is judged here instead, and marked as that; but what a node
that stops interrupts is not judged at all: its tag is told that text is wanted still, and the next owner judges it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec

from node.ads.classifier import Classification, Classifier
from node.ads.guards.limiter import LimiterSettings
from node.ads.places import load_gazetteer
from node.ads.taxonomy import load_taxonomy
from node.core.clock import MS, SECOND, Clock
from node.core.errors import OperatingError
from node.core.limits import classify_ms_max
from node.core.rng import Rng
from node.crawler.llm.failure import FOR_THE_OPERATOR, Failure, of_status
from node.crawler.llm.judgement import Judgement, judged
from node.crawler.llm.prompt import shown, told
from node.crawler.llm.stack import Ask, Call, GiveUp, Stack, Wait
from node.crawler.llm.wires import Reply, Request, Service, Wire

GIVEN_BACK: Final = "given_back"
# Far above what the loop needs to notice a deadline: a thread must never wait for a loop that has ended.
_LOOP_GONE_S: Final = 10.0


class Post(Protocol):
    """`node.crawler.providers.post.HttpPost`."""

    async def send(self, request: Request, left_ns: int) -> Reply | Failure: ...

    async def close(self) -> None: ...


class Surroundings(msgspec.Struct, frozen=True):
    """What it needs of its node. `fault` is told what is wrong with the service, in words for an operator: empty when
    nothing is. `fallback` judges what the service does not. `token` asks the cluster's limiter, for `Call.told`; None:
    this node is alone with the service."""

    clock: Clock
    rng: Rng
    post: Post
    fallback: Classifier
    fault: Callable[[str], None]
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    token: Callable[[], Awaitable[int | None]] | None = None


class RemoteClassifier:
    """Fulfils `node.ads.classifier.Classifier`. Made on the event loop that it asks on."""

    def __init__(
        self,
        name: str,
        wire: Wire,
        service: Service,
        pace: LimiterSettings,
        around: Surroundings,
        deadline_ms: int = classify_ms_max,
    ) -> None:
        self.name = name
        self._wire = wire
        self._service = service
        self._around = around
        self._deadline_ns = deadline_ms * MS
        self._stack = Stack(pace, around.clock.mono_ns(), shared=around.token is not None)
        self._loop = asyncio.get_running_loop()
        self._asking: set[asyncio.Task[object]] = set()
        self._leaves = False
        self._gazetteer = load_gazetteer()  # now: the first reading of it takes longer than a turn of the loop may

    def classify(self, text: str, hint: str = "", until_ns: int | None = None) -> Classification:
        """See `Classifier.classify`. Raises OperatingError while the node drains or stops."""
        found = self._ask_and_wait(text, hint, until_ns)
        if found is not None:
            return Classification(found.categories, self.name, places=found.places)
        return msgspec.structs.replace(self._around.fallback.classify(text, hint), fallback=True)

    def counters(self) -> dict[str, int]:
        """By what happened: attempts, answers, failures, answers that were refused, fallbacks and why."""
        found = {f"classifier.{name}": count for name, count in self._stack.counters.items()}
        return {**found, "classifier.breaker_open": int(self._stack.breaker.is_open)}

    def leave(self, leaves: bool) -> None:
        """While the node drains, nobody is asked, and whoever waits for the service hears so at once: pages that are
        being judged hold a drain up."""
        self._leaves = leaves
        for task in tuple(self._asking) if leaves else ():
            task.cancel()

    async def close(self) -> None:
        self.leave(True)
        await asyncio.gather(*self._asking, return_exceptions=True)
        await self._around.post.close()

    def _ask_and_wait(self, text: str, hint: str, until_ns: int | None) -> Judgement | None:
        """On the caller's thread."""
        asked = asyncio.run_coroutine_threadsafe(self._asked(text, hint, until_ns), self._loop)
        try:
            return asked.result(self._deadline_ns / SECOND + _LOOP_GONE_S)
        except (concurrent.futures.CancelledError, TimeoutError):
            asked.cancel()
            raise _leaving() from None

    async def _asked(self, text: str, hint: str, until_ns: int | None) -> Judgement | None:
        if self._leaves:
            self._stack.counters[GIVEN_BACK] += 1
            raise _leaving()
        now_ns = self._around.clock.mono_ns()
        latest_ns = now_ns + self._deadline_ns
        call = self._stack.call(latest_ns if until_ns is None else min(until_ns, latest_ns))
        task = asyncio.current_task()
        if task is not None:
            self._asking.add(task)
        try:
            return await self._answer(call, self._wire.request(self._service, told(), shown(text, hint)))
        except asyncio.CancelledError:
            self._stack.counters[GIVEN_BACK] += 1
            raise
        finally:
            call.withdrawn()
            if task is not None:
                self._asking.discard(task)

    async def _answer(self, call: Call, request: Request) -> Judgement | None:
        around = self._around
        while True:
            now_ns = around.clock.mono_ns()
            step = call.next(now_ns)
            if isinstance(step, GiveUp):
                self._tell()
                return None
            if isinstance(step, Wait):
                await around.sleep((step.until_ns - now_ns) / SECOND)
                continue
            if isinstance(step, Ask):
                told = await around.token() if around.token is not None else None
                call.told(told, around.clock.mono_ns())
                continue
            reply = await around.post.send(request, step.left_ns)
            text = reply if isinstance(reply, Failure) else self._read(reply)
            if isinstance(text, Failure):
                call.failed(text, around.clock.mono_ns(), around.rng.random())
                continue
            call.answered()
            self._tell()
            return self._believed(text)

    def _read(self, reply: Reply) -> str | Failure:
        if reply.status == 200:
            return self._wire.text_of(reply.body)
        failure = of_status(reply.status, reply.headers, self._around.clock.wall_ms())
        return self._wire.failure_of(failure, reply.body)

    def _believed(self, text: str) -> Judgement | None:
        found = judged(text, load_taxonomy(), self._gazetteer)
        if isinstance(found, Judgement):
            self._stack.counters["judged"] += 1
            return found
        self._stack.counters[f"refused_{found}"] += 1
        self._stack.counters["fallback_refused"] += 1
        return None

    def _tell(self) -> None:
        """The fault that an operator sees: at the first failure that only he can end, else once the breaker opens; it
        holds until the service answers."""
        stack, last = self._stack, self._stack.last
        if last is None:
            self._around.fault("")
        elif stack.breaker.is_open or last.reason in FOR_THE_OPERATOR:
            why = f"{self.name} at {self._service.base_url}: {last.words}"
            self._around.fault(f"{why}; pages are judged here instead, and marked as fallback")


def _leaving() -> OperatingError:
    return OperatingError("E-CLASSIFIER", "the node stops; the page is judged when its text comes again")
