"""Removals until every replica of the roster has them on disk: asked for, counted, retried, certified.

What its driver, the replicator, owes it: `begin` for each tombstone that this node writes, once it is in the replica;
`durable` when it is on this node's own disk, before which nobody is asked and nothing is reported; `answered` for each
`Confirmed`, late ones too; `put` when the owner writes a removed key again; `adopt` now and then with all tombstones
that are under this node's care (its own of earlier starts, those of origins that left the roster); `due` when `due_ns`
has passed. The tombstone itself is what is durable: after a restart `adopt` finds it and it is confirmed again.

A removal is *done* when a majority of the roster has it on disk, this node included if it counts. It is asked for again
200 ms, 400 ms, … at most 5 s later; after five times whoever asked for it hears that it is pending, and the asking goes
on. Only answers under the tenure that the roster has count. What every replica has may be settled (`settling`).
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import Mapping

from node.core import limits
from node.core.hlc import hlc_wall_ms
from node.gossip.removal import NOT_KNOWN, Removal
from node.gossip.replica_io import RemovalOutcome, ReplicationSettings, Send
from node.gossip.replica_messages import Confirm, Confirmed, KeyVersion
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replica_views import Certificate, HeldAt, PendingRemoval
from node.gossip.version import Version


class Removals:
    """See the module. `me` is this node's name."""

    def __init__(self, me: str, settings: ReplicationSettings) -> None:
        self._me = me
        self._settings = settings
        self._roster = ReplicaRoster()
        self._peers: frozenset[str] = frozenset()
        self._open: dict[str, Removal] = {}
        # Those that the whole roster has: only who, and since when, for there may be very many of them until they are
        # old enough.
        self._whole: dict[str, tuple[Version, frozenset[tuple[str, int]], int]] = {}
        self._certificates: OrderedDict[str, Certificate] = OrderedDict()
        self._order: list[tuple[int, str]] = []
        self._fresh: set[str] = set()  # whose tombstone is not on this node's disk yet
        self._pending: set[str] = set()  # those without a majority: their number is asked for at every outcome
        self._pause_ns = 0
        self._number = 0
        self.counters: Counter[str] = Counter()

    # ---- what is known

    def pending(self, limit: int, now_ns: int) -> list[PendingRemoval]:
        """The oldest removals without a majority."""
        found = [self._open[key] for key in self._pending]
        found.sort(key=lambda removal: (removal.asked_ms, removal.key))
        return [removal.told(self._roster, now_ns) for removal in found[:limit]]

    def pending_count(self) -> int:
        return len(self._pending)

    def certificate(self, key: str) -> Certificate | None:
        """Of the newest removal of a key, also while it is pending; None when none is remembered."""
        removal = self._open.get(key)
        return removal.certificate(self._roster) if removal is not None else self._certificates.get(key)

    def certificates(self, limit: int) -> list[Certificate]:
        """The newest removals, those of which least is known first."""
        found = [removal.certificate(self._roster) for removal in self._open.values()][::-1]
        return (found + list(reversed(self._certificates.values())))[:limit]

    def awaited(self, key: str, version: Version) -> tuple[str, ...] | None:
        """Who on the roster has not confirmed a tombstone; None when it is not in this node's care."""
        removal = self._open.get(key)
        if removal is not None and removal.version == version:
            return tuple(sorted(self._roster.names() - removal.voters(self._roster)))
        known = self._whole.get(key)
        if known is not None and known[0] == version:
            return tuple(sorted(r.node for r in self._roster.replicas if (r.node, r.tenure) not in known[1]))
        return None

    def confirmed(self, key: str, version: Version, by_ns: int) -> bool:
        """Whether the tombstone is in this node's care, and by that time the whole roster had it on disk."""
        known = self._whole.get(key)
        return known is not None and known[0] == version and known[2] <= by_ns

    # ---- what happens

    def begin(self, key: str, version: Version, wall_ms: int, by: str, last_serve_ms: int) -> None:
        """This node wrote a tombstone."""
        self._forget(key)
        self._open[key] = Removal(key, version, wall_ms, by, last_serve_ms=last_serve_ms)
        self._fresh.add(key)
        self._pending.add(key)

    def adopt(self, tombstones: Mapping[str, Version], now_ns: int, wall_ms: int) -> None:
        """All tombstones in this node's care that are on its disk: new ones are confirmed too, and what is no tombstone
        of that version any more is forgotten."""
        for key in [key for key, removal in self._open.items() if tombstones.get(key) != removal.version]:
            if self._open[key].durable:
                self._forget(key)
        for key in [key for key, (version, _, _) in self._whole.items() if tombstones.get(key) != version]:
            del self._whole[key]
        tenure = self._roster.tenure_of(self._me)
        for key, version in tombstones.items():
            if key not in self._open and key not in self._whole:
                asked_ms = hlc_wall_ms(version.hlc)
                removal = self._open[key] = Removal(key, version, asked_ms, NOT_KNOWN, outcome="adopted")
                removal.durable = True
                removal.held[self._me] = HeldAt(self._me, tenure, wall_ms)
                self._schedule(removal, now_ns)
                self._count(removal, now_ns, wall_ms)

    def put(self, key: str) -> list[RemovalOutcome]:
        """The owner wrote the key again: that cancels what is left of its removal."""
        removal = self._open.get(key)
        self._forget(key)
        if removal is None or removal.majority_ms:
            return []
        self.counters["removals_cancelled"] += 1
        return self._tell(removal, "cancelled")

    def superseded(self, key: str, version: Version) -> list[RemovalOutcome]:
        """Another write, of that version, took the key."""
        removal = self._open.get(key)
        known = self._whole.get(key)
        if known is not None and known[0] < version:
            del self._whole[key]
        if removal is None or removal.version >= version:
            return []
        self._forget(key)
        return [] if removal.majority_ms else self._tell(removal, "superseded")

    def undurable(self) -> tuple[str, ...]:
        """Keys whose tombstone this node's own disk does not have yet."""
        return tuple(sorted(self._fresh))

    def durable(self, key: str, tenure: int, now_ns: int, wall_ms: int) -> list[RemovalOutcome]:
        """This node's disk has it, under `tenure` (0: this replica does not count); now the others are asked."""
        removal = self._open.get(key)
        if removal is None or removal.durable:
            return []
        removal.durable = True
        self._fresh.discard(key)
        self._pending.discard(key)
        removal.held[self._me] = HeldAt(self._me, tenure, wall_ms)
        self._schedule(removal, now_ns)
        return self._count(removal, now_ns, wall_ms)

    def changed(self, roster: ReplicaRoster, tenure: int, now_ns: int, wall_ms: int) -> list[RemovalOutcome]:
        """Another roster holds, and this replica counts under `tenure`, or not at all (0)."""
        self._roster = roster
        for key, (version, held, _) in list(self._whole.items()):
            if any((r.node, r.tenure) not in held for r in roster.replicas):
                del self._whole[key]
                asked_ms = hlc_wall_ms(version.hlc)
                removal = self._open[key] = Removal(key, version, asked_ms, NOT_KNOWN, outcome="removed")
                removal.held = {node: HeldAt(node, stay, 0) for node, stay in held}
                removal.durable, removal.majority_ms = True, asked_ms
        out: list[RemovalOutcome] = []
        for removal in list(self._open.values()):
            if removal.durable:
                known = removal.held.get(self._me)
                removal.held[self._me] = HeldAt(self._me, tenure, known.durable_ms if known else wall_ms)
                self._schedule(removal, now_ns)
                out += self._count(removal, now_ns, wall_ms)
        return out

    def set_peers(self, peers: frozenset[str], now_ns: int) -> None:
        """Who can be reached; who comes back is asked at once."""
        fresh, self._peers = peers - self._peers, peers
        if fresh:
            for removal in self._open.values():
                if removal.durable and not fresh.isdisjoint(self._lacking(removal)):
                    self._schedule(removal, now_ns)

    def answered(self, sender: str, message: Confirmed, now_ns: int, wall_ms: int) -> list[RemovalOutcome]:
        """A replica says what it has on disk, and what it doesn't take."""
        tenure = self._roster.tenure_of(sender)
        out: list[RemovalOutcome] = []
        for item in message.items:
            removal = self._known(item)
            if removal is None:
                self.counters["confirmations_late"] += 1
            elif not tenure or message.tenure != tenure:
                self.counters["confirmations_of_other_tenure"] += 1
                removal.refused[sender] = f"its replica is of tenure {message.tenure}, the roster has {tenure}"
            elif sender not in removal.voters(self._roster):
                removal.held[sender] = HeldAt(sender, tenure, wall_ms)
                removal.refused.pop(sender, None)
                out += self._count(removal, now_ns, wall_ms)
        for item, why in message.refused:
            removal = self._known(item)
            self.counters["confirmations_refused"] += 1
            if removal is not None:
                removal.refused[sender] = why
        return out

    def due_ns(self) -> int | None:
        while self._order and not self._is_current(self._order[0]):
            heapq.heappop(self._order)
        return max(self._order[0][0], self._pause_ns) if self._order else None

    def due(self, now_ns: int) -> list[Send | RemovalOutcome]:
        """Asks for what is due, a bounded number at once."""
        asked: dict[str, list[KeyVersion]] = {}
        out: list[Send | RemovalOutcome] = []
        taken = 0
        while taken < limits.removals_asked_max and (at_ns := self.due_ns()) is not None and at_ns <= now_ns:
            removal = self._open[heapq.heappop(self._order)[1]]
            taken += 1
            for peer in self._lacking(removal) & self._peers:
                asked.setdefault(peer, []).append(KeyVersion(removal.key, *removal.version, 0, True))
            if not removal.majority_ms and removal.attempts == limits.removal_attempts_max:
                self.counters["removals_pending"] += 1
                out += self._tell(removal, "pending")
            removal.attempts += 1
            if not removal.majority_ms:
                self._pending.add(removal.key)
            removal.next_ns = None
            if not removal.majority_ms or self._lacking(removal) & self._peers:
                wait_ns = self._settings.removal_retry_ns << min(removal.attempts - 1, 16)
                self._schedule(removal, now_ns + min(wait_ns, self._settings.removal_retry_ns_max))
        if taken == limits.removals_asked_max:
            self._pause_ns = now_ns + self._settings.delta_batch_ns
        for peer, items in sorted(asked.items()):
            self.counters["confirmations_asked"] += len(items)
            for at in range(0, len(items), limits.replica_records_max):
                self._number += 1
                chunk = tuple(items[at : at + limits.replica_records_max])
                out.append(Send(peer, Confirm(self._number, self._roster.version, chunk)))
        return out

    # ---- parts

    def _known(self, item: KeyVersion) -> Removal | None:
        removal = self._open.get(item.key)
        return removal if removal is not None and removal.version == (item.epoch, item.hlc, item.origin) else None

    def _lacking(self, removal: Removal) -> frozenset[str]:
        return self._roster.names() - removal.voters(self._roster) - {self._me}

    def _schedule(self, removal: Removal, at_ns: int) -> None:
        removal.next_ns = at_ns
        heapq.heappush(self._order, (at_ns, removal.key))

    def _is_current(self, item: tuple[int, str]) -> bool:
        removal = self._open.get(item[1])
        return removal is not None and removal.next_ns == item[0]

    def _count(self, removal: Removal, now_ns: int, wall_ms: int) -> list[RemovalOutcome]:
        """What follows from who has it now."""
        out: list[RemovalOutcome] = []
        voters = removal.voters(self._roster)
        if self._roster.replicas and removal.durable and not removal.majority_ms and len(voters) >= self._roster.needed:
            removal.majority_ms = wall_ms
            self._pending.discard(removal.key)
            self.counters["removals_done"] += 1
            out = self._tell(removal, "removed")
        if removal.majority_ms and voters == self._roster.names():
            self._certificates.pop(removal.key, None)
            self._certificates[removal.key] = removal.certificate(self._roster)
            if len(self._certificates) > limits.certificates_kept_max:
                self._certificates.popitem(last=False)
            del self._open[removal.key]
            held = frozenset((h.node, h.tenure) for h in removal.held.values())
            self._whole[removal.key] = (removal.version, held, now_ns)
        return out

    def _tell(self, removal: Removal, outcome: str) -> list[RemovalOutcome]:
        if removal.outcome == "adopted":  # nobody waits: whoever asked for it did so in an earlier life of this node
            return []
        removal.outcome = outcome
        return [RemovalOutcome(removal.key, removal.version, outcome, removal.certificate(self._roster))]

    def _forget(self, key: str) -> None:
        self._open.pop(key, None)
        self._whole.pop(key, None)
        self._fresh.discard(key)
        self._pending.discard(key)
