"""An operator's connection to one node, for the command line and the dashboard: bytes out, bytes in.

A CURVE DEALER on the asyncio loop of the tool. What the bytes mean is the admin protocol's business.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

import zmq

from node.core import limits
from node.core.errors import LocalProtocolError, OperatingError
from node.wire.link_zmq import LinkState, LinkWatch
from node.wire.roster import KeyPair
from node.wire.zmq_sockets import Use, check_pair, connect, endpoint, new_context, new_socket, use_curve


class AdminConnection:
    """An operator's connection to one node. Iterate over it for the documents that arrive.

    Not more than `admin_frames_max` documents are held; while the reader is behind, the node sees us as busy. ZeroMQ
    reconnects by itself; `on_state` is told each change of `state`.
    """

    def __init__(
        self,
        address: str,
        server_key: str,
        pair: KeyPair,
        on_state: Callable[[LinkState], None] | None = None,
    ) -> None:
        """Raises BadInput for a malformed address, OperatingError for a pair that doesn't belong together."""
        check_pair(pair)
        endpoint(address)
        self.address = address
        self.state = LinkState.CONNECTING
        self._on_state = on_state
        self._loop = asyncio.get_running_loop()
        self._inbox: deque[bytes] = deque()
        self._changed = asyncio.Event()  # something arrived, or the state changed
        self._context = new_context()
        self._socket = new_socket(self._context, Use.ADMIN_CLIENT)
        use_curve(self._socket, pair, server_key)
        self._watch = LinkWatch(self._socket, self._set)
        self._loop.add_reader(self._socket.fileno(), self._drain)
        connect(self._socket, address)

    async def connected(self) -> None:
        """Waits until the connection is up; who gives up cancels. Raises OperatingError: `E-ADMIN-DENIED` when the node
        doesn't know our key, `E-ADMIN-KEY` when it has another key than expected."""
        while self.state is not LinkState.UP:
            self._raise_if_hopeless()
            self._changed.clear()
            await self._changed.wait()

    def send(self, data: bytes) -> None:
        """Queues a request. Raises OperatingError `E-ADMIN-BUSY` when too many are waiting for the node."""
        if self.state is LinkState.CLOSED:
            raise LocalProtocolError("the connection is closed")
        if len(data) > limits.admin_request_bytes_max:
            raise LocalProtocolError(f"a request of {len(data)} bytes exceeds {limits.admin_request_bytes_max}")
        try:
            self._socket.send(data, zmq.NOBLOCK)
        except zmq.Again:
            raise OperatingError("E-ADMIN-BUSY", f"{self.address} takes no more requests at the moment") from None
        self._loop.call_soon(self._drain)  # sending may take note of arrivals that are then no longer signalled

    async def receive(self) -> bytes:
        """The next document. Raises OperatingError once the connection is closed or hopeless."""
        while not self._inbox:
            self._raise_if_hopeless()
            self._changed.clear()
            await self._changed.wait()
        document = self._inbox.popleft()
        self._drain()
        return document

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while self.state is not LinkState.CLOSED or self._inbox:
            yield await self.receive()

    def close(self) -> None:
        """Closes the connection; a pending `receive` raises. Blocks for up to `linger_ms` for the last request."""
        if self.state is LinkState.CLOSED:
            return
        self._loop.remove_reader(self._socket.fileno())
        self._watch.close()
        self._socket.close()
        self._set(LinkState.CLOSED)
        self._context.destroy(limits.linger_ms)  # unlike term it can't wait for a socket that was left open

    def _raise_if_hopeless(self) -> None:
        match self.state:
            case LinkState.DENIED:
                raise OperatingError(
                    "E-ADMIN-DENIED",
                    f"{self.address} does not know this operator key",
                    hint="have an administrator add the public key to the roster",
                )
            case LinkState.REFUSED:
                raise OperatingError(
                    "E-ADMIN-KEY",
                    f"what listens at {self.address} does not hold the expected key",
                    hint="check the address, and the profile's server key against the node's",
                )
            case LinkState.CLOSED:
                raise OperatingError("E-ADMIN-CLOSED", f"the connection to {self.address} is closed", definite=False)
            case LinkState.CONNECTING | LinkState.UP | LinkState.LOST:
                return

    def _drain(self) -> None:
        while self.state is not LinkState.CLOSED and len(self._inbox) < limits.admin_frames_max:
            try:
                parts = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._inbox.append(parts[-1])
            self._changed.set()

    def _set(self, state: LinkState) -> None:
        self.state = state
        self._changed.set()
        if self._on_state is not None:
            self._on_state(state)
