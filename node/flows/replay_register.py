"""Which replays run, so that no two go through one site at the same time: one entity for the whole cluster.

A replay is put down durably before it starts. Whether one that stands here still runs is asked only when another one
wants its sites: nothing has to be told when a replay ends. Of one whose node is silent, who asks may know from its
durable state that it is over, which it stays for ever.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from node.actors.actor import Context, Failed, Failure, ReplyTo
from node.core import limits
from node.core.ids import EntityRef
from node.flows.messages import GetReplay, OpenReplay, ReplayRefused, ReplaySilent, ReplayStatus
from node.wire.registry import wire_type

REGISTER: Final = EntityRef("replay-register", "cluster")
REPLAY_TIMEOUT_MS = 3_000


@wire_type("state.replay_register")
class RegisterState(msgspec.Struct, frozen=True):
    """The sites of each replay that was started, without those that are known to be over."""

    running: dict[str, tuple[str, ...]]


class _Noted(msgspec.Struct, frozen=True):
    opened: OpenReplay
    asker: Any


class _Started(msgspec.Struct, frozen=True):
    id: str
    asker: Any
    outcome: Any


class _RivalSeen(msgspec.Struct, frozen=True):
    rival: str
    opened: OpenReplay
    asker: Any
    outcome: Any


class ReplayRegister:
    """Durable, started by whoever asks."""

    def __init__(self, _name: str) -> None:
        self._running: dict[str, tuple[str, ...]] = {}
        self._starting: set[str] = set()  # put down, and not known to have begun: to be asked it is too early
        self._held: list[tuple[OpenReplay, ReplyTo]] = []  # until these have

    def start(self, ctx: Context, state: RegisterState | None) -> None:
        self._running = dict(state.running) if state is not None else {}

    def receive(self, ctx: Context, message: Any) -> None:
        match message:
            case OpenReplay():
                self._open(ctx, message, ctx.reply_later())
            case _Noted(opened, asker):
                self._start(ctx, opened, asker)
            case _Started():
                self._started(ctx, message)
            case _RivalSeen():
                self._rival_seen(ctx, message)
            case _:
                ctx.reject(f"the register of replays does not understand {type(message).__name__}")

    def _open(self, ctx: Context, opened: OpenReplay, asker: ReplyTo) -> None:
        if opened.id in self._running:
            self._start(ctx, opened, asker)
            return
        for over in opened.over:
            if over not in self._starting:
                self._running.pop(over, None)
        wanted = set(opened.order.sites)
        crowded = len(self._running) >= limits.replays_running_max
        rival = next((name for name, sites in self._running.items() if crowded or not wanted.isdisjoint(sites)), None)
        if rival in self._starting:
            self._held.append((opened, asker))
            return
        if rival is not None:
            ctx.ask(
                EntityRef("replay", rival),
                GetReplay(),
                REPLAY_TIMEOUT_MS,
                lambda outcome: _RivalSeen(rival, opened, asker, outcome),
            )
            return
        self._running[opened.id] = opened.order.sites
        self._starting.add(opened.id)
        ctx.persist(RegisterState(dict(self._running)), then=_Noted(opened, asker))

    def _rival_seen(self, ctx: Context, seen: _RivalSeen) -> None:
        status = seen.outcome
        if isinstance(status, ReplayStatus) and status.state == "running":
            shared = set(seen.opened.order.sites) & set(self._running.get(seen.rival, ()))
            ctx.answer(seen.asker, ReplayRefused(status, len(shared)))
        elif isinstance(status, ReplayStatus) or _never_was(status):
            self._running.pop(seen.rival, None)
            self._open(ctx, seen.opened, seen.asker)
        else:
            ctx.answer(seen.asker, ReplaySilent(seen.rival))

    def _start(self, ctx: Context, opened: OpenReplay, asker: ReplyTo) -> None:
        ctx.ask(
            EntityRef("replay", opened.id),
            opened.order,
            REPLAY_TIMEOUT_MS,
            lambda outcome: _Started(opened.id, asker, outcome),
        )

    def _started(self, ctx: Context, started: _Started) -> None:
        if isinstance(started.outcome, Failed):
            failed = started.outcome
            ctx.answer_reject(started.asker, f"try again: {failed.failure.value} {failed.detail}".strip())
        else:
            ctx.answer(started.asker, started.outcome)
        self._starting.discard(started.id)
        held, self._held = self._held, []
        for opened, asker in held:
            self._open(ctx, opened, asker)


def _never_was(outcome: Any) -> bool:
    """It was put down, and whoever did it died before it began."""
    return (
        isinstance(outcome, Failed)
        and outcome.failure is Failure.REJECTED
        and outcome.detail.startswith("there is no replay")
    )
