"""The sending half of one lane to one peer: a bounded queue before a DEALER socket.

What a loop turn queues leaves in as few frames as fit. A socket that is full, or not connected yet, leaves the queue
as it is; it is tried again when ZeroMQ signals a change, and by a timer should a signal be missed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

import zmq

from node.core import limits
from node.wire.frames import Packed, Queued, pack_next


class SendLane:
    """Queue and socket of one lane. `on_sent(names)` is told the types of the messages that were handed to ZeroMQ."""

    def __init__(self, socket: zmq.Socket[bytes], on_sent: Callable[[Iterable[str]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket = socket
        self._on_sent = on_sent
        self._queue: deque[Queued] = deque()
        self._waiting_bytes = 0
        self.waiting = 0  # envelopes that have not been handed to ZeroMQ
        self._frame: Packed | None = None  # packed, and refused by the socket so far
        self._retry: asyncio.TimerHandle | None = None
        self._loop.add_reader(socket.fileno(), self._on_signal)

    def offer(self, name: str, data: bytes) -> bool:
        """Queues an encoded envelope; False, and nothing queued, when the lane is at one of its bounds."""
        waiting_bytes = self._waiting_bytes + len(data)
        if self.waiting >= limits.lane_high_water_messages or waiting_bytes > limits.lane_queue_bytes_max:
            return False
        self._queue.append(Queued(name, data))
        self.waiting += 1
        self._waiting_bytes = waiting_bytes
        return True

    def flush(self) -> None:
        """Hands over as much as the socket takes, without blocking."""
        while self._frame or self._queue:
            if self._frame is None:
                self._frame = pack_next(self._queue, limits.frame_batch_bytes)
            try:
                self._socket.send(self._frame.data, zmq.NOBLOCK)
            except zmq.Again:
                if self._retry is None:
                    self._retry = self._loop.call_later(limits.lane_retry_ms / 1000, self._on_retry)
                return
            sent, self._frame = self._frame, None
            self.waiting -= len(sent.names)
            self._waiting_bytes -= sent.payload_bytes
            self._on_sent(sent.names)

    def close(self) -> list[str]:
        """Closes the socket, which gives its last frames `linger_ms`; returns the types of what is dropped."""
        self.flush()
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        return [*(self._frame.names if self._frame else ()), *(queued.name for queued in self._queue)]

    def _on_signal(self) -> None:
        # Asking for the events takes note of the signal; without it the descriptor stays readable and the loop spins.
        if int(self._socket.getsockopt(zmq.EVENTS)) & zmq.POLLOUT and self.waiting:
            self.flush()

    def _on_retry(self) -> None:
        self._retry = None
        self.flush()
