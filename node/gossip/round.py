"""A comparison under way, as its asker keeps it (`node.gossip.antientropy`)."""

from __future__ import annotations

import enum
from collections import deque
from dataclasses import dataclass, field

from node.gossip.overlay import Place


class Phase(enum.Enum):
    """What an asker's round waits for."""

    LEAVES = "leaves"
    OFFER = "offer"
    FETCH = "fetch"


@dataclass(slots=True)
class Round:
    """A comparison under way: the leaves still `todo`, those of the `window` the peer was asked about; `whole`: nothing
    that was found missing had to be left to a later round."""

    number: int
    peer: str
    began_ns: int
    deadline_ns: int
    takes_over: bool = False
    phase: Phase = Phase.LEAVES
    peer_ready: bool = False
    peer_tenure: int = 0
    whole: bool = True
    fetching: tuple[int, int] = (0, 0)  # leaves whose entries are being fetched, and how many those were
    todo: deque[Place] = field(default_factory=deque)
    window: tuple[Place, ...] = ()
