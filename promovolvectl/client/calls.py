"""One asynchronous admin client, shared by the command line and the dashboard.

Requests and replies are matched by number over one connection, so that any number of calls can be open at once.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

import msgspec

from node.admin import protocol
from node.admin.protocol import AdminError, AdminEvent, GetShardOf, Meta, StatusPush, Subscribe
from promovolvectl.client import documents
from promovolvectl.client.connect import PATIENCE_MS, Link, NoLink, Open, connect
from promovolvectl.client.errors import LOST, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile

ATTEMPT_MS: Final = 4_000  # a node that fans out waits 2 s for its peers; twice that is silence
PUSHES_MAX: Final = 1_000
BEAT_MS: Final = 1_000  # who shows a person that the node is there asks it so often
RENEW_MS: Final = 5_000  # a node forgets a subscriber that it has not heard of for 30 s
_READS: Final = ("Get", "ClassifyText")
_UNDONE: Final = "E-AUDIT"  # what is not on record is not done
_HEALTH: Final = "promovolvectl cluster health"

Reply = TypeVar("Reply", bound=msgspec.Struct)


class AdminClient:
    """Calls nodes of one cluster. `bind` is told the cluster's name and id at first contact, to be remembered.
    `patience_ms` is for a cluster of which no node is quick to take a connection."""

    def __init__(
        self,
        profile: Profile,
        open_link: Open,
        bind: Callable[[Meta], None] | None = None,
        patience_ms: int = PATIENCE_MS,
    ) -> None:
        self.profile = profile
        self.endpoint: Endpoint | None = None
        self._open_link = open_link
        self._bind = bind
        self._patience_ms = patience_ms
        self._failures = 0  # tries that found no node, patient as they were
        self._failed: tuple[frozenset[str], CommandFailed] | None = None  # the last of them, and whom it skipped
        self._link: Link | None = None
        self._recognised: Link | None = None  # the link whose node has named its cluster
        self._reader: asyncio.Task[None] | None = None
        self._ids = itertools.count(1)
        self._calls: dict[int, asyncio.Future[documents.Incoming]] = {}
        self._pushes: dict[int, asyncio.Queue[documents.Incoming | Exception]] = {}
        self._connecting = asyncio.Lock()

    async def call(self, params: msgspec.Struct, timeout_ms: int = 10_000) -> tuple[msgspec.Struct, Meta]:
        """The reply and its meta; raises CommandFailed with the node's refusal, or: 8 nobody there, 9 no answer in
        time, 14 another cluster or a reply that this release can't read.

        A read that one node leaves unanswered is asked of the next; a change never is, since it may have happened. But
        a change that a node surely did not make, since it can't write down who ordered it, is: others may reach the
        store.
        """
        deadline = time.monotonic() + timeout_ms / 1000
        reads = type(params).__name__.startswith(_READS)
        silent: frozenset[str] = frozenset()
        undone: CommandFailed | None = None
        while True:
            try:
                link, endpoint = await self._linked(silent, (deadline - time.monotonic()) * 1000)
            except CommandFailed as nobody:
                raise undone or nobody from nobody
            left_ms = max(1, int((deadline - time.monotonic()) * 1000))
            if not reads:
                await self._recognise(link, endpoint, left_ms)
            others = {other.admin for other in self.profile.endpoints} - silent - {endpoint.admin}
            try:
                return self._checked(
                    params,
                    endpoint,
                    await self._exchange(link, params, min(left_ms, ATTEMPT_MS) if reads and others else left_ms),
                )
            except (TimeoutError, NoLink) as error:
                self._drop(link, "was given up")
                if not (reads and others) or time.monotonic() >= deadline:
                    raise _unanswered(params, endpoint, error, timeout_ms, reads=reads) from error
            except CommandFailed as refused:
                if undone is not None and refused.status is ExitStatus.NOT_FOUND:
                    raise undone from refused  # a plan that only the first node holds
                undone = refused
                if reads or refused.code != _UNDONE or not others or time.monotonic() >= deadline:
                    raise
                self._drop(link, "was left for a node that can write the audit log")
            silent |= {endpoint.admin}

    async def ask(self, params: msgspec.Struct, reply: type[Reply], timeout_ms: int = 10_000) -> tuple[Reply, Meta]:
        """`call` for who knows which reply to expect."""
        message, meta = await self.call(params, timeout_ms)
        if not isinstance(message, reply):
            raise _skewed(f"{type(message).__name__} instead of {reply.__name__}")
        return message, meta

    async def subscribe(
        self, min_interval_ms: int = 500, beat: Callable[[], None] | None = None
    ) -> AsyncIterator[StatusPush | AdminEvent]:
        """Pushes until the connection breaks (CommandFailed 8) or the node falls silent (9). A reader that is too slow
        loses the oldest pushes and gets an event with `gap` set, so that it knows. `beat` is called once a second, as
        long as the node answers: it pushes only what changed, and only when it has heard of its peers."""
        link, endpoint = await self._linked(frozenset())
        number = next(self._ids)
        queue: asyncio.Queue[documents.Incoming | Exception] = asyncio.Queue()
        self._pushes[number] = queue
        request = Subscribe(min_interval_ms=min_interval_ms)
        try:
            self._checked(request, endpoint, await self._exchange(link, request, ATTEMPT_MS, number))
            async for message in self._renewed(link, number, request, queue, beat):
                yield message
        except (TimeoutError, NoLink) as error:
            self._drop(link, "was given up")
            raise _unanswered(request, endpoint, error, ATTEMPT_MS, reads=True) from error
        finally:
            self._pushes.pop(number, None)

    async def _renewed(
        self,
        link: Link,
        number: int,
        request: Subscribe,
        queue: asyncio.Queue[documents.Incoming | Exception],
        beat: Callable[[], None] | None,
    ) -> AsyncIterator[StatusPush | AdminEvent]:
        """What is pushed under a number, subscribing again under it in time. Each renewal is answered, so a node from
        which nothing came for an attempt after one is silent: TimeoutError."""
        clock = asyncio.get_running_loop().time
        heard = clock()
        every_s = (RENEW_MS if beat is None else BEAT_MS) / 1000
        renew_at = heard + every_s
        while True:
            if clock() >= renew_at:
                link.send(documents.request(number, ATTEMPT_MS, request))
                renew_at = clock() + every_s
            silent_at = heard + (RENEW_MS + ATTEMPT_MS) / 1000
            try:
                async with asyncio.timeout_at(min(renew_at, silent_at)):
                    item = await queue.get()
            except TimeoutError:
                if clock() >= silent_at:
                    raise
                continue
            heard = clock()
            if isinstance(item, Exception):
                raise item
            if isinstance(item.message, AdminError):
                raise documents.failure(item.message)
            if isinstance(item.message, (StatusPush, AdminEvent)):
                yield item.message
            elif beat is not None:
                beat()

    def close(self) -> None:
        """Drops the connection; calls in flight fail. The next call connects anew."""
        if self._link is not None:
            self._drop(self._link, "was closed")

    async def _linked(self, skip: frozenset[str], allowed_ms: float = math.inf) -> tuple[Link, Endpoint]:
        before = self._failures
        async with self._connecting:
            if self._link is None or self.endpoint is None:
                # Of many calls at once one looks for a node; the others waited for it, and as long as it did.
                if self._failed is not None and self._failures > before and self._failed[0] == skip:
                    raise self._failed[1]

                def lost() -> None:
                    asyncio.get_running_loop().call_soon(self._drop, link, "was lost")

                try:
                    link, self.endpoint = await connect(
                        self.profile, self._open_link, lost, skip, self._patience_ms, allowed_ms
                    )
                except CommandFailed as nobody:
                    if allowed_ms >= self._patience_ms:  # else another may have longer
                        self._failures += 1
                        self._failed = (skip, nobody)
                    raise
                self._link = link
                self._reader = asyncio.create_task(self._read(link))
            return self._link, self.endpoint

    async def _recognise(self, link: Link, endpoint: Endpoint, wait_ms: int) -> None:
        """Before the first change over a link: one harmless question, since a change that reaches the wrong cluster
        can't be taken back when its answer names another id."""
        if link is self._recognised:
            return
        question = GetShardOf(kind="site", id=self.profile.cluster or "-")
        try:
            incoming = await self._exchange(link, question, min(wait_ms, ATTEMPT_MS))
        except (TimeoutError, NoLink) as error:
            self._drop(link, "was given up")
            raise _unanswered(question, endpoint, error, min(wait_ms, ATTEMPT_MS), reads=True) from error
        self._check_cluster(incoming.meta, endpoint)
        self._recognised = link

    def _drop(self, link: Link, why: str) -> None:
        """Forgets a link and fails what waits for it; nothing happens when another link has taken its place."""
        if link is not self._link:
            return
        if self._reader is not None:
            self._reader.cancel()
        self._link = self._reader = None
        self._fail_all(NoLink(f"the connection {why}"))
        link.close()

    async def _exchange(
        self, link: Link, params: msgspec.Struct, wait_ms: int, number: int | None = None
    ) -> documents.Incoming:
        number = next(self._ids) if number is None else number
        future: asyncio.Future[documents.Incoming] = asyncio.get_running_loop().create_future()
        self._calls[number] = future
        try:
            async with asyncio.timeout(wait_ms / 1000):
                link.send(documents.request(number, wait_ms, params))
                return await future
        finally:
            self._calls.pop(number, None)
            if not future.cancel() and not future.cancelled():
                future.exception()  # seen, or the loop would complain about it when nobody waits any more

    def _checked(
        self, params: msgspec.Struct, endpoint: Endpoint, incoming: documents.Incoming
    ) -> tuple[msgspec.Struct, Meta]:
        self._check_cluster(incoming.meta, endpoint)
        self._recognised = self._link
        if isinstance(incoming.message, AdminError):
            raise documents.failure(incoming.message)
        expected = protocol.REPLIES.get(type(params))
        if expected is not None and not isinstance(incoming.message, expected):
            raise _skewed(f"{type(incoming.message).__name__} instead of {expected.__name__}")
        return incoming.message, incoming.meta

    def _check_cluster(self, meta: Meta, endpoint: Endpoint) -> None:
        bound = self.profile.cluster_id
        if bound and meta.cluster_id and bound != meta.cluster_id:
            raise CommandFailed(
                ExitStatus.MISMATCH,
                "E-OTHER-CLUSTER",
                f"the profile {self.profile.name!r} belongs to cluster {bound}, "
                f"but {endpoint.admin} answers for {meta.cluster_name} ({meta.cluster_id})",
                hint="use the profile of that cluster with -p NAME, or remove this one from the configuration",
            )
        if not bound and meta.cluster_id:
            self.profile = msgspec.structs.replace(
                self.profile, cluster_id=meta.cluster_id, cluster=meta.cluster_name or self.profile.cluster
            )
            if self._bind is not None:
                self._bind(meta)

    async def _read(self, link: Link) -> None:
        while True:
            try:
                self._deliver(documents.incoming(await link.receive()))
            except documents.Unreadable as error:
                problem = _skewed(error.detail)
                call = self._calls.get(error.request_id) if error.request_id is not None else None
                if call is None:
                    self._fail_all(problem)
                elif not call.done():
                    call.set_exception(problem)
            except NoLink as error:
                self._drop(link, str(error))
                return

    def _deliver(self, incoming: documents.Incoming) -> None:
        call = self._calls.get(incoming.id)
        pushed = incoming.id in self._pushes and isinstance(incoming.message, (StatusPush, AdminEvent))
        if call is not None and not call.done() and not pushed:  # a push may overtake `Subscribed`
            call.set_result(incoming)
            return
        queue = self._pushes.get(incoming.id)
        if queue is None:
            return  # the answer to a call that was given up
        if queue.qsize() >= PUSHES_MAX:
            lost = 0
            while not queue.empty():
                queue.get_nowait()
                lost += 1
            gap = AdminEvent(
                at=incoming.meta.observed_at, topic="client.gap", object="", text=f"{lost} pushes lost", gap=lost
            )
            queue.put_nowait(documents.Incoming(incoming.id, gap, incoming.meta))
        queue.put_nowait(incoming)

    def _fail_all(self, problem: Exception) -> None:
        for future in self._calls.values():
            if not future.done():
                future.set_exception(problem)
        for queue in self._pushes.values():
            queue.put_nowait(problem)


def _skewed(detail: str) -> CommandFailed:
    return CommandFailed(
        ExitStatus.MISMATCH,
        "E-PROTOCOL",
        f"the node's answer can't be read by this release: {detail}",
        hint="promovolvectl version",
    )


def _unanswered(
    params: msgspec.Struct, endpoint: Endpoint, error: Exception, timeout_ms: int, *, reads: bool
) -> CommandFailed:
    """`indefinite` is said aloud: a change without an answer may have happened."""
    where = f"{endpoint.node or 'the node'} at {endpoint.admin}"
    maybe = "" if reads else "; it may have been done all the same"
    if isinstance(error, NoLink):
        return CommandFailed(
            ExitStatus.UNREACHABLE, LOST, f"{where} took {type(params).__name__}, then {error}{maybe}", hint=_HEALTH
        )
    return CommandFailed(
        ExitStatus.TIMED_OUT,
        "E-NO-ANSWER",
        f"{where} took {type(params).__name__} and did not answer in {timeout_ms / 1000:g} s{maybe}",
        hint=_HEALTH,
    )
