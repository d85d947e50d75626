"""The ports of an actor system that has no node around it: a store, and nobody else."""

from __future__ import annotations

from collections.abc import Callable

from node.actors.ports import Ports
from node.store.memory import MemoryStore


def ports_to(store: MemoryStore, *, freed: Callable[[], None] = lambda: None) -> Ports:
    """What is sent to others goes nowhere; `freed` as in `Ports`."""
    return Ports(
        submit=lambda request, done: done(store.apply([request])[0]),
        execute=lambda executor, fn, args, done: False,
        route=lambda envelope: None,
        publish=lambda topic, event: None,
        wake=lambda: None,
        bounce=lambda envelope: None,
        fenced=lambda shard, epoch, found: None,
        freed=freed,
    )
