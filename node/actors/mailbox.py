"""What waits for a cell, and what a full mailbox does with one message more.

A tell without a trace from a cell of this node is queued as the bare message: most mail is that, and it costs nothing
but its place in the deque. Everything else is a `Mail`.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import Any

from node.core.ids import NodeId

Mailbox = deque[Any]


class Origin(enum.Enum):
    """Where mail comes from; only TELL and ASK may travel on to another node."""

    TELL = "tell"
    ASK = "ask"
    THEN = "then"  # released by a durable write
    OUTCOME = "outcome"  # of an ask or a piped call
    TIMER = "timer"  # `message` is the timer, which may have been cancelled since it fired
    NOTICE = "notice"  # `message` is a subscription that holds events
    EVENT = "event"  # taken from a subscription


class Mail:
    """One message with what is known of it. `adapter` turns an outcome into the message when its turn comes, so that
    an adapter that raises fails its own cell and nobody else."""

    __slots__ = (
        "adapter",
        "answered",
        "correlation",
        "deadline_ns",
        "deliveries",
        "message",
        "origin",
        "sender",
        "trace",
    )

    def __init__(
        self,
        origin: Origin,
        message: Any,
        sender: NodeId,
        *,
        correlation: int = 0,
        deadline_ns: int = 0,
        trace: str = "",
        adapter: Callable[[Any], object] | None = None,
    ) -> None:
        self.origin = origin
        self.message = message
        self.sender = sender
        self.correlation = correlation
        self.deadline_ns = deadline_ns
        self.trace = trace
        self.adapter = adapter
        self.deliveries = 0
        self.answered = False


def travels(item: Any) -> bool:
    """Whether this mail came from outside the cell, and so may be dropped for newer mail or sent to another node."""
    return type(item) is not Mail or item.origin in (Origin.TELL, Origin.ASK)


def take_oldest(mailbox: Mailbox) -> Any | None:
    """Removes and returns the oldest mail that came from outside; None when there is none."""
    for index, item in enumerate(mailbox):
        if travels(item):
            del mailbox[index]
            return item
    return None
