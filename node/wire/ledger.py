"""The conservation of messages (I9): what became of each message between two nodes, by pair and by type.

A sender counts what it handed to the network (`sent`) and what never left, by reason (`unsent`); a receiver what
passed every check (`received`) and what did not (`refused`), then what its engine did with it (`handled`, `dropped`).
So between two nodes `sent = received + refused + lost + in flight`, and inside one `received = handled + dropped`, at
any moment. A message for an entity counts as handled once the region has it: from there the receipts of sharding go on.

Pure. Whoever owns it calls `of(peer)` once for each peer and incarnation and counts on what that returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from node.core import limits
from node.core.ids import NodeId
from node.wire.registry import Lane, wire_type

STRANGER: Final = NodeId("?", 0)  # connections that no roster entry stands for
UNREADABLE: Final = "?"  # the type of a message that could not be read so far as to know it
FRAME: Final = "(frame)"  # stands for a type where a frame was refused before its messages were looked at


@wire_type("wire.ledger_row", lane=Lane.DATA)
class LedgerRow(msgspec.Struct, frozen=True):
    """One peer and type as a node's report carries it. Incarnation 0: not known yet, or one of long ago."""

    peer: NodeId
    type: str
    sent: int = 0
    received: int = 0
    handled: int = 0
    lost: int = 0
    unsent: dict[str, int] = {}
    refused: dict[str, int] = {}
    dropped: dict[str, int] = {}


class _Flow:
    """The counts of one type."""

    __slots__ = ("dropped", "handled", "received", "refused", "sent", "unsent")

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0
        self.handled = 0
        self.unsent: dict[str, int] = {}
        self.refused: dict[str, int] = {}
        self.dropped: dict[str, int] = {}


class _Flows(dict[str, _Flow]):
    """Flows by type name; a name that is asked for the first time gets one."""

    def __missing__(self, name: str) -> _Flow:
        flow = self[name] = _Flow()
        return flow


class PeerLedger:
    """What passed between this node and one incarnation of a peer. By lane, messages whose types nobody knows: `lost`,
    which are known to have left there and have not arrived, and `unreadable`, which came and were refused."""

    __slots__ = ("_flows", "lost", "unreadable")

    def __init__(self) -> None:
        self._flows = _Flows()
        self.lost = dict.fromkeys(Lane, 0)
        self.unreadable = dict.fromkeys(Lane, 0)

    def sent(self, names: Iterable[str]) -> None:
        """Handed to the network, each name once for each message."""
        flows = self._flows
        for name in names:
            flows[name].sent += 1

    def unsent(self, name: str, reason: str, count: int = 1) -> None:
        """Never left this node: refused to an asker at once, or dropped."""
        _add(self._flows[name].unsent, reason, count)

    def received(self, name: str) -> None:
        """Arrived and passed every check."""
        self._flows[name].received += 1

    def refused(self, name: str, reason: str) -> None:
        """Arrived and did not pass."""
        _add(self._flows[name].refused, reason, 1)

    def not_read(self, lane: Lane, reason: str) -> None:
        """Arrived and did not pass, and nothing says of which type it was."""
        self.unreadable[lane] += 1
        self.refused(UNREADABLE, reason)

    def handled(self, name: str) -> None:
        """Received, and given to whom it was for."""
        self._flows[name].handled += 1

    def dropped(self, name: str, reason: str) -> None:
        """Received, and given to nobody."""
        _add(self._flows[name].dropped, reason, 1)

    def rows(self, peer: NodeId) -> Iterator[LedgerRow]:
        """One for each type, by name; what was lost stands under the unreadable."""
        all_lost = sum(self.lost.values())
        names = self._flows.keys() | ({UNREADABLE} if all_lost else set())
        for name in sorted(names):
            flow = self._flows[name]
            lost = all_lost if name == UNREADABLE else 0
            yield LedgerRow(
                peer, name, flow.sent, flow.received, flow.handled, lost,
                dict(flow.unsent), dict(flow.refused), dict(flow.dropped),
            )  # fmt: skip

    def totals(self) -> dict[str, int]:
        """By what happened and why, over all types."""
        found: dict[str, int] = {}
        for flow in self._flows.values():
            for what, count in (("sent", flow.sent), ("received", flow.received)):
                if count:
                    _add(found, what, count)
            for reasons in (flow.unsent, flow.refused, flow.dropped):
                for reason, count in reasons.items():
                    _add(found, reason, count)
        if lost := sum(self.lost.values()):
            _add(found, "lost", lost)
        return found

    def sent_by_type(self) -> dict[str, int]:
        """What was handed to the network, without the types of which nothing was."""
        return {name: flow.sent for name, flow in self._flows.items() if flow.sent}

    def arrived(self, name: str) -> int:
        """How many of a type came from there and passed or were refused."""
        flow = self._flows.get(name)
        return flow.received + sum(flow.refused.values()) if flow else 0

    def untyped(self, lane: Lane) -> int:
        """How many came or were lost on a lane whose type nobody knows."""
        return self.lost[lane] + self.unreadable[lane]

    def unhandled(self) -> Iterator[tuple[str, int]]:
        """By type, messages received and neither handled nor dropped with a reason."""
        for name, flow in self._flows.items():
            count = flow.received - flow.handled
            if count and (count := count - sum(flow.dropped.values())):
                yield name, count

    def add(self, other: PeerLedger) -> None:
        """Takes over another's counts."""
        for lane in Lane:
            self.lost[lane] += other.lost[lane]
            self.unreadable[lane] += other.unreadable[lane]
        for name, flow in other._flows.items():
            mine = self._flows[name]
            mine.sent += flow.sent
            mine.received += flow.received
            mine.handled += flow.handled
            for to, reasons in ((mine.unsent, flow.unsent), (mine.refused, flow.refused), (mine.dropped, flow.dropped)):
                for reason, count in reasons.items():
                    _add(to, reason, count)


class Ledger:
    """All peers of a node. Of each name the newest incarnations are kept apart; the older are added up under 0."""

    def __init__(self) -> None:
        self._peers: dict[NodeId, PeerLedger] = {}

    def of(self, peer: NodeId) -> PeerLedger:
        """The ledger of one incarnation of a peer; 0 where it is not known."""
        found = self._peers.get(peer)
        if found is None:
            found = self._peers[peer] = PeerLedger()
            self._fold(peer.name)
        return found

    def rows(self, node: str = "") -> tuple[LedgerRow, ...]:
        """Every peer and type, or those of one peer by name."""
        return tuple(
            row for peer in sorted(self._peers) if node in ("", peer.name) for row in self._peers[peer].rows(peer)
        )

    def unhandled(self) -> dict[tuple[NodeId, str], int]:
        """What the function of this name finds in the rows, without making them: it is looked at all the time."""
        return {(peer, name): count for peer, its in self._peers.items() for name, count in its.unhandled()}

    def totals(self) -> dict[str, dict[str, int]]:
        """By peer name, then by what happened and why, over all incarnations and types."""
        found: dict[str, dict[str, int]] = {}
        for peer in sorted(self._peers):
            of_name = found.setdefault(peer.name, {})
            for reason, count in self._peers[peer].totals().items():
                _add(of_name, reason, count)
        return found

    def _fold(self, name: str) -> None:
        known = sorted(peer for peer in self._peers if peer.name == name and peer.incarnation)
        for old in known[: -limits.ledger_incarnations_max]:
            counted = self._peers.pop(old)
            self.of(NodeId(name, 0)).add(counted)


@dataclass(frozen=True, slots=True)
class Balance:
    """One direction of a pair. `missing`: by type, how many more were sent than arrived; below zero, more arrived than
    were sent. `untyped`: arrivals and losses whose type nobody knows; they explain as many of the missing."""

    sender: NodeId
    receiver: NodeId
    missing: Mapping[str, int]
    untyped: int

    @property
    def unexplained(self) -> int:
        """Messages under way, or, when it does not change although nothing is sent, a fault."""
        return sum(self.missing.values()) - self.untyped


def balance(sender: NodeId, its: Iterable[LedgerRow], receiver: NodeId, theirs: Iterable[LedgerRow]) -> Balance:
    """Compares what one node says it sent with what the other says arrived, from the two nodes' rows."""
    missing: dict[str, int] = {row.type: row.sent for row in its if row.peer == receiver and row.sent}
    untyped = 0
    for row in theirs:
        if row.peer != sender:
            continue
        arrived = row.received + sum(row.refused.values())
        if row.type == FRAME:
            continue  # no honest sender's; where it was, its messages show as lost
        if row.type == UNREADABLE:
            untyped = arrived + row.lost
        elif arrived:
            missing[row.type] = missing.get(row.type, 0) - arrived
    return Balance(sender, receiver, {name: count for name, count in sorted(missing.items()) if count}, untyped)


def unhandled(rows: Iterable[LedgerRow]) -> dict[tuple[NodeId, str], int]:
    """By peer and type, messages that one node received and neither handled nor dropped with a reason: always empty."""
    counts = {(row.peer, row.type): row.received - row.handled - sum(row.dropped.values()) for row in rows}
    return {key: count for key, count in counts.items() if count}


def _add(counts: dict[str, int], reason: str, count: int) -> None:
    counts[reason] = counts.get(reason, 0) + count
