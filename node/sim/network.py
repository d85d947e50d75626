"""The network: the `Transport` port of every process over seeded links that lose, delay, repeat and cut.

A link keeps the order of each lane unless a straggler is drawn. What is for a process that is not there vanishes.
Envelopes pass as objects for speed; the first of each type and a share of the rest go through the real codec, and
what comes out must equal what went in.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from node.core.clock import MS, US
from node.sim.faults import Knobs
from node.sim.scheduler import Scheduler
from node.sim.trace import ROUTINE, Trace
from node.wire.codec import CODEC, loads
from node.wire.envelope import Envelope, decode, encode
from node.wire.port import PeerAddress, SendOutcome
from node.wire.registry import REGISTRY, WireType

if TYPE_CHECKING:
    from node.sim.process import Process

ENCODED_EVERY = 64


class WireMismatchError(Exception):
    """A message came out of the codec as another than it went in (R3)."""


class Network:
    """All links. `attach` says which process a name reaches now."""

    def __init__(self, scheduler: Scheduler, trace: Trace, knobs: Knobs) -> None:
        self._scheduler = scheduler
        self._trace = trace
        self._knobs = knobs
        self._rng = scheduler.derive("network")
        self._processes: dict[str, Process] = {}
        self._cut: dict[tuple[str, str], int] = {}
        self._last_ns: dict[tuple[str, str, int], int] = {}
        self._seen: set[type] = set()
        self._until_encoded = ENCODED_EVERY
        self._thresholds(knobs.loss_ratio, knobs.duplicate_ratio, knobs.straggle_ratio)
        self.counters: Counter[str] = Counter()

    def _thresholds(self, loss: float, duplicate: float, straggle: float) -> None:
        self._lost_below = loss
        self._twice_below = loss + duplicate
        self._late_below = loss + duplicate + straggle

    # ---- what the world does to it

    def attach(self, process: Process) -> None:
        self._processes[process.me.name] = process

    def detach(self, process: Process) -> None:
        if self._processes.get(process.me.name) is process:
            del self._processes[process.me.name]

    def cut(self, sources: tuple[str, ...], targets: tuple[str, ...]) -> None:
        """Nothing passes from any of `sources` to any of `targets`, until mended as often as it was cut."""
        for source in sources:
            for target in targets:
                self._cut[(source, target)] = self._cut.get((source, target), 0) + 1

    def mend(self, sources: tuple[str, ...], targets: tuple[str, ...]) -> None:
        for source in sources:
            for target in targets:
                left = self._cut.get((source, target), 0) - 1
                if left > 0:
                    self._cut[(source, target)] = left
                else:
                    self._cut.pop((source, target), None)

    def heal(self) -> None:
        """Whole, and without loss, repeats and stragglers from now on; delays stay."""
        self._cut.clear()
        self._thresholds(0.0, 0.0, 0.0)

    # ---- sending

    def send(self, source: Process, target: str, envelope: Envelope) -> None:
        wire_type = REGISTRY.of(envelope.message)
        link = (source.me.name, target)
        draw = self._rng.random()
        self.counters["sent"] += 1
        if link in self._cut:
            self._lose("cut", link, wire_type)
            return
        if draw < self._lost_below:
            self._lose("lost", link, wire_type)
            return
        left_ns = 0
        if envelope.deadline_ns:
            left_ns = max(1, (envelope.deadline_ns - source.clock.mono_ns()) // MS) * MS
        envelope = self._through_codec(source, target, envelope)
        self._deliver_in(self._delay_ns(), link, wire_type, envelope, left_ns)
        if draw < self._twice_below:
            self.counters["repeated"] += 1
            self._deliver_in(self._delay_ns(), link, wire_type, envelope, left_ns)

    def _delay_ns(self) -> int:
        knobs = self._knobs
        spread = self._rng.random()
        # The fourth power: most messages take little more than the least delay, a few take nearly all of it.
        return knobs.delay_us * US + int(spread * spread * spread * spread * knobs.jitter_ms * MS)

    def _deliver_in(
        self, delay_ns: int, link: tuple[str, str], wire_type: WireType, envelope: Envelope, left_ns: int
    ) -> None:
        at_ns = self._scheduler.now_ns + delay_ns
        if self._late_below > self._twice_below and self._rng.random() < self._late_below - self._twice_below:
            self.counters["straggled"] += 1
            at_ns += self._rng.randrange(self._knobs.straggle_ms * MS)
        else:
            lane = (*link, wire_type.lane)
            at_ns = max(at_ns, self._last_ns.get(lane, 0) + 1)
            self._last_ns[lane] = at_ns
        self._scheduler.at(at_ns, self._arrive, link, wire_type, envelope, left_ns)

    def _arrive(self, link: tuple[str, str], wire_type: WireType, envelope: Envelope, left_ns: int) -> None:
        target = self._processes.get(link[1])
        if link in self._cut:
            self._lose("cut", link, wire_type)
            return
        if target is None:
            self._lose("nobody", link, wire_type)
            return
        self._trace.add(f"{link[0]}>{link[1]} {wire_type.name}", routine=wire_type.name in ROUTINE)
        if left_ns:
            envelope = Envelope(
                envelope.kind,
                envelope.to,
                envelope.sender,
                envelope.message,
                envelope.correlation,
                target.clock.mono_ns() + left_ns,
                envelope.trace,
            )
        target.run(target.receive, envelope)

    def _lose(self, why: str, link: tuple[str, str], wire_type: WireType) -> None:
        self.counters[why] += 1
        self._trace.add(f"{link[0]}>{link[1]} {wire_type.name} {why}", routine=wire_type.name in ROUTINE)

    def _through_codec(self, source: Process, target: str, envelope: Envelope) -> Envelope:
        self._until_encoded -= 1
        if self._until_encoded > 0 and type(envelope.message) in self._seen:
            return envelope
        self._until_encoded = ENCODED_EVERY
        self._seen.add(type(envelope.message))
        now_ns = source.clock.mono_ns()
        decoded = decode(loads(encode(envelope, CODEC, now_ns)), CODEC, target, now_ns)
        same = decoded.message == envelope.message and decoded.sender == envelope.sender and decoded.to == envelope.to
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

    def connect(self, peer: PeerAddress) -> None:
        self._peers.add(peer.node)

    def disconnect(self, node: str) -> None:
        self._peers.discard(node)

    def send(self, node: str, envelope: Envelope) -> SendOutcome:
        REGISTRY.of(envelope.message)
        if node not in self._peers:
            return SendOutcome.NO_ROUTE
        self._network.send(self._process, node, envelope)
        return SendOutcome.SENT
