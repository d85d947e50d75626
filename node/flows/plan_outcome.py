"""What an operation that carries a plan out shows of it: pure functions of the coordinator's view of the plan.

The coordinator does the work and knows how far it is; the operation is where people watch it.
"""

from __future__ import annotations

import msgspec

from node.flows.messages import Counts, Phase
from node.sharding.book import CANCELLED, DONE, ENDED, FAILED
from node.sharding.requests import PlanView

PHASE = "moves"
NOBODY = "no node coordinates shards; the next one goes on with the plan"


def phase(view: PlanView, elapsed_ms: int) -> Phase:
    """The one phase of a plan, with its counts and what the moves under way wait for."""
    total = len(view.plan.moves)
    words = [f"{len(view.moved)}/{total} moved"]
    words += [f"{len(view.moving)} moving"] if view.moving else []
    words += [f"{len(view.waiting)} waiting"] if view.waiting else []
    words += [f"{len(view.dropped)} dropped"] if view.dropped else []
    state = view.plan.state if view.plan.state in ENDED else "running"
    named = {CANCELLED: "cancelled", FAILED: "overran", DONE: "done"}
    return Phase(PHASE, named.get(state, "running"), elapsed_ms, ", ".join(words), view.blockers)


def leaderless(phases: tuple[Phase, ...], coordinator: str | None) -> tuple[Phase, ...]:
    """The phase while whoever coordinates the shards can't be asked (None: nobody does): how far the plan was when it
    could, and what is waited for now."""
    text = NOBODY
    if coordinator is not None:
        text = f"node/{coordinator}: coordinates shards and can't be reached; its successor goes on with the plan"
    known = phases or (Phase(PHASE, "running"),)
    return tuple(msgspec.structs.replace(phase, blockers=(text,)) for phase in known)


def ended(view: PlanView) -> str:
    """The operation's outcome when the plan is over, empty while it is not."""
    return view.plan.state if view.plan.state in ENDED else ""


def result(view: PlanView) -> Counts:
    """What the plan has brought, with why the rest did not move."""
    found: Counts = {"shards_moved": len(view.moved)}
    if view.plan.dropped:
        reasons = sorted({why for _, why in view.plan.dropped})
        found["shards_dropped"] = len(view.plan.dropped)
        found["dropped_because"] = "; ".join(reasons)
    return found
