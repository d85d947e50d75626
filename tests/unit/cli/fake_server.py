"""A node's admin port for tests: the real listener over real sockets, with answers that a test decides."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from node.admin.protocol import AdminError, AdminRefusal, GetShardOf, Meta, ShardPlace
from node.core.clock import SystemClock
from node.core.errors import RemoteProtocolError
from node.wire.admin_zmq import AdminClient, AdminListener
from node.wire.codec import CODEC, dumps, loads
from node.wire.keys import write_key_pair
from node.wire.roster import OperatorEntry, OperatorRole, Roster
from node.wire.zmq_sockets import new_key_pair
from promovolvectl.client.profiles import Endpoint, Profile, write_profile

META = Meta(
    cluster_name="local",
    cluster_id="c-0001",
    observed_at="2026-11-29T14:03:11.204Z",
    observed_by="node-1",
)
Handler = Callable[[Any], Any]


class FakeNode:
    """Answers each request type by its handler. A handler returns a reply, raw bytes, a list of messages under one
    id (a subscription), or None for silence; it may raise AdminRefusal."""

    def __init__(self, handlers: Mapping[type, Handler], meta: Meta = META) -> None:
        self.handlers = dict(handlers)
        self.meta = meta
        self.seen: list[msgspec.Struct] = []
        self.timeouts_ms: list[int] = []
        self.server_keys = new_key_pair()
        self.operator_keys = new_key_pair()
        self._stopped = False
        self.address = ""
        self._ready = threading.Event()
        self._stop: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listener: AdminListener | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> FakeNode:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def stop(self) -> None:
        """Goes away, as a killed node does; callable from any thread, once."""
        assert self._loop is not None
        assert self._stop is not None
        self._stopped = True
        self._loop.call_soon_threadsafe(self._stop.set)

    def knows(self, key: str) -> None:
        """Lets the holder of another key in, instead of its own operator."""
        assert self._listener is not None
        self._listener.set_roster(Roster(operators=[OperatorEntry("tester", key, OperatorRole.ADMIN)]))

    def __exit__(self, *_: object) -> None:
        if not self._stopped:
            self.stop()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def endpoint(self, name: str = "node-1") -> Endpoint:
        return Endpoint(node=name, admin=self.address, key=self.server_keys.public)

    def profile(self, folder: Path, *, before: tuple[Endpoint, ...] = (), **fields: Any) -> Profile:
        """A profile that leads here, with its key file, not yet written."""
        key_file = folder / "operator.key"
        key_file.unlink(missing_ok=True)  # of a node before this one
        write_key_pair(key_file, self.operator_keys)
        return Profile(name="local", endpoints=(*before, self.endpoint()), key_file=str(key_file), **fields)

    def write(self, folder: Path, **fields: Any) -> Path:
        """Writes a current profile that leads here and returns the configuration file."""
        config = folder / "config.toml"
        write_profile(config, self.profile(folder, **fields), make_current=True)
        return config

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        operator = OperatorEntry("tester", self.operator_keys.public, OperatorRole.ADMIN)
        self._listener = AdminListener(
            self.server_keys, Roster(operators=[operator]), SystemClock(), self._answer, lambda *_: None
        )
        self._listener.bind("127.0.0.1:0")
        self.address = self._listener.address
        self._ready.set()
        await self._stop.wait()
        self._listener.close()

    def _answer(self, client: AdminClient, data: bytes) -> None:
        assert self._listener is not None
        number, timeout_ms, *document = loads(data)
        try:
            message = CODEC.message_of(*document)
        except RemoteProtocolError as error:
            self._listener.send(client, self._document(number, AdminError(code="E-X", exit=2, message=str(error))))
            return
        if type(message) is GetShardOf and GetShardOf not in self.handlers:
            # the client's question before its first change: only the meta counts
            self._listener.send(client, self._document(number, ShardPlace(shard=0, node=None, epoch=0)))
            return
        self.seen.append(message)
        self.timeouts_ms.append(timeout_ms)
        try:
            found = self.handlers[type(message)](message)
        except AdminRefusal as refusal:
            found = AdminError(
                code=refusal.code,
                exit=refusal.exit_status,
                message=refusal.message,
                hint=refusal.hint,
                object=refusal.about,
            )
        for reply in found if isinstance(found, list) else [found]:
            if reply is not None:
                self._listener.send(client, reply if isinstance(reply, bytes) else self._document(number, reply))

    def _document(self, number: int, reply: msgspec.Struct) -> bytes:
        return dumps([number, msgspec.to_builtins(self.meta), *CODEC.body_of(reply)])
