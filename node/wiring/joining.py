"""What a process does so that its node can join: it judges the settings of membership, looks up whom to ask, again and
again and off the loop, and says in its log why it has not joined, at most once a minute, and that it has.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from node.actors.bus import Subscription
from node.core import limits
from node.core.clock import SECOND
from node.core.errors import BadInput, OperatingError
from node.core.settings import NodeSettings
from node.engine.engine import Engine
from node.engine.events import EVENTS
from node.gossip import seeds as sources
from node.gossip.events import Seeds
from node.gossip.join import Seed
from node.gossip.settings import PROFILES, MembershipSettings, tuned

# (host name) -> its addresses; raises OSError.
Resolve = Callable[[str], Awaitable[Sequence[str]]]

_log = logging.getLogger("node")


def membership_of(settings: NodeSettings) -> MembershipSettings:
    """The profile with what the file says instead; raises OperatingError."""
    split = settings.split_brain
    given = {
        **settings.membership.model_dump(),
        "strategy": split.strategy,
        "quorum": split.quorum,
        "majority_role": split.role,
    }
    try:
        return tuned(PROFILES[settings.cluster.profile], given)
    except BadInput as error:
        raise OperatingError("E-CONFIG", error.message, hint=error.hint) from None


async def look_up(host: str) -> Sequence[str]:
    """All addresses of a host name, in a fixed order; raises OSError with words for a person."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise OSError(f"does not resolve: {error.strerror}") from None
    return sorted({str(address[0]) for *_, address in found})


class SeedWatch:
    """Keeps `seeds` and `problem` current. `roster` are the names that `*@` stands for."""

    def __init__(self, texts: Sequence[str], resolve: Resolve = look_up) -> None:
        """Raises OperatingError for a text that can't be understood."""
        try:
            self._sources = [sources.parse(text) for text in texts]
        except BadInput as error:
            raise OperatingError("E-CONFIG", error.message) from None
        self._resolve = resolve
        self._turn = 0
        self.roster: tuple[str, ...] = ()
        self.seeds: tuple[Seed, ...] = ()
        self.problem = ""

    async def look(self) -> bool:
        """Look once at everything; whether anything differs from before. Takes bounded time and raises nothing."""
        files = {path: _lines(Path(path)) for path in sources.files_of(self._sources)}
        names = sources.hosts_of(self._sources, files)
        hosts = dict(zip(names, await asyncio.gather(*map(self._addresses, names)), strict=True))
        before = (self.seeds, self.problem)
        self.seeds, self.problem = sources.expand(self._sources, hosts, files, self.roster, self._turn)
        return before != (self.seeds, self.problem)

    async def watch(self, engine: Engine) -> None:
        """For ever: quickly while the node has not joined, each time at the next address, and slowly afterwards."""
        says = WhyNot()
        while True:
            joined = engine.view.joined
            self._turn += not joined
            if await self.look():
                engine.members.step(Seeds(self.seeds, self.problem))
            words = says.due(engine.membership.why_not_joined, engine.world.clock.mono_ns())
            if words:
                _log.warning("not joined: %s", words)
            await asyncio.sleep(limits.seeds_joined_look_s if joined else limits.seeds_look_s)

    async def _addresses(self, host: str) -> sources.Found:
        try:
            return (str(ipaddress.ip_address(host)),)
        except ValueError:
            pass
        try:
            async with asyncio.timeout(limits.resolve_s_max):
                return await self._resolve(host)
        except TimeoutError:
            return f"not resolved within {limits.resolve_s_max} s"
        except OSError as error:
            return str(error)


async def tell_joined(engine: Engine) -> None:
    """Says in the log that the node has joined, as soon as it has: else the last word would be why it has not."""
    stirred = asyncio.Event()

    def on_events(subscription: Subscription) -> None:
        while subscription.take() is not None:
            pass
        stirred.set()  # and looked at once what led to the event is done

    subscription = engine.system.bus.subscribe(EVENTS, on_events)
    try:
        while not engine.view.joined:
            await stirred.wait()
            stirred.clear()
    finally:
        subscription.close()
    _log.info("joined the cluster, led by %s", engine.view.leader or "nobody yet")


class WhyNot:
    """What to write into the log about a node that has not joined: at most a line a minute, whatever changes."""

    def __init__(self) -> None:
        self._quiet_until_ns = 0

    def due(self, why: str, now_ns: int) -> str:
        """The words to log now, or none."""
        if not why or now_ns < self._quiet_until_ns:
            return ""
        self._quiet_until_ns = now_ns + 60 * SECOND
        return why


def _lines(path: Path) -> sources.Found:
    try:
        if path.stat().st_size > limits.seed_file_bytes_max:
            return f"is larger than {limits.seed_file_bytes_max} bytes"
        return path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        return error.strerror or "can't be read"
    except UnicodeDecodeError:
        return "is not UTF-8 text"
