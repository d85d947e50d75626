"""What is said of an operation that did not reach its aim: why, as far as it is known, and what helps. Pure."""

from __future__ import annotations

from node.admin.protocol import Operation
from promovolvectl.client.changes import spelled


def epitaph(operation: Operation) -> tuple[str, str]:
    """An error and a hint, a line each."""
    what = f"{operation.verb} {operation.target}"
    if operation.state == "cancelled":
        return f"error: {what} is cancelled; what has moved stays", f"hint: {spelled('op', 'show', operation.id)}"
    result = operation.result
    if "interrupted_at" in result:
        return _interrupted(operation, what)
    if reason := result.get("reason") or result.get("dropped_because"):
        helps = ("cluster", "status") if operation.verb == "restart" else ("shard", "check")
        return f"error: {what} failed: {reason}", f"hint: {spelled(*helps)}"
    left = [phase for phase in operation.phases if phase.state not in ("done", "waiting")]
    why = ", ".join(f"{phase.name} {phase.state}" for phase in left)
    return f"error: {what} failed" + (f": {why}" if why else ""), f"hint: {spelled('op', 'show', operation.id)}"


def _interrupted(operation: Operation, what: str) -> tuple[str, str]:
    """Its node went before it had ended: what it still held nobody saw leave."""
    result = operation.result
    cause = f": {result['cause']}" if result.get("cause") else ""
    why = f"its node went in phase {result['interrupted_at']}{cause}"
    lost = "" if result.get("messages_lost") is not None else "; whether it took messages with it is not known here"
    return f"error: {what} failed: {why}{lost}", f"hint: {spelled('cluster', 'check', '--messages')}"
