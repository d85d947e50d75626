"""What every ZeroMQ socket of ours has in common: options, addresses, keys.

ZeroMQ's defaults lose silently (`reliability.md` section 0, finding 6), so every socket is made here, from one table.
"""

from __future__ import annotations

import enum
import ipaddress
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NoReturn

import zmq

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.wire.roster import KeyPair

_ZMQ_MIN: Final = (4, 3, 3)  # below it strangers can starve or crash a CURVE server (CVE-2020-15166, CVE-2019-13132)
_REBIND_PAUSE_S: Final = 0.001
_REBIND_ATTEMPTS: Final = 1_000
_CURVE_OVERHEAD_BYTES: Final = 64  # MAXMSGSIZE counts the encrypted frame; the exact check is ours


class Use(enum.Enum):
    """What a socket is for; it decides the socket's type and options."""

    CONTROL_IN = "control-in"
    CONTROL_OUT = "control-out"
    DATA_IN = "data-in"
    DATA_OUT = "data-out"
    ADMIN_SERVER = "admin-server"
    ADMIN_CLIENT = "admin-client"


ROUTERS: Final = frozenset({Use.CONTROL_IN, Use.DATA_IN, Use.ADMIN_SERVER})
Options = tuple[tuple[zmq.SocketOption, int], ...]

_COMMON: Final[Options] = (
    (zmq.LINGER, limits.linger_ms),
    (zmq.HANDSHAKE_IVL, limits.handshake_ms_max),
    # A half-open connection is found by the kernel: by what is not acknowledged, or by probes where nothing is sent,
    # not by ZMTP heartbeats: libzmq 4.3.5 ends the process (an assertion) when it must ping, or answer a ping, on a
    # connection that its peer has closed while the inbound queue was full (zeromq/libzmq#4364).
    (zmq.TCP_MAXRT, limits.link_unacknowledged_ms_max),
    (zmq.TCP_KEEPALIVE, 1),
    (zmq.TCP_KEEPALIVE_IDLE, limits.link_idle_s_max),
    (zmq.TCP_KEEPALIVE_INTVL, limits.link_probe_s),
    (zmq.TCP_KEEPALIVE_CNT, limits.link_probes_max),
)
_DIALS: Final[Options] = (
    (zmq.RECONNECT_IVL, limits.reconnect_ms_min),
    (zmq.RECONNECT_IVL_MAX, limits.reconnect_ms_max),
)
# A receiving socket of a node only answers greetings, and a sending one only hears those answers; the high-water mark
# of that side is small.
_RECEIVES: Final[Options] = ((zmq.RCVHWM, limits.lane_frames_max), (zmq.SNDHWM, 1))
_SENDS: Final[Options] = (
    (zmq.SNDHWM, limits.lane_frames_max),
    (zmq.RCVHWM, 1),
    (zmq.MAXMSGSIZE, limits.frame_control_bytes_max + _CURVE_OVERHEAD_BYTES),  # it receives answers to greetings
    (zmq.IMMEDIATE, 1),  # nothing is given to a connection that isn't up: it stays in our queue, counted
)
_ADMIN: Final[Options] = (
    (zmq.SNDHWM, limits.admin_frames_max),
    (zmq.RCVHWM, limits.admin_frames_max),
    (zmq.MAXMSGSIZE, limits.admin_request_bytes_max + _CURVE_OVERHEAD_BYTES),
)
# Lanes have an I/O thread each (affinity is a bit mask): decrypting data never delays control.
_CONTROL_THREAD: Final[Options] = ((zmq.AFFINITY, 1),)
_DATA_THREAD: Final[Options] = ((zmq.AFFINITY, 2),)
IO_THREADS: Final = 2

SOCKET_OPTIONS: Final[Mapping[Use, Options]] = MappingProxyType(
    {
        Use.CONTROL_IN: (
            *_COMMON,
            *_RECEIVES,
            *_CONTROL_THREAD,
            (zmq.MAXMSGSIZE, limits.frame_control_bytes_max + _CURVE_OVERHEAD_BYTES),
        ),
        Use.DATA_IN: (
            *_COMMON,
            *_RECEIVES,
            *_DATA_THREAD,
            (zmq.MAXMSGSIZE, limits.frame_data_bytes_max + _CURVE_OVERHEAD_BYTES),
        ),
        Use.CONTROL_OUT: (*_COMMON, *_DIALS, *_SENDS, *_CONTROL_THREAD),
        Use.DATA_OUT: (*_COMMON, *_DIALS, *_SENDS, *_DATA_THREAD),
        Use.ADMIN_SERVER: (*_COMMON, *_ADMIN),
        Use.ADMIN_CLIENT: (*_COMMON, *_ADMIN, *_DIALS),
    }
)


def new_context(io_threads: int = 1) -> zmq.Context[zmq.Socket[bytes]]:
    """A context of its own; raises OperatingError when the library is too old to be safe."""
    version = zmq.zmq_version_info()
    if version < _ZMQ_MIN or not zmq.has("curve"):
        raise OperatingError("E-ZMQ-VERSION", f"libzmq {version} is older than {_ZMQ_MIN} or was built without CURVE")
    return zmq.Context(io_threads)


def new_socket(context: zmq.Context[zmq.Socket[bytes]], use: Use) -> zmq.Socket[bytes]:
    """A socket with every option of its use set, neither bound nor connected."""
    socket = context.socket(zmq.ROUTER if use in ROUTERS else zmq.DEALER)
    for option, value in SOCKET_OPTIONS[use]:
        socket.setsockopt(option, value)
    if use in ROUTERS:
        socket.setsockopt(zmq.ROUTER_MANDATORY, 1)  # can't be read back, so it stands here; without it sends get lost
    return socket


def serve_curve(socket: zmq.Socket[bytes], pair: KeyPair, domain: str) -> None:
    """Makes the socket a CURVE server whose clients the `Gate` of its context must know."""
    socket.curve_server = True
    socket.curve_secretkey = pair.secret.encode()
    socket.zap_domain = domain.encode()


def use_curve(socket: zmq.Socket[bytes], pair: KeyPair, server_key: str) -> None:
    """Makes the socket a CURVE client that talks to the holder of `server_key` only."""
    socket.curve_serverkey = server_key.encode()
    socket.curve_publickey = pair.public.encode()
    socket.curve_secretkey = pair.secret.encode()


def new_key_pair() -> KeyPair:
    """A fresh CURVE key pair from the library's own source of randomness."""
    public, secret = zmq.curve_keypair()
    return KeyPair(public.decode(), secret.decode())


def check_pair(pair: KeyPair) -> None:
    """Raises OperatingError `E-KEY-FILE` when the public key isn't the one of the secret key."""
    if zmq.curve_public(pair.secret.encode()).decode() != pair.public:
        raise OperatingError("E-KEY-FILE", "public_key is not the public half of secret_key", hint="make a new pair")


def endpoint(address: str, *, loopback_only: bool = False) -> str:
    """`tcp://…` for `host:port` or `[v6]:port`; raises BadInput, also for an insecure address that leaves the host."""
    host, colon, port = address.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise BadInput("address", f"{address!r} is not host:port")
    if bare == "localhost":  # the library does not resolve names when it binds
        host = bare = "127.0.0.1"
    if loopback_only and not _is_loopback(bare):
        raise BadInput("address", f"{address!r} is not a loopback address, so plain TCP is refused", hint="use keys")
    return f"tcp://{host}:{port}"


def bind(socket: zmq.Socket[bytes], address: str, *, loopback_only: bool = False) -> str:
    """Binds and returns the bound `host:port`; port 0 picks a free one. Raises OperatingError, or BadInput."""
    where = endpoint(address, loopback_only=loopback_only)
    socket.ipv6 = "[" in where  # for v4 addresses it would make them v4-mapped ones in what is reported
    try:
        socket.bind(where)
    except zmq.ZMQError as error:
        _explain_bind(error, address)
    return socket.getsockopt_string(zmq.LAST_ENDPOINT).removeprefix("tcp://")


def rebind(socket: zmq.Socket[bytes], address: str) -> None:
    """Listens anew at a bound address, with the options set meanwhile. Connections that are up end.

    The library lets go of the address in its own thread, within microseconds. Blocks for up to a second; raises
    OperatingError when the address isn't free by then.
    """
    where = endpoint(address)
    socket.unbind(where)
    for attempt in range(_REBIND_ATTEMPTS):
        try:
            socket.bind(where)
        except zmq.ZMQError as error:
            if error.errno != zmq.EADDRINUSE or attempt == _REBIND_ATTEMPTS - 1:
                _explain_bind(error, address)
            time.sleep(_REBIND_PAUSE_S)
        else:
            return


def connect(socket: zmq.Socket[bytes], address: str, *, loopback_only: bool = False) -> None:
    """Starts connecting to `host:port`; raises BadInput. Names are resolved in the library's own thread."""
    where = endpoint(address, loopback_only=loopback_only)
    socket.ipv6 = "[" in where
    socket.connect(where)


def _explain_bind(error: zmq.ZMQError, address: str) -> NoReturn:
    port = address.rpartition(":")[2]
    if error.errno == zmq.EADDRINUSE:
        raise OperatingError(
            "E-PORT-IN-USE",
            f"port {port} ({address}) is in use by another process",
            hint=f"ss -ltnp 'sport = :{port}' shows which; choose another port or stop that process",
        ) from error
    raise OperatingError("E-BIND", f"{address}: {error.strerror}") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
