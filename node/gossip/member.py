"""A member's record, the order of its statuses, and the join (least upper bound) of two records of one name.

A restart is a new incarnation of the same name: the greater incarnation wins whole and at once. Within an incarnation
the greater status wins, so that no record ever moves back. `removed` records stay as tombstones: they are what keeps
an old incarnation from returning, and they say by which decision it went.

```
joining ──▶ weakly_up ──▶ up ──▶ leaving ──▶ exiting ──▶ removed
   any of these but removed ──▶ down ──▶ removed
```
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from node.core import limits
from node.core.ids import NodeId


class Status(enum.IntEnum):
    """Ordered: a record only ever moves to a greater status."""

    JOINING = 1
    WEAKLY_UP = 2
    UP = 3
    LEAVING = 4
    EXITING = 5
    DOWN = 6
    REMOVED = 7

    @property
    def word(self) -> str:
        return self.name.lower()


_S = Status
TRANSITIONS: Final[dict[Status, frozenset[Status]]] = {
    _S.JOINING: frozenset({_S.WEAKLY_UP, _S.UP, _S.LEAVING, _S.DOWN, _S.REMOVED}),
    _S.WEAKLY_UP: frozenset({_S.UP, _S.LEAVING, _S.DOWN, _S.REMOVED}),
    _S.UP: frozenset({_S.LEAVING, _S.DOWN, _S.REMOVED}),
    _S.LEAVING: frozenset({_S.EXITING, _S.DOWN, _S.REMOVED}),
    _S.EXITING: frozenset({_S.DOWN, _S.REMOVED}),
    _S.DOWN: frozenset({_S.REMOVED}),
    _S.REMOVED: frozenset(),
}
# Those that count for a majority and may lead: the cluster has agreed that they are in, and not yet that they are out.
COUNTED: Final = frozenset({Status.UP, Status.LEAVING})
# Those that the cluster has not agreed upon yet: they have been in for moments, and count for nothing.
NEW: Final = frozenset({Status.JOINING, Status.WEAKLY_UP})
# Those whose unreachability keeps the cluster from agreeing; exiting and down ones are on their way out anyway.
UNDECIDED: Final = frozenset({Status.JOINING, Status.WEAKLY_UP, Status.UP, Status.LEAVING})
# Those that take part in gossip.
TAKING_PART: Final = UNDECIDED | {Status.EXITING}


class Member(msgspec.Struct, frozen=True):
    """One start of one node. Addresses are `host:port`; `up_number` is the order of becoming `up`, 0 before that;
    `capacity` weighs its share of shards; `cause` says why it is down or removed."""

    node: str
    incarnation: int
    control: str
    data: str = ""
    admin: str = ""
    http: str = ""
    roles: tuple[str, ...] = ()
    app_version: str = ""
    capacity: int = 1
    status: Status = Status.JOINING
    up_number: int = 0
    cause: str = ""

    @property
    def id(self) -> NodeId:
        return NodeId(self.node, self.incarnation)


def moved(member: Member, status: Status, *, up_number: int | None = None, cause: str | None = None) -> Member:
    """The record in a later status; raises ValueError for a transition that the table does not list."""
    if status not in TRANSITIONS[member.status]:
        raise ValueError(f"{member.id}: {member.status.word} to {status.word} is no transition")
    return msgspec.structs.replace(
        member,
        status=status,
        up_number=member.up_number if up_number is None else up_number,
        cause=member.cause if cause is None else cause[: limits.member_cause_chars_max],
    )


def join(a: Member, b: Member) -> Member:
    """The least upper bound of two records of one name: commutative, associative, idempotent."""
    if a.incarnation != b.incarnation:
        return a if a.incarnation > b.incarnation else b
    winner = a if _rank(a) >= _rank(b) else b
    up_number = max(a.up_number, b.up_number)
    return winner if winner.up_number == up_number else msgspec.structs.replace(winner, up_number=up_number)


def _rank(member: Member) -> tuple[object, ...]:
    # Within one incarnation the other fields are equal unless two causes were given at once; they only break ties.
    m = member
    return (m.status, m.cause, m.control, m.data, m.admin, m.http, m.roles, m.app_version, m.capacity)


def address_order(member: Member) -> tuple[str, int, str]:
    """The order of addresses, which picks leaders and breaks even splits: host, then port as a number."""
    host, _, port = member.control.rpartition(":")
    return (host, int(port) if port.isascii() and port.isdigit() else 0, member.node)
