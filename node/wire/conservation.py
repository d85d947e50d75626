"""Whether messages between two nodes vanish without a reason (I9): what one counted as sent against what came.

Every few seconds each node tells each peer, on both lanes, how many messages of each type it has sent there so far. A
lane keeps its order, so when such a statement arrives, everything that was sent before it on that lane has arrived, or
is known to be lost by its number, or has vanished. A frame of an older connection may come late, so one look proves
nothing: a difference that every look has found for `conservation_fault_ms` is a fault. The same is asked of what the
node itself took in: received = handled + dropped.

Sans-IO. The driver owes it: `statement` sent at once on its lane; `heard` for each that comes, after everything that
came before it; `look` now and then, while no envelope is being handled; `forget` when the cluster's members change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from node.core import limits
from node.core.clock import MS
from node.core.ids import NodeId
from node.wire.ledger import Ledger
from node.wire.registry import REGISTRY, Lane, wire_type

_TYPES_NAMED_MAX = 3


@wire_type("node.sent_control", lane=Lane.CONTROL)
class SentControl(msgspec.Struct, frozen=True):
    """So many messages of each type, this one among them, left for the incarnation `receiver` on the control lane."""

    round: int
    receiver: int
    sent: dict[str, int]


@wire_type("node.sent_data", lane=Lane.DATA)
class SentData(msgspec.Struct, frozen=True):
    """The same of the data lane; `round` says which two statements belong together."""

    round: int
    receiver: int
    sent: dict[str, int]


Statement = SentControl | SentData


@dataclass(slots=True)
class _Watch:
    """A difference since it was first seen: what all looks agree on."""

    since_ns: int
    count: int
    names: frozenset[str]


@dataclass(slots=True)
class _Peer:
    """What the newest statements of one peer left unexplained: by lane the round, and by type how many."""

    rounds: dict[Lane, int] = field(default_factory=dict)
    missing: dict[Lane, dict[str, int]] = field(default_factory=dict)


class Conservation:
    """One node's. `ledger` is the transport's."""

    def __init__(self, me: NodeId, ledger: Ledger) -> None:
        self._me = me
        self._ledger = ledger
        self._round = 0
        self._peers: dict[NodeId, _Peer] = {}
        self._watches: dict[NodeId, _Watch] = {}

    def statements(self, peers: Iterable[NodeId]) -> list[tuple[NodeId, Statement]]:
        """The next round: what to send to whom, in this order."""
        self._round += 1
        found: list[tuple[NodeId, Statement]] = []
        for peer in peers:
            sent: dict[Lane, dict[str, int]] = {Lane.CONTROL: {}, Lane.DATA: {}}
            for name, count in self._ledger.of(peer).sent_by_type().items():
                if REGISTRY.has(name):
                    sent[REGISTRY.named(name).lane][name] = count
            for cls, lane in ((SentControl, Lane.CONTROL), (SentData, Lane.DATA)):
                own = REGISTRY.name_of(cls)
                sent[lane][own] = sent[lane].get(own, 0) + 1
                found.append((peer, cls(self._round, peer.incarnation, sent[lane])))
        return found

    def heard(self, sender: NodeId, said: Statement, now_ns: int) -> None:
        """A peer's statement came; it counts once both lanes have come so far."""
        if said.receiver != self._me.incarnation:
            return
        lane = REGISTRY.of(said).lane
        arrived, untyped = self._ledger.of(sender).arrived()
        peer = self._peers.setdefault(sender, _Peer())
        peer.rounds[lane] = said.round
        peer.missing[lane] = {
            name: left for name, count in said.sent.items() if (left := count - arrived.get(name, 0)) > 0
        }
        if len(set(peer.rounds.values())) == 1 and len(peer.rounds) == len(Lane):
            missing = {name: count for lane_missing in peer.missing.values() for name, count in lane_missing.items()}
            self._saw(sender, sum(missing.values()) - untyped, missing, now_ns)

    def look(self, now_ns: int) -> None:
        """Whether this node has dealt with all that it took in."""
        left = self._ledger.unhandled()
        self._saw(self._me, sum(abs(count) for count in left.values()), {name: 1 for _, name in left}, now_ns)

    def forget(self, members: Collection[NodeId]) -> None:
        """Who is no member says nothing more, so nothing more can be found out."""
        for gone in (self._peers.keys() | self._watches.keys()) - {*members, self._me}:
            self._peers.pop(gone, None)
            self._watches.pop(gone, None)

    def faults(self, now_ns: int) -> dict[NodeId, str]:
        """By sender, in words; this node itself stands for what it took in and lost sight of."""
        lasted_ns = limits.conservation_fault_ms * MS
        return {
            node: self._words(node, watch)
            for node, watch in sorted(self._watches.items())
            if now_ns - watch.since_ns >= lasted_ns
        }

    def _saw(self, node: NodeId, count: int, missing: Mapping[str, int], now_ns: int) -> None:
        if count <= 0:
            self._watches.pop(node, None)
            return
        watch = self._watches.setdefault(node, _Watch(now_ns, count, frozenset(missing)))
        watch.count = min(watch.count, count)
        watch.names = watch.names & missing.keys() or frozenset(missing)

    def _words(self, node: NodeId, watch: _Watch) -> str:
        names = sorted(watch.names)
        more = f" and {len(names) - _TYPES_NAMED_MAX} other types" if len(names) > _TYPES_NAMED_MAX else ""
        of = f"{', '.join(names[:_TYPES_NAMED_MAX])}{more}"
        if node == self._me:
            return f"taken in, and neither handled nor dropped for a reason: {watch.count} of {of}"
        return f"sent by {node} and unaccounted for at {self._me}: {watch.count} of {of}"
