"""A receiver that stands still while its peers go away (P8): it must be there to go on.

libzmq ends the process with an assertion (zeromq/libzmq#4364) when it must ping, or answer a ping, on a connection that
its peer has closed while the inbound queue was full. So no socket of ours uses ZMTP heartbeats.
"""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import zmq

from node.wire.zmq_sockets import IO_THREADS, Use, endpoint, new_context, new_socket

FULL_S = 1.5
RECEIVER = """
import sys, time, zmq
from node.wire.zmq_sockets import IO_THREADS, Use, bind, new_context, new_socket
socket = new_socket(new_context(IO_THREADS), Use.DATA_IN)
socket.setsockopt(zmq.RCVHWM, 1)
socket.setsockopt(zmq.RCVBUF, 4096)
print(bind(socket, "127.0.0.1:0"), flush=True)
sys.stdin.readline()                      # the peers are gone now; nothing was read so far
time.sleep(3)  # whatever libzmq does by itself falls due: this is the wait that is tested
while socket.poll(500):
    socket.recv_multipart()               # takes up reading where it stopped
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
        for _ in range(3):
            flood(context, address)
        context.destroy(linger=0)
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "alive\n", f"ended with {child.wait()}"
    assert child.returncode == 0


def flood(context: zmq.Context[zmq.Socket[bytes]], address: str) -> None:
    """Sends until nothing more fits anywhere, stays for as long as pings would need, then breaks the connection."""
    socket = new_socket(context, Use.DATA_OUT)
    socket.connect(endpoint(address))
    full_since = time.monotonic()
    while time.monotonic() - full_since < FULL_S:
        if socket.poll(100, zmq.POLLOUT):
            socket.send(b"x" * 60_000)
            full_since = time.monotonic()
    socket.close(linger=0)


@pytest.mark.parametrize("use", list(Use))
def test_no_socket_sends_heartbeats_of_the_library(use: Use) -> None:
    with new_context() as context, new_socket(context, use) as socket:
        assert (socket.heartbeat_ivl, socket.heartbeat_ttl) == (0, 0)
