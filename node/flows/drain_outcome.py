"""What became of a drain, from the phases on record and how its node went. Pure.

The record is written before a phase begins, so the phase that it says is running is the one that a crash interrupted.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from node.core.limits import drain_blockers_named_max
from node.flows.messages import Counts, DrainProgress, Phase

LAST_PHASE = "leave"
REACH = "reach"  # before the first phase: the node has not heard of its drain yet
LEFT_BEHIND = ("overran", "skipped")


def ended(phases: tuple[Phase, ...], how: str) -> tuple[str, tuple[Phase, ...], Counts]:
    """The outcome (`done` or `failed`), the phases and what the result tells beside counts, once the node is no member.

    `how`: `left` when it went in good order, why it was put out, or empty when nobody knows any more. A node whose
    record says that it leaves has flushed everything: only if it was put out did it not get to leave. What one that was
    interrupted has lost it took with it: that number is null, not the last one that it said."""
    at = next((phase.name for phase in phases if phase.state == "running"), REACH)
    if at != LAST_PHASE or how not in ("left", ""):
        number = 1 + [phase.name for phase in phases].index(at) if at != REACH else 0
        result: Counts = {"interrupted_at": at, "phase": number}
        result |= {"messages_lost": None} if at != LAST_PHASE else {}
        return "failed", stopped_at(phases, "interrupted"), result | ({"cause": how} if how else {})
    behind = any(phase.state in LEFT_BEHIND for phase in phases)
    return "failed" if behind else "done", stopped_at(phases, "done"), {}


def counted(progress: DrainProgress) -> Counts:
    """What a drain's result counts."""
    return {"shards_moved": progress.shards_moved, "messages_lost": progress.lost}


def stopped_at(phases: tuple[Phase, ...], state: str) -> tuple[Phase, ...]:
    """The phases with the running one in its last state."""
    return tuple(msgspec.structs.replace(p, state=state) if p.state == "running" else p for p in phases)


def left_on(node: str, phases: tuple[Phase, ...], shards: Sequence[int]) -> tuple[Phase, ...]:
    """The phases of a drain whose node does not answer, as the placement table has it: the phase that runs, or that it
    ended in, is held up by the shards that are still on it. What a silent node said last of what it holds may be over,
    and is not repeated."""
    named = tuple(f"shard/{shard}: is placed on {node}, which does not answer" for shard in shards)
    text, more = named[:drain_blockers_named_max], named[drain_blockers_named_max:]
    text += (f"and {len(more)} more",) if more else ()
    empty = (f"node/{node}: does not answer; no shard is placed on it",)
    held = {"running": text or empty, "interrupted": text}
    return tuple(
        msgspec.structs.replace(phase, blockers=held[phase.state])
        if phase.state in held and (text or phase.name != REACH)
        else phase
        for phase in phases
    )


def waiting(node: str, phases: tuple[Phase, ...], *, reachable: bool) -> tuple[Phase, ...]:
    """The phases as an operation should show them while its node is a member that may be out of reach."""
    if phases and phases[0].name != REACH:
        return phases
    if reachable:
        return ()
    text = f"node/{node}: can't be reached; its drain begins when it can, or ends when the cluster puts it out"
    return (Phase(REACH, "running", blockers=(text,)),)
