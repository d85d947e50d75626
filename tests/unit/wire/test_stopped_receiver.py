"""A receiver that stands still while its peers go away (P8): it must be there to go on.

libzmq ends the process with an assertion (zeromq/libzmq#4364) when a socket's own heartbeat falls due after its peer's
connection broke while the inbound queue was full. So sockets that receive send no heartbeats; those who dial do.
"""

from __future__ import annotations

import subprocess
import sys

import zmq

from node.core import limits
from node.wire.zmq_sockets import IO_THREADS, Use, endpoint, new_context, new_socket

RECEIVER = """
import sys, time, zmq
from node.core import limits
from node.wire.zmq_sockets import IO_THREADS, Use, bind, new_context, new_socket
socket = new_socket(new_context(IO_THREADS), Use.DATA_IN)
socket.setsockopt(zmq.RCVHWM, 1)
socket.setsockopt(zmq.RCVBUF, 4096)
print(bind(socket, "127.0.0.1:0"), flush=True)
sys.stdin.readline()                      # the peers are gone now; nothing was read so far
time.sleep(3 * limits.link_heartbeat_ms / 1000)  # heartbeats fall due: this is the wait that is tested
print("alive", flush=True)
"""


def test_p8_a_receiver_whose_queue_is_full_outlives_its_peers() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RECEIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        address = child.stdout.readline().strip()
        context = new_context(IO_THREADS)
        for _ in range(8):
            flood(context, address)
        context.destroy(linger=0)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "alive\n", f"ended with {child.wait()}"
    assert child.returncode == 0


def flood(context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
    """Sends until nothing more fits anywhere, then breaks the connection."""
    socket = new_socket(context, Use.DATA_OUT)
    socket.connect(endpoint(address))
    full = 0
    while full < 3:
        if socket.poll(200, zmq.POLLOUT):
            socket.send(b"x" * 60_000)
            full = 0
        else:
            full += 1
    socket.close(linger=0)


def test_only_those_who_dial_send_heartbeats() -> None:
    for use in Use:
        dials = use in (Use.CONTROL_OUT, Use.DATA_OUT, Use.ADMIN_CLIENT)
        with new_context() as context, new_socket(context, use) as socket:
            assert (socket.heartbeat_ivl, socket.heartbeat_ttl) == (
                (limits.link_heartbeat_ms, limits.link_timeout_ms) if dials else (0, 0)
            ), use
