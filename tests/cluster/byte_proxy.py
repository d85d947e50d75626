"""A relay in front of every node's two lanes, in which each directed link between two nodes can be made bad.

Nodes dial the relay's ports (`wire.advertise_*`). Who dialled is read from the kernel's tables: the source port of an
accepted connection names a socket, the socket a process, the process a node. A message from A to B travels over the
connection that A dialled, so what is done to the link (A, B) is one-way.

```
with Relay(layout, pids) as relay:
    relay.cut("n1", "n2")        # bytes vanish, connections stay: a black hole
    relay.delay("n1", "n2", ms=500)
    relay.corrupt("n1", "n2")    # one bit of the next bytes
    relay.heal()
```

With `database`, the way to a PostgreSQL server is a link, too: `relay.cut("n1", DATABASE)`.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from promovolvectl.local.layout import Layout
from promovolvectl.local.ports import HOST

CHUNK_BYTES = 65_536
PIECES = 16  # of a link, between one end's socket and the other's
LANES = ("control", "data")
DATABASE = "database"
LOOKS, LOOK_EACH_S = 20, 0.05
Link = tuple[str, str, str]  # from, to, lane


@dataclass
class Condition:
    """What a link does to the bytes that pass it. `open` is clear while it is a black hole; `bytes_per_s` 0: as many as
    come."""

    delay_ms: int = 0
    bytes_per_s: int = 0
    carried: int = 0
    swallowed: int = 0
    corrupt_next: bool = False
    corrupted: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)


class Relay:
    """See the module. `pids` gives the pid of each node that runs, by name."""

    def __init__(self, layout: Layout, pids: Callable[[], dict[str, int]], database: str = "") -> None:
        self._names = {n.name for n in layout.nodes}
        self._targets = {(n.name, lane): getattr(n, lane) for n in layout.nodes for lane in LANES}
        if database:
            self._targets[DATABASE, "data"] = database
        self._pids = pids
        self._conditions: dict[Link, Condition] = {}
        self._pipes: dict[Link, set[asyncio.Task[None]]] = {}
        self._accepted: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self.addresses: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        for (name, lane), target in self._targets.items():
            self.addresses[name, lane] = self._call(self._listen(name, lane, target))
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # ---- faults

    def cut(self, source: str, target: str, lanes: tuple[str, ...] = LANES) -> None:
        """Everything from `source` to `target` vanishes from now on, also on connections that are made meanwhile."""
        for lane in lanes:
            self._on_loop(self._condition(source, target, lane).open.clear)

    def isolate(self, name: str) -> None:
        """Neither heard nor hearing."""
        for other in self._names - {name}:
            self.cut(name, other)
            self.cut(other, name)

    def split(self, *sides: tuple[str, ...]) -> None:
        """Nodes hear those of their own side only."""
        for side in sides:
            for name in side:
                for other in self._names - set(side):
                    self.cut(name, other)

    def delay(self, source: str, target: str, ms: int) -> None:
        for lane in LANES:
            self._condition(source, target, lane).delay_ms = ms

    def limit(self, lane: str, bytes_per_s: int) -> None:
        """So much passes each link between two nodes on this lane."""
        for source in self._names:
            for target in self._names - {source}:
                self._condition(source, target, lane).bytes_per_s = bytes_per_s

    def corrupt(self, source: str, target: str) -> None:
        """Flips one bit of the next bytes on each lane."""
        for lane in LANES:
            self._condition(source, target, lane).corrupt_next = True

    def corrupted(self, source: str, target: str) -> int:
        return sum(self._condition(source, target, lane).corrupted for lane in LANES)

    def swallowed(self, source: str, target: str, lane: str) -> int:
        """Bytes that have come for a black hole, at least, and were not let pass."""
        return self._condition(source, target, lane).swallowed

    def carried(self, lane: str) -> int:
        """Bytes that all links together have let pass on this lane, as they are on the wire."""
        return sum(condition.carried for (_, _, on), condition in self._conditions.items() if on == lane)

    def heal(self) -> None:
        """All links are good; connections that were black holes are closed, so that they are dialled anew."""
        for link, condition in self._conditions.items():
            condition.delay_ms, condition.bytes_per_s, condition.corrupt_next = 0, 0, False
            if not condition.open.is_set():
                self._on_loop(condition.open.set)
                self.reset(link[0], link[1])

    def reset(self, source: str, target: str) -> None:
        """Closes the link's connections."""
        for lane in LANES:
            for pipe in list(self._pipes.get((source, target, lane), ())):
                self._loop.call_soon_threadsafe(pipe.cancel)

    # ---- carrying bytes

    async def _listen(self, name: str, lane: str, target: str) -> str:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._connected(name, lane, target, reader, writer)

        server = await asyncio.start_server(accepted, HOST, 0)
        self._servers.append(server)
        return f"{HOST}:{server.sockets[0].getsockname()[1]}"

    async def _connected(
        self, name: str, lane: str, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._accepted.add(task)
        host, _, port = target.partition(":")
        pipes: set[asyncio.Task[None]] = set()
        try:
            ends = (writer.get_extra_info("peername")[1], writer.get_extra_info("sockname")[1])
            link = (await self._dialler(*ends), name, lane)
            condition, pipes = self._condition(*link), self._pipes.setdefault(link, set())
            pipes.add(task)
            await condition.open.wait()
            there, back = await asyncio.open_connection(host, int(port))
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_carry(reader, back, condition))
                    both.create_task(_carry(there, writer, condition))
            finally:
                back.close()
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass  # the other end went away, or the link was reset: the dialler sees its connection end
        finally:
            writer.close()
            pipes.discard(task)
            self._accepted.discard(task)

    async def _dialler(self, port: int, dialled: int) -> str:
        """The node whose connection to a port of ours comes from this one; "?" for what is no node. The kernel's table
        is read in pieces and may lack a row while others come and go, and a node's pid may be written down a moment
        later: a connection taken for a stranger's would pass whatever is cut."""
        for _ in range(LOOKS):
            inode = _inode_of(port, dialled)
            for name, pid in self._pids().items():
                if inode and inode in _sockets_of(pid):
                    return name
            await asyncio.sleep(LOOK_EACH_S)
        return "?"

    def _condition(self, source: str, target: str, lane: str) -> Condition:
        condition = self._conditions.get((source, target, lane))
        if condition is None:
            condition = self._conditions[source, target, lane] = Condition()
            condition.open.set()
        return condition

    async def _close(self) -> None:
        for server in self._servers:
            server.close()
        accepted = list(self._accepted)
        for task in accepted:
            task.cancel()
        await asyncio.gather(*accepted, return_exceptions=True)

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def _on_loop(self, fn: Callable[[], object]) -> None:
        async def run() -> None:
            fn()

        self._call(run())


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, condition: Condition) -> None:
    """What comes goes on in its order, each piece not before its own delay has passed: those behind it are on their way
    meanwhile."""
    on_the_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(PIECES)
    async with asyncio.TaskGroup() as both:
        both.create_task(_come(reader, on_the_way, condition))
        both.create_task(_go(writer, on_the_way, condition))


async def _come(
    reader: asyncio.StreamReader, on_the_way: asyncio.Queue[tuple[float, bytes]], condition: Condition
) -> None:
    clock = asyncio.get_running_loop()
    data = b"-"
    while data:
        data = await reader.read(CHUNK_BYTES)
        await on_the_way.put((clock.time() + condition.delay_ms / 1_000, data))


async def _go(
    writer: asyncio.StreamWriter, on_the_way: asyncio.Queue[tuple[float, bytes]], condition: Condition
) -> None:
    clock = asyncio.get_running_loop()
    while True:
        due, data = await on_the_way.get()
        if not data:
            raise ConnectionResetError  # one direction has ended: so has the connection
        await asyncio.sleep(max(0.0, due - clock.time()))
        if condition.bytes_per_s:
            await asyncio.sleep(len(data) / condition.bytes_per_s)
        if not condition.open.is_set():
            condition.swallowed += len(data)
            await condition.open.wait()
        if condition.corrupt_next and len(data) > 1:
            condition.corrupt_next = False
            condition.corrupted += 1
            data = data[:-1] + bytes([data[-1] ^ 1])
        condition.carried += len(data)
        writer.write(data)
        await writer.drain()


def _inode_of(port: int, dialled: int) -> str:
    """The socket on this machine that has these two ports, local and remote (proc(5), net/tcp). The local one alone is
    not enough: the kernel lends it again to whoever dials another port."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if tuple(int(end.partition(":")[2], 16) for end in fields[1:3]) == (port, dialled) and fields[9] != "0":
            return fields[9]
    return ""


def _sockets_of(pid: int) -> set[str]:
    found = set()
    with contextlib.suppress(OSError):
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.add(str(entry.readlink()).removeprefix("socket:[").removesuffix("]"))
    return found
