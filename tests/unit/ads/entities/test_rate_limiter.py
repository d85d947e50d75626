"""The bucket that all nodes share: never more than its pace, over a restart, and for whoever asks."""

from __future__ import annotations

import pytest
from ads_world import HOUR_MS, World

from node.actors.actor import Failed
from node.ads import messages as m
from node.singleton.rate_limiter import KIND

PACE = m.AcquireToken(3.0, 0.5)


def told(world: World, service: str = "gemini", ask: m.AcquireToken = PACE) -> int:
    answer = world.ask(KIND, service, ask)
    assert isinstance(answer, m.TokenTold), answer
    return answer.wait_ms


def test_v10_v11_tokens_are_handed_out_at_the_pace_and_once_over_a_restart() -> None:
    world = World()
    assert [told(world) for _ in range(3)] == [0, 0, 0]
    wait_ms = told(world)
    assert 1_900 < wait_ms <= 2_001
    world.restart()
    assert told(world) > 0, "a restart fills no bucket"
    world.advance(wait_ms)
    assert told(world) == 0
    assert told(world) > 0
    assert told(world, "openai") == 0, "each service has its own"
    world.advance(60_000)
    assert [told(world, ask=m.AcquireToken(2.0, 0.5)) for _ in range(2)] == [0, 0]
    assert told(world, ask=m.AcquireToken(2.0, 0.5)) > 0, "a bucket that became smaller holds less"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_clock_that_jumps_fills_no_bucket_and_keeps_none_empty(restarts: bool) -> None:
    world = World()
    while told(world) == 0:
        pass
    if not restarts:
        world.clock.step_wall_ms(HOUR_MS)
        assert told(world) > 0, "an hour has not passed"
    world.clock.step_wall_ms(-HOUR_MS)
    if restarts:
        world.restart()
    world.advance(told(world))
    assert told(world) == 0, "it waits for no hour that was"


def test_no_token_leaves_before_its_taking_is_durable() -> None:
    world = World()
    assert told(world) == 0
    world.hold_store = True
    outcomes = world.asked(KIND, "gemini", PACE)
    assert outcomes == []
    world.hold_store = False
    world.run()
    assert outcomes == [m.TokenTold(0)]


@pytest.mark.parametrize("ask", [m.AcquireToken(0.0, 1.0), m.AcquireToken(5.0, 0.0), m.AcquireToken(5.0, -1.0)])
def test_a_pace_that_is_none_is_refused(ask: m.AcquireToken) -> None:
    assert isinstance(World().ask(KIND, "gemini", ask), Failed)
