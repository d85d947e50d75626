"""An actor system in virtual time: turned until nothing more happens, and brought from timer to timer."""

from __future__ import annotations

from collections.abc import Callable

from node.actors.system import ActorSystem
from node.core.clock import MS, ManualClock


def come_to_rest(
    system: ActorSystem, clock: ManualClock, answer_store: Callable[[], bool], turns_max: int = 20_000
) -> None:
    """Turns until nothing more happens at this instant; `answer_store` answers what may be, and says whether it did."""
    for _ in range(turns_max):
        more = system.turn(clock.mono_ns())
        more = answer_store() or more
        wake_ns = system.next_wake_ns()
        if not more and not (wake_ns is not None and wake_ns <= clock.mono_ns()):
            return
    raise AssertionError("the system does not come to rest")


def let_pass(system: ActorSystem, clock: ManualClock, delta_ms: int, run: Callable[[], None]) -> None:
    """Lets time pass, stopping at each timer; `run` brings the system to rest there."""
    end_ns = clock.mono_ns() + delta_ms * MS
    run()
    while (wake_ns := system.next_wake_ns()) is not None and wake_ns <= end_ns:
        clock.advance_ns(max(0, wake_ns - clock.mono_ns()))
        run()
    clock.advance_ns(end_ns - clock.mono_ns())
    run()
