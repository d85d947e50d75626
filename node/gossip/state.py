"""What is gossiped, as a join semilattice, and its digest.

The design names version vectors. They answer "which of two states is newer, or do they conflict?", so that a conflict
can be merged by rules. Here the state *is* a lattice: every part only moves up an order of its own (a member's record
by incarnation and status, an observation by its observer's version, the up-number mark by size), so merging any two
states, in any order, any number of times, gives the same result, and there is no conflict to detect. "Is there
anything to exchange?" is answered by comparing digests; equal digests mean equal states. What is left of the vectors
is one counter per observation, kept by its only writer. Nothing grows with members that came and went except one
tombstone per name ever used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from node.core.ids import NodeId
from node.gossip.member import Member, Status, join


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One node's observation of another; only the observer writes it, counting `version` up."""

    observer: NodeId
    subject: NodeId
    reachable: bool
    version: int


Key = tuple[NodeId, NodeId]


@dataclass(frozen=True)
class GossipState:
    """Members by name (tombstones included), observations by observer and subject, the greatest up-number given."""

    members: Mapping[str, Member] = field(default_factory=dict)
    rows: Mapping[Key, Row] = field(default_factory=dict)
    up_mark: int = 0

    @cached_property
    def digest(self) -> str:
        """16 hex digits; equal on two nodes exactly when their states are equal."""
        parts = [sorted((m.node, m) for m in self.members.values()), self.sorted_rows(), self.up_mark]
        return hashlib.blake2b(msgspec.json.encode(parts), digest_size=8).hexdigest()

    def sorted_rows(self) -> list[Row]:
        return [self.rows[key] for key in sorted(self.rows)]

    def sorted_members(self) -> list[Member]:
        return [self.members[name] for name in sorted(self.members)]

    def live(self, node: NodeId) -> bool:
        """Whether this incarnation is a member that has not been removed."""
        member = self.members.get(node.name)
        return member is not None and member.incarnation == node.incarnation and member.status < Status.REMOVED

    def sees(self, observer: NodeId, subject: NodeId) -> bool:
        """What the observer's row says; no row means that it has never seen the subject fail."""
        row = self.rows.get((observer, subject))
        return row is None or row.reachable

    def with_member(self, *members: Member) -> GossipState:
        return merge(self, build(members, (), max((m.up_number for m in members), default=0)))

    def with_row(self, row: Row) -> GossipState:
        return merge(self, build((), (row,), 0))


def build(members: Iterable[Member], rows: Iterable[Row], up_mark: int) -> GossipState:
    """A state of parts that may come from outside: parts of one key are merged, dead observations left out."""
    named: dict[str, Member] = {}
    for member in members:
        known = named.get(member.node)
        named[member.node] = member if known is None else join(known, member)
    seen: dict[Key, Row] = {}
    for row in rows:
        _take(seen, row)
    return _normal(named, seen, up_mark)


def merge(a: GossipState, b: GossipState) -> GossipState:
    """The least upper bound; returns `a` itself when `b` adds nothing."""
    members = dict(a.members)
    for name, theirs in b.members.items():
        ours = members.get(name)
        members[name] = theirs if ours is None else join(ours, theirs)
    rows = dict(a.rows)
    for row in b.rows.values():
        _take(rows, row)
    merged = _normal(members, rows, max(a.up_mark, b.up_mark))
    same = merged.up_mark == a.up_mark and merged.members == a.members and merged.rows == a.rows
    return a if same else merged


def transitions(before: GossipState, after: GossipState) -> list[tuple[Member, Status | None, str]]:
    """Each member whose incarnation or status changed: its record, the status that it had (None for a new one) and why,
    where the record says so. A restart ends the incarnation before it."""
    found: list[tuple[Member, Status | None, str]] = []
    for name, member in after.members.items():
        known = before.members.get(name)
        if known is member or (known is None and member.status is Status.REMOVED):
            continue
        if known is None or known.incarnation != member.incarnation:
            if known is not None and known.status is not Status.REMOVED:
                cause = f"replaced by incarnation {member.incarnation}"
                gone = msgspec.structs.replace(known, status=Status.REMOVED, cause=cause)
                found.append((gone, known.status, cause))
            found.append((member, None, member.cause))
        elif known.status is not member.status:
            found.append((member, known.status, member.cause))
    return found


def _take(rows: dict[Key, Row], row: Row) -> None:
    key = (row.observer, row.subject)
    known = rows.get(key)
    # Unreachable wins a tie, which only a broken writer can make.
    if known is None or (row.version, not row.reachable) > (known.version, not known.reachable):
        rows[key] = row


def _normal(members: dict[str, Member], rows: dict[Key, Row], up_mark: int) -> GossipState:
    # An observation dies with its observer's or its subject's incarnation. Death is final in the order of members, so
    # leaving dead rows out commutes with merging.
    def dead(node: NodeId) -> bool:
        known = members.get(node.name)
        if known is None or known.incarnation < node.incarnation:
            return False
        return known.incarnation > node.incarnation or known.status is Status.REMOVED

    kept = {key: row for key, row in rows.items() if not dead(row.observer) and not dead(row.subject)}
    return GossipState(members, kept, up_mark)
