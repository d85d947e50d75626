"""Finding a node that answers: the profile's endpoints in order, each with a short deadline.

A dead address costs at most `CONNECT_MS`; what each attempt found is kept, so that the error of a cluster that can't
be reached names every address and why.
"""

from __future__ import annotations

import asyncio
import contextlib
import shlex
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from node.wire.roster import KeyPair
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint, Profile, secret_of

CONNECT_MS: Final = 300


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


Open = Callable[[Endpoint, KeyPair, Callable[[], None]], Awaitable[Link]]
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


async def connect(
    profile: Profile, open_link: Open, on_lost: Callable[[], None], skip: frozenset[str] = frozenset()
) -> tuple[Link, Endpoint]:
    """A link to the first endpoint that takes one; `skip` names addresses that proved silent.

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
    found: list[tuple[Endpoint, NoLink]] = []
    for endpoint in profile.endpoints:
        if endpoint.admin in skip:
            found.append((endpoint, NoLink("took the request and did not answer")))
            continue
        problem = await probed(endpoint)
        if problem is None:
            try:
                return await open_link(endpoint, secret_of(profile), on_lost), endpoint
            except NoLink as error:
                problem = error
        found.append((endpoint, problem))
    raise _nobody(profile, found)


def host_and_port(address: str, flag: str = "--endpoint") -> tuple[str, int]:
    """`host:port`, `[v6]:port` too; raises CommandFailed (2) naming the flag."""
    host, _, port = address.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65_536:
        text = f"{flag}: {address!r} is not HOST:PORT"
        raise CommandFailed(ExitStatus.USAGE, "E-USAGE", text, hint="--endpoint 127.0.0.1:7401")
    return host.strip("[]"), int(port)


async def probed(endpoint: Endpoint) -> NoLink | None:
    """Why an endpoint can't be used, None when something listens there and its key is known. ZeroMQ retries a refused
    connection in silence; a plain TCP connect says at once what is wrong."""
    host, port = host_and_port(endpoint.admin)
    try:
        async with asyncio.timeout(CONNECT_MS / 1000):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return NoLink(f"no answer within {CONNECT_MS} ms")
    except OSError as error:
        refused = isinstance(error, ConnectionRefusedError)
        return NoLink("connection refused" if refused else (error.strerror or "can't be reached").lower())
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    if not endpoint.key:
        return NoLink("listens, but no profile holds its public key", ExitStatus.UNUSABLE_CONFIG, _KEYLESS)
    return None


def _nobody(profile: Profile, found: list[tuple[Endpoint, NoLink]]) -> CommandFailed:
    telling = min((problem for _, problem in found), key=lambda problem: _TELLING.index(problem.status))
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
            hint = f"promovolvectl {'doctor' if profile.key_file and not profile.data else 'up'}{named}"
    headline = _HEADLINES.get(telling.status, "no node could be reached")
    return CommandFailed(telling.status, telling.code, "\n".join((headline, *lines)), hint=hint, about=profile.name)
