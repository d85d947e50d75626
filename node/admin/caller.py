"""Who asked for what is being answered. Each request is answered in a task of its own, which has its own value."""

from __future__ import annotations

from contextvars import ContextVar

ASKED_BY: ContextVar[str] = ContextVar("asked_by", default="an operator")
