"""Deltas: what this node wrote, numbered, on its way to every peer.

A stream is one start of one node: its writes are numbered from 1 under a random stream id, so that a restart is never
taken for a continuation. A peer acknowledges the highest number up to which it has everything and names the gap behind
it, if there is one; what came early is merged all the same, since merging doesn't ask for an order, and remembered, so
that only the gap is sent again. The log is bounded: what leaves it before a peer had it is *missed*, and that peer
is brought up by comparison (`node.gossip.antientropy`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from node.core import limits
from node.gossip.lag import PeerLag, lag_of
from node.gossip.latency import Latency
from node.gossip.lww import size_of
from node.gossip.replica_io import ReplicationSettings
from node.gossip.replica_messages import Delta, DeltaAck, WireEntry, to_wire
from node.store.replica_port import ReplicaEntry


@dataclass(frozen=True, slots=True)
class Logged:
    """One write in the log; `size` in bytes, `total` that of all writes up to it, `at_ns` when it was made."""

    entry: WireEntry
    size: int
    total: int
    at_ns: int


class DeltaLog:
    """The writes `first` … `head` of this start, at most `bytes_max` of them."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._items: list[Logged] = []
        self._gone_total = 0
        self.first = 1

    @property
    def head(self) -> int:
        """The number of the last write, 0 before the first."""
        return self.first + len(self._items) - 1

    @property
    def bytes(self) -> int:
        """The size of the writes that are here."""
        return self._total(self.head) - self._gone_total

    def append(self, entry: ReplicaEntry, now_ns: int) -> None:
        """Adds a write; the oldest ones go when there is no room."""
        size = size_of(entry)
        total = self._total(self.head) + size
        self._items.append(Logged(to_wire(entry), size, total, now_ns))
        gone = 0
        while total - self._total(self.first - 1 + gone) > self._bytes_max and gone < len(self._items) - 1:
            gone += 1
        if gone:
            self.trim(self.first + gone - 1)

    def trim(self, upto: int) -> None:
        """Forgets writes up to a number."""
        count = min(max(0, upto - self.first + 1), len(self._items))
        if count:
            self._gone_total = self._items[count - 1].total
            del self._items[:count]
            self.first += count

    def between(self, after: int, upto: int) -> int:
        """The size of the writes behind `after` up to `upto`."""
        return self._total(upto) - self._total(after)

    def oldest_ns(self, default_ns: int) -> int:
        """When the oldest write that is still here was made."""
        return self._items[0].at_ns if self._items else default_ns

    def at(self, number: int) -> Logged:
        return self._items[number - self.first]

    def _total(self, number: int) -> int:
        return self._items[number - self.first].total if number >= self.first else self._gone_total

    def batch(self, after: int, bytes_max: int, records_max: int) -> list[Logged]:
        """Writes behind `after`, as many as one message may carry: at least one, if there is one."""
        start = after + 1 - self.first
        size = 0
        end = start
        while end < len(self._items) and end - start < records_max:
            size += self._items[end].size
            if size > bytes_max and end > start:
                break
            end += 1
        return self._items[start:end]


@dataclass(slots=True)
class Feed:
    """What one peer was sent of the log.

    `moved_ns`: when its acknowledgements last made progress, or sending began; `gap_after` and `gap_ns`: which gap was
    filled last, and when; `missed_since_ns`: when the oldest missed write was made, `missed_at_ns`: when the last one
    left the log.
    """

    acked: int
    sent: int
    present: bool = True
    moved_ns: int = 0
    gap_after: int | None = None
    gap_ns: int = 0
    missed: int = 0
    missed_since_ns: int = 0
    missed_at_ns: int = 0

    def rewind(self, now_ns: int) -> None:
        self.sent = self.acked
        self.moved_ns = now_ns


class DeltaSender:
    """The sending half: one log, one feed for each peer."""

    def __init__(self, stream: int, settings: ReplicationSettings, log_bytes_max: int) -> None:
        self.stream = stream
        self.log = DeltaLog(log_bytes_max)
        self.counters: Counter[str] = Counter()
        self.visible = Latency()
        self._settings = settings
        self._feeds: dict[str, Feed] = {}
        self._flush_ns: int | None = None
        self._unsent_bytes = 0

    def append(self, entry: ReplicaEntry, now_ns: int) -> bool:
        """Logs a write; says whether a full batch waits, so that it should leave now."""
        oldest_ns = self.log.oldest_ns(now_ns)
        first = self.log.first
        self.log.append(entry, now_ns)
        if self.log.first > first:
            self._left_log(oldest_ns, now_ns)
        if not any(feed.present for feed in self._feeds.values()):
            self._trim(now_ns)
            return False
        if self._flush_ns is None:
            self._flush_ns = now_ns + self._settings.delta_batch_ns
        self._unsent_bytes += size_of(entry)
        return self._unsent_bytes >= limits.delta_batch_bytes

    def set_peers(self, peers: frozenset[str], now_ns: int) -> None:
        """Feeds these; a peer that comes back goes on where it was. A new one begins with the oldest write that some
        other peer still lacks: what is older has reached all others, and it gets it from one of them."""
        for name, feed in self._feeds.items():
            feed.present = name in peers
        for name in sorted(peers - self._feeds.keys()):  # feeds are served in this order: by name, never by hash
            self._feeds[name] = Feed(self.log.first - 1, self.log.first - 1)
        for name in peers:
            self._feeds[name].rewind(now_ns)
        away = [name for name, feed in self._feeds.items() if not feed.present]
        for name in away[: max(0, len(away) - limits.replica_away_feeds_max)]:
            del self._feeds[name]
        self._trim(now_ns)

    def due_ns(self) -> int | None:
        """When `flush` has something to do, if nothing else happens."""
        due_ns = self._flush_ns
        for feed in self._feeds.values():
            if feed.sent > feed.acked and feed.present:
                resend_ns = feed.moved_ns + self._settings.delta_resend_ns
                due_ns = resend_ns if due_ns is None else min(due_ns, resend_ns)
        return due_ns

    def flush(self, now_ns: int, *, full: bool = False) -> list[tuple[str, Delta]]:
        """What is to leave now: batches that are due (or `full`), and again what was not acknowledged in time."""
        due = full or (self._flush_ns is not None and now_ns >= self._flush_ns)
        if due:
            self._flush_ns = None
            self._unsent_bytes = 0
        sends: list[tuple[str, Delta]] = []
        head = self.log.head
        for name, feed in self._feeds.items():
            if not feed.present:
                continue
            if feed.sent > feed.acked and now_ns >= feed.moved_ns + self._settings.delta_resend_ns:
                self.counters["delta_timeouts"] += 1
                feed.rewind(now_ns)
            if feed.sent < head and (due or self._flush_ns is None):
                sends.extend((name, delta) for delta in self._fill(feed, now_ns))
        return sends

    def acknowledged(self, peer: str, ack: DeltaAck, now_ns: int) -> list[tuple[str, Delta]]:
        """Takes an acknowledgement; what fills the gap it names. One of another stream or of what was never sent
        changes nothing."""
        feed = self._feeds.get(peer)
        if feed is None or ack.stream != self.stream or max(ack.upto, ack.gap_to) > self.log.head:
            self.counters["acks_ignored"] += 1
            return []
        if ack.upto > feed.acked:
            for number in range(max(feed.acked + 1, self.log.first), ack.upto + 1):
                self.visible.add(now_ns - self.log.at(number).at_ns)
            feed.acked = ack.upto
            feed.sent = max(feed.sent, ack.upto)
            feed.moved_ns = now_ns
            self._trim(now_ns)
        if ack.gap_to > ack.upto == feed.acked and self._may_fill(feed, now_ns):
            self.counters["delta_resends"] += 1
            feed.gap_after, feed.gap_ns = feed.acked, now_ns
            records_max = min(ack.gap_to - feed.acked, limits.replica_records_max)
            batch = self.log.batch(feed.acked, limits.delta_batch_bytes, records_max)
            return [(peer, self._delta(feed, feed.acked, batch))]
        return []

    def missing_peers(self) -> tuple[str, ...]:
        """Peers that must be brought up by comparison."""
        return tuple(name for name, feed in self._feeds.items() if feed.present and feed.missed)

    def caught_up(self, peer: str, since_ns: int) -> None:
        """A comparison with the peer that began at `since_ns` ended with nothing left that it lacks."""
        feed = self._feeds.get(peer)
        if feed is not None and feed.missed and feed.missed_at_ns <= since_ns:
            feed.missed = 0

    def lag(self, now_ns: int) -> dict[str, PeerLag]:
        """The lag of every peer, those that can't be reached now too."""
        return {name: self._lag_of(feed, now_ns) for name, feed in self._feeds.items()}

    def _lag_of(self, feed: Feed, now_ns: int) -> PeerLag:
        since = self.log.at(feed.acked + 1).at_ns if self.log.first <= feed.acked + 1 <= self.log.head else None
        if feed.missed:
            since = feed.missed_since_ns
        return lag_of(
            written=self.log.head,
            acknowledged=feed.acked,
            missed=feed.missed,
            waiting_since_ns=since,
            now_ns=now_ns,
        )

    def _may_fill(self, feed: Feed, now_ns: int) -> bool:
        # Everything that comes early names the same gap: once is enough until that had time to arrive.
        return feed.gap_after != feed.acked or now_ns >= feed.gap_ns + self._settings.delta_batch_ns

    def _delta(self, feed: Feed, after: int, batch: list[Logged]) -> Delta:
        self.counters["delta_entries_sent"] += len(batch)
        self.counters["delta_bytes_sent"] += sum(item.size for item in batch)
        return Delta(self.stream, feed.acked, after + 1, tuple(item.entry for item in batch))

    def _fill(self, feed: Feed, now_ns: int) -> list[Delta]:
        sends: list[Delta] = []
        if feed.sent == feed.acked:
            feed.moved_ns = now_ns
        while feed.sent < self.log.head:
            room_bytes = limits.replica_in_flight_bytes_max - self.log.between(feed.acked, feed.sent)
            room_records = limits.replica_records_max - (feed.sent - feed.acked)
            if room_bytes <= 0 or room_records <= 0:
                break
            batch = self.log.batch(feed.sent, limits.delta_batch_bytes, room_records)
            sends.append(self._delta(feed, feed.sent, batch))
            feed.sent += len(batch)
        return sends

    def _trim(self, now_ns: int) -> None:
        oldest_ns = self.log.oldest_ns(now_ns)
        present = [feed.acked for feed in self._feeds.values() if feed.present]
        self.log.trim(min(present, default=self.log.head))
        self._left_log(oldest_ns, now_ns)

    def _left_log(self, oldest_ns: int, now_ns: int) -> None:
        """Moves the feeds behind whose acknowledgements the log was cut; `oldest_ns`: its former oldest write."""
        last_gone = self.log.first - 1
        for feed in self._feeds.values():
            if feed.acked >= last_gone:
                continue
            if not feed.missed:
                self.counters["log_overflows"] += 1
                feed.missed_since_ns = oldest_ns
            feed.missed += last_gone - feed.acked
            feed.missed_at_ns = now_ns
            feed.acked = last_gone
            feed.sent = max(feed.sent, last_gone)
