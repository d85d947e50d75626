"""What clients asked and were told, and what the store accepted: the input of the checkers.

Clients' entries are on the world's true clock. The store's log is in commit order.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from node.core.ids import NodeId


class Outcome(enum.StrEnum):
    """`fail` is definite: it did not happen. `unknown` may have happened."""

    OPEN = "open"
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Op:
    """One client's operation. `verb` and `key` say what; `key` names its object, unique where the verb makes one."""

    number: int
    verb: str
    key: tuple[str, ...]
    node: str
    invoked_ns: int
    outcome: Outcome = Outcome.OPEN
    ended_ns: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """The store accepted a row of the placement table."""

    at_ns: int
    shard: int
    owner: NodeId
    epoch: int


@dataclass(frozen=True, slots=True)
class Wrote:
    """The store accepted an entity's state from a node. `revision` is the one it became."""

    at_ns: int
    node: NodeId
    kind: str
    id: str
    shard: int
    epoch: int
    revision: int


@dataclass(frozen=True, slots=True)
class Budget:
    """An account's money as the store accepted it, in micros; `reserved` is the durable bound of what is promised."""

    at_ns: int
    kind: str
    id: str
    daily_micros: int
    spent_micros: int
    reserved_micros: int


@dataclass(frozen=True, slots=True)
class Counted:
    """The store accepted the fact of an impression or a click; before the `Budget` of the same write."""

    at_ns: int
    event: str
    campaign: str
    request_id: str
    price_micros: int


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A publisher sent an approval."""

    at_ns: int
    site: str
    creative: str


@dataclass(frozen=True, slots=True)
class Served:
    """A client was given a creative."""

    at_ns: int
    site: str
    slot: str
    creative: str


@dataclass(frozen=True, slots=True)
class Handled:
    """A probe took a message. `verb` and `value` say which; `node` is the host's name."""

    at_ns: int
    node: str
    entity: str
    verb: str
    value: str


Event = Placed | Wrote | Budget | Counted | ApprovalAsked | Served


@dataclass(slots=True)
class History:
    """All of a run. `log` holds what the checkers of every instant look at, in order."""

    ops: list[Op] = field(default_factory=list)
    log: list[Event] = field(default_factory=list)
    handled: list[Handled] = field(default_factory=list)

    def begin(self, verb: str, key: tuple[str, ...], node: str, now_ns: int) -> Op:
        """A client asks something of a node."""
        op = Op(len(self.ops) + 1, verb, key, node, now_ns)
        self.ops.append(op)
        return op

    def acknowledged(self, verb: str) -> list[Op]:
        return [op for op in self.ops if op.verb == verb and op.outcome is Outcome.OK]

    def tally(self) -> dict[str, int]:
        """How many operations ended how."""
        found: dict[str, int] = {}
        for op in self.ops:
            name = f"{op.verb}.{op.outcome.value}"
            found[name] = found.get(name, 0) + 1
        return dict(sorted(found.items()))
