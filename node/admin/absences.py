"""Nodes of the roster that are no members: since when, how they went, and what brings them back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from node.admin.protocol.cluster import AbsentNode
from node.core.clock import rfc3339
from node.core.ids import NodeId
from node.flows.rolling import AWAY
from node.flows.state import OperationState
from node.gossip.member import Member, Status

LEFT: Final = "left"  # the cause that membership writes of one that left in good order
DRAINED: Final = "drained"
REMOVED: Final = "removed"
NEVER_CAME: Final = "never came"
NOT_BACK: Final = "not back"


def absences(
    roster: Collection[str],
    present: Collection[str],
    records: Mapping[str, Member],
    went_ms: Mapping[NodeId, int],
    awaited: Mapping[NodeId, str] | None = None,
) -> tuple[AbsentNode, ...]:
    """By name. `records`: of all names that were ever used, the removed ones too; `went_ms`: when the node that is
    asked saw a start go; `awaited`: see there."""
    away = sorted(set(roster) - set(present))
    return tuple(_absent(name, records.get(name), went_ms, awaited or {}) for name in away)


def awaited(operations: Iterable[OperationState]) -> Mapping[NodeId, str]:
    """The starts that went because a restart told them to, and after which it saw no other come: by its id. One that
    goes on still waits; nobody else does any more, and nobody wanted the node to stay away."""
    found = {}
    for each in operations:
        roll, nodes = each.roll, each.start.nodes
        ended = each.start.verb == "restart" and each.status.state in ("failed", "cancelled")
        if ended and roll is not None and roll.stage == AWAY and roll.at < len(nodes):
            found[NodeId(*nodes[roll.at])] = each.status.id
    return found


def _absent(
    name: str, record: Member | None, went_ms: Mapping[NodeId, int], awaited: Mapping[NodeId, str]
) -> AbsentNode:
    if record is None or record.status < Status.DOWN:
        why = "it has never joined, as far as anybody here remembers"
        return AbsentNode(name=name, went=NEVER_CAME, why=why, back=back(name))
    since = _since(record, went_ms)
    if record.cause == LEFT and (restart := awaited.get(record.id)):
        why = f"the restart {restart} told it to go, and it did not come back"
        return AbsentNode(name=name, went=NOT_BACK, since=since, why=why, back=back(name), roles=record.roles)
    if record.cause == LEFT:
        why = "it was told to go, handed over what it had, and left"
        return AbsentNode(name=name, went=DRAINED, since=since, why=why, back=back(name), roles=record.roles)
    why = record.cause or "the others removed it"
    return AbsentNode(name=name, went=REMOVED, since=since, why=why, back=back(name), roles=record.roles)


def back(name: str) -> str:
    """The command that starts it again."""
    return f"promovolvectl node start {name}"


def _since(record: Member, went_ms: Mapping[NodeId, int]) -> str:
    """As a decision has it, which all nodes have alike, else as the node that is asked saw it; empty for neither."""
    at, _, rest = record.cause.partition(" ")
    moment = rest.partition(" ")[0] if at == "at" else ""
    if moment:
        return moment
    seen = went_ms.get(record.id)
    return rfc3339(seen) if seen is not None else ""


def words(absent: AbsentNode) -> str:
    """Why a node is missed, as a reason against health has it."""
    if absent.went == NEVER_CAME:
        return f"it is on the roster and no member: {absent.why}"
    when = f" since {absent.since}" if absent.since and absent.since not in absent.why else ""
    if absent.went == NOT_BACK:
        return f"it is on the roster and no member{when}: {absent.why}"
    return f"it is on the roster and no member{when}: it went without being told to, {absent.why}"
