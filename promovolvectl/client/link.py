"""The real connection behind the client's `Link`: a CURVE socket of ZeroMQ. Only who asks a cluster imports this."""

from __future__ import annotations

from collections.abc import Callable

from node.core.errors import LocalProtocolError, OperatingError
from node.wire.admin_client_zmq import AdminConnection
from node.wire.link_zmq import LinkState
from node.wire.roster import KeyPair
from promovolvectl.client.connect import Link, NoLink
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.profiles import Endpoint

_STATUS_OF: dict[str, ExitStatus] = {
    "E-ADMIN-DENIED": ExitStatus.NOT_ALLOWED,
    "E-ADMIN-KEY": ExitStatus.MISMATCH,
    "E-KEY-FILE": ExitStatus.UNUSABLE_CONFIG,
    "E-BAD-INPUT": ExitStatus.UNUSABLE_CONFIG,
}


class _ZmqLink:
    def __init__(self, connection: AdminConnection) -> None:
        self._connection = connection

    def send(self, document: bytes) -> None:
        try:
            self._connection.send(document)
        except (OperatingError, LocalProtocolError) as error:
            raise NoLink(str(error)) from error

    async def receive(self) -> bytes:
        try:
            return await self._connection.receive()
        except OperatingError as error:
            raise _no_link(error) from error

    def close(self) -> None:
        self._connection.close()


async def open_link(endpoint: Endpoint, pair: KeyPair, on_lost: Callable[[], None]) -> Link:
    """A link once the handshake is done; raises NoLink. How long that may take is the caller's: who gives up cancels.
    `on_lost` is called when it breaks later."""
    up = False

    def changed(state: LinkState) -> None:
        if up and state is LinkState.LOST:
            on_lost()

    try:
        connection = AdminConnection(endpoint.admin, endpoint.key, pair, changed)
    except OperatingError as error:
        raise _no_link(error) from error
    try:
        await connection.connected()
    except BaseException as error:
        connection.close()
        if isinstance(error, OperatingError):
            raise _no_link(error) from error
        raise
    up = True
    return _ZmqLink(connection)


def _no_link(error: OperatingError) -> NoLink:
    return NoLink(error.message, _STATUS_OF.get(error.code, ExitStatus.UNREACHABLE), error.code)
