"""Whether a single crash would stop a cluster, as its own rule rehearses it: known beforehand, or met at night."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from node.admin.protocol import Rehearsal, Rehearse, Warned
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.errors import CommandFailed

CODE: Final = "W-ONE-CRASH"
QUESTION: Final = Rehearse(lose=1)


def one_crash(rehearsed: Rehearsal) -> str:
    """Whose crash alone stops the cluster, and why, in words; empty where it goes on without any one of them."""
    fatal = [case for case in rehearsed.items if not case.survivors]
    if not fatal:
        return ""
    names = " or ".join(name for case in fatal for name in case.lost)
    why = next((f": {decision.reason}" for case in fatal for decision in case.decisions), "")
    return f"the crash of {names} alone stops the whole cluster{why}"


async def warned(client: AdminClient, names: Sequence[str], wait_ms: int) -> tuple[Warned, ...]:
    """A warning where the first crash will stop what was just started; one node alone needs no telling."""
    if len(names) < 2:
        return ()
    try:
        rehearsed, _ = await client.ask(QUESTION, Rehearsal, wait_ms)
    except CommandFailed as failed:
        return (Warned(code=CODE, text=f"whether one crash would stop it could not be asked: {failed.message}"),)
    text = one_crash(rehearsed)
    mend = "a third node with the role entity, named when the cluster is made, mends it"
    return (Warned(code=CODE, text=f"{text}; {mend}"),) if text else ()
