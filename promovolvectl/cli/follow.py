"""Watching long work until it ends: a line for each change of phase, one for what holds a phase up (soon, then each
30 s), and how to go on when we stop.

The state is asked, never remembered: whoever asks later sees the same.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from node.admin.protocol import GetOperation, GetReplay, Meta, Operation, Replay
from promovolvectl.cli.options import WAIT_DEFAULT_MS
from promovolvectl.cli.run import Run
from promovolvectl.client.changes import spelled
from promovolvectl.client.errors import UNANSWERED, CommandFailed
from promovolvectl.client.exit_codes import ExitStatus

POLL_S: Final = 0.25
ASK_MS: Final = 5_000
HEARTBEAT_S: Final = 30.0
SILENT_S: Final = 30.0  # a node may start again meanwhile; longer, and it is the cluster that is not there
HELD_S: Final = 5.0  # a phase that has lasted so long is said to be held up, with what holds it
HELD_SHOWN: Final = 3
_RUNNING: Final = "running"
_STAY_DOWN: Final = "the nodes of this machine that it takes down stay down until somebody goes on with it"
_COUNT: Final = re.compile(r"\d+")
Tend = Callable[[Operation], Operation]
State = TypeVar("State", Operation, Replay)


async def follow_operation(
    run: Run, operation: Operation, meta: Meta, tend: Tend | None = None, *, resume: str = ""
) -> tuple[Operation, Meta]:
    """The operation once it is over; raises CommandFailed: 9 when `--timeout` passes first, 8 when no node answers for
    `SILENT_S`. `tend` is called with each state that is seen, and gives it back: what this side has to do for it.
    `resume` is the command that does so, where it must be said to whoever stops, or only watches."""
    resume = resume or (resumed(operation) if tend is not None else "")
    return await _followed_operation(run, operation, meta, _phase_lines, tend, resume)


async def await_operation(run: Run, operation: Operation, meta: Meta, *, resume: str = "") -> tuple[Operation, Meta]:
    """The same without a word on how it goes, but for what holds it up."""
    return await _followed_operation(run, operation, meta, lambda _operation: [], None, resume)


async def _followed_operation(
    run: Run,
    operation: Operation,
    meta: Meta,
    lines_of: Callable[[Operation], list[str]],
    tend: Tend | None,
    resume: str,
) -> tuple[Operation, Meta]:
    identity = operation.id
    run.going_on = _going_on(operation, resume)
    if resume and tend is None and operation.state == _RUNNING:
        run.say(f"the nodes that it takes down are started again by: {resume}")

    async def look() -> tuple[Operation, Meta]:
        found, seen_by = await run.ask(GetOperation(id=identity), Operation, ASK_MS)
        return (tend(found) if tend is not None else found), seen_by

    return await _followed(run, operation, meta, look, lines_of, f"op show {identity}", resume)


def resumed(operation: Operation) -> str:
    """The command that goes on with a restart: the one that began it, given again."""
    name = operation.target.partition("/")[2]
    words = ("node", "restart", name) if name else ("cluster", "restart", "--rolling")
    return spelled(*words, "--yes")


def _going_on(operation: Operation, resume: str) -> tuple[str, ...]:
    """What is said to whoever stops watching."""
    cancel = f"promovolvectl op cancel {operation.id}"
    what = f"Stopped watching. {operation.verb} {operation.target}"
    if not resume:
        watch = f"promovolvectl op watch {operation.id}"
        return (f"{what} goes on at the cluster.", f"hint: {watch}, or to end it: {cancel}")
    return (
        f"{what} is under way as {operation.id}, and {_STAY_DOWN}.",
        f"hint: {resume} goes on with it, or to end it: {cancel}",
    )


async def follow_replay(run: Run, replay: Replay, meta: Meta) -> tuple[Replay, Meta]:
    """The replay once it is over; raises CommandFailed (9) when `--timeout` passes first."""
    return await _followed_replay(run, replay, meta, _replay_lines)


async def await_replay(run: Run, replay: Replay, meta: Meta) -> tuple[Replay, Meta]:
    """The same without a word on how it goes."""
    return await _followed_replay(run, replay, meta, lambda _replay: [])


async def _followed_replay(
    run: Run, replay: Replay, meta: Meta, lines_of: Callable[[Replay], list[str]]
) -> tuple[Replay, Meta]:
    identity = replay.id
    run.going_on = ("Stopped watching. The replay goes on.", f"hint: promovolvectl replay watch {identity}")

    async def look() -> tuple[Replay, Meta]:
        return await run.ask(GetReplay(id=identity), Replay, ASK_MS)

    return await _followed(run, replay, meta, look, lines_of, f"replay show {identity}")


async def _followed(
    run: Run,
    state: State,
    meta: Meta,
    look: Callable[[], Awaitable[tuple[State, Meta]]],
    lines_of: Callable[[State], list[str]],
    command: str,
    resume: str = "",
) -> tuple[State, Meta]:
    heard_s = time.monotonic()
    until = heard_s + run.timeout_ms(WAIT_DEFAULT_MS) / 1000
    words = Words(command, time.monotonic())
    while True:
        lines = lines_of(state)
        over = state.state != _RUNNING
        for line in words.fresh(state, lines, time.monotonic(), over=over):
            run.folded(_title(state))
            run.say(line)
        if over:
            run.folded("")
            run.going_on = ()
            return state, meta
        if time.monotonic() >= until:
            run.going_on = ()
            raise CommandFailed(
                ExitStatus.TIMED_OUT,
                "E-TIMEOUT",
                f"{state.id} is not over after {state.elapsed_s:.0f} s; "
                + (_STAY_DOWN if resume else "it goes on at the cluster")
                + "".join(f"\n  {line}" for line in lines[-1:]),
                hint=resume or f"promovolvectl {command}",
                operation=state.id,
            )
        await asyncio.sleep(POLL_S)
        try:
            state, meta = await look()
            heard_s = time.monotonic()
        except CommandFailed as failed:
            # The node that answered may be the one that drains; another one is asked in the next round.
            passes = failed.status in UNANSWERED
            if not passes or time.monotonic() >= min(until, heard_s + SILENT_S):
                raise


class Words:
    """What is said of long work while it goes on: each line once; how it stands when nothing is new for a while."""

    def __init__(self, command: str, now_s: float) -> None:
        self._command = command
        self._said: set[str] = set()
        self._quiet_s = HELD_S
        self._last_s = now_s

    def fresh(self, state: Operation | Replay, lines: list[str], now_s: float, *, over: bool) -> list[str]:
        """The lines to say now."""
        # What was over when we came needs no story; the answer tells it.
        new = [line for line in lines if _gist(line) not in self._said] if self._said or not over else []
        if new:
            self._quiet_s = HELD_S
        elif not over:
            held = _held(state)
            wait_s = self._quiet_s if held else HEARTBEAT_S
            if now_s - self._last_s < wait_s:
                return []
            self._quiet_s = HEARTBEAT_S
            what = f"{state.verb} {state.target} " if isinstance(state, Operation) else ""
            new = [f"{self._command}: {what}{state.state}, {state.elapsed_s:.0f} s{_done(state)}{held}"]
        if new:
            self._said.update(map(_gist, lines))
            self._last_s = now_s
        return new


def _gist(line: str) -> str:
    """What is new about a line of a phase that runs is not its counts, which change with every shard."""
    head, running, detail = line.partition(f": {_RUNNING}, ")
    return head + running + _COUNT.sub("#", detail)


def _title(state: Operation | Replay) -> str:
    """What a phase's lines are folded under."""
    if isinstance(state, Replay):
        return f"replay {state.id}"
    begun = [phase.name for phase in state.phases if phase.state != "waiting"]
    return f"{state.verb} {state.target}" + (f": {begun[-1]}" if begun else "")


def _done(state: Operation | Replay) -> str:
    """How far the phases that run are, where they say; empty where they don't."""
    if isinstance(state, Replay):
        return ""
    return "".join(f"; {phase.detail}" for phase in state.phases if phase.state == _RUNNING and phase.detail)


def _held(state: Operation | Replay) -> str:
    """What holds it up, on one line; empty when nothing is said to."""
    if isinstance(state, Replay):
        pages = state.pages
        done = pages.replayed + pages.ignored + pages.failed
        return f"; {done} of {pages.total} pages, coverage {state.coverage_after:.3f}"
    blockers = [blocker for phase in state.phases if phase.state == _RUNNING for blocker in phase.blockers]
    more = len(blockers) - HELD_SHOWN
    shown = "; ".join(blockers[:HELD_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return f"; waits for {shown}" if shown else ""


def _phase_lines(operation: Operation) -> list[str]:
    """A line for each phase that is not merely to come; what a phase was left behind with stands below it."""
    lines = []
    for number, phase in enumerate(operation.phases, 1):
        if phase.state == "waiting":
            continue
        line = f"  {number} {phase.name}: {phase.state}"
        if phase.detail:
            line += f", {phase.detail}"
        lines.append(line)
        if phase.state != _RUNNING:
            lines += [f"      left behind: {blocker}" for blocker in phase.blockers]
    return lines


def _replay_lines(replay: Replay) -> list[str]:
    """How far it is in tenths, since pages go by too fast to be told one by one; once it is over what stays empty."""
    pages = replay.pages
    done = pages.replayed + pages.ignored + pages.failed
    if replay.state != _RUNNING:
        lines = [f"  {done} of {pages.total} pages, {pages.failed} failed, coverage {replay.coverage_after:.3f}"]
        lines += [f"  slots empty: {count} {reason}" for reason, count in replay.reasons.items()]
        return [*lines, f"  {replay.state}" + (f": {replay.reason}" if replay.reason else "")]
    if not pages.total:
        return []
    lines = [f"  {replay.scope}: pages: {pages.total}, coverage {replay.coverage_before:.3f}"]
    if done >= pages.total:
        return [*lines, "  all pages are out: waiting for their auctions"]
    tenths = 10 * done // pages.total
    return [*lines, f"  {tenths * 10} % of the pages"] if tenths else lines
