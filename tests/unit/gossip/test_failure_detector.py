"""Accrual detection: the published vectors of the reference, and who watches whom."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.clock import MS, SECOND
from node.core.errors import BadInput
from node.core.ids import NodeId
from node.gossip.detector import Arrivals, Watch, deviations_at, suspicion
from node.gossip.member import Member, Status
from node.gossip.ring import reachable_from, ring_of, watched_by
from node.gossip.settings import DEFAULT, FAST, MembershipSettings
from node.gossip.state import GossipState, Row, build, merge


def silence_s(settings: MembershipSettings, gaps_ms: list[int]) -> float:
    """Seconds of silence after these arrivals until the peer counts as unavailable."""
    arrivals = Arrivals(settings, 0)
    now = 0
    for gap in gaps_ms:
        now += gap * MS
        arrivals.arrived(now)
    silence = 0
    while arrivals.available(now + silence):
        silence += 10 * MS
    return silence / SECOND


@pytest.mark.parametrize(
    ("threshold", "pause_s", "gaps_ms", "seconds"),
    [
        (8, 3, [1000] * 190, 4.5),
        (8, 3, [], 5.3),
        (8, 3, [600, 1400] * 90, 6.1),
        (12, 10, [1000] * 190, 11.6),
        (12, 10, [500, 1500] * 90, 14.1),
    ],
)
def test_time_to_unavailable(threshold: float, pause_s: int, gaps_ms: list[int], seconds: float) -> None:
    settings = replace(
        DEFAULT,
        threshold=threshold,
        acceptable_pause_ns=pause_s * SECOND,
        stable_after_ns=60 * SECOND,
        deviation_max_ns=60 * SECOND,  # the figures are of the rule without its bound
    )
    assert silence_s(settings, gaps_ms) == pytest.approx(seconds, abs=0.12)


def test_each_setting_moves_the_bound() -> None:
    base = silence_s(DEFAULT, [1000] * 150)
    assert silence_s(MembershipSettings(threshold=8), [1000] * 150) < base
    assert silence_s(MembershipSettings(acceptable_pause_ns=5 * SECOND), [1000] * 150) == pytest.approx(base + 1)
    assert silence_s(MembershipSettings(deviation_min_ns=400 * MS), [1000] * 150) > base
    assert silence_s(FAST, [200] * 150) < 2.6


@pytest.mark.parametrize("gaps_ms", [[], [1000] * 150, [500, 1500] * 75, [1000, 1000, 3900] * 50])
def test_however_irregular_it_was_a_dead_peer_is_noticed_within_the_pause_and_two_beats(gaps_ms: list[int]) -> None:
    mean_s = sum([1000, *gaps_ms]) / (1 + len(gaps_ms)) / 1_000
    assert silence_s(DEFAULT, gaps_ms) <= 4 + mean_s + 1


@given(st.floats(0.1, 100))
def test_the_threshold_is_reached_where_suspicion_says(threshold: float) -> None:
    deviations = deviations_at(threshold)
    assert suspicion(deviations) == pytest.approx(threshold, rel=1e-6)


def test_a_long_silence_is_infinitely_suspicious_and_a_fresh_arrival_not_at_all() -> None:
    arrivals = Arrivals(DEFAULT, 0)
    assert arrivals.phi(10_000 * SECOND) == math.inf
    assert arrivals.phi(0) == 0.0


def test_a_peer_that_never_answers_is_noticed() -> None:
    assert 4 < silence_s(DEFAULT, []) < 8


def test_the_gap_that_ended_a_failure_does_not_dull_the_next_detection() -> None:
    peer = NodeId("a", 1)
    watch = Watch(FAST)
    watch.assign([peer], 0)

    def run(start_ns: int, beats: int) -> int:
        now = start_ns
        for _ in range(beats):
            now += FAST.heartbeat_ns
            ((_, sequence, _),) = watch.beat()
            assert watch.answered(peer, sequence, now)
        return now

    def silence_ns(now: int) -> int:
        silence = 0
        while peer not in watch.silent(now + silence + 1):
            silence += 10 * MS
        return silence

    now = run(0, 100)
    first = silence_ns(now)
    now = run(now + 60 * SECOND, 100)
    assert silence_ns(now) <= first * 1.1


def test_answers_that_are_repeated_late_or_made_up_count_for_nothing() -> None:
    peer = NodeId("a", 1)
    watch = Watch(FAST)
    watch.assign([peer], 0)
    ((_, first, _),) = watch.beat()
    ((_, second, _),) = watch.beat()
    assert watch.answered(peer, second, 10 * MS)
    assert not watch.answered(peer, second, 11 * MS)
    assert not watch.answered(peer, first, 12 * MS)
    assert not watch.answered(peer, 99, 13 * MS)
    assert not watch.answered(NodeId("a", 2), second, 14 * MS)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(BadInput, match="two heartbeats"):
        MembershipSettings(acceptable_pause_ns=SECOND)
    with pytest.raises(BadInput, match="keep-majority"):
        MembershipSettings(strategy="auto-down")


# --- the ring


def cluster(count: int, lost: list[tuple[int, int]] = ()) -> GossipState:  # type: ignore[assignment]
    members = [Member(f"n{i}", 1, f"h:{i}", status=Status.UP) for i in range(count)]
    rows = [Row(NodeId(f"n{a}", 1), NodeId(f"n{b}", 1), False, 1) for a, b in lost]
    return build(members, rows, 0)


@given(st.integers(1, 20), st.integers(1, 6))
def test_each_is_watched_by_as_many_as_there_can_be(count: int, neighbours: int) -> None:
    state = cluster(count)
    ring = ring_of(state)
    watched = [s for node in ring for s in watched_by(state, ring, node, neighbours)]
    for node in ring:
        assert watched.count(node) == min(neighbours, count - 1)
        assert node not in watched_by(state, ring, node, neighbours)


@given(st.integers(3, 20), st.data())
def test_a_run_of_dead_neighbours_hides_nobody(count: int, data: st.DataObject) -> None:
    """Once those that began to watch whoever is behind the dead have said that they see them."""
    dead = data.draw(st.sets(st.integers(0, count - 1), max_size=count - 1))
    alive = set(range(count)) - dead
    lost = cluster(count, [(a, d) for a in alive for d in dead])
    ring = ring_of(lost)
    nodes = {NodeId(f"n{a}", 1) for a in alive}
    vouched = [Row(a, s, True, 1) for a in nodes for s in watched_by(lost, ring, a, 5) if lost.sees(a, s)]
    state = merge(lost, build((), vouched, 0))
    for a in nodes:
        assert reachable_from(state, a, 5) == nodes


@given(st.integers(7, 20), st.data())
def test_who_began_to_watch_only_now_vouches_for_nobody(count: int, data: st.DataObject) -> None:
    """A cut of a cluster that is larger than a ring's reach: those on the far side that all who have watched them call
    unreachable are so, although others have just begun to watch them and don't know yet."""
    far = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=count // 2))
    near = set(range(count)) - far
    whole = cluster(count)
    ring = ring_of(whole)
    rows = [
        Row(NodeId(f"n{a}", 1), s, False, 1)
        for a in near
        for s in watched_by(whole, ring, NodeId(f"n{a}", 1), 5)
        if s in {NodeId(f"n{f}", 1) for f in far}
    ]
    state = merge(whole, build((), rows, 0))
    for a in near:
        assert reachable_from(state, NodeId(f"n{a}", 1), 5) <= {NodeId(f"n{x}", 1) for x in near}


def test_two_on_the_far_side_of_a_cut_do_not_vouch_for_each_other() -> None:
    state = cluster(5, [(a, b) for a in (0, 1, 2) for b in (3, 4)])
    assert reachable_from(state, NodeId("n0", 1), 5) == {NodeId(f"n{i}", 1) for i in (0, 1, 2)}


def test_who_only_joins_does_not_make_a_silent_node_look_alive() -> None:
    """Found by P11: each newcomer made all others believe for a pause that a dead node was back."""
    lost = cluster(4, [(a, 3) for a in (0, 1, 2)])
    joiner = Member("n4", 1, "n4:1", status=Status.JOINING)
    state = lost.with_member(joiner)
    seen = {NodeId(f"n{i}", 1) for i in (0, 1, 2, 4)}
    assert reachable_from(state, NodeId("n0", 1), 5) == reachable_from(state, joiner.id, 5) == seen
    vouched = state.with_row(Row(joiner.id, NodeId("n3", 1), True, 1))
    assert reachable_from(vouched, NodeId("n0", 1), 5) == {*seen, NodeId("n3", 1)}


def test_one_bad_link_is_not_a_dead_node() -> None:
    state = cluster(3, [(0, 1), (1, 0)])
    for i in range(3):
        assert len(reachable_from(state, NodeId(f"n{i}", 1), 5)) == 3
