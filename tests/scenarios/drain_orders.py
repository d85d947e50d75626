"""What an operator does about drains in a story, and who coordinates there."""

from __future__ import annotations

from node.core.ids import EntityRef
from node.flows.messages import (
    CancelOperation,
    DrainName,
    GetDrainName,
    GetOperation,
    OperationStatus,
    StartOperation,
)
from node.sim.conditions import answered
from node.sim.load import Pending
from node.sim.story import Story


def name_of_drain(s: Story, node: str) -> str:
    pending = s.call(node, GetDrainName(), at=edge(s))
    s.until(answered(pending))
    assert isinstance(pending.outcome, DrainName)
    return pending.outcome.operation


def told_to_drain(s: Story, node: str, *, at: str = "", name: str = "") -> str:
    """`node drain --yes --detach`, with what the admin server does for it; the operation's id."""
    name = name or name_of_drain(s, node)
    incarnation = s.engine(node).me.incarnation
    begun = s.ask(EntityRef("operation", name), StartOperation("drain", node, incarnation), at=at or edge(s))
    s.until(answered(begun))
    assert isinstance(begun.outcome, OperationStatus), begun.outcome
    return name


def edge(s: Story) -> str:
    """A node that takes requests."""
    return next(e.me.name for e in s.running() if e.view.joined and e.drain.accepts_work)


def shown(s: Story, operation: str, *, at: str = "") -> OperationStatus:
    """`op show`: asked again while its entity is on its way to another node, as the edge does."""
    for _ in range(20):
        pending = s.ask(EntityRef("operation", operation), GetOperation(), at=at or edge(s))
        s.until(answered(pending))
        if isinstance(pending.outcome, OperationStatus):
            return pending.outcome
        s.run(0.2)
    raise AssertionError(f"{operation} is not shown: {pending.outcome}")


def over(s: Story, operation: str, *, within_s: float = 30) -> OperationStatus:
    """`op wait`."""
    until_s = s.now_s + within_s
    while (found := shown(s, operation)).state == "running":
        assert s.now_s < until_s, f"not over: {found}"
        s.run(0.2)
    return found


def cancelled(s: Story, operation: str) -> Pending:
    pending = s.ask(EntityRef("operation", operation), CancelOperation(), at=edge(s))
    s.until(answered(pending))
    return pending


def coordinators(s: Story) -> list[str]:
    return [e.me.name for e in s.running() if e.sharding.coordinator.status().active]


def two_coordinate(s: Story) -> str:
    return "" if len(coordinators(s)) > 1 else f"active: {coordinators(s)}"


def one_coordinates(s: Story) -> str:
    return "" if len(coordinators(s)) == 1 else f"active: {coordinators(s)}"
