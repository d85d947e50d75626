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
    """One client's operation. `verb` and `key` say what; `key` names its object, unique where the verb makes one;
    `answer` is what a reply says, where a repeat must say the same."""

    number: int
    verb: str
    key: tuple[str, ...]
    node: str
    invoked_ns: int
    outcome: Outcome = Outcome.OPEN
    ended_ns: int = 0
    detail: str = ""
    answer: str = ""


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
    """An account's money as the store accepted it, in micros; `reserved` is the durable bound of what is promised,
    `day` the account's own (ISO)."""

    at_ns: int
    kind: str
    id: str
    daily_micros: int
    spent_micros: int
    reserved_micros: int
    day: str = ""


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
class Started:
    """The store gave out an incarnation."""

    at_ns: int
    node: NodeId


@dataclass(frozen=True, slots=True)
class Leased:
    """The store granted the coordinator's lease, or prolonged it; `until_ns` on the true clock."""

    at_ns: int
    node: NodeId
    term: int
    until_ns: int
    ttl_ns: int


@dataclass(frozen=True, slots=True)
class Decided:
    """A coordinator sent a change of the placement table on its way to the store."""

    at_ns: int
    node: NodeId
    term: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A client's ask ended, or (`never`) the client gave up on it. `excused`: its node died or stood still."""

    at_ns: int
    node: NodeId
    ask: int
    deadline_ns: int
    never: bool
    excused: bool


@dataclass(frozen=True, slots=True)
class Replied:
    """A node sent the answer to another's ask."""

    at_ns: int
    node: NodeId
    to: str
    correlation: int


KeyVersion = tuple[int, int, str]
NEVER: KeyVersion = (0, 0, "")


@dataclass(frozen=True, slots=True)
class Put:
    """A probe wrote a key of the ServeIndex, or (`removed`) removed it; `value` is a checksum."""

    at_ns: int
    node: NodeId
    key: str
    version: KeyVersion
    value: int
    removed: bool


@dataclass(frozen=True, slots=True)
class Held:
    """What a node's replica held for a key at a look. `damaged`: disks lost bits in this run, so a replica may
    have set an entry aside and fetched an older one from whoever was there. `absent`: it reads as nothing, being a
    removal or expired at `wall_ms`, the node's time; `expires_at_ms` 0: never. `discarded`: the newest version
    that a take-over has forgotten since the node's start."""

    at_ns: int
    node: NodeId
    key: str
    version: KeyVersion
    value: int
    damaged: bool = False
    absent: bool = False
    expires_at_ms: int = 0
    wall_ms: int = 0
    discarded: KeyVersion = NEVER


@dataclass(frozen=True, slots=True)
class DeltaCame:
    """A peer's numbered writes `first` … `last` arrived; everything up to `since` needs no delta any more."""

    at_ns: int
    node: NodeId
    stream: int
    since: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class DeltaAcked:
    """A node says that it has everything of a stream up to a number."""

    at_ns: int
    node: NodeId
    stream: int
    upto: int


Event = (
    Placed
    | Wrote
    | Budget
    | Counted
    | ApprovalAsked
    | Served
    | Started
    | Leased
    | Decided
    | Ended
    | Replied
    | Put
    | Held
    | DeltaCame
    | DeltaAcked
)


# ---- what only the checkers of the end look at


@dataclass(frozen=True, slots=True)
class Handled:
    """A probe took a message. `verb` and `value` say which."""

    at_ns: int
    node: NodeId
    entity: str
    verb: str
    value: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The store refused a state's write because another epoch is the present one, and its writer was told."""

    node: NodeId
    shard: int
    epoch: int


@dataclass(frozen=True, slots=True)
class CounterRead:
    """What a counter said to a node that asked; `total` is None where it said nothing."""

    asked_ns: int
    ended_ns: int
    node: str
    entity: str
    total: int | None


@dataclass(slots=True)
class History:
    """All of a run. `log` holds what the checkers of every instant look at, in order. `notes`: how many each sender
    (a process) told each entity; `told_ns`: when. `reads`: of counters, at the end. `keys`: what probes put into the
    ServeIndex, with the newest removal of each; `spread`: those that every replica holds at present, and since when;
    `settled`: those that every replica has held for so long that its disk has them; `vouched`: the newest removals that
    were acknowledged, a majority having them on disk; `offered`: creatives whose addition was acknowledged, with the
    categories that they are offered for; not those of campaigns whose money runs out."""

    ops: list[Op] = field(default_factory=list)
    log: list[Event] = field(default_factory=list)
    handled: list[Handled] = field(default_factory=list)
    notes: dict[tuple[str, str], int] = field(default_factory=dict)
    told_ns: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    reads: list[CounterRead] = field(default_factory=list)
    keys: dict[str, KeyVersion] = field(default_factory=dict)
    spread: dict[str, tuple[KeyVersion, int]] = field(default_factory=dict)
    settled: dict[str, KeyVersion] = field(default_factory=dict)
    vouched: dict[str, KeyVersion] = field(default_factory=dict)
    offered: dict[str, frozenset[str]] = field(default_factory=dict)

    def begin(self, verb: str, key: tuple[str, ...], node: str, now_ns: int) -> Op:
        """A client asks something of a node."""
        op = Op(len(self.ops) + 1, verb, key, node, now_ns)
        self.ops.append(op)
        return op

    def undo(self, verb: str, key: tuple[str, ...]) -> None:
        """Somebody asks to take back what such operations made: whether it is there at the end says nothing of them."""
        for op in self.ops:
            if op.verb == verb and op.key == key:
                op.outcome = Outcome.UNKNOWN

    def acknowledged(self, verb: str) -> list[Op]:
        return [op for op in self.ops if op.verb == verb and op.outcome is Outcome.OK]

    def tally(self) -> dict[str, int]:
        """How many operations ended how."""
        found: dict[str, int] = {}
        for op in self.ops:
            name = f"{op.verb}.{op.outcome.value}"
            found[name] = found.get(name, 0) + 1
        return dict(sorted(found.items()))
