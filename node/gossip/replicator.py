"""The replicator: one node's full replica of the ServeIndex, its own writes on their way out, others' on their way in.

What the driver owes:

- step `PeersChanged` once before anything else, with the empty set if there is nobody, and at each change after;
- step `Tick` when `next_wake_ns()` has passed, at the latest; step everything, and call `put` and `remove`, on one
  turn, never at the same time;
- carry out the effects in their order. `Send` may be lost, doubled or overtaken. For `Commit` call `store.commit` in a
  worker thread and step `Committed` with its token whatever came of it; it is the only use of the store outside this
  object, and there is one at a time;
- step `Damaged` with the keys and leaves that the store reports as such, when they become more;
- nothing has to be durable before anything is sent: puts are accepted, not durable (I2), and what a crash loses of
  them comes back from peers by comparison. A removal is committed at once; who needs it durable waits for the commit.

`now_ns` is monotonic, `wall_ms` the wall clock: it decides about expiry and the hybrid clock, nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, assert_never

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.core.hashing import MAP_COUNT, leaf_of, map_of
from node.core.hlc import COUNTER_BITS, Hlc
from node.core.rng import Rng
from node.gossip.antientropy import AntiEntropy
from node.gossip.contents import Contents
from node.gossip.deltalog import DeltaSender
from node.gossip.deltareceiver import DeltaReceiver
from node.gossip.inspector import Inspector
from node.gossip.lag import PeerLag
from node.gossip.lww import defect_of, expired, lapsed_at
from node.gossip.replica_io import (
    Applied,
    Commit,
    Committed,
    Damaged,
    Effect,
    Event,
    Fault,
    FaultCleared,
    PeersChanged,
    Received,
    ReplicationSettings,
    Send,
    Tick,
)
from node.gossip.replica_messages import (
    Delta,
    DeltaAck,
    Digests,
    Entries,
    KeyVersion,
    Leaves,
    Offer,
    ReplicaMessage,
    Versions,
    Want,
    WireEntry,
    from_wire,
)
from node.gossip.tombstones import TombstoneAge
from node.gossip.version import Version, version_of
from node.store.replica_port import ReplicaEntry, ReplicaStore


class MapStatus(NamedTuple):
    """One map for an operator: `bytes` of keys and values, `digest` as 32 hex digits."""

    map: int
    keys: int
    bytes: int
    tombstones: int
    digest: str


class Replicator:
    """A replica of all maps at the node `me`. `log_bytes_max` bounds the writes kept for peers that lag behind."""

    def __init__(
        self,
        me: str,
        store: ReplicaStore,
        settings: ReplicationSettings,
        rng: Rng,
        *,
        log_bytes_max: int = limits.delta_log_bytes_max,
    ) -> None:
        self._me = me
        self._settings = settings
        self._hlc = Hlc(store.hlc_mark())
        self._contents = Contents(store, settings.expired_keep_ms)
        self.inspector = Inspector(self._contents, lambda: store.damaged)
        self._sender = DeltaSender(rng.getrandbits(62), settings, log_bytes_max)
        self._receiver = DeltaReceiver()
        self._antientropy = AntiEntropy(
            self._contents, settings, rng, acceptable=self._acceptable, caught_up=self._sender.caught_up
        )
        self._counters: Counter[str] = Counter()
        self._token = 0
        self._flying: int | None = None
        self._dirty_since_ns: int | None = None
        self._commit_at_once = False
        self._failures = 0
        self._retry_ns = 0
        self._keep_house_ns = 0
        # When a peer's timestamps were last refused, by peer: the fault lasts until none was for a while.
        self._clock_faults: dict[str, int] = {}

    # ---- reads: local, cheap, at any time

    def get(self, key: str, wall_ms: int) -> ReplicaEntry | None:
        """What may be served for a key: None when there is nothing, it was removed, or its time is over."""
        entry = self._contents.entry(key)
        if entry is None or entry.tombstone or expired(entry, wall_ms):
            return None
        return entry

    def entry(self, key: str) -> ReplicaEntry | None:
        """What is held for a key, tombstones and expired entries too."""
        return self._contents.entry(key)

    def keys_of_site(self, site: str) -> tuple[str, ...]:
        """Keys of a site that carry a value, in order; some may be expired: `get` decides."""
        return self._contents.index.keys_of_site(site)

    def sites(self) -> tuple[str, ...]:
        """The sites that have keys."""
        return self._contents.index.sites()

    @property
    def ready(self) -> bool:
        """Whether this replica has, or had once since its start, all that its peers had."""
        return self._antientropy.ready

    @property
    def synchronising(self) -> float:
        """How much of what was found different at the start has been worked through, 0 to 1; 1 when ready."""
        return self._antientropy.progress()

    def lag(self, now_ns: int) -> dict[str, PeerLag]:
        """How far each peer is behind this node's writes."""
        return self._sender.lag(now_ns)

    def digests(self) -> list[int]:
        """The 32 map digests."""
        return self._contents.digests.maps()

    def agree(self, other: Sequence[int]) -> bool:
        """Whether another replica's map digests equal this one's."""
        return list(other) == self.digests()

    def map_status(self) -> list[MapStatus]:
        digests = self.digests()
        return [
            MapStatus(number, count.keys, count.bytes, count.tombstones, f"{digests[number]:032x}")
            for number, count in zip(range(MAP_COUNT), self._contents.counts(), strict=True)
        ]

    def tombstones(self, limit: int, wall_ms: int) -> list[TombstoneAge]:
        """The oldest tombstones."""
        return self._contents.index.oldest_tombstones(limit, wall_ms)

    def uncommitted(self) -> int:
        """Changes not on disk and not on their way there."""
        return self._contents.uncommitted()

    def counters(self) -> dict[str, int]:
        """What happened since the start, by name: merged, refused and why, gaps, rounds, …"""
        found = self._counters + self._sender.counters + self._receiver.counters + self._antientropy.counters
        found["digests_repaired"] = self._contents.digests_repaired
        return dict(found)

    # ---- an operator's repair

    def mended(
        self, entries: Iterable[tuple[ReplicaEntry, tuple[Version, bytes] | None]], now_ns: int, wall_ms: int
    ) -> tuple[int, list[Effect]]:
        """Puts entries of other replicas where this one holds exactly what each is to replace; how many it took. They
        pass the same checks as whatever a peer sends."""
        changed: list[str] = []
        for entry, instead_of in entries:
            if defect_of(entry) or self._contents.lapsed(entry, wall_ms):
                self._counters["mends_refused"] += 1
                continue
            try:
                self._hlc.observe(entry.hlc, wall_ms)
            except OperatingError:
                self._counters["mends_refused"] += 1
                continue
            if self.inspector.mend(entry, instead_of):
                changed.append(entry.key)
        self._counters["mended"] += len(changed)
        self._commit_at_once |= bool(changed)
        return len(changed), [*([Applied(tuple(changed))] if changed else []), *self._commit(now_ns)]

    def rebuilt(self, places: Sequence[int], drop: Sequence[str], now_ns: int) -> tuple[int, list[Effect]]:
        """Forgets damaged entries that nobody has sound, puts leaf digests right by their entries, and compares with
        the peers soon; how many digests were wrong."""
        self.inspector.drop(drop)
        wrong = self.inspector.rebuild(places)
        if wrong:
            self._antientropy.soon(now_ns)
        return wrong, self._commit(now_ns)

    # ---- the owner's writes

    def put(
        self, key: str, value: bytes, epoch: int, expires_at_ms: int, now_ns: int, wall_ms: int
    ) -> tuple[Version, list[Effect]]:
        """Writes a key's value under its shard's epoch: accepted here at once, sent to the peers, committed within
        `commit_ns`. Raises BadInput for what can't be an entry, OperatingError `E-FENCED` when the key carries a later
        epoch (another owner has written it); nothing has changed then."""
        return self._write(key, value, epoch, expires_at_ms, now_ns, wall_ms, tombstone=False)

    def remove(self, key: str, epoch: int, now_ns: int, wall_ms: int) -> tuple[Version, list[Effect]]:
        """Writes a tombstone, committed at once. Raises like `put`."""
        return self._write(key, b"", epoch, 0, now_ns, wall_ms, tombstone=True)

    def _write(
        self, key: str, value: bytes, epoch: int, expires_at_ms: int, now_ns: int, wall_ms: int, *, tombstone: bool
    ) -> tuple[Version, list[Effect]]:
        old = self._contents.entry(key)
        if old is not None and old.epoch > epoch:
            raise OperatingError("E-FENCED", f"{key!r} was written under epoch {old.epoch}, this is epoch {epoch}")
        entry = ReplicaEntry(key, epoch, self._hlc.tick(wall_ms), self._me, expires_at_ms, tombstone, value)
        defect = defect_of(entry)
        if defect:
            raise BadInput(defect, f"the entry for {key[:80]!r} is outside its bounds ({len(value)} bytes)")
        if expired(entry, wall_ms):
            raise BadInput("expires_at_ms", f"{expires_at_ms} has passed for {key!r}")
        self._contents.replace(key, old, entry)
        self._counters["removals" if tombstone else "puts"] += 1
        self._commit_at_once |= tombstone
        full = self._sender.append(entry, now_ns)
        effects: list[Effect] = [Applied((key,))]
        if full:
            effects.extend(Send(peer, delta) for peer, delta in self._sender.flush(now_ns, full=True))
        effects.extend(self._commit(now_ns))
        return version_of(entry), effects

    # ---- the machine

    def step(self, event: Event, now_ns: int, wall_ms: int) -> list[Effect]:
        """Takes one event; see the module's head for what the effects ask of the driver."""
        effects: list[Effect] = []
        match event:
            case Tick():
                effects.extend(self._tick(now_ns, wall_ms))
            case Received(sender, message):
                effects.extend(self._received(sender, message, now_ns, wall_ms))
            case PeersChanged(peers):
                self._sender.set_peers(peers - {self._me}, now_ns)
                self._antientropy.set_peers(peers - {self._me}, now_ns)
                effects.extend(self._antientropy.tick(now_ns, wall_ms))
            case Committed():
                effects.extend(self._committed(event, now_ns))
            case Damaged(keys, leaves):
                for place in leaves.union((map_of(key), leaf_of(key)) for key in keys):
                    self._contents.leaf_entries(place)
                self._antientropy.soon(now_ns)
            case _:
                assert_never(event)
        self._antientropy.hurry(self._sender.missing_peers(), now_ns)
        effects.extend(Send(peer, delta) for peer, delta in self._sender.flush(now_ns))
        effects.extend(self._commit(now_ns))
        return effects

    def next_wake_ns(self) -> int:
        """When a `Tick` is due; in the past when it is due at once."""
        machines_ns = (self._sender.due_ns(), self._antientropy.due_ns(), self._commit_due_ns())
        due = [self._keep_house_ns, *(ns for ns in machines_ns if ns is not None)]
        return min(due)

    def _tick(self, now_ns: int, wall_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        if now_ns >= self._keep_house_ns:
            effects.extend(self._keep_house(now_ns, wall_ms))
        effects.extend(self._antientropy.tick(now_ns, wall_ms))
        return effects

    def _keep_house(self, now_ns: int, wall_ms: int) -> list[Effect]:
        """Forgets lapsed entries, a budget at a time, and clears faults that are over."""
        effects: list[Effect] = []
        self._contents.recount(1)
        dropped = self._contents.collect(wall_ms, limits.replica_collect_entries)
        full = len(dropped) == limits.replica_collect_entries
        self._keep_house_ns = now_ns + (self._settings.collect_pause_ns if full else self._settings.housekeeping_ns)
        if dropped:
            self._counters["lapsed_collected"] += len(dropped)
            effects.append(Applied(tuple(dropped)))
        for peer, refused_ns in list(self._clock_faults.items()):
            if now_ns >= refused_ns + self._settings.clock_fault_ns:
                del self._clock_faults[peer]
                effects.append(FaultCleared("E-CLOCK-AHEAD", peer))
        return effects

    def _received(self, sender: str, message: ReplicaMessage, now_ns: int, wall_ms: int) -> list[Effect]:
        compare = self._antientropy
        match message:
            case Delta():
                return self._delta(sender, message, now_ns, wall_ms)
            case DeltaAck():
                return [Send(peer, delta) for peer, delta in self._sender.acknowledged(sender, message, now_ns)]
            case Digests():
                return list(compare.on_digests(sender, message))
            case Leaves():
                return list(compare.on_leaves(sender, message, now_ns, wall_ms))
            case Versions():
                return list(compare.on_versions(sender, message, now_ns, wall_ms))
            case Offer():
                return list(compare.on_offer(sender, message, now_ns, wall_ms))
            case Want():
                return list(compare.on_want(sender, message, wall_ms))
            case Entries():
                effects = self._merge(sender, message.entries, now_ns, wall_ms)
                return effects + list(compare.on_entries(sender, message, now_ns, wall_ms))
            case _:
                assert_never(message)

    def _delta(self, sender: str, delta: Delta, now_ns: int, wall_ms: int) -> list[Effect]:
        if not delta.entries or not 0 <= delta.since < delta.first:
            self._counters["refused_delta"] += 1
            return []
        fresh, ack = self._receiver.receive(sender, delta)
        return [*self._merge(sender, fresh, now_ns, wall_ms), Send(sender, ack)]

    def _merge(self, sender: str, entries: Iterable[WireEntry], now_ns: int, wall_ms: int) -> list[Effect]:
        changed: list[str] = []
        effects: list[Effect] = []
        for wired in entries:
            entry = from_wire(wired)
            defect = defect_of(entry)
            if defect:
                self._counters[f"refused_{defect}"] += 1
                continue
            if self._contents.lapsed(entry, wall_ms):
                self._counters["ignored_lapsed"] += 1
                continue
            try:
                self._hlc.observe(entry.hlc, wall_ms)
            except OperatingError as error:
                self._counters["refused_clock"] += 1
                effects.extend(self._clock_fault(sender, entry.origin, error, now_ns))
                continue
            if self._contents.apply(entry):
                changed.append(entry.key)
                self._commit_at_once |= entry.tombstone
        self._counters["merged"] += len(changed)
        if changed:
            effects.append(Applied(tuple(changed)))
        return effects

    def _clock_fault(self, sender: str, origin: str, error: OperatingError, now_ns: int) -> list[Effect]:
        known = sender in self._clock_faults
        self._clock_faults[sender] = now_ns
        text = f"{sender} sent a write of {origin} that is refused: {error.message}"
        return [] if known else [Fault(error.code, sender, text)]

    def _acceptable(self, item: KeyVersion, wall_ms: int) -> bool:
        if lapsed_at(item.expires_at_ms, item.tombstone, self._settings.expired_keep_ms, wall_ms):
            return False
        return (item.hlc >> COUNTER_BITS) - wall_ms <= limits.hlc_ahead_ms_max

    # ---- to disk

    def _commit(self, now_ns: int) -> list[Effect]:
        waiting = self._contents.uncommitted()
        if not waiting:
            self._dirty_since_ns = None
            return []
        if self._dirty_since_ns is None:
            self._dirty_since_ns = now_ns
        due_ns = self._commit_due_ns()
        if due_ns is None or now_ns < due_ns:
            return []
        self._token += 1
        self._flying = self._token
        self._dirty_since_ns = None
        self._commit_at_once = False
        # Above what was stamped, not what the clock says: one that is far ahead must leave no mark (T1).
        mark = self._hlc.mark + (limits.replica_hlc_reserve_ms << COUNTER_BITS)
        return [Commit(self._token, self._contents.take_batch(mark))]

    def _commit_due_ns(self) -> int | None:
        if self._flying is not None or self._dirty_since_ns is None:
            return None
        urgent = self._commit_at_once or self._contents.uncommitted() >= self._settings.commit_entries
        due_ns = self._dirty_since_ns + (0 if urgent else self._settings.commit_ns)
        return max(due_ns, self._retry_ns)

    def _committed(self, event: Committed, now_ns: int) -> list[Effect]:
        if event.token != self._flying:
            self._counters["commits_unknown"] += 1
            return []
        self._flying = None
        self._contents.commit_ended(event.ok)
        if event.ok:
            self._counters["commits"] += 1
            failed, self._failures, self._retry_ns = self._failures, 0, 0
            return [FaultCleared("E-REPLICA-DEGRADED", "replica")] if failed else []
        self._counters["commits_failed"] += 1
        self._failures += 1
        backoff_ns = self._settings.commit_ns << min(self._failures, 10)
        self._retry_ns = now_ns + min(backoff_ns, self._settings.commit_retry_ns_max)
        text = f"replica degraded: kept in memory only, {self._contents.uncommitted()} changes wait: {event.error}"
        return [Fault("E-REPLICA-DEGRADED", "replica", text)] if self._failures == 1 else []
