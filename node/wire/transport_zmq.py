"""The transport port over ZeroMQ: two lanes, CURVE, the roster at the gate.

Every message from X to Y goes by a DEALER of X to the ROUTER of Y, never back the same way: a ROUTER that only
receives (and answers greetings) can't drop to unknown peers, and a DEALER per peer and lane has a queue and a
high-water mark of its own. Lives on one event loop, asyncio's or uvloop's; every method is called on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from node.core import limits
from node.core.clock import Clock
from node.core.errors import OperatingError, RemoteProtocolError
from node.core.ids import NodeId, ServiceRef
from node.wire import envelope as envelopes
from node.wire.arrivals import BYTES_MAX, Arrivals, OnRefused
from node.wire.codec import Codec
from node.wire.envelope import Envelope, Kind
from node.wire.frames import HEAD_BYTES_MAX, Sender
from node.wire.greeting import GREETINGS, Acquaintance, Greeter, Unwelcome, Welcome
from node.wire.lane_zmq import Numbering, SendLane
from node.wire.ledger import STRANGER, Ledger, PeerLedger
from node.wire.link_zmq import LinkState
from node.wire.listener_zmq import Listener
from node.wire.nack import Nack, Refusal
from node.wire.port import PeerAddress, PeerReport, Receive, SendOutcome
from node.wire.registry import Lane, WireType
from node.wire.roster import KeyPair, Roster
from node.wire.zmq_sockets import (
    IO_THREADS,
    Use,
    check_pair,
    connect,
    endpoint,
    new_context,
    new_socket,
    use_curve,
)

_OUT: Final = {Lane.CONTROL: Use.CONTROL_OUT, Lane.DATA: Use.DATA_OUT}
_HOPELESS: Final = {
    LinkState.DENIED: "it does not know this node's key",
    LinkState.REFUSED: "it does not hold the expected key, or one side uses keys and the other is plain",
}
_NOBODY: Final = Acquaintance(NodeId("", 0))
# What a transport calls when a peer takes none of our messages: the peer, and why.
OnUnwelcome = Callable[[NodeId, Unwelcome], None]


@dataclass(slots=True)
class _Peer:
    """An open way to a peer, and the public key it was opened with. `link` is the control lane's state; the data lane
    has the same keys on both ends."""

    address: PeerAddress
    key: str
    lanes: dict[Lane, SendLane] = field(default_factory=dict)
    link: LinkState = LinkState.CONNECTING
    known: Acquaintance = _NOBODY
    why: str = ""


class ZmqTransport:
    """Implements `node.wire.port.Transport`.

    `insecure` leaves out keys altogether and is refused for addresses that aren't loopback. `on_refused` is told of
    what was refused on arrival, `on_unwelcome` when a peer refuses this node.
    """

    def __init__(
        self,
        cluster: str,
        me: NodeId,
        secret: KeyPair | None,
        roster: Roster,
        codec: Codec,
        clock: Clock,
        receive: Receive,
        on_refused: OnRefused,
        *,
        on_unwelcome: OnUnwelcome = lambda peer, why: None,
        insecure: bool = False,
    ) -> None:
        """Raises OperatingError when there is no key, or the pair doesn't belong together. Needs a running loop."""
        if secret is None and not insecure:
            raise OperatingError("E-KEY-FILE", "a node without a key pair must say insecure = true")
        self._me = me
        self._secret = None if insecure else secret
        if self._secret is not None:
            check_pair(self._secret)
        self._roster = roster
        self._codec = codec
        self._clock = clock
        self._receive = receive
        self._on_refused = on_refused
        self._on_unwelcome = on_unwelcome
        self._loop = asyncio.get_running_loop()
        self._context = new_context(IO_THREADS)
        self._greeter = Greeter(cluster, me, codec.registry)
        self._sender = Sender(me)
        self.ledger = Ledger()
        arrivals = Arrivals(me, codec, self.ledger, self._deliver, on_refused)
        self._listener = Listener(self._context, self._secret, roster, clock, self._greeter, arrivals, self._send_nack)
        self._wanted: dict[str, PeerAddress] = {}
        self._peers: dict[str, _Peer] = {}
        self._numberings: dict[tuple[str, Lane], Numbering] = {}
        self._dirty: dict[SendLane, None] = {}
        self._closed = False

    # --- listening

    def bind(self, control_addr: str, data_addr: str) -> None:
        """Listens on both lanes. Raises OperatingError (`E-PORT-IN-USE` names the port) or BadInput."""
        self._listener.bind(Lane.CONTROL, control_addr)
        self._listener.bind(Lane.DATA, data_addr)

    @property
    def control_address(self) -> str:
        """The bound `host:port` of the control lane; KeyError before `bind`."""
        return self._listener.address(Lane.CONTROL)

    @property
    def data_address(self) -> str:
        """The bound `host:port` of the data lane; KeyError before `bind`."""
        return self._listener.address(Lane.DATA)

    # --- peers

    def set_roster(self, roster: Roster) -> None:
        """Takes a new roster into effect: keys that are gone or changed are cut off both ways, new ones connected."""
        self._roster = roster
        self._listener.set_roster(roster)
        for name, address in list(self._wanted.items()):
            self._open(name, address)

    def show(self, pair: KeyPair) -> None:
        """Shows another key from now on. Every connection begins anew; what waits for a peer leaves by the new one;
        what was under way to this node is lost and counted. Raises OperatingError for halves that don't fit."""
        check_pair(pair)
        self._secret = pair
        self._listener.show(pair)
        for name, peer in list(self._peers.items()):
            self._replace(name, _Peer(peer.address, peer.key))

    def connect(self, peer: PeerAddress) -> None:
        """Opens, or replaces, the way to a peer. A peer that the roster doesn't know is connected once it does.

        Raises BadInput for an address that is malformed, or leaves the host although the transport is insecure.
        """
        for address in _lanes_of(peer).values():
            endpoint(address, loopback_only=self._secret is None)
        self._wanted[peer.node] = peer
        self._open(peer.node, peer)

    def disconnect(self, node: str) -> None:
        """Closes the way to a peer; what is queued for it is dropped and counted."""
        self._wanted.pop(node, None)
        self._shut(node)

    def send(self, node: str, envelope: Envelope) -> SendOutcome:
        """Queues an envelope; raises LocalProtocolError for a type that isn't registered or can't be encoded."""
        wire_type = self._codec.registry.of(envelope.message)
        peer = self._peers.get(node)
        lane = peer.lanes.get(wire_type.lane) if peer else None
        if lane is not None and lane.full:  # before it is encoded: who is told so at once may come again at once
            return self._unsent(node, wire_type.name, SendOutcome.PEER_BUSY)
        data = envelopes.encode(envelope, self._codec, self._clock.mono_ns())
        if len(data) > BYTES_MAX[wire_type.lane] - HEAD_BYTES_MAX:
            return self._unsent(node, wire_type.name, SendOutcome.TOO_LARGE)
        if peer is None or lane is None:
            return self._unsent(node, wire_type.name, SendOutcome.NO_ROUTE)
        if wire_type.name in peer.known.unknown_there:
            return self._unsent(node, wire_type.name, SendOutcome.UNKNOWN_TYPE)
        if not lane.offer(wire_type.name, data):
            return self._unsent(node, wire_type.name, SendOutcome.PEER_BUSY)
        if not self._dirty:
            self._loop.call_soon(self._flush)
        self._dirty[lane] = None
        return SendOutcome.SENT

    def peers(self) -> tuple[PeerReport, ...]:
        """See `Transport.peers`."""
        totals = self.ledger.totals()
        return tuple(self._report(name, self._peers.get(name), totals.get(name, {})) for name in sorted(self._wanted))

    def waiting(self, node: str, lane: Lane) -> int:
        """Envelopes queued for a peer's lane that ZeroMQ has not taken; 0 for a peer that isn't connected."""
        peer = self._peers.get(node)
        return peer.lanes[lane].waiting if peer and lane in peer.lanes else 0

    def close(self) -> None:
        """Hands over what is queued and closes everything. Blocks for up to `linger_ms` for the last frames."""
        if self._closed:
            return
        self._closed = True
        for name in list(self._peers):
            self._shut(name)
        self._listener.close()
        self._context.destroy(limits.linger_ms)  # unlike term it can't wait for a socket that was left open

    def _report(self, name: str, peer: _Peer | None, counts: dict[str, int]) -> PeerReport:
        if peer is None:
            return PeerReport(name, LinkState.CLOSED.value, why="it is not in the roster", counts=counts)
        return PeerReport(
            name,
            peer.link.value,
            peer.known.node.incarnation,
            peer.why,
            self.waiting(name, Lane.CONTROL),
            self.waiting(name, Lane.DATA),
            tuple(sorted(peer.known.unknown_there)),
            tuple(sorted(peer.known.unknown_here)),
            counts,
        )

    def _open(self, name: str, address: PeerAddress) -> None:
        entry = self._roster.node(name)
        old = self._peers.get(name)
        if old is not None and entry is not None and (old.address, old.key) == (address, entry.public_key):
            return
        if entry is None:
            self._shut(name)
            self._on_refused(name, "not_in_roster", "it is connected once the roster knows it")
            return
        self._replace(name, _Peer(address, entry.public_key))

    def _replace(self, name: str, peer: _Peer) -> None:
        """Opens a way to a peer; what waits for the way that there was leaves by it."""
        old = self._peers.get(name)
        for lane, where in _lanes_of(peer.address).items():
            peer.lanes[lane] = self._lane(name, peer, lane)
            if old is not None and lane in old.lanes:
                self._dirty.pop(old.lanes[lane], None)
                peer.lanes[lane].adopt(old.lanes.pop(lane).close())
            connect(peer.lanes[lane].socket, where, loopback_only=self._secret is None)
        self._shut(name)
        self._peers[name] = peer

    def _lane(self, name: str, peer: _Peer, lane: Lane) -> SendLane:
        dealer = new_socket(self._context, _OUT[lane])
        if self._secret is not None:
            use_curve(dealer, self._secret, peer.key)
        return SendLane(
            dealer,
            self._sender,
            self._numberings.setdefault((name, lane), Numbering()),
            GREETINGS.encode(self._greeter.hello(name)),
            partial(self._on_reply, name, peer, lane),
            partial(self._on_link, name, peer, lane),
        )

    def _on_link(self, name: str, peer: _Peer, lane: Lane, state: LinkState) -> None:
        if lane is Lane.CONTROL:
            peer.link = state
        if state in _HOPELESS:
            peer.why = _HOPELESS[state]
            # ZeroMQ gives such a connection up for good, and the roster over there may change.
            self._loop.call_later(limits.reconnect_ms_max / 1000, self._again, name, peer)

    def _again(self, name: str, peer: _Peer) -> None:
        entry = self._roster.node(name)
        if self._peers.get(name) is not peer or entry is None:
            return
        keys = entry.accepted
        if peer.link is LinkState.REFUSED and peer.key in keys:  # while its key is rotated it may show another
            key = keys[(keys.index(peer.key) + 1) % len(keys)]
        else:
            key = entry.public_key
        self._replace(name, _Peer(peer.address, key, link=peer.link, why=peer.why))

    def _on_reply(self, name: str, peer: _Peer, lane: Lane, data: bytes) -> None:
        try:
            answer = GREETINGS.decode(data)
            found = self._greeter.meet(answer, name) if isinstance(answer, Welcome) else answer
        except RemoteProtocolError as error:
            found = Unwelcome("greeting", "", str(error))
        if isinstance(found, Acquaintance):
            peer.known, peer.why = found, ""
            peer.link = LinkState.UP if lane is Lane.CONTROL else peer.link
            peer.lanes[lane].welcomed(found.node.incarnation, self.ledger.of(found.node))
        elif isinstance(found, Unwelcome):
            peer.why = f"{found.key} is {found.connecting!r} here and {found.listening!r} there"
            peer.link = LinkState.REFUSED
            self._on_refused(name, "unwelcome", peer.why)
            self._on_unwelcome(NodeId(name, 0), found)

    def _shut(self, name: str) -> None:
        peer = self._peers.pop(name, None)
        if peer is None:
            return
        for lane in peer.lanes.values():
            self._dirty.pop(lane, None)
            for dropped in lane.close():
                self.ledger.of(NodeId(name, peer.known.node.incarnation)).unsent(dropped.name, "disconnected")

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for lane in dirty:
            lane.flush()

    def _unsent(self, node: str, name: str, outcome: SendOutcome) -> SendOutcome:
        self._of(node if node in self._wanted else None).unsent(name, outcome.value)
        return outcome

    def _of(self, node: str | None) -> PeerLedger:
        peer = self._peers.get(node or "")
        return self.ledger.of(NodeId(node, peer.known.node.incarnation if peer else 0) if node else STRANGER)

    def _deliver(self, envelope: Envelope, wire_type: WireType) -> None:
        ledger = self.ledger.of(envelope.sender)
        ledger.received(wire_type.name)
        try:
            self._receive(envelope)
        except Exception as error:  # ours, not the peer's; the other envelopes of the frame must not be lost with it
            ledger.dropped(wire_type.name, "receive_failed")
            self._loop.call_exception_handler({"message": f"receiving {envelope.to} failed", "exception": error})

    def _send_nack(self, to: NodeId, refusals: list[Refusal]) -> None:
        if to.name in self._peers and self._codec.registry.knows(Nack):
            self.send(to.name, Envelope(Kind.TELL, ServiceRef(to.name, "/ask"), self._me, Nack(tuple(refusals))))


def _lanes_of(peer: PeerAddress) -> dict[Lane, str]:
    """Where each lane goes. Of a seed only the control lane is known before it has answered."""
    addresses = {Lane.CONTROL: peer.control}
    if peer.data:
        addresses[Lane.DATA] = peer.data
    return addresses
