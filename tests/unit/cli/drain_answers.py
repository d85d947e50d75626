"""A cluster that plans a drain, starts it and tells how far it is, for `fake_server`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samples import operation, plan

from node.admin import protocol as p

Handlers = dict[type, Callable[[Any], Any]]


def drain_node(final: str = "done", violations: tuple[str, ...] = (), changed: bool = True) -> Handlers:
    looks = iter([operation("running"), operation("running"), operation(final)])
    last = operation(final)
    return {
        p.StageDrain: lambda _: plan(violations=violations, changed=changed),
        p.CommitPlan: lambda _: operation("running"),
        p.GetOperation: lambda _: next(looks, last),
    }
