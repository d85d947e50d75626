"""The replicator: one node's full replica of the ServeIndex, its own writes on their way out, others' on their way in.

What the driver owes:

- step `RosterKnown` and `PeersChanged` once before anything else, the latter with the empty set if there is nobody, and
  at each change after; at the coordinator's node `RosterKnown` again every `roster_say_ns`: others learn it from there;
- carry `JoinRoster` to the coordinator, which puts this replica on the roster under that tenure;
- step `Tick` when `next_wake_ns()` has passed, at the latest; step everything, and call `put` and `remove`, on one
  turn, never at the same time;
- carry out the effects in their order. `Send` may be lost, doubled or overtaken. For `Commit` call `store.commit` in a
  worker thread and step `Committed` with its token whatever came of it; it is the only use of the store outside this
  object, and there is one at a time;
- step `Damaged` with the keys and leaves that the store reports as such, when they become more;
- nothing has to be durable before anything is sent: puts are accepted, not durable (I2), and what a crash loses of
  them comes back from peers by comparison. A removal is committed at once; `RemovalOutcome` says when a majority has
  it.

`now_ns` is monotonic, `wall_ms` the wall clock: it decides about expiry and the hybrid clock, nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import assert_never

from node.core import limits
from node.core.errors import BadInput, OperatingError
from node.core.hashing import MAP_COUNT, leaf_of, map_of
from node.core.hlc import Hlc
from node.core.rng import Rng
from node.gossip.inspector import Inspector
from node.gossip.lag import PeerLag
from node.gossip.latency import LatencyCounts
from node.gossip.lww import defect_of, expired
from node.gossip.questions import Questions
from node.gossip.receiving import Receiving
from node.gossip.replica_io import (
    Applied,
    Committed,
    Damaged,
    Effect,
    Event,
    PeersChanged,
    Received,
    ReplicationSettings,
    RosterKnown,
    Send,
    Tick,
)
from node.gossip.replica_messages import (
    ReplicaMessage,
    RosterNews,
)
from node.gossip.replica_parts import build
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replica_views import (
    MapStatus,
    Watermark,
    WriteToken,
)
from node.gossip.version import Version, version_of
from node.gossip.watermark import watermark_of
from node.store.replica_port import ReplicaEntry, ReplicaStore


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
        self._parts = parts = build(me, store, settings, rng, self._hlc, log_bytes_max, self._compared)
        self._contents = parts.contents
        self.inspector = Inspector(self._contents, lambda: store.damaged)
        self.questions = Questions(parts)
        self._stay = parts.stay
        self._sender = parts.sender
        self._antientropy = parts.antientropy
        self._committer = parts.committer
        self._removals = parts.removals
        self._joining = parts.joining
        self._receiving = Receiving(parts)
        self._counters: Counter[str] = Counter()
        self._peers: frozenset[str] | None = None
        self._begun = False
        self._caught_up: set[str] = set()
        self._token: WriteToken | None = None
        self._keep_house_ns = 0
        self._look_ns = 0

    # ---- reads: local, cheap, at any time

    def get(self, key: str, wall_ms: int) -> ReplicaEntry | None:
        """What may be served for a key: None when there is nothing, it was removed, or its time is over."""
        entry = self.entry(key)
        if entry is None or entry.tombstone or expired(entry, wall_ms):
            return None
        return entry

    def entry(self, key: str) -> ReplicaEntry | None:
        """What is held for a key, tombstones and expired entries too; None also for what was found in the file of a
        replica that must take over first, since it may have been removed meanwhile."""
        if self._stay.suspect and key not in self._stay.proven:
            return None
        return self._contents.entry(key)

    def keys_of_site(self, site: str) -> tuple[str, ...]:
        """Keys of a site that carry a value, in order; some may be expired: `get` decides."""
        return self._contents.index.keys_of_site(site)

    def sites(self) -> tuple[str, ...]:
        """The sites that have keys."""
        return self._contents.index.sites()

    @property
    def ready(self) -> bool:
        """Whether this replica has, or had once since its start, all that its peers had, and nothing that they may have
        removed."""
        return self._parts.ready

    @property
    def synchronising(self) -> float:
        """How much of what was found different at the start has been worked through, 0 to 1; 1 when ready."""
        return self._antientropy.progress()

    def lag(self, now_ns: int) -> dict[str, PeerLag]:
        """How far each peer is behind this node's writes."""
        return self._sender.lag(now_ns)

    def visible(self) -> LatencyCounts:
        """How long this node's writes took to be acknowledged, one sample for each peer that did."""
        return self._sender.visible.counts()

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

    # ---- what operators ask

    def replica_roster(self) -> ReplicaRoster:
        """The roster that this replica goes by; version 0 when it knows none, or there is none."""
        return self._stay.roster

    @property
    def roster_known(self) -> bool:
        """Whether this replica has a roster to go by; without one it does nothing."""
        return self._stay.known

    @property
    def tenure(self) -> int:
        """Under which this replica counts; 0 when it doesn't."""
        return self._stay.vote

    def watermark(self, now_ns: int, wall_ms: int) -> Watermark:
        """Up to when all that this node accepted is on every replica of the roster, and who holds it back."""
        lags = self._sender.lag(now_ns)
        return watermark_of(self._me, self._stay.roster, lags, frozenset(self._caught_up), wall_ms)

    @property
    def token(self) -> WriteToken | None:
        """Of this node's last write; None before the first."""
        return self._token

    def seen(self, token: WriteToken) -> bool:
        """Whether this replica has the write, or something newer of its key. A settled removal has been seen by all."""
        entry = self.entry(token.key)
        if entry is None:
            return self._contents.settled.covers(token.version.origin, token.version.hlc)
        return version_of(entry) >= token.version

    def uncommitted(self) -> int:
        """Changes not on disk and not on their way there."""
        return self._contents.uncommitted()

    def counters(self) -> dict[str, int]:
        """What happened since the start, by name: merged, refused and why, gaps, rounds, …"""
        parts = self._parts
        machines = (parts.sender, parts.receiver, parts.antientropy, parts.answering, parts.merger, parts.removals)
        found = sum((each.counters for each in (*machines, self._receiving)), self._counters)
        found["commits"] = self._committer.commits
        found["commits_failed"] = self._committer.failed
        found["commits_unknown"] = self._committer.unknown
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
            held = self._contents.entry(entry.key)
            if self.inspector.mend(entry, instead_of):
                self._parts.history.mended(entry, held, wall_ms)
                changed.append(entry.key)
        self._counters["mended"] += len(changed)
        if changed:
            self._committer.urge()
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
        version, effects = self._write(key, value, epoch, expires_at_ms, now_ns, wall_ms, tombstone=False)
        return version, [*self._removals.put(key), *effects]

    def remove(
        self, key: str, epoch: int, now_ns: int, wall_ms: int, *, by: str = "", last_serve_ms: int = 0
    ) -> tuple[Version, list[Effect]]:
        """Writes a tombstone, committed at once; `RemovalOutcome` follows when a majority has it, or has not for long.
        `by` and `last_serve_ms` stand in its certificate. Raises like `put`."""
        version, effects = self._write(key, b"", epoch, 0, now_ns, wall_ms, tombstone=True)
        self._removals.begin(key, version, wall_ms, by, last_serve_ms)
        return version, effects

    def _write(
        self, key: str, value: bytes, epoch: int, expires_at_ms: int, now_ns: int, wall_ms: int, *, tombstone: bool
    ) -> tuple[Version, list[Effect]]:
        old = self._contents.entry(key)
        if old is not None and old.epoch > epoch:
            raise OperatingError("E-FENCED", f"{key!r} was written under epoch {old.epoch}, this is epoch {epoch}")
        # A file that was lost took its clock mark with it: nothing may be stamped below what was settled of ours.
        self._hlc.mark = max(self._hlc.mark, self._contents.settled.mark(self._me))
        entry = ReplicaEntry(key, epoch, self._hlc.tick(wall_ms), self._me, expires_at_ms, tombstone, value)
        defect = defect_of(entry)
        if defect:
            raise BadInput(defect, f"the entry for {key[:80]!r} is outside its bounds ({len(value)} bytes)")
        if expired(entry, wall_ms):
            raise BadInput("expires_at_ms", f"{expires_at_ms} has passed for {key!r}")
        self._contents.replace(key, old, entry)
        self._stay.prove(key)
        self._parts.history.note(entry, old, wall_ms, self._me)
        self._token = WriteToken(key, version_of(entry))
        self._counters["removals" if tombstone else "puts"] += 1
        if tombstone:
            self._committer.urge()
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
        if self._stay.outdated(now_ns - self._settings.fresh_ns):
            self._antientropy.stay_changed(now_ns)
        match event:
            case Tick():
                effects.extend(self._tick(now_ns, wall_ms))
            case Received(sender, RosterNews() as news):
                changed, said = self._joining.heard(news, now_ns, (self._peers or frozenset()) - {sender})
                effects.extend(said)
                effects.extend(self._roster_changed(now_ns, wall_ms) if changed else [])
            case Received(sender, message):
                effects.extend(self._received(sender, message, now_ns, wall_ms))
            case PeersChanged(peers):
                self._peers = peers - {self._me}
                effects.extend(self._began(now_ns, wall_ms))
            case Committed():
                effects.extend(self._committed(event, now_ns, wall_ms))
            case Damaged(keys, leaves):
                for place in leaves.union((map_of(key), leaf_of(key)) for key in keys):
                    self._contents.leaf_entries(place)
                self._antientropy.soon(now_ns)
            case RosterKnown(roster):
                changed, said = self._joining.known(roster, now_ns, self._peers or frozenset())
                effects.extend(said)
                effects.extend(self._roster_changed(now_ns, wall_ms) if changed else [])
            case _:
                assert_never(event)
        if self._begun and self._peers is not None:
            self._antientropy.hurry(self._sender.missing_peers(), now_ns)
            effects.extend(self._joining.tick(now_ns, self._peers))
            effects.extend(self._removals.due(now_ns))
        if self._antientropy.discarded:
            effects.append(self._discarded(wall_ms))
        effects.extend(Send(peer, delta) for peer, delta in self._sender.flush(now_ns))
        effects.extend(self._commit(now_ns))
        return effects

    def _discarded(self, wall_ms: int) -> Applied:
        """Takes what a take-over forgot into the keys' histories."""
        forgotten, self._antientropy.discarded = self._antientropy.discarded, []
        for entry, source in forgotten:
            self._parts.history.discarded(entry, wall_ms, source)
        return Applied(tuple(entry.key for entry, _ in forgotten))

    def next_wake_ns(self) -> int:
        """When a `Tick` is due; in the past when it is due at once."""
        machines_ns = (self._sender.due_ns(), self._antientropy.due_ns(), self._committer.due_ns())
        due = [self._keep_house_ns, *(ns for ns in machines_ns if ns is not None)]
        removal_ns = self._removals.due_ns() if self._begun else None
        if removal_ns is not None:
            due.append(removal_ns)
        return min(due)

    def _tick(self, now_ns: int, wall_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        if now_ns >= self._keep_house_ns:
            effects.extend(self._keep_house(now_ns, wall_ms))
        effects.extend(self._antientropy.tick(now_ns, wall_ms))
        return effects

    def _keep_house(self, now_ns: int, wall_ms: int) -> list[Effect]:
        """Looks after tombstones, forgets lapsed entries, a budget at a time, and clears faults that are over."""
        if not self._contents.tombstones_learned:
            self._contents.learn_tombstones(limits.replica_index_page_rows)
        if now_ns >= self._look_ns:
            self._look_ns = now_ns + self._settings.settle_pause_ns
            if self._parts.caretaker.look(now_ns, wall_ms):
                self._antientropy.soon(now_ns)
        effects: list[Effect] = []
        self._contents.recount(limits.replica_recount_entries)
        dropped = self._contents.collect(wall_ms, limits.replica_collect_entries)
        full = len(dropped) == limits.replica_collect_entries or not self._contents.tombstones_learned
        pause_ns = min(self._settings.housekeeping_ns, self._settings.settle_pause_ns)
        self._keep_house_ns = now_ns + (self._settings.collect_pause_ns if full else pause_ns)
        if dropped:
            self._counters["lapsed_collected"] += len(dropped)
            effects.append(Applied(tuple(dropped)))
        return effects + self._parts.merger.over(now_ns)

    def _began(self, now_ns: int, wall_ms: int) -> list[Effect]:
        """Both peers and a roster are known, or others can be reached than before."""
        if self._peers is None or not self._stay.known:
            return []
        self._begun = True
        self._sender.set_peers(self._peers, now_ns)
        self._antientropy.set_peers(self._peers, now_ns)
        self._removals.set_peers(self._peers, now_ns)
        return list(self._antientropy.tick(now_ns, wall_ms))

    def _roster_changed(self, now_ns: int, wall_ms: int) -> list[Effect]:
        effects = [] if self._begun else self._began(now_ns, wall_ms)
        self._joining.roster_changed()
        self._antientropy.stay_changed(now_ns)
        effects.extend(self._removals.changed(self._stay.roster, self._stay.vote, now_ns, wall_ms))
        return effects

    def _compared(self, peer: str, began_ns: int, tenure: int) -> None:
        self._sender.caught_up(peer, began_ns)
        self._parts.caretaker.compared(peer, tenure)
        self._caught_up.add(peer)

    def _received(self, sender: str, message: ReplicaMessage, now_ns: int, wall_ms: int) -> list[Effect]:
        if not self._stay.known:
            self._counters["dropped_roster_unknown"] += 1
            return []
        marks = self._contents.settled.revision
        effects = self._receiving.received(sender, message, now_ns, wall_ms)
        if self._contents.settled.revision != marks:
            self._keep_house_ns = now_ns
        return effects

    # ---- to disk

    def _commit(self, now_ns: int) -> list[Effect]:
        due = self._committer.next(now_ns)
        return [due] if due is not None else []

    def _committed(self, event: Committed, now_ns: int, wall_ms: int) -> list[Effect]:
        tenure, effects = self._committer.ended(event, now_ns)
        if tenure:
            self._joining.written(tenure)
        if not event.ok:
            return [*effects, *self._parts.witness.refuse(f"it is not on its disk: {event.error}")]
        for key in self._removals.undurable():
            if self._contents.durable(key):
                effects.extend(self._removals.durable(key, self._stay.vote, now_ns, wall_ms))
        return [*effects, *self._receiving.attest()]
