"""Waiting until something holds: one loop for every `wait` that looks at what the cluster is like."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from node.admin.protocol import Meta
from promovolvectl.cli.follow import ASK_MS, HEARTBEAT_S, POLL_S
from promovolvectl.cli.options import WAIT_DEFAULT_MS
from promovolvectl.cli.render import Answer, answer_of
from promovolvectl.cli.run import Run
from promovolvectl.client.errors import UNANSWERED, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus
from promovolvectl.client.kinds import Condition, Wait

LOOK_MS: Final = 100
Look = Callable[[int], Awaitable[tuple[tuple[Condition, ...], Meta]]]


async def until_all_hold(run: Run, look: Look, *, about: tuple[str, ...], hint: str) -> Answer:
    """The conditions once all of them hold. `look` gets the milliseconds that it may take; a cluster that can't be
    asked yet fulfils none of `about`. Raises CommandFailed (9) naming what does not hold when the time is over."""
    run.folded(f"wait for {', '.join(about)}")
    told: tuple[str, ...] = ()
    said_s = started = time.monotonic()
    until = started + run.timeout_ms(WAIT_DEFAULT_MS) / 1000
    found, meta = await _looked(run, look, about, max(LOOK_MS, run.timeout_ms(WAIT_DEFAULT_MS)))
    while True:
        elapsed = time.monotonic() - started
        if all(condition.holds for condition in found):
            reply = Wait(conditions=found, elapsed_s=round(elapsed, 3))
            return answer_of("Wait", reply, msgspec.structs.replace(meta, missing=()))
        if time.monotonic() >= until:
            failing = [f"  {item.condition}: {item.found}" for item in found if not item.holds]
            raise CommandFailed(
                ExitStatus.TIMED_OUT,
                "E-TIMEOUT",
                "\n".join((f"after {elapsed:.1f} s these do not hold", *failing)),
                hint=hint,
            )
        lacking = tuple(f"{item.condition} ({item.found})" for item in found if not item.holds)
        if lacking != told or time.monotonic() - said_s >= HEARTBEAT_S:
            told, said_s = lacking, time.monotonic()
            run.say(f"after {elapsed:.0f} s, waiting for {', '.join(lacking)}")
        await asyncio.sleep(min(POLL_S, max(0.0, until - time.monotonic())))
        left_ms = int((until - time.monotonic()) * 1000)
        if left_ms >= LOOK_MS:  # in less nobody could answer, and who did not would be blamed for it
            found, meta = await _looked(run, look, about, left_ms)


async def _looked(run: Run, look: Look, about: tuple[str, ...], left_ms: int) -> tuple[tuple[Condition, ...], Meta]:
    try:
        return await look(min(ASK_MS, left_ms))
    except CommandFailed as failed:
        if failed.status not in UNANSWERED:
            raise
        reason = failed.message.split("\n")[0]
        if failed.status is ExitStatus.TIMED_OUT:
            reason += "; a node waits 2 s for others that are silent before it answers"
        return tuple(Condition(condition=text, holds=False, found=reason) for text in about), run.local_meta()
