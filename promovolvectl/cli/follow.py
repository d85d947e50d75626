"""Watching long work until it ends: a line for each change of phase, one each 30 s, and how to go on when we stop.

The state is asked, never remembered: whoever asks later sees the same.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from node.admin.protocol import GetOperation, GetReplay, Meta, Operation, Replay
from promovolvectl.cli.options import WAIT_DEFAULT_MS
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

POLL_S: Final = 0.25
ASK_MS: Final = 5_000
HEARTBEAT_S: Final = 30.0
_RUNNING: Final = "running"
State = TypeVar("State", Operation, Replay)


async def follow_operation(run: Run, operation: Operation, meta: Meta) -> tuple[Operation, Meta]:
    """The operation once it is over; raises CommandFailed (9) when `--timeout` passes first."""
    identity = operation.id
    run.going_on = (
        f"Stopped watching. {operation.verb} {operation.target} goes on at the cluster.",
        f"hint: promovolvectl op show {identity}",
    )

    async def look() -> tuple[Operation, Meta]:
        return await run.ask(GetOperation(id=identity), Operation, ASK_MS)

    return await _followed(run, operation, meta, look, _phase_lines, f"op show {identity}")


async def follow_replay(run: Run, replay: Replay, meta: Meta) -> tuple[Replay, Meta]:
    """The replay once it is over; raises CommandFailed (9) when `--timeout` passes first."""
    identity = replay.id
    run.going_on = ("Stopped watching. The replay goes on.", f"hint: promovolvectl replay show {identity}")

    async def look() -> tuple[Replay, Meta]:
        return await run.ask(GetReplay(id=identity), Replay, ASK_MS)

    return await _followed(run, replay, meta, look, _replay_lines, f"replay show {identity}")


async def _followed(
    run: Run,
    state: State,
    meta: Meta,
    look: Callable[[], Awaitable[tuple[State, Meta]]],
    lines_of: Callable[[State], list[str]],
    command: str,
) -> tuple[State, Meta]:
    until = time.monotonic() + run.timeout_ms(WAIT_DEFAULT_MS) / 1000
    said: list[str] = []
    last_word = time.monotonic()
    while True:
        lines = lines_of(state)
        over = state.state != _RUNNING
        # What was over when we came needs no story; the answer tells it.
        fresh = [line for line in lines if line not in said] if said or not over else []
        if not fresh and time.monotonic() - last_word >= HEARTBEAT_S:
            fresh = [f"{command}: {state.state}, {state.elapsed_s:.0f} s"]
        for line in fresh:
            run.say(line)
        if fresh:
            said, last_word = lines, time.monotonic()
        if over:
            run.going_on = ()
            return state, meta
        if time.monotonic() >= until:
            run.going_on = ()
            raise CommandFailed(
                ExitStatus.TIMED_OUT,
                "E-TIMEOUT",
                f"{state.id} is not over after {state.elapsed_s:.0f} s; it goes on at the cluster"
                + "".join(f"\n  {line}" for line in lines[-1:]),
                hint=f"promovolvectl {command}",
                operation=state.id,
            )
        await asyncio.sleep(POLL_S)
        try:
            state, meta = await look()
        except CommandFailed as failed:
            # The node that answered may be the one that drains; another one is asked in the next round.
            if failed.status not in (ExitStatus.UNREACHABLE, ExitStatus.TIMED_OUT) or time.monotonic() >= until:
                raise


def _phase_lines(operation: Operation) -> list[str]:
    lines = []
    for number, phase in enumerate(operation.phases, 1):
        line = f"  {number} {phase.name}: {phase.state}"
        if phase.detail:
            line += f", {phase.detail}"
        lines.append(line)
        lines += [f"      waits for {blocker}" for blocker in phase.blockers]
    return lines


def _replay_lines(replay: Replay) -> list[str]:
    pages = replay.pages
    done = pages.replayed + pages.ignored + pages.failed
    return [
        f"  {replay.scope}: {done}/{pages.total} pages, {pages.failed} failed, coverage {replay.coverage_after:.3f}"
    ]
