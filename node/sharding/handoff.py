"""One shard's move, as a state table of the coordinator.

    planned --marked--> asked --deadline--> asked_again --deadline--> ready (forced) --placed--> done
                          \\--receipt----------\\--receipt--> ready ----placed--> done
    the owner gone: ready from anywhere; the target gone: dropped while planned, another is chosen later on.

`planned` waits for the durable row *moving*, `ready` for the durable row of the new owner. `done` and `dropped` end it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from node.core.ids import NodeId
from node.sharding.messages import Receipt


class MoveState(enum.StrEnum):
    PLANNED = "planned"
    ASKED = "asked"
    ASKED_AGAIN = "asked_again"
    READY = "ready"
    DONE = "done"
    DROPPED = "dropped"


class MoveEvent(enum.StrEnum):
    MARKED = "marked"  # the row *moving* is durable
    RECEIPT = "receipt"  # the owner says that the shard stopped, under the move's epoch
    DEADLINE = "deadline"  # the hand-off's time limit passed
    OWNER_GONE = "owner_gone"  # membership removed the owner
    TARGET_GONE = "target_gone"  # the chosen target can't take shards any more
    CANCELLED = "cancelled"  # nobody wants the move any more
    PLACED = "placed"  # the new owner's row is durable


class MoveAction(enum.StrEnum):
    NONE = "none"
    ASK = "ask"  # tell the owner to stop, and start the time limit
    FORCE = "force"  # give up on the owner: the new epoch fences it
    RETARGET = "retarget"  # forget the target; one is chosen when the row is written
    FINISH = "finish"  # answer who asked for it
    DROP = "drop"  # answer who asked for it that nothing was done
    COUNT_LATE = "count_late"  # an answer that nobody waits for any more


_S, _E, _A = MoveState, MoveEvent, MoveAction

# Every pair is listed: a pair that can't matter says so by staying with `none` or by being counted.
TABLE: Final[Mapping[tuple[MoveState, MoveEvent], tuple[MoveState, MoveAction]]] = {
    (_S.PLANNED, _E.MARKED): (_S.ASKED, _A.ASK),
    (_S.PLANNED, _E.RECEIPT): (_S.PLANNED, _A.COUNT_LATE),
    (_S.PLANNED, _E.DEADLINE): (_S.PLANNED, _A.NONE),
    (_S.PLANNED, _E.OWNER_GONE): (_S.READY, _A.NONE),
    (_S.PLANNED, _E.TARGET_GONE): (_S.DROPPED, _A.DROP),
    (_S.PLANNED, _E.CANCELLED): (_S.DROPPED, _A.DROP),
    (_S.PLANNED, _E.PLACED): (_S.DONE, _A.FINISH),
    (_S.ASKED, _E.MARKED): (_S.ASKED, _A.NONE),
    (_S.ASKED, _E.RECEIPT): (_S.READY, _A.NONE),
    (_S.ASKED, _E.DEADLINE): (_S.ASKED_AGAIN, _A.ASK),
    (_S.ASKED, _E.OWNER_GONE): (_S.READY, _A.NONE),
    (_S.ASKED, _E.TARGET_GONE): (_S.ASKED, _A.RETARGET),
    (_S.ASKED, _E.CANCELLED): (_S.ASKED, _A.NONE),  # the owner may have stopped: only a new epoch starts it again
    (_S.ASKED, _E.PLACED): (_S.DONE, _A.FINISH),
    (_S.ASKED_AGAIN, _E.MARKED): (_S.ASKED_AGAIN, _A.NONE),
    (_S.ASKED_AGAIN, _E.RECEIPT): (_S.READY, _A.NONE),
    (_S.ASKED_AGAIN, _E.DEADLINE): (_S.READY, _A.FORCE),
    (_S.ASKED_AGAIN, _E.OWNER_GONE): (_S.READY, _A.NONE),
    (_S.ASKED_AGAIN, _E.TARGET_GONE): (_S.ASKED_AGAIN, _A.RETARGET),
    (_S.ASKED_AGAIN, _E.CANCELLED): (_S.ASKED_AGAIN, _A.NONE),
    (_S.ASKED_AGAIN, _E.PLACED): (_S.DONE, _A.FINISH),
    (_S.READY, _E.MARKED): (_S.READY, _A.NONE),
    (_S.READY, _E.RECEIPT): (_S.READY, _A.COUNT_LATE),
    (_S.READY, _E.DEADLINE): (_S.READY, _A.NONE),
    (_S.READY, _E.OWNER_GONE): (_S.READY, _A.NONE),
    (_S.READY, _E.TARGET_GONE): (_S.READY, _A.RETARGET),
    (_S.READY, _E.CANCELLED): (_S.READY, _A.NONE),
    (_S.READY, _E.PLACED): (_S.DONE, _A.FINISH),
    **{
        (end, event): (end, _A.COUNT_LATE if event is _E.RECEIPT else _A.NONE)
        for end in (_S.DONE, _S.DROPPED)
        for event in MoveEvent
    },
}


@dataclass(slots=True)
class Move:
    """A shard on its way from the owner that holds it under `epoch`. Times are monotonic nanoseconds."""

    shard: int
    epoch: int
    source: NodeId
    target: NodeId | None
    cause: str
    reply_tag: int | None = None
    state: MoveState = MoveState.PLANNED
    forced: bool = False
    receipt: Receipt | None = None
    deadline_ns: int = 0
    resend_ns: int = 0
    entered_ns: int = 0  # when it came into its present state
    began_ns: int = 0  # when the owner was first asked

    def fire(self, event: MoveEvent) -> MoveAction:
        """Take the transition that the table names; what it asks for is the coordinator's to do."""
        self.state, action = TABLE[self.state, event]
        if action is MoveAction.RETARGET:
            self.target = None
        elif action is MoveAction.FORCE:
            self.forced = True
        return action

    @property
    def final_cause(self) -> str:
        return "forced" if self.forced else self.cause

    @property
    def awaits_receipt(self) -> bool:
        return self.state in (MoveState.ASKED, MoveState.ASKED_AGAIN)
