"""Numbered deltas: order, gaps, acknowledgements, the bounded log, lag."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from node.core import limits
from node.core.clock import MS, SECOND
from node.gossip.deltalog import DeltaLog, DeltaSender
from node.gossip.deltareceiver import DeltaReceiver
from node.gossip.lag import PeerLag
from node.gossip.latency import BOUNDS_MS
from node.gossip.lww import ENTRY_OVERHEAD_BYTES
from node.gossip.replica_io import ReplicationSettings
from node.gossip.replica_messages import Delta, DeltaAck, to_wire
from node.store.replica_port import ReplicaEntry

SIZE = ENTRY_OVERHEAD_BYTES + len("s|00000") + 10


def entry(number: int, value: bytes = b"0123456789") -> ReplicaEntry:
    return ReplicaEntry(f"s|{number:05}", 1, number, "a", 0, False, value)


def sender(log_bytes_max: int = 1 << 20, peers=("b",)) -> DeltaSender:
    made = DeltaSender(9, ReplicationSettings(), log_bytes_max)
    made.set_peers(frozenset(peers), 0)
    return made


def numbers(delta: Delta) -> list[int]:
    return list(range(delta.first, delta.first + len(delta.entries)))


@given(st.lists(st.one_of(st.integers(1, 30), st.tuples(st.integers(0, 60))), max_size=60))
def test_the_log_keeps_the_newest_writes_and_counts_their_bytes(steps):
    log = DeltaLog(100 + 3 * ENTRY_OVERHEAD_BYTES)
    written: list[ReplicaEntry] = []
    for step in steps:
        if isinstance(step, int):
            written.append(entry(len(written) + 1, b"x" * step))
            log.append(written[-1], 0)
        else:
            log.trim(step[0])
        kept = written[log.first - 1 :]
        assert log.head == max(len(written), log.first - 1)
        assert [item.entry.key for item in log.batch(log.first - 1, 1 << 30, 1 << 30)] == [e.key for e in kept]
        assert log.bytes == sum(len(e.key) + len(e.value) + ENTRY_OVERHEAD_BYTES for e in kept)
        assert log.bytes <= 100 + 3 * ENTRY_OVERHEAD_BYTES or len(kept) == 1


def test_writes_wait_for_the_batch_and_then_leave_together():
    out = sender(peers=("b", "c"))
    for number in range(1, 4):
        assert not out.append(entry(number), number * MS)
    assert out.due_ns() == 21 * MS
    assert out.flush(20 * MS) == []
    sends = out.flush(21 * MS)
    assert sorted(peer for peer, _ in sends) == ["b", "c"]
    assert all(numbers(delta) == [1, 2, 3] and delta.since == 0 for _, delta in sends)
    assert out.flush(22 * MS) == []


def test_a_full_batch_does_not_wait():
    out = sender()
    full = [out.append(entry(number, b"x" * 40_000), 0) for number in (1, 2)]
    assert full == [False, True]
    assert [numbers(delta) for _, delta in out.flush(0, full=True)] == [[1], [2]]


def test_bytes_in_flight_are_bounded_and_acknowledgements_make_room():
    out = sender(log_bytes_max=16 << 20)
    value = b"x" * 60_000
    for number in range(1, 41):
        out.append(entry(number, value), 0)
    sent = [number for _, delta in out.flush(0, full=True) for number in numbers(delta)]
    assert sent == list(range(1, len(sent) + 1))
    assert len(sent) * len(value) <= limits.replica_in_flight_bytes_max + len(value) + 1_000
    assert out.flush(1 * MS) == []
    out.acknowledged("b", DeltaAck(9, 5), 2 * MS)
    more = [number for _, delta in out.flush(2 * MS) for number in numbers(delta)]
    assert more == list(range(len(sent) + 1, len(sent) + 6))
    assert out.log.first == 6


def test_what_comes_early_is_kept_and_only_the_gap_is_sent_again():
    out, incoming = sender(), DeltaReceiver()
    batches = []
    for number in range(1, 5):
        out.append(entry(number), 0)
        batches += [delta for _, delta in out.flush(number, full=True)]
    fresh, ack = incoming.receive("a", batches[2])
    assert [e.key for e in fresh] == ["s|00003"]
    assert ack == DeltaAck(9, 0, gap_to=2)
    ((_, again),) = out.acknowledged("b", ack, 51 * MS)
    assert numbers(again) == [1, 2]
    assert incoming.receive("a", batches[3])[1] == DeltaAck(9, 0, gap_to=2)
    fresh, ack = incoming.receive("a", again)
    assert [e.key for e in fresh] == ["s|00001", "s|00002"]
    assert ack == DeltaAck(9, 4)
    assert incoming.receive("a", batches[0]) == ((), DeltaAck(9, 4))
    assert out.acknowledged("b", ack, 52 * MS) == []
    assert out.lag(60 * MS) == {"b": PeerLag(0, 0)}


def test_a_gap_that_many_batches_name_is_sent_once_until_that_had_time_to_arrive():
    out = sender()
    for number in range(1, 4):
        out.append(entry(number), 0)
    out.flush(20 * MS)
    assert [len(out.acknowledged("b", DeltaAck(9, 0, 1), at * MS)) for at in (30, 30, 49, 50)] == [1, 0, 0, 1]
    assert len(out.acknowledged("b", DeltaAck(9, 1, 2), 51 * MS)) == 1, "another gap"


def test_a_receiver_remembers_no_more_ranges_than_its_bound():
    incoming = DeltaReceiver()
    for first in range(2_000, 2, -2):
        incoming.receive("a", Delta(9, 0, first, (to_wire(entry(first)),)))
    arrived = incoming._arrived["a"]
    assert len(arrived.ahead) == limits.replica_ranges_ahead_max
    assert arrived.ahead[0] == (4, 4), "those next to the gap are of use first"


def test_what_is_not_acknowledged_in_time_is_sent_again():
    out = sender()
    out.append(entry(1), 0)
    out.flush(20 * MS)
    assert out.due_ns() == 520 * MS
    assert out.flush(520 * MS - 1) == []
    assert [numbers(delta) for _, delta in out.flush(520 * MS)] == [[1]]


def test_acknowledgements_of_another_stream_or_of_the_future_change_nothing():
    out = sender()
    out.append(entry(1), 0)
    out.flush(20 * MS)
    for ack in (DeltaAck(8, 1), DeltaAck(9, 2), DeltaAck(9, 0, 2)):
        assert out.acknowledged("b", ack, 21 * MS) == []
    out.acknowledged("stranger", DeltaAck(9, 1), 21 * MS)
    assert out.lag(30 * MS) == {"b": PeerLag(1, 30)}
    assert out.counters["acks_ignored"] == 4


def test_a_restarted_receiver_goes_on_behind_what_it_had_acknowledged():
    out = sender()
    out.append(entry(1), 0)
    out.flush(20 * MS)
    out.acknowledged("b", DeltaAck(9, 1), 21 * MS)
    out.append(entry(2), 30 * MS)
    fresh, ack = DeltaReceiver().receive("a", out.flush(50 * MS)[0][1])
    assert [e.key for e in fresh] == ["s|00002"]
    assert ack == DeltaAck(9, 2)


def test_a_new_stream_starts_over():
    incoming = DeltaReceiver()
    wired = (to_wire(entry(1)),)
    assert incoming.receive("a", Delta(9, 4, 5, wired))[1] == DeltaAck(9, 5)
    assert incoming.receive("a", Delta(10, 0, 1, wired)) == (wired, DeltaAck(10, 1))


def test_what_leaves_the_log_unsent_is_missed_until_a_comparison_that_began_later():
    out = sender(log_bytes_max=3 * SIZE)
    for number in range(1, 6):
        out.append(entry(number), number * SECOND)
    assert out.missing_peers() == ("b",)
    assert out.lag(10 * SECOND) == {"b": PeerLag(5, 9_000)}
    sends = out.flush(5 * SECOND + 20 * MS)
    assert [(delta.since, numbers(delta)) for _, delta in sends] == [(2, [3, 4, 5])]
    assert DeltaReceiver().receive("a", sends[0][1])[1] == DeltaAck(9, 5)
    out.caught_up("b", 5 * SECOND - 1)
    assert out.missing_peers() == ("b",)
    out.caught_up("b", 5 * SECOND)
    assert out.missing_peers() == ()
    assert out.lag(10 * SECOND)["b"].entries == 3


def test_a_peer_that_was_away_goes_on_where_it_was_or_misses_what_the_log_lost():
    out = sender(peers=("b", "c"))
    out.append(entry(1), 0)
    out.flush(20 * MS)
    out.acknowledged("b", DeltaAck(9, 1), 21 * MS)
    out.set_peers(frozenset({"b"}), 22 * MS)
    assert out.lag(30 * MS)["c"] == PeerLag(1, 30)
    out.set_peers(frozenset({"b", "c"}), 40 * MS)
    assert out.missing_peers() == ("c",), "nobody kept the write for it"
    out.caught_up("c", 41 * MS)
    assert out.lag(50 * MS)["c"] == PeerLag(0, 0)


def test_without_peers_nothing_is_kept():
    out = sender(peers=())
    for number in range(1, 100):
        assert not out.append(entry(number, b"x" * 2_000), 0)
    assert out.log.bytes == 0
    assert out.flush(SECOND) == []


@given(st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_every_write_arrives_and_is_acknowledged_over_a_bad_link(seed):
    rng = random.Random(seed)
    out, incoming = sender(log_bytes_max=1 << 20), DeltaReceiver()
    arrived: set[str] = set()
    wire: list[Delta | DeltaAck] = []
    now_ns, written = 0, 0
    for turn in range(4_000):
        now_ns += 10 * MS
        if written < 30 and rng.random() < 0.3:
            written += 1
            out.append(entry(written), now_ns)
        wire.extend(delta for _, delta in out.flush(now_ns))
        rng.shuffle(wire)
        healed = turn > 2_000
        while wire and rng.random() < 0.7:
            message = wire.pop()
            if not healed and rng.random() < 0.3:
                continue
            if not healed and rng.random() < 0.2:
                wire.insert(0, message)
            if isinstance(message, Delta):
                fresh, ack = incoming.receive("a", message)
                arrived.update(item.key for item in fresh)
                wire.append(ack)
            else:
                wire.extend(delta for _, delta in out.acknowledged("b", message, now_ns))
        lag = out.lag(now_ns)["b"]
        assert lag.entries >= written - len(arrived)
        if written == 30 and lag == PeerLag(0, 0) and not wire:
            break
    assert arrived == {f"s|{number:05}" for number in range(1, 31)}
    assert out.lag(now_ns)["b"] == PeerLag(0, 0)
    assert out.log.bytes == 0


def test_each_write_counts_once_for_each_peer_by_how_long_its_acknowledgement_took():
    one = sender(peers=("b", "c"))
    one.append(entry(1), 0)
    one.append(entry(2), 30 * MS)
    one.flush(40 * MS, full=True)
    one.acknowledged("b", DeltaAck(one.stream, 1), 40 * MS)
    one.acknowledged("b", DeltaAck(one.stream, 2), 50 * MS)
    one.acknowledged("b", DeltaAck(one.stream, 2), 900 * MS)
    one.acknowledged("c", DeltaAck(one.stream, 2), 400 * MS)
    counts, sum_ms = one.visible.counts()
    told = {bound: count for bound, count in zip((*BOUNDS_MS, None), counts, strict=True) if count}
    assert (told, sum_ms) == ({20: 1, 50: 1, 500: 2}, 40 + 20 + 400 + 370)
    sent = sum(ENTRY_OVERHEAD_BYTES + len(e.key) + len(e.value) for e in (entry(1), entry(2)))
    assert one.counters["delta_bytes_sent"] == 2 * sent
