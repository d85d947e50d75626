"""The phases of a drain: their order, what holds them, and that they end."""

from __future__ import annotations

import pytest

from node.core.clock import MS
from node.engine.drain import ALL, FLUSH_ONLY, SHARES, WITHOUT_MOVES, Drain, Facts, Step

DEADLINE_MS = 10_000


def states(drain: Drain, now_ns: int = 0) -> dict[str, str]:
    return {phase.name: phase.state for phase in drain.phases(now_ns)}


def advanced(drain: Drain, facts: Facts, now_ns: int) -> list[Step]:
    begun = []
    while (step := drain.advance(facts, now_ns)) is not None:
        begun.append(step)
    return begun


def test_with_nothing_to_wait_for_everything_up_to_leaving_happens_at_once_in_order() -> None:
    drain = Drain(ALL, DEADLINE_MS, 0)
    assert advanced(drain, Facts(), 0) == list(ALL[1:])
    assert drain.current is Step.LEAVE, "which ends when the others know"
    assert set(states(drain).values()) == {"done", "running"}


@pytest.mark.parametrize(
    ("facts", "step", "words"),
    [
        (Facts(executing=2), Step.INGESTION, "2 classifications running"),
        (Facts(singletons=1), Step.SINGLETONS, "1 singletons here"),
        (Facts(shards=64), Step.SHARDS, "64 shards here"),
        (Facts(buffered=3), Step.SHARDS, "3 messages buffered"),
        (Facts(asks=5), Step.ASKS, "5 asks in flight"),
        (Facts(unacknowledged=9), Step.REPLICAS, "9 entries unacknowledged"),
        (Facts(writes=1), Step.OUTBOXES, "1 writes under way"),
        (Facts(uncommitted=4), Step.FLUSH, "4 entries uncommitted"),
    ],
)
def test_each_phase_waits_for_its_own_and_not_longer_than_its_share(facts: Facts, step: Step, words: str) -> None:
    drain = Drain(ALL, DEADLINE_MS, 0)
    advanced(drain, facts, 0)
    assert drain.current is step
    running = next(phase for phase in drain.phases(5 * MS) if phase.state == "running")
    assert (running.name, running.blockers, running.elapsed_ms) == (step.value, (words,), 5)
    share_ns = int(DEADLINE_MS * SHARES[step]) * MS
    assert advanced(drain, facts, share_ns - 1) == []
    drain.advance(facts, share_ns)
    assert drain.current is not step
    assert states(drain)[step.value] == "overran"
    blamed = next(phase for phase in drain.phases(share_ns) if phase.name == step.value)
    assert blamed.blockers == (words,)


def test_a_phase_ends_when_what_held_it_is_gone() -> None:
    drain = Drain(ALL, DEADLINE_MS, 0)
    advanced(drain, Facts(shards=2), 0)
    assert advanced(drain, Facts(shards=1), MS) == []
    assert advanced(drain, Facts(), 2 * MS) == [Step.ASKS, Step.REPLICAS, Step.OUTBOXES, Step.FLUSH, Step.LEAVE]
    assert states(drain)["shards"] == "done"


def test_whatever_holds_it_a_drain_comes_to_its_end_within_the_deadline() -> None:
    assert sum(SHARES.values()) == pytest.approx(1.0)
    stuck = Facts(1, 1, 1, 1, 1, 1, 1, 1)
    drain = Drain(WITHOUT_MOVES, DEADLINE_MS, 0)
    now_ns = 0
    while drain.current is not None:
        drain.advance(stuck, now_ns)
        now_ns += 10 * MS
    assert now_ns <= (DEADLINE_MS + 100) * MS
    assert set(states(drain)) == {step.value for step in WITHOUT_MOVES}


def test_a_stop_with_the_whole_cluster_hands_nothing_over() -> None:
    drain = Drain(WITHOUT_MOVES, DEADLINE_MS, 0)
    advanced(drain, Facts(shards=256, singletons=1), 0)
    assert drain.current is None
    assert not {Step.SHARDS, Step.SINGLETONS, Step.LEAVE} & set(WITHOUT_MOVES)


def test_a_second_signal_skips_to_the_flush_and_a_third_changes_nothing() -> None:
    drain = Drain(ALL, DEADLINE_MS, 0)
    advanced(drain, Facts(shards=3), 0)
    drain.hurry(MS)
    assert drain.current is Step.FLUSH
    found = states(drain)
    assert (found["readiness"], found["shards"], found["asks"]) == ("done", "overran", "overran")
    drain.hurry(2 * MS)
    assert drain.current is Step.FLUSH
    only = Drain(FLUSH_ONLY, DEADLINE_MS, 0)
    only.hurry(0)
    advanced(only, Facts(), 0)
    assert only.current is None
    assert only.advance(Facts(), 1) is None
