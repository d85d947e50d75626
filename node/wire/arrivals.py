"""What comes in: each frame of a peer checked, its envelopes delivered one by one, what is refused counted and named.

Sans-IO. The driver owes it: frames of one lane in the order in which they came, the peer whose key the connection has
proven (None where plain connections are allowed), and a Nack sent for what `frame` returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from node.core import limits
from node.core.errors import BadInput, RemoteProtocolError
from node.core.ids import NodeId
from node.wire import envelope as envelopes
from node.wire import frames
from node.wire.codec import Codec
from node.wire.envelope import Envelope, is_envelope
from node.wire.ledger import FRAME, STRANGER, UNREADABLE, Ledger
from node.wire.nack import Refusal, owed
from node.wire.registry import Lane, WireType
from node.wire.roster import NodeEntry, Roster
from node.wire.sequence import Windows

# What is called for what was refused: the peer's name (or its address, where it has none), a short stable reason, a
# detail for the log. The caller limits how often it logs.
OnRefused = Callable[[str, str, str], None]

BYTES_MAX: Final = {Lane.CONTROL: limits.frame_control_bytes_max, Lane.DATA: limits.frame_data_bytes_max}


class Arrivals:
    """`deliver(envelope, type)` gets each envelope that passed every check."""

    def __init__(
        self,
        me: NodeId,
        codec: Codec,
        ledger: Ledger,
        deliver: Callable[[Envelope, WireType], None],
        on_refused: OnRefused,
    ) -> None:
        self._me = me
        self._codec = codec
        self._ledger = ledger
        self._deliver = deliver
        self._on_refused = on_refused
        self._windows = Windows()

    def batch(
        self, document: list[Any], lane: Lane, peer: NodeEntry | None, roster: Roster, now_ns: int
    ) -> tuple[NodeId, list[Refusal]]:
        """Delivers an unpacked frame; returns its sender and the refusals that this is owed. Raises
        RemoteProtocolError when the frame as a whole is refused."""
        head = frames.head_of(document)
        entry = self._entry_of(head.sender, peer, roster)
        sender = _node_id(head.sender)
        if head.receiver != self._me.incarnation:
            raise RemoteProtocolError("other_incarnation", f"for {head.receiver}, this is {self._me}")
        lost = self._windows.take(sender, lane, head.first, len(document) - 3)
        self._ledger.of(sender).lost[lane] += lost
        found: list[Refusal] = []
        for one in document[3:]:
            try:
                envelope, wire_type = self._checked(one, lane, head.sender, entry, now_ns)
            except RemoteProtocolError as error:
                name = self._type_in(one)
                if name == UNREADABLE:
                    self._ledger.of(sender).not_read(lane, error.reason)
                else:
                    self._ledger.of(sender).refused(name, error.reason)
                self._on_refused(sender.name, error.reason, error.detail)
                refusal = owed(one, head.sender, error)
                if refusal is not None:
                    found.append(refusal)
            else:
                self._deliver(envelope, wire_type)
        return sender, found

    def refuse(self, peer: NodeEntry | None, reason: str, detail: str) -> None:
        """Counts a frame that was refused as a whole."""
        name = peer.name if peer else STRANGER.name
        self._ledger.of(NodeId(name, 0)).refused(FRAME, reason)
        self._on_refused(name, reason, detail)

    def refuse_stranger(self, address: str, reason: str, detail: str) -> None:
        """Counts a connection that no roster entry stands for."""
        self._ledger.of(STRANGER).refused(FRAME, reason)
        self._on_refused(address, reason, detail)

    def _entry_of(self, sender: str, peer: NodeEntry | None, roster: Roster) -> NodeEntry:
        name = sender.rpartition("@")[0]
        entry = peer or roster.node(name)
        if entry is None or entry.name != name:
            raise RemoteProtocolError("impostor", f"{peer.name if peer else STRANGER.name} sent a frame from {name}")
        return entry

    def _checked(
        self, document: Any, lane: Lane, sender: str, entry: NodeEntry, now_ns: int
    ) -> tuple[Envelope, WireType]:
        envelope = envelopes.decode(document, self._codec, self._me.name, now_ns)
        if document[3] != sender:
            raise RemoteProtocolError("impostor", f"{sender} sent an envelope from {envelope.sender}"[:200])
        wire_type = self._codec.registry.of(envelope.message)
        if wire_type.lane is not lane:
            raise RemoteProtocolError("wrong_lane", f"{wire_type.name} on the {lane.name} lane")
        if wire_type.senders.isdisjoint(entry.roles):
            allowed = ", ".join(sorted(wire_type.senders)) or "operators alone"
            raise RemoteProtocolError("not_permitted", f"{wire_type.name} is for {allowed}")
        return envelope, wire_type

    def _type_in(self, document: Any) -> str:
        """The type that a refused envelope names, if it is one of ours: names of others would fill the ledger."""
        name = document[7] if is_envelope(document) else None
        return name if isinstance(name, str) and self._codec.registry.has(name) else UNREADABLE


def _node_id(text: str) -> NodeId:
    try:
        return NodeId.parse(text)
    except (BadInput, ValueError) as error:
        raise RemoteProtocolError("malformed", "the sender is not name@incarnation") from error
