"""Gates before nodes' admin ports: while one is shut, who goes through it finds nobody there; its node runs on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from typing import Any, Self

from promovolvectl.local.ports import HOST

CHUNK_BYTES = 65_536


class Gates:
    """One before each of the addresses, by name; all are open in the beginning. `addresses`: where they are."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._targets = targets
        self._servers: dict[str, asyncio.Server] = {}
        self._inside: dict[str, set[asyncio.Task[None]]] = {name: set() for name in targets}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.addresses: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        for name in self._targets:
            self.open(name)
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._servers):
            self.shut(name)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def open(self, name: str) -> None:
        """It listens, at the address where it did before."""
        self._call(self._open(name))

    def shut(self, name: str) -> None:
        """It listens no more, and the connections through it are over."""
        self._call(self._shut(name))

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _open(self, name: str) -> None:
        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._carried(name, reader, writer)

        port = int(self.addresses[name].rpartition(":")[2]) if name in self.addresses else 0
        server = self._servers[name] = await asyncio.start_server(accepted, HOST, port)
        self.addresses[name] = f"{HOST}:{server.sockets[0].getsockname()[1]}"

    async def _shut(self, name: str) -> None:
        self._servers.pop(name).close()
        inside = list(self._inside[name])
        for task in inside:
            task.cancel()
        await asyncio.gather(*inside, return_exceptions=True)

    async def _carried(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._inside[name].add(task)
        host, _, port = self._targets[name].rpartition(":")
        try:
            there, back = await asyncio.open_connection(host, int(port))
            try:
                ways = [asyncio.ensure_future(_carry(reader, back)), asyncio.ensure_future(_carry(there, writer))]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
            finally:
                back.close()
        except (OSError, asyncio.CancelledError):
            pass  # the node is not there, or the gate is shut: whoever came sees the connection end
        finally:
            writer.close()
            self._inside[name].discard(task)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(CHUNK_BYTES):
        writer.write(data)
        await writer.drain()
