"""Finding a node that answers: the profile's endpoints in order, the next as soon as one fails or is late.

A dead or silent address costs at most `CONNECT_MS` as long as another answers. One that was late is not given up: its
attempt goes on beside the next ones, and when all have been tried, what may still come is waited for. A busy machine
takes a connection at once and gets round to the handshake when it can. What each attempt found is kept, so that the
error of a cluster that can't be reached names every address and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import shlex
from collections.abc import Awaitable, Callable, Collection
from typing import Final, Protocol

from node.wire.roster import KeyPair
from promovolvectl.client.errors import LATE, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile, secret_of

CONNECT_MS: Final = 300  # an endpoint that is later than this is no longer waited for alone
PATIENCE_MS: Final = 1_500  # all in all: where the only node stands still, a command answers within 3 s


class Link(Protocol):
    """One authenticated connection that carries whole documents both ways."""

    def send(self, document: bytes) -> None:
        """Queues a document; raises NoLink."""
        ...

    async def receive(self) -> bytes:
        """The next document; raises NoLink."""
        ...

    def close(self) -> None: ...


class NoLink(Exception):
    """An endpoint that can't be used now: why in a few words, and what a command that needs it ends with."""

    def __init__(self, why: str, status: ExitStatus = ExitStatus.UNREACHABLE, code: str = "E-UNREACHABLE") -> None:
        super().__init__(why)
        self.status = status
        self.code = code


Open = Callable[[Endpoint, KeyPair, Callable[[], None]], Awaitable[Link]]  # waits until it is cancelled
_KEYLESS: Final = "E-NO-SERVER-KEY"
# Of several reasons the one that a person can do something about is reported.
_TELLING: Final = (
    ExitStatus.NOT_ALLOWED,
    ExitStatus.MISMATCH,
    ExitStatus.UNUSABLE_CONFIG,
    ExitStatus.UNREACHABLE,
)


_HEADLINES: Final = {
    ExitStatus.NOT_ALLOWED: "this key is not accepted: it was revoked, has expired, or is of another cluster",
    ExitStatus.MISMATCH: "no node of this profile's cluster answered",
    ExitStatus.UNUSABLE_CONFIG: "no node could be asked",
}


def ends_ms(last_begun_ms: int, patience_ms: int, allowed_ms: float) -> int:
    """Until when late endpoints are waited for, once the last was begun; all from the first one's beginning.

    The last has half the patience at least, since the time before was the others'. What the caller may still wait
    (`allowed_ms`) bounds all of it, but for the short deadline that each has in any case."""
    patient = max(patience_ms, last_begun_ms + patience_ms // 2)
    return int(max(last_begun_ms + CONNECT_MS, min(patient, allowed_ms)))


def too_late(waited_ms: int, *, listens: bool) -> NoLink:
    """What is said of an endpoint that has neither failed nor given a link."""
    if listens:
        return NoLink(f"listens, but did not complete a handshake within {waited_ms} ms", code=LATE)
    return NoLink(f"no answer within {waited_ms} ms")


async def connect(
    profile: Profile,
    open_link: Open,
    on_lost: Callable[[], None],
    skip: frozenset[str] = frozenset(),
    patience_ms: int = PATIENCE_MS,
    allowed_ms: float = math.inf,
) -> tuple[Link, Endpoint]:
    """A link to the first endpoint that gives one; `skip` names addresses that proved silent. Waits as `ends_ms` says.

    Raises CommandFailed: 8 when none does, 7 when our key is not known there, 14 when it is another node than the
    profile says, 16 when the profile lacks what is needed to ask.
    """
    if not profile.endpoints:
        raise CommandFailed(
            ExitStatus.UNUSABLE_CONFIG,
            "E-NO-ENDPOINT",
            f"the profile {profile.name!r} lists no endpoint",
            # Who was handed a key wants the cluster that there is, not one of his own.
            hint="promovolvectl profile create NAME --key-file FILE --node NAME,HOST:PORT,KEY"
            if profile.key_file and not profile.data
            else f"promovolvectl up -p {profile.name}",
        )
    attempts = [_Attempt(profile, endpoint, open_link, on_lost) for endpoint in profile.endpoints]
    try:
        won = await _won(attempts, skip, patience_ms, allowed_ms)
        await asyncio.gather(*(each.ended() for each in attempts if each is not won))
    except BaseException:
        await asyncio.gather(*(each.ended() for each in attempts))
        raise
    if won is None:
        raise _nobody(profile, [(each.endpoint, each.found()) for each in attempts])
    return won.take(), won.endpoint


async def _won(attempts: list[_Attempt], skip: frozenset[str], patience_ms: int, allowed_ms: float) -> _Attempt | None:
    """The attempt that is up first; None when all have failed or are too late. Raises what is no NoLink."""
    clock = asyncio.get_running_loop().time
    began = begun = clock()
    going: list[_Attempt] = []
    for each in attempts:
        if each.endpoint.admin in skip:
            each.problem = NoLink("took the request and did not answer", code=LATE)
            continue
        begun = clock()
        each.begin(begun)
        going.append(each)
        if won := await _up(going, (each,), begun + CONNECT_MS / 1_000):
            return won
    until = began + ends_ms(int((begun - began) * 1_000), patience_ms, allowed_ms) / 1_000
    if won := await _up(going, going, until):
        return won
    for each in going:
        each.late(until)
    return None


async def _up(going: Collection[_Attempt], meant: Collection[_Attempt], until: float) -> _Attempt | None:
    """Waits until one that is going is up, or those meant have failed, or it is `until` by the loop's clock."""
    clock = asyncio.get_running_loop().time
    while True:
        if won := next((each for each in going if each.up()), None):
            return won
        open_yet = [each.task for each in going if each.task is not None and not each.task.done()]
        left_s = until - clock()
        if left_s <= 0 or not any(each.task in open_yet for each in meant):
            return None
        await asyncio.wait(open_yet, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)


class _Attempt:
    """One endpoint's way to a link: does something listen, is it the node, does it know our key. Is taken or ended."""

    def __init__(self, profile: Profile, endpoint: Endpoint, open_link: Open, on_lost: Callable[[], None]) -> None:
        self.endpoint = endpoint
        self.task: asyncio.Task[Link] | None = None
        self.problem: NoLink | None = None
        self._profile = profile
        self._open_link = open_link
        self._on_lost = on_lost
        self._begun = 0.0
        self._listens = False
        self._taken = False
        self._lost = False

    def begin(self, now: float) -> None:
        self._begun = now
        self.task = asyncio.create_task(self._opened())

    def up(self) -> bool:
        """Raises what is no reason to try another endpoint."""
        if self.task is None or not self.task.done() or self.problem is not None:
            return False
        try:
            self.task.result()
        except NoLink as problem:
            self.problem = problem
            return False
        return True

    def late(self, now: float) -> None:
        if self.problem is None:
            self.problem = too_late(round((now - self._begun) * 1_000), listens=self._listens)

    def found(self) -> NoLink:
        assert self.problem is not None, "who was not taken has failed or is late"
        return self.problem

    def take(self) -> Link:
        assert self.task is not None, "who is up has begun"
        self._taken = True
        if self._lost:
            self._tell()
        return self.task.result()

    async def ended(self) -> None:
        if self.task is None:
            return
        self.task.cancel()
        await asyncio.wait((self.task,))
        if not self.task.cancelled() and self.task.exception() is None:
            self.task.result().close()

    async def _opened(self) -> Link:
        await _listening(self.endpoint)
        self._listens = True
        if not self.endpoint.key:
            raise NoLink("listens, but no profile holds its public key", ExitStatus.UNUSABLE_CONFIG, _KEYLESS)
        return await self._open_link(self.endpoint, secret_of(self._profile), self._broken)

    def _broken(self) -> None:
        """It may break while it waits to be taken, or nobody wants it any more."""
        self._lost = True
        if self._taken:
            self._tell()

    def _tell(self) -> None:
        # Not at once: who asked for the link does not hold it yet.
        asyncio.get_running_loop().call_soon(self._on_lost)


def host_and_port(address: str, flag: str = "--endpoint") -> tuple[str, int]:
    """`host:port`, `[v6]:port` too; raises CommandFailed (2) naming the flag."""
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65_536:
        text = f"{flag}: {address!r} is not HOST:PORT"
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", text, hint="--endpoint 127.0.0.1:7401")
    return host.strip("[]"), int(port)


async def _listening(endpoint: Endpoint) -> None:
    """Raises NoLink when nothing listens there. ZeroMQ retries a refused connection in silence; a plain TCP connect
    says at once what is wrong."""
    host, port = host_and_port(endpoint.admin)
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError as error:
        refused = isinstance(error, ConnectionRefusedError)
        raise NoLink("connection refused" if refused else (error.strerror or "can't be reached").lower()) from error
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _nobody(profile: Profile, found: list[tuple[Endpoint, NoLink]]) -> CommandFailed:
    # Of several that can't be reached, the one that listens: its node is not to be started.
    telling = min((each for _, each in found), key=lambda each: (_TELLING.index(each.status), each.code != LATE))
    late = telling.code == LATE
    lines = [
        f"  {endpoint.admin}{f' ({endpoint.node})' if endpoint.node else ''}: {problem}" for endpoint, problem in found
    ]
    match telling.status:
        case ExitStatus.NOT_ALLOWED:
            hint = (
                "export PROMOVOLVECTL_KEY_FILE=/path/to/operator.key, of a key of this cluster; "
                "'promovolvectl auth key create' of an administrator makes one"
            )
        case ExitStatus.MISMATCH | ExitStatus.UNUSABLE_CONFIG:
            hint = "use the profile of that cluster with -p NAME"
        case _:
            named = f" -p {shlex.quote(profile.name)}" if profile.name else ""
            # Who was handed a key can start no node, and 'up' would make a cluster of his own.
            verb = "doctor" if late or (profile.key_file and not profile.data) else "up"
            hint = f"promovolvectl {verb}{named}"
    unreached = "no node answered in time, but something listens" if late else "no node could be reached"
    headline = _HEADLINES.get(telling.status, unreached)
    return CommandFailed(telling.status, telling.code, "\n".join((headline, *lines)), hint=hint, about=profile.name)
