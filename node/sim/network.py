"""The network: the `Transport` port of every process over seeded wires that lose, delay, repeat, slow down and cut.

A wire keeps the order of each lane unless a straggler is drawn. What is for a process that is not there vanishes. What
is repeated are frames, below their numbering, as after a reconnect: which of them a process lets through is decided as
in production, by `node.wire.sequence`. A frame carries one message here.
Envelopes pass as objects, which is safe because they and their messages are frozen (R3): neither side can change what
the other holds. That they would survive the codec is checked for the first of each type and for a share of the rest;
what comes out must equal what went in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from node.core.clock import MS, SECOND, US
from node.core.hlc import COUNTER_BITS
from node.core.ids import NodeId
from node.gossip.replica_messages import Delta, DeltaAck
from node.sim import history as h
from node.sim.faults import Knobs
from node.sim.scheduler import Scheduler
from node.sim.trace import ROUTINE, Trace
from node.wire.codec import CODEC, loads
from node.wire.envelope import Envelope, Kind, decode, encode
from node.wire.ledger import Ledger
from node.wire.port import PeerAddress, PeerReport, SendOutcome
from node.wire.registry import REGISTRY, Lane, WireType

if TYPE_CHECKING:
    from node.sim.process import Process

ENCODED_EVERY: Final = 64
QUEUE_NS: Final = SECOND  # of traffic may wait for a wire with a limited rate; no frame takes longer
BOTH_LANES: Final = (Lane.CONTROL, Lane.DATA)


class WireMismatchError(Exception):
    """A message came out of the codec as another than it went in (R3)."""


class Wire:
    """One direction between two hosts. By lane: how often it is cut, when its last envelope arrives, and until when it
    is busy with those before. `slow_ns` is added to every delay."""

    __slots__ = ("cuts", "free_ns", "last_ns", "name", "slow_ns", "target")

    def __init__(self, source: str, target: str) -> None:
        self.name = f"{source}>{target}"
        self.target = target
        self.cuts = [0, 0]
        self.last_ns = [0, 0]
        self.free_ns = [0, 0]
        self.slow_ns = 0


class Frame:
    """A message on its way. `number`: on its lane, from its sender to the incarnation that had the receiver's name as
    it left. `left_ns`: of its deadline. `copies`: how many of it may still arrive, or have."""

    __slots__ = ("copies", "envelope", "left_ns", "number", "receiver", "wire", "wire_type")

    def __init__(
        self, wire: Wire, wire_type: WireType, envelope: Envelope, receiver: NodeId, number: int, left_ns: int
    ) -> None:
        self.wire = wire
        self.wire_type = wire_type
        self.envelope = envelope
        self.receiver = receiver
        self.number = number
        self.left_ns = left_ns
        self.copies = 1


class Network:
    """All wires. `attach` says which process a name reaches now."""

    def __init__(self, scheduler: Scheduler, trace: Trace, knobs: Knobs, record: Callable[[h.Event], None]) -> None:
        self._scheduler = scheduler
        self._record = record
        self._trace = trace
        self._knobs = knobs
        self._random = scheduler.derive("network").random
        self._processes: dict[str, Process] = {}
        self._wires: dict[str, dict[str, Wire]] = {}
        self._seen: set[type] = set()
        self._until_encoded = ENCODED_EVERY
        self._rate = 0
        self._thresholds(knobs.loss_ratio, knobs.duplicate_ratio, knobs.straggle_ratio)
        self.counters: Counter[str] = Counter()
        self.lost_types: Counter[str] = Counter()
        self._numbers: Counter[tuple[NodeId, NodeId, Lane]] = Counter()
        self.sent = 0
        self.swallowed: set[str] = set()  # names of message types that never arrive
        # By host, how far ahead its writes are stamped on the wire: as by a release that does not know its clock is.
        self.stamped_ahead_ms: dict[str, int] = {}

    def _thresholds(self, loss: float, duplicate: float, straggle: float) -> None:
        self._lost_below = loss
        self._twice_below = loss + duplicate
        self._straggle = straggle

    # ---- what the world does to it

    def attach(self, process: Process) -> None:
        self._processes[process.me.name] = process

    def detach(self, process: Process) -> None:
        if self._processes.get(process.me.name) is process:
            del self._processes[process.me.name]

    def incarnation_of(self, name: str) -> NodeId:
        """Whoever has that name now; incarnation 0 when nobody has."""
        process = self._processes.get(name)
        return process.me if process else NodeId(name, 0)

    def cut(self, sources: Iterable[str], targets: Iterable[str], lanes: Iterable[Lane] = BOTH_LANES) -> None:
        """Nothing passes from any of `sources` to any of `targets`, until mended as often as it was cut."""
        for wire in self._between(sources, targets):
            for lane in lanes:
                wire.cuts[lane] += 1

    def mend(self, sources: Iterable[str], targets: Iterable[str], lanes: Iterable[Lane] = BOTH_LANES) -> None:
        for wire in self._between(sources, targets):
            for lane in lanes:
                wire.cuts[lane] = max(0, wire.cuts[lane] - 1)  # the heal may have mended it before

    def slow(self, sources: Iterable[str], targets: Iterable[str], by_ms: int) -> None:
        """All that passes takes so much longer; 0 ends it."""
        for wire in self._between(sources, targets):
            wire.slow_ns = by_ms * MS

    def limit(self, bytes_per_s: int) -> None:
        """What every lane of every wire carries; 0: no limit. Frames wait for those before them."""
        self._rate = bytes_per_s

    def heal(self) -> None:
        """Whole, and without loss, repeats, stragglers and limits from now on; delays stay."""
        for wires in self._wires.values():
            for wire in wires.values():
                wire.cuts = [0, 0]
                wire.slow_ns = 0
                wire.last_ns = [0, 0]  # what still queued on a slow wire is overtaken
        self._rate = 0
        self.stamped_ahead_ms.clear()
        self.swallowed.clear()
        self._thresholds(0.0, 0.0, 0.0)

    def _between(self, sources: Iterable[str], targets: Iterable[str]) -> list[Wire]:
        targets = tuple(targets)
        return [self.wire(source, target) for source in sources for target in targets]

    def wire(self, source: str, target: str) -> Wire:
        wires = self._wires.setdefault(source, {})
        found = wires.get(target)
        if found is None:
            found = wires[target] = Wire(source, target)
        return found

    # ---- sending

    def arrived(self, target: Process, message: msgspec.Struct) -> None:
        """A process takes a message."""
        if type(message) is Delta:
            last = message.first + len(message.entries) - 1
            now_ns = self._scheduler.now_ns
            self._record(h.DeltaCame(now_ns, target.me, message.stream, message.since, message.first, last))

    def acknowledges(self, source: Process, message: DeltaAck) -> None:
        self._record(h.DeltaAcked(self._scheduler.now_ns, source.me, message.stream, message.upto))

    def replies(self, source: Process, target: str, envelope: Envelope) -> None:
        """A node answers another's ask."""
        self._record(h.Replied(self._scheduler.now_ns, source.me, target, envelope.correlation))

    def send(self, source: Process, target: str, envelope: Envelope, wire_type: WireType) -> None:
        wire = self.wire(source.me.name, target)
        lane = wire_type.lane
        draw = self._random()
        self.sent += 1
        receiver = self.incarnation_of(target)
        key = (source.me, receiver, lane)
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        if self.stamped_ahead_ms and type(envelope.message) is Delta and source.me.name in self.stamped_ahead_ms:
            envelope = _stamped(envelope, self.stamped_ahead_ms[source.me.name])
        left_ns = 0
        if envelope.deadline_ns:
            left_ns = max(1, (envelope.deadline_ns - source.clock.mono_ns()) // MS) * MS
        self._until_encoded -= 1
        if self._until_encoded <= 0 or type(envelope.message) not in self._seen:
            envelope = self._through_codec(source, target, envelope)
        frame = Frame(wire, wire_type, envelope, receiver, number, left_ns)
        if wire.cuts[lane] or wire_type.name in self.swallowed:
            self._lose("cut", frame)
            return
        if draw < self._lost_below:
            self._lose("lost", frame)
            return
        self._carry(frame)
        if draw < self._twice_below:
            self.counters["repeated"] += 1
            frame.copies += 1
            self._carry(frame)

    def _carry(self, frame: Frame) -> None:
        knobs, wire, lane = self._knobs, frame.wire, frame.wire_type.lane
        spread = self._random()
        # The fourth power: most messages take little more than the least delay, a few take nearly all of it.
        delay_ns = knobs.delay_us * US + int(spread * spread * spread * spread * knobs.jitter_ms * MS) + wire.slow_ns
        at_ns = self._scheduler.now_ns + delay_ns
        if self._rate:
            at_ns += self._waits_ns(wire, lane, frame.envelope)
        if self._straggle and self._random() < self._straggle:
            self.counters["straggled"] += 1
            at_ns += int(self._random() * knobs.straggle_ms * MS)
        else:
            if at_ns <= wire.last_ns[lane]:
                at_ns = wire.last_ns[lane] + 1
            wire.last_ns[lane] = at_ns
        self._scheduler.at(at_ns, self._arrive, frame)

    def full(self, source: str, target: str, lane: Lane) -> bool:
        """Whether so much waits for a slow wire that its high-water mark is reached."""
        return self._rate > 0 and self.wire(source, target).free_ns[lane] - self._scheduler.now_ns > QUEUE_NS

    def _waits_ns(self, wire: Wire, lane: Lane, envelope: Envelope) -> int:
        """How long the frame queues and takes under the limit."""
        now_ns = self._scheduler.now_ns
        takes_ns = min(len(encode(envelope, CODEC, 0)) * SECOND // self._rate, QUEUE_NS)
        wire.free_ns[lane] = max(wire.free_ns[lane], now_ns) + takes_ns
        return wire.free_ns[lane] - now_ns

    def _arrive(self, frame: Frame) -> None:
        wire, wire_type, envelope = frame.wire, frame.wire_type, frame.envelope
        if wire.cuts[wire_type.lane]:
            self._lose("cut", frame)
            return
        target = self._processes.get(wire.target)
        if target is None or target.me != frame.receiver:
            self._lose("nobody", frame)
            return
        self._trace.message(wire.name, wire_type.name, "", routine=wire_type.name in ROUTINE)
        if frame.left_ns:
            deadline_ns = target.clock.mono_ns() + frame.left_ns
            envelope = msgspec.structs.replace(envelope, deadline_ns=deadline_ns)
        target.run(target.receive, envelope, frame)

    def refused(self, frame: Frame) -> None:
        """A process does not let it through: it came before, or is of long ago."""
        self._lose("refused", frame)

    def _lose(self, why: str, frame: Frame) -> None:
        """A copy is gone; when it was the last, so is the message."""
        wire, wire_type = frame.wire, frame.wire_type
        frame.copies -= 1
        self.counters[why] += 1
        if not frame.copies:
            self.lost_types[wire_type.name] += 1
        self._trace.message(wire.name, wire_type.name, why, routine=wire_type.name in ROUTINE)

    def _through_codec(self, source: Process, target: str, envelope: Envelope) -> Envelope:
        self._until_encoded = ENCODED_EVERY
        self._seen.add(type(envelope.message))
        now_ns = source.clock.mono_ns()
        decoded = decode(loads(encode(envelope, CODEC, now_ns)), CODEC, target, now_ns)
        same = msgspec.structs.replace(decoded, deadline_ns=envelope.deadline_ns) == envelope
        if not same:
            raise WireMismatchError(f"{envelope.message!r} became {decoded.message!r}")
        self.counters["encoded"] += 1
        return decoded


class Link:
    """One process's transport: it reaches the peers that it was told to connect to."""

    def __init__(self, network: Network, process: Process) -> None:
        self._network = network
        self._process = process
        self._peers: set[str] = set()
        self.ledger = Ledger()

    def connect(self, peer: PeerAddress) -> None:
        self._peers.add(peer.node)

    def disconnect(self, node: str) -> None:
        self._peers.discard(node)

    def peers(self) -> tuple[PeerReport, ...]:
        counts = self.ledger.totals()
        return tuple(PeerReport(name, "simulated", counts=counts.get(name, {})) for name in sorted(self._peers))

    def send(self, node: str, envelope: Envelope) -> SendOutcome:
        wire_type = REGISTRY.of(envelope.message)
        if node not in self._peers:
            return self._unsent(node, wire_type, SendOutcome.NO_ROUTE)
        if type(envelope.message) is DeltaAck:
            self._network.acknowledges(self._process, envelope.message)
        elif envelope.kind is Kind.REPLY or envelope.kind is Kind.REJECT:
            self._network.replies(self._process, node, envelope)
        process = self._process
        if self._network.full(process.me.name, node, wire_type.lane):
            return self._unsent(node, wire_type, SendOutcome.PEER_BUSY)
        # A process that stopped in the middle of a step (a crash point) sends the rest when it goes on.
        if process.paused:
            process.run(self._leave, node, envelope, wire_type)
        else:
            self._leave(node, envelope, wire_type)
        return SendOutcome.SENT

    def _leave(self, node: str, envelope: Envelope, wire_type: WireType) -> None:
        self.ledger.of(self._network.incarnation_of(node)).sent((wire_type.name,))
        self._network.send(self._process, node, envelope, wire_type)

    def _unsent(self, node: str, wire_type: WireType, why: SendOutcome) -> SendOutcome:
        self.ledger.of(self._network.incarnation_of(node)).unsent(wire_type.name, why.value)
        return why


def _stamped(envelope: Envelope, ahead_ms: int) -> Envelope:
    delta = envelope.message
    assert isinstance(delta, Delta)
    ahead = ahead_ms << COUNTER_BITS
    entries = tuple(msgspec.structs.replace(entry, hlc=entry.hlc + ahead) for entry in delta.entries)
    message = msgspec.structs.replace(delta, entries=entries)
    return msgspec.structs.replace(envelope, message=message)
