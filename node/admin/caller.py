"""Who asked for what is being answered. Each request is answered in a task of its own, which has its own values."""

from __future__ import annotations

from contextvars import ContextVar

from node.wire.roster import OperatorRole

ASKED_BY: ContextVar[str] = ContextVar("asked_by", default="an operator")
# Outside of a request it is the node itself that asks.
ROLE: ContextVar[OperatorRole | None] = ContextVar("role", default=OperatorRole.ADMIN)
NEEDED: ContextVar[OperatorRole] = ContextVar("needed", default=OperatorRole.VIEWER)
