"""Which connections membership holds open: to the living members, to the seeds, and for a while to guests, nodes that
are no members and are being told why."""

from __future__ import annotations

from node.core import limits
from node.gossip.events import Connect, Disconnect, Effect
from node.gossip.join import Seed
from node.gossip.member import Status
from node.gossip.state import GossipState
from node.wire.port import PeerAddress


class Peers:
    """Computes Connect and Disconnect effects."""

    def __init__(self, me: str, seeds: tuple[Seed, ...], guest_ns: int) -> None:
        self._me = me
        self._seeds: dict[str, PeerAddress] = {}
        self._synced: GossipState | None = None  # the state that the open ways are those of, while nobody is a guest
        self.replace_seeds(seeds)
        self._guest_ns = guest_ns
        self._open: dict[str, PeerAddress] = {}
        self._guests: dict[str, int] = {}

    def replace_seeds(self, seeds: tuple[Seed, ...]) -> None:
        """Other seeds from now on; `sync` opens and closes the ways."""
        self._synced = None
        others = (s for s in seeds if s.control and s.node != self._me)
        self._seeds = {s.node: PeerAddress(s.node, s.control, "") for s in others}

    def sync(self, state: GossipState, now_ns: int) -> list[Effect]:
        """What to open, replace and close, given the members; asked at every beat, and mostly there is nothing."""
        if state is self._synced and not self._guests:
            return []
        self._synced = state
        wanted = dict(self._seeds)
        for m in state.sorted_members():
            if m.status is not Status.REMOVED and m.node != self._me:
                wanted[m.node] = PeerAddress(m.node, m.control, m.data)
        effects: list[Effect] = []
        for node, peer in wanted.items():
            self._guests.pop(node, None)
            if self._open.get(node) != peer:
                self._open[node] = peer
                effects.append(Connect(peer))
        for node in [n for n in self._open if n not in wanted]:
            # One that has just gone stays a guest for a moment, to be told so.
            if self._guests.setdefault(node, now_ns + self._guest_ns) <= now_ns:
                del self._guests[node], self._open[node]
                effects.append(Disconnect(node))
        return effects

    def guest(self, node: str, control: str, data: str, now_ns: int) -> list[Effect]:
        """Make sure that there is a way to a node that isn't a member; none if there are too many guests."""
        known = self._open.get(node)
        if known is not None and (node not in self._guests or known.control == control):
            return []
        if not control or (known is None and len(self._guests) >= limits.guests_max):
            return []
        peer = PeerAddress(node, control, data)
        self._open[node] = peer
        self._guests[node] = now_ns + self._guest_ns
        return [Connect(peer)]

    def replace(self, node: str, control: str, data: str) -> list[Effect]:
        """A known name is about to join from a new process: a connection to its former one is of no use."""
        peer = PeerAddress(node, control, data)
        self._open[node] = peer
        self._synced = None
        return [Connect(peer)]
