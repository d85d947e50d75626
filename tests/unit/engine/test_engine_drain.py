"""The phases of a drain: their order, what holds them, what is on record, and that they end."""

from __future__ import annotations

import pytest

from node.core.clock import MS
from node.core.limits import drain_record_ms_max
from node.engine.drain import ALL, FINAL, FLUSH_ONLY, JOINING, SHARES, WITHOUT_MOVES, Drain, Step

DEADLINE_MS = 100_000
Held = dict[Step, tuple[str, ...]]


def states(drain: Drain, now_ns: int = 0) -> dict[str, str]:
    return {phase.name: phase.state for phase in drain.phases(now_ns)}


def driven(drain: Drain, held: Held, now_ns: int, *, recorded: bool = True) -> list[Step]:
    """What an engine does at one tick; the phases that began."""
    begun = []
    while True:
        step = drain.begin(recorded, now_ns)
        if step is not None:
            begun.append(step)
        current = drain.current
        if current is None or not drain.end(held.get(current, ()), now_ns):
            return begun


def test_with_nothing_to_wait_for_everything_up_to_leaving_happens_at_once_in_order() -> None:
    drain = Drain(ALL, DEADLINE_MS, 0)
    assert driven(drain, {}, 0) == list(ALL)
    assert drain.current is Step.LEAVE, "which ends when the others know"
    assert driven(drain, {}, 10 * DEADLINE_MS * MS) == []
    assert set(states(drain).values()) == {"done", "running"}
    assert drain.complete


@pytest.mark.parametrize("step", [step for step in ALL if step is not Step.LEAVE])
def test_p61_a_phase_that_is_held_up_names_what_holds_it_overruns_and_the_next_ones_run(step: Step) -> None:
    blocker = "entity/campaign/42: a write is under way"
    drain = Drain(ALL, DEADLINE_MS, 0)
    driven(drain, {step: (blocker,)}, 0)
    assert drain.current is step
    running = next(phase for phase in drain.phases(5 * MS) if phase.state == "running")
    assert (running.name, running.blockers, running.elapsed_ms) == (step.value, (blocker,), 5)
    share_ns = int(DEADLINE_MS * SHARES[step]) * MS
    assert driven(drain, {step: (blocker,)}, share_ns - 1) == []
    after = driven(drain, {step: (blocker,)}, share_ns)
    assert after == list(ALL[ALL.index(step) + 1 :])
    blamed = next(phase for phase in drain.phases(share_ns) if phase.name == step.value)
    assert (blamed.state, blamed.blockers) == ("overran", (blocker,))
    assert not drain.complete


def test_a_phase_ends_when_what_held_it_is_gone() -> None:
    drain = Drain(ALL, DEADLINE_MS, 0)
    driven(drain, {Step.SHARDS: ("2 shards are still here",)}, 0)
    assert driven(drain, {Step.SHARDS: ("1 shards are still here",)}, MS) == []
    assert driven(drain, {}, 2 * MS) == [Step.ASKS, Step.REPLICAS, Step.OUTBOXES, Step.FLUSH, Step.LEAVE]
    assert states(drain)["shards"] == "done"


def test_a_phase_begins_when_it_is_on_record_and_does_not_wait_for_ever_for_it() -> None:
    drain = Drain(ALL, DEADLINE_MS, 0)
    assert driven(drain, {}, 0, recorded=False) == []
    assert (drain.current, drain.begun, drain.sequence) == (Step.READINESS, False, 0)
    assert drain.begin(True, MS) is Step.READINESS
    assert drain.end((), MS)
    assert (drain.current, drain.sequence) == (Step.INGESTION, 1), "announced, and waits for its own record"
    assert not drain.end((), 2 * MS), "what has not begun can't end"
    waited_ns = MS + drain_record_ms_max * MS
    assert driven(drain, {}, waited_ns - 1, recorded=False) == []
    assert driven(drain, {}, waited_ns, recorded=False) == [Step.INGESTION]
    assert drain.complete, "what could not be recorded is not late"


@pytest.mark.parametrize("recorded", [True, False])
def test_whatever_holds_it_a_drain_comes_to_its_end_within_the_deadline(recorded: bool) -> None:
    assert sum(SHARES.values()) == pytest.approx(1.0)
    drain = Drain(WITHOUT_MOVES, DEADLINE_MS, 0)
    stuck: Held = dict.fromkeys(Step, ("stuck",))
    now_ns = 0
    while drain.current is not None:
        driven(drain, stuck, now_ns, recorded=recorded)
        now_ns += 10 * MS
    assert now_ns <= (DEADLINE_MS + 100) * MS
    assert set(states(drain)) == {step.value for step in WITHOUT_MOVES}


def test_a_stop_with_the_whole_cluster_hands_nothing_over() -> None:
    drain = Drain(WITHOUT_MOVES, DEADLINE_MS, 0)
    driven(drain, {Step.SHARDS: ("256 shards are still here",), Step.SINGLETONS: ("here",)}, 0)
    assert drain.current is None
    assert not {Step.SHARDS, Step.SINGLETONS, Step.LEAVE} & set(WITHOUT_MOVES)
    assert not drain.leaves
    assert Drain(JOINING, DEADLINE_MS, 0).leaves, "who is joining must be forgotten by the others"


def test_p13_a_second_signal_skips_to_the_flush_and_a_third_changes_nothing() -> None:
    drain = Drain(ALL, DEADLINE_MS, 0)
    driven(drain, {Step.SHARDS: ("3 shards are still here",)}, 0)
    drain.hurry(MS)
    assert drain.current is Step.FLUSH
    found = states(drain)
    assert (found["readiness"], found["shards"], found["asks"]) == ("done", "skipped", "skipped")
    drain.hurry(2 * MS)
    assert drain.current is Step.FLUSH
    assert driven(drain, {}, 2 * MS) == list(FINAL)
    drain.hurry(3 * MS)
    assert drain.current is Step.LEAVE, "no way leads back from leaving"
    only = Drain(FLUSH_ONLY, DEADLINE_MS, 0)
    only.hurry(0)
    assert driven(only, {}, 0) == [Step.FLUSH]
    assert only.current is None
