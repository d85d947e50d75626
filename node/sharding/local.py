"""One shard on this node, as a state table: absent, running under an epoch, or stopping.

A shard that comes back while it is still stopping starts only when it has stopped: two lives of one entity never
overlap.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from node.core.ids import NodeId
from node.sharding.messages import Receipt


class LocalState(enum.StrEnum):
    ABSENT = "absent"
    RUNNING = "running"
    STOPPING = "stopping"


class LocalEvent(enum.StrEnum):
    GRANTED = "granted"  # a durable row gives the shard to this node, under an epoch it has not held
    WITHDRAWN = "withdrawn"  # a row marks it as moving, or names another node; or a write was fenced
    STOPPED = "stopped"  # the actors have finished


class LocalAction(enum.StrEnum):
    NONE = "none"
    START = "start"
    STOP = "stop"
    SETTLE = "settle"  # account for what ran, answer who waits for it, and start again if the shard has come back


_S, _E, _A = LocalState, LocalEvent, LocalAction

TABLE: Final[Mapping[tuple[LocalState, LocalEvent], tuple[LocalState, LocalAction]]] = {
    (_S.ABSENT, _E.GRANTED): (_S.RUNNING, _A.START),
    (_S.ABSENT, _E.WITHDRAWN): (_S.ABSENT, _A.NONE),
    (_S.ABSENT, _E.STOPPED): (_S.ABSENT, _A.NONE),
    # what runs holds states read under the former epoch; others may have written since
    (_S.RUNNING, _E.GRANTED): (_S.STOPPING, _A.STOP),
    (_S.RUNNING, _E.WITHDRAWN): (_S.STOPPING, _A.STOP),
    (_S.RUNNING, _E.STOPPED): (_S.RUNNING, _A.NONE),
    (_S.STOPPING, _E.GRANTED): (_S.STOPPING, _A.NONE),
    (_S.STOPPING, _E.WITHDRAWN): (_S.STOPPING, _A.NONE),
    (_S.STOPPING, _E.STOPPED): (_S.ABSENT, _A.SETTLE),
}


@dataclass(slots=True)
class LocalShard:
    """`epoch` is the one that it runs, or last ran, under here; `asked_by` waits for its stop under `asked_epoch`.
    While it is `settling`, what waited here since its stop is counted as it goes on or is refused."""

    state: LocalState = LocalState.ABSENT
    epoch: int = 0
    bounced: int = 0
    receipt: Receipt = field(default_factory=Receipt)
    asked_by: NodeId | None = None
    asked_epoch: int = 0
    settling: bool = False
    forwarded: int = 0
    refused: int = 0

    def fire(self, event: LocalEvent) -> LocalAction:
        self.state, action = TABLE[self.state, event]
        return action
