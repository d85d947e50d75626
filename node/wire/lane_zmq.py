"""The sending half of one lane to one peer: a bounded queue before a DEALER socket, and the greeting of its connection.

What a loop turn queues leaves in as few frames as fit. A socket that is full, or whose peer has not welcomed us yet,
leaves the queue as it is; it is tried again when ZeroMQ signals a change, and by a timer should a signal be missed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

import zmq

from node.core import limits
from node.wire.frames import Packed, Queued, Sender, pack_next
from node.wire.ledger import PeerLedger
from node.wire.link_zmq import LinkState, LinkWatch


class Numbering:
    """How many messages one lane has handed over to the present incarnation of a peer. Outlives the lane's socket."""

    __slots__ = ("next", "receiver")

    def __init__(self) -> None:
        self.receiver = -1
        self.next = 1

    def begin(self, receiver: int) -> None:
        """From 1 again for another incarnation."""
        if receiver != self.receiver:
            self.receiver, self.next = receiver, 1


class SendLane:
    """Queue and socket of one lane. `hello` is what a new connection begins with, `on_reply(data)` gets what the peer
    answers, `on_state` how the link stands. Nothing else leaves before `welcomed`, nor after the link is lost."""

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        sender: Sender,
        numbering: Numbering,
        hello: bytes,
        on_reply: Callable[[bytes], None],
        on_state: Callable[[LinkState], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.socket = socket
        self._sender = sender
        self._numbering = numbering
        self._hello = hello
        self._on_reply = on_reply
        self._on_state = on_state
        self._queue: deque[Queued] = deque()
        self._waiting_bytes = 0
        self.greetings = 0  # connections begun, with those begun again for want of an answer
        self.waiting = 0  # envelopes that have not been handed to ZeroMQ
        self._frame: Packed | None = None  # packed, and refused by the socket so far
        self._ledger: PeerLedger | None = None  # of the incarnation that has welcomed us
        self._retry: asyncio.TimerHandle | None = None
        self._greeting: asyncio.TimerHandle | None = None
        self._watch = LinkWatch(socket, self._on_link)
        self._loop.add_reader(socket.fileno(), self._on_signal)

    @property
    def full(self) -> bool:
        """Whether it takes no message, however small."""
        return self.waiting >= limits.lane_high_water_messages

    def offer(self, name: str, data: bytes) -> bool:
        """Queues an encoded envelope; False, and nothing queued, when the lane is at one of its bounds."""
        waiting_bytes = self._waiting_bytes + len(data)
        if self.full or waiting_bytes > limits.lane_queue_bytes_max:
            return False
        self._queue.append(Queued(name, data))
        self.waiting += 1
        self._waiting_bytes = waiting_bytes
        return True

    def adopt(self, queue: Iterable[Queued]) -> None:
        """Takes over, first of all, what another lane to the same peer has left."""
        waiting = list(queue)
        self._queue.extendleft(reversed(waiting))
        self.waiting += len(waiting)
        self._waiting_bytes += sum(len(one.data) for one in waiting)

    def welcomed(self, incarnation: int, ledger: PeerLedger) -> None:
        """The peer takes our messages: now they leave, counted in this ledger."""
        self._cancel_greeting()
        self._numbering.begin(incarnation)
        self._ledger = ledger
        self.flush()

    @property
    def open(self) -> bool:
        """Whether the peer has welcomed this connection."""
        return self._ledger is not None

    def flush(self) -> None:
        """Hands over as much as the socket takes, without blocking."""
        while self._ledger is not None and (self._frame or self._queue):
            if self._frame is None:
                self._frame = pack_next(self._queue, limits.frame_batch_bytes)
            packed, numbering = self._frame, self._numbering
            try:
                self.socket.send(self._sender.frame(packed, numbering.receiver, numbering.next), zmq.NOBLOCK)
            except zmq.Again:
                if self._retry is None:
                    self._retry = self._loop.call_later(limits.lane_retry_ms / 1000, self._on_retry)
                return
            self._frame = None
            numbering.next += len(packed.names)
            self.waiting -= len(packed.names)
            self._waiting_bytes -= packed.payload_bytes
            self._ledger.sent(packed.names)

    def close(self) -> list[Queued]:
        """Closes the socket, which gives its last frames `linger_ms`; returns what has not left."""
        self.flush()
        self._ledger = None
        self._cancel_greeting()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._loop.remove_reader(self.socket.fileno())
        self._watch.close()
        self.socket.close()
        packed = self._frame
        return [*(map(Queued, packed.names, packed.parts) if packed else ()), *self._queue]

    def _on_link(self, state: LinkState) -> None:
        if state is LinkState.UP:
            self._greet()
        else:
            self._ledger = None
            self._cancel_greeting()
        self._on_state(state)

    def _greet(self) -> None:
        self._ledger = None
        self._cancel_greeting()
        self.greetings += 1
        self._greeting = self._loop.call_later(limits.greeting_retry_ms / 1000, self._greet)
        try:
            self.socket.send(self._hello, zmq.NOBLOCK)
        except zmq.Again:
            return
        self._loop.call_soon(self._on_signal)  # sending may take note of arrivals that are then no longer signalled

    def _cancel_greeting(self) -> None:
        if self._greeting is not None:
            self._greeting.cancel()
            self._greeting = None

    def _on_signal(self) -> None:
        # Asking for the events takes note of the signal; without it the descriptor stays readable and the loop spins.
        while not self.socket.closed and self._events() & zmq.POLLIN:
            self._on_reply(self.socket.recv_multipart(zmq.NOBLOCK)[0])
        if not self.socket.closed and self.waiting and self._events() & zmq.POLLOUT:
            self.flush()

    def _events(self) -> int:
        return int(self.socket.getsockopt(zmq.EVENTS))

    def _on_retry(self) -> None:
        self._retry = None
        self.flush()
