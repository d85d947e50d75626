"""The transport port over ZeroMQ: two lanes, CURVE, the roster at the gate.

Every message from X to Y goes by a DEALER of X to the ROUTER of Y, never back the same way: a ROUTER that only
receives can't drop to unknown peers, and a DEALER per peer and lane has a queue and a high-water mark of its own.
Lives on one event loop, asyncio's or uvloop's; every method is called on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import zmq

from node.core import limits
from node.core.clock import Clock
from node.core.errors import OperatingError, RemoteProtocolError
from node.core.ids import NodeId
from node.wire import envelope as envelopes
from node.wire import frames
from node.wire.codec import Codec
from node.wire.envelope import Envelope
from node.wire.lane_zmq import SendLane
from node.wire.ledger import STRANGER, UNREADABLE, Ledger, PeerLedger
from node.wire.link_zmq import LinkState, LinkWatch
from node.wire.port import PeerAddress, Receive, SendOutcome
from node.wire.registry import Lane
from node.wire.roster import KeyPair, Roster
from node.wire.zmq_io import Gate, Reader, key_of
from node.wire.zmq_sockets import (
    IO_THREADS,
    Use,
    bind,
    check_pair,
    connect,
    endpoint,
    new_context,
    new_socket,
    serve_curve,
    use_curve,
)

# What a transport calls for what it refused: the peer's name (or its address, where it has none), a short stable
# reason, a detail for the log. The caller limits how often it logs.
OnMalformed = Callable[[str, str, str], None]

_BYTES_MAX: Final = {Lane.CONTROL: limits.frame_control_bytes_max, Lane.DATA: limits.frame_data_bytes_max}
_IN: Final = {Lane.CONTROL: Use.CONTROL_IN, Lane.DATA: Use.DATA_IN}
_OUT: Final = {Lane.CONTROL: Use.CONTROL_OUT, Lane.DATA: Use.DATA_OUT}
_DOMAIN: Final = "node"


@dataclass(frozen=True, slots=True)
class _Peer:
    """An open way to a peer, and the public key it was opened with."""

    address: PeerAddress
    key: str
    lanes: dict[Lane, SendLane]
    watch: LinkWatch  # of the control lane; the data lane has the same keys on both ends


class ZmqTransport:
    """Implements `node.wire.port.Transport`.

    `ledger` counts messages by peer and type; frames that could not be read count once. `links[peer]` is how the way to
    a connected peer stands. `insecure` leaves out keys altogether and is refused for addresses that aren't loopback.
    """

    def __init__(
        self,
        me: NodeId,
        secret: KeyPair | None,
        roster: Roster,
        codec: Codec,
        clock: Clock,
        receive: Receive,
        on_malformed: OnMalformed,
        *,
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
        self._on_malformed = on_malformed
        self._loop = asyncio.get_running_loop()
        self._context = new_context(IO_THREADS)
        self._gate = Gate(self._context, _DOMAIN, self._user_of_key, self._denied)
        self._routers: list[zmq.Socket[bytes]] = []
        self._readers: list[Reader] = []
        self._bound: dict[Lane, str] = {}
        self._wanted: dict[str, PeerAddress] = {}
        self._peers: dict[str, _Peer] = {}
        self._dirty: dict[SendLane, None] = {}
        self._closed = False
        self.ledger = Ledger()
        self.links: dict[str, LinkState] = {}

    # --- listening

    def bind(self, control_addr: str, data_addr: str) -> None:
        """Listens on both lanes. Raises OperatingError (`E-PORT-IN-USE` names the port) or BadInput."""
        for lane, address in ((Lane.CONTROL, control_addr), (Lane.DATA, data_addr)):
            router = new_socket(self._context, _IN[lane])
            self._routers.append(router)
            if self._secret is not None:
                serve_curve(router, self._secret, _DOMAIN)
            self._bound[lane] = bind(router, address, loopback_only=self._secret is None)
            self._readers.append(
                Reader(
                    router,
                    2,
                    self._clock,
                    partial(self._on_frame, lane),
                    lambda frame: self._refuse(self._peer_of(frame), "multipart", "more or fewer than one part"),
                )
            )

    @property
    def control_address(self) -> str:
        """The bound `host:port` of the control lane; KeyError before `bind`."""
        return self._bound[Lane.CONTROL]

    @property
    def data_address(self) -> str:
        """The bound `host:port` of the data lane; KeyError before `bind`."""
        return self._bound[Lane.DATA]

    # --- peers

    def set_roster(self, roster: Roster) -> None:
        """Takes a new roster into effect: keys that are gone or changed are cut off both ways, new ones connected."""
        self._roster = roster
        for name, address in list(self._wanted.items()):
            self._open(name, address)

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
        data = envelopes.encode(envelope, self._codec, self._clock.mono_ns())
        wire_type = self._codec.registry.of(envelope.message)
        peer = self._peers.get(node)
        lane = peer.lanes.get(wire_type.lane) if peer else None
        if len(data) >= _BYTES_MAX[wire_type.lane]:
            return self._unsent(node, wire_type.name, SendOutcome.TOO_LARGE)
        if lane is None:
            return self._unsent(node, wire_type.name, SendOutcome.NO_ROUTE)
        if not lane.offer(wire_type.name, data):
            return self._unsent(node, wire_type.name, SendOutcome.PEER_BUSY)
        if not self._dirty:
            self._loop.call_soon(self._flush)
        self._dirty[lane] = None
        return SendOutcome.SENT

    def _unsent(self, node: str, name: str, outcome: SendOutcome) -> SendOutcome:
        self._of(node if node in self._wanted else None).unsent(name, outcome.value)
        return outcome

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
        for reader in self._readers:
            reader.close()
        for router in self._routers:
            router.close()
        self._gate.close()
        self._context.destroy(limits.linger_ms)  # unlike term it can't wait for a socket that was left open

    def _open(self, name: str, address: PeerAddress) -> None:
        entry = self._roster.node(name)
        key = entry.public_key if entry else None
        peer = self._peers.get(name)
        if peer is not None:
            if (peer.address, peer.key) == (address, key):
                return
            self._shut(name)
        if key is None:
            self._on_malformed(name, "not_in_roster", "it is connected once the roster knows it")
            return
        addresses = _lanes_of(address)
        dealers = {lane: new_socket(self._context, _OUT[lane]) for lane in addresses}
        lanes = {lane: SendLane(dealers[lane], self._of(name).sent) for lane in addresses}
        self.links[name] = LinkState.CONNECTING
        watch = LinkWatch(dealers[Lane.CONTROL], partial(self._on_link, name))
        self._peers[name] = _Peer(address, key, lanes, watch)
        for lane, where in addresses.items():
            if self._secret is not None:
                use_curve(dealers[lane], self._secret, key)
            connect(dealers[lane], where, loopback_only=self._secret is None)

    def _on_link(self, name: str, state: LinkState) -> None:
        self.links[name] = state

    def _shut(self, name: str) -> None:
        peer = self._peers.pop(name, None)
        if peer is None:
            return
        del self.links[name]
        peer.watch.close()
        for lane in peer.lanes.values():
            self._dirty.pop(lane, None)
            for dropped in lane.close():
                self._of(name).unsent(dropped, "disconnected")

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for lane in dirty:
            lane.flush()

    def _on_frame(self, lane: Lane, message: list[zmq.Frame]) -> None:
        frame = message[1]
        peer = self._peer_of(frame)
        if peer is None and self._secret is not None:
            self._refuse(None, "revoked", f"the key of {frame.get('User-Id')} is no longer in the roster")
            return
        try:
            documents = frames.unpack(frame.bytes, _BYTES_MAX[lane])
        except RemoteProtocolError as error:
            self._refuse(peer, error.reason, error.detail)
            return
        now_ns = self._clock.mono_ns()
        for document in documents:
            try:
                envelope = self._checked(document, lane, peer, now_ns)
            except RemoteProtocolError as error:
                self._refuse(peer, error.reason, error.detail, self._type_in(document))
            else:
                self._deliver(envelope)

    def _deliver(self, envelope: Envelope) -> None:
        ledger = self.ledger.of(envelope.sender)
        name = self._codec.registry.of(envelope.message).name
        ledger.received(name)
        try:
            self._receive(envelope)
        except Exception as error:  # ours, not the peer's; the other envelopes of the frame must not be lost with it
            ledger.dropped(name, "receive_failed")
            self._loop.call_exception_handler({"message": f"receiving {envelope.to} failed", "exception": error})

    def _checked(self, document: Any, lane: Lane, peer: str | None, now_ns: int) -> Envelope:
        envelope = envelopes.decode(document, self._codec, self._me.name, now_ns)
        sender = envelope.sender.name
        if sender != peer and (peer is not None or self._roster.node(sender) is None):
            raise RemoteProtocolError("impostor", f"{peer or STRANGER.name} sent an envelope from {sender}")
        if self._codec.registry.of(envelope.message).lane is not lane:
            raise RemoteProtocolError("wrong_lane", f"{type(envelope.message).__name__} on the {lane.name} lane")
        return envelope

    def _peer_of(self, frame: zmq.Frame) -> str | None:
        """The node whose key the frame's connection proved, as the roster is now; None on a plain connection."""
        return self._user_of_key(key_of(frame) or "")

    def _user_of_key(self, key: str) -> str | None:
        entry = self._roster.node_of_key(key)
        return entry.name if entry else None

    def _denied(self, address: str, key: str) -> None:
        self._of(None).refused(UNREADABLE, "denied")
        self._on_malformed(address, "denied", f"key {key or 'none'} is not in the roster")

    def _refuse(self, peer: str | None, reason: str, detail: str, name: str = UNREADABLE) -> None:
        self._of(peer).refused(name, reason)
        self._on_malformed(peer or STRANGER.name, reason, detail)

    def _of(self, peer: str | None) -> PeerLedger:
        return self.ledger.of(NodeId(peer, 0) if peer else STRANGER)

    def _type_in(self, document: Any) -> str:
        """The type that a refused envelope names, if it is one of ours: names of others would fill the ledger."""
        name = document[7] if isinstance(document, list) and len(document) == 10 else None
        return name if isinstance(name, str) and self._codec.registry.has(name) else UNREADABLE


def _lanes_of(peer: PeerAddress) -> dict[Lane, str]:
    """Where each lane goes. Of a seed only the control lane is known before it has answered."""
    addresses = {Lane.CONTROL: peer.control}
    if peer.data:
        addresses[Lane.DATA] = peer.data
    return addresses
