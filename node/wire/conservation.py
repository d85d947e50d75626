"""Whether messages between two nodes vanish without a reason (I9): what one counted as sent against what came.

Every few seconds each node tells each peer, on both lanes, how many messages of each type it has sent there so far. A
lane keeps its order, so when such a statement arrives, everything that was sent before it on that lane has arrived, or
is known to be lost by its number, or has vanished. Each lane is judged on its own, when its statement comes: what is
known to be lost then may have come before the other lane's. A frame of an older connection may come late, so one look
proves nothing, however long ago it was: only looks that are `conservation_fault_ms` apart, with none between them that
found no difference, make a fault. The same is asked of what the node itself took in: received = handled + dropped.

Sans-IO. The driver owes it: `statement` sent at once on its lane; `heard` for each that comes, after everything that
came before it; `look` now and then, while no envelope is being handled; `forget` when the cluster's members change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

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

    receiver: int
    sent: dict[str, int]


@wire_type("node.sent_data", lane=Lane.DATA)
class SentData(msgspec.Struct, frozen=True):
    """The same of the data lane."""

    receiver: int
    sent: dict[str, int]


Statement = SentControl | SentData


@dataclass(slots=True)
class _Watch:
    """A difference from the first look that found it to the last: what all of them agree on."""

    since_ns: int
    last_ns: int
    count: int
    names: frozenset[str]


class Conservation:
    """One node's. `ledger` is the transport's."""

    def __init__(self, me: NodeId, ledger: Ledger) -> None:
        self._me = me
        self._ledger = ledger
        self._watches: dict[tuple[NodeId, Lane | None], _Watch] = {}  # without a lane: what this node took in

    def statements(self, peers: Iterable[NodeId]) -> list[tuple[NodeId, Statement]]:
        """What to send to whom, in this order."""
        found: list[tuple[NodeId, Statement]] = []
        for peer in peers:
            sent: dict[Lane, dict[str, int]] = {Lane.CONTROL: {}, Lane.DATA: {}}
            for name, count in self._ledger.of(peer).sent_by_type().items():
                if REGISTRY.has(name):
                    sent[REGISTRY.named(name).lane][name] = count
            for cls, lane in ((SentControl, Lane.CONTROL), (SentData, Lane.DATA)):
                own = REGISTRY.name_of(cls)
                sent[lane][own] = sent[lane].get(own, 0) + 1
                found.append((peer, cls(peer.incarnation, sent[lane])))
        return found

    def heard(self, sender: NodeId, said: Statement, now_ns: int) -> None:
        """A peer's statement came."""
        if said.receiver != self._me.incarnation:
            return
        lane = REGISTRY.of(said).lane
        its = self._ledger.of(sender)
        missing = {name: left for name, count in said.sent.items() if (left := count - its.arrived(name)) > 0}
        self._saw((sender, lane), sum(missing.values()) - its.untyped(lane), missing, now_ns)

    def look(self, now_ns: int) -> None:
        """Whether this node has dealt with all that it took in."""
        left = self._ledger.unhandled()
        count = sum(abs(count) for count in left.values())
        self._saw((self._me, None), count, {name for _, name in left}, now_ns)

    def forget(self, members: Collection[NodeId]) -> None:
        """Who is no member says nothing more, so nothing more can be found out."""
        known = {*members, self._me}
        for key in [key for key in self._watches if key[0] not in known]:
            del self._watches[key]

    def faults(self) -> dict[NodeId, str]:
        """By sender, in words; this node itself stands for what it took in and lost sight of."""
        lasting: dict[NodeId, list[_Watch]] = {}
        for (node, _), watch in self._watches.items():
            if watch.last_ns - watch.since_ns >= limits.conservation_fault_ms * MS:
                lasting.setdefault(node, []).append(watch)
        return {node: self._words(node, watches) for node, watches in sorted(lasting.items())}

    def _saw(self, key: tuple[NodeId, Lane | None], count: int, names: Iterable[str], now_ns: int) -> None:
        if count <= 0:
            self._watches.pop(key, None)
            return
        found = frozenset(names)
        watch = self._watches.setdefault(key, _Watch(now_ns, now_ns, count, found))
        watch.last_ns = now_ns
        watch.count = min(watch.count, count)
        watch.names = watch.names & found or found

    def _words(self, node: NodeId, watches: Sequence[_Watch]) -> str:
        names = sorted(frozenset[str]().union(*(watch.names for watch in watches)))
        more = f" and {len(names) - _TYPES_NAMED_MAX} other types" if len(names) > _TYPES_NAMED_MAX else ""
        of = f"{sum(watch.count for watch in watches)} of {', '.join(names[:_TYPES_NAMED_MAX])}{more}"
        if node == self._me:
            return f"taken in, and neither handled nor dropped for a reason: {of}"
        return f"sent by {node} and unaccounted for at {self._me}: {of}"
