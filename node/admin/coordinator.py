"""Asking whoever coordinates the shards, and what its refusals mean for who asked."""

from __future__ import annotations

import asyncio

from node.actors.actor import Failed
from node.actors.runtime import outcome_of
from node.admin.asking import patience_ms
from node.admin.outcomes import CONFLICT, FAILED, NOT_FOUND, REFUSED, TIMED_OUT, UNREACHABLE, USAGE
from node.admin.protocol import AdminRefusal
from node.core.clock import MS
from node.core.ids import ServiceRef
from node.engine.engine import Engine
from node.sharding import requests as r

ASK_MS = 2_000
AGAIN_S = 0.1
ATTEMPTS = 30  # three seconds when nobody is known to coordinate
PATIENCE_MS = 60_000  # when somebody is, and says nothing
_PASSING = ("not_coordinator", "coordinator_lost")
# Reason → exit status, code, hint.
_MEANINGS: dict[str, tuple[int, str, str]] = {
    "no_such_shard": (USAGE, "E-BAD-INPUT", ""),
    "no_such_plan": (NOT_FOUND, "E-NOT-FOUND", "promovolvectl plan list"),
    "stale": (CONFLICT, "E-STALE-PLAN", "make the plan again"),
    "violations": (REFUSED, "E-REFUSED", "make the plan again once that is mended"),
    "not_now": (REFUSED, "E-NOT-NOW", "wait, or say --force to rebalance all the same"),
    "limit_is_zero": (REFUSED, "E-REFUSED", "promovolvectl shard move moves single shards"),
    "other_running": (CONFLICT, "E-CONFLICT", "promovolvectl plan list; cancel it, or wait for its end"),
    "running": (CONFLICT, "E-CONFLICT", "promovolvectl plan cancel ID"),
    "not_running": (CONFLICT, "E-CONFLICT", "promovolvectl plan discard ID"),
    "ended": (CONFLICT, "E-CONFLICT", "make the plan again"),
    "store_failed": (FAILED, "E-STORE", "promovolvectl plan list shows whether it was done"),
}


async def ask_coordinator(
    engine: Engine, request: r.Request, about: str = "", *, most_ms: int = PATIENCE_MS
) -> r.Answer:
    """The coordinator's answer; asked again while the coordination moves, for `most_ms` in all. Raises AdminRefusal
    for what it declines."""
    why, silent = "nobody is known to coordinate", False
    clock = engine.world.clock
    ends_ns = clock.mono_ns() + patience_ms(clock, most_ms) * MS
    for _ in range(ATTEMPTS):
        left_ms = (ends_ns - clock.mono_ns()) // MS
        if left_ms <= 0:
            break
        node = engine.sharding.coordinator_node()
        if node is not None:
            to, for_ms = ServiceRef(node, "/node"), min(ASK_MS, left_ms)
            outcome = await outcome_of(lambda done: engine.ask(to, request, for_ms, done))  # noqa: B023
            if isinstance(outcome, r.Declined) and outcome.reason not in _PASSING:
                raise _refusal(outcome, about)
            if isinstance(outcome, r.Answer) and not isinstance(outcome, r.Declined):
                return outcome
            silent = silent or (isinstance(outcome, Failed) and not outcome.definite)
            why = f"{node}: {getattr(outcome, 'reason', '') or getattr(outcome, 'failure', outcome)}"
        await asyncio.sleep(AGAIN_S)
    # One that was asked and said nothing may have done it, if there was anything to do; else nothing ran.
    unknown = silent and not type(request).__name__.startswith("Get")
    text = f"the shards have no coordinator now ({why})" + ("; it may have happened" if unknown else "")
    status = TIMED_OUT if unknown else UNREACHABLE
    raise AdminRefusal(status, "E-NO-COORDINATOR", text, hint="promovolvectl cluster health")


def _refusal(declined: r.Declined, about: str) -> AdminRefusal:
    exit_status, code, hint = _MEANINGS.get(declined.reason, (USAGE, "E-REJECTED", ""))
    text = declined.detail or declined.reason.replace("_", " ")
    if declined.reason == "no_such_plan":
        text = f"there is no plan {declined.detail!r}; it was discarded, or made room for newer ones"
    return AdminRefusal(exit_status, code, text, hint=hint, about=about)
