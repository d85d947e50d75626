"""Whether a single crash would stop a cluster, as its own rule rehearses it: known beforehand, or met at night."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from node.admin.protocol import Rehearsal, Rehearse, Warned
from promovolvectl.client.calls import AdminClient
from promovolvectl.client.errors import CommandFailed

CODE: Final = "W-ONE-CRASH"
WITHSTANDS: Final = 3  # entity nodes, of which a majority is left without any one
MEND: Final = "a third node with the role entity, named when the cluster is made, mends it"
QUESTION: Final = Rehearse(lose=1)


def one_crash(rehearsed: Rehearsal) -> str:
    """Whose crash alone stops the cluster, and why, in words; empty where it goes on without any one of them."""
    fatal = [case for case in rehearsed.items if not case.survivors]
    if not fatal:
        return ""
    names = " or ".join(name for case in fatal for name in case.lost)
    why = next((f": {decision.reason}" for case in fatal for decision in case.decisions), "")
    return f"the crash of {names} alone stops the whole cluster{why}"


def foreseen(roles: Sequence[Sequence[str]]) -> str:
    """The same of nodes that are not there yet, by each one's roles: as long as they are few, a majority of those that
    carry entities is all of them. Whose crash it is, the cluster's own rule says once there is one."""
    entities = sum("entity" in carried for carried in roles)
    if len(roles) < 2 or entities >= WITHSTANDS:
        return ""
    which = "its only entity node" if entities == 1 else f"one of its {entities} entity nodes"
    return f"the crash of {which} alone will stop the whole cluster; {MEND}"


async def warned(client: AdminClient, names: Sequence[str], wait_ms: int) -> tuple[Warned, ...]:
    """A warning where the first crash will stop what was just started; one node alone needs no telling."""
    if len(names) < 2:
        return ()
    try:
        rehearsed, _ = await client.ask(QUESTION, Rehearsal, wait_ms)
    except CommandFailed as failed:
        return (Warned(code=CODE, text=f"whether one crash would stop it could not be asked: {failed.message}"),)
    text = one_crash(rehearsed)
    return (Warned(code=CODE, text=f"{text}; {MEND}"),) if text else ()
