"""Taking in what others wrote: bounds, clocks and what has lapsed are looked at before anything is merged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from node.core import limits
from node.core.errors import OperatingError
from node.core.hlc import Hlc, hlc_wall_ms
from node.gossip.contents import Contents
from node.gossip.history import History
from node.gossip.lww import defect_of
from node.gossip.replica_io import Applied, Effect, Fault, FaultCleared
from node.gossip.replica_messages import KeyVersion, WireEntry, from_wire
from node.gossip.stay import Stay
from node.store.replica_port import ReplicaEntry


class Merger:
    """`clock_fault_ns` is how long a fault about a peer's clock lasts after the last refused write."""

    def __init__(self, contents: Contents, hlc: Hlc, stay: Stay, history: History, clock_fault_ns: int) -> None:
        self._contents = contents
        self._hlc = hlc
        self._stay = stay
        self._history = history
        self._clock_fault_ns = clock_fault_ns
        # When a peer's timestamps were last refused, by peer: the fault lasts until none was for a while.
        self._clock_faults: dict[str, int] = {}
        self.counters: Counter[str] = Counter()

    def merge(
        self, sender: str, entries: Iterable[WireEntry], now_ns: int, wall_ms: int
    ) -> tuple[list[ReplicaEntry], list[Effect]]:
        """The entries that took their keys, and what follows."""
        taken: list[ReplicaEntry] = []
        effects: list[Effect] = []
        for wired in entries:
            entry = from_wire(wired)
            defect = defect_of(entry)
            if defect:
                self.counters[f"refused_{defect}"] += 1
                continue
            if self._contents.lapsed(entry, wall_ms):
                self.counters["ignored_lapsed"] += 1
                continue
            try:
                self._hlc.observe(entry.hlc, wall_ms)
            except OperatingError as error:
                self.counters["refused_clock"] += 1
                effects.extend(self._clock_fault(sender, entry.origin, error, now_ns))
                continue
            took, old = self._contents.take(entry)
            if took:
                self._stay.prove(entry.key)
                self._history.note(entry, old, wall_ms, sender)
                taken.append(entry)
        self.counters["merged"] += len(taken)
        if taken:
            effects.append(Applied(tuple(entry.key for entry in taken)))
        return taken, effects

    def acceptable(self, item: KeyVersion, wall_ms: int) -> bool:
        """Whether a version may be fetched at all."""
        return not self._contents.lapsed(item, wall_ms) and hlc_wall_ms(item.hlc) - wall_ms <= limits.hlc_ahead_ms_max

    def over(self, now_ns: int) -> list[Effect]:
        """Faults that have ended."""
        ended = [peer for peer, at_ns in self._clock_faults.items() if now_ns >= at_ns + self._clock_fault_ns]
        for peer in ended:
            del self._clock_faults[peer]
        return [FaultCleared("E-CLOCK-AHEAD", peer) for peer in ended]

    def _clock_fault(self, sender: str, origin: str, error: OperatingError, now_ns: int) -> list[Effect]:
        known = sender in self._clock_faults
        self._clock_faults[sender] = now_ns
        text = f"{sender} sent a write of {origin} that is refused: {error.message}"
        return [] if known else [Fault(error.code, sender, text)]
