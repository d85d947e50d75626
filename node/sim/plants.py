"""Faults planted into the store on purpose: a simulator that does not find them proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from node.store import port
from node.store.memory import MemoryStore


class FencelessStore:
    """Accepts writes of an older epoch, as a store without the check of I1 would."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def apply(self, batch: Sequence[port.Request]) -> list[port.Answer]:
        """See `StateStore.apply`."""
        return [self._store.apply([self._excused(request)])[0] for request in batch]

    def close(self) -> None:
        self._store.close()

    def _excused(self, request: port.Request) -> port.Request:
        if not isinstance(request, port.StateChange):
            return request
        placement = self._store.apply([port.ReadPlacement()])[0]
        if not isinstance(placement, port.Placement):
            return request
        epoch = placement.rows[request.shard].epoch
        return msgspec.structs.replace(request, epoch=epoch) if 1 <= request.epoch < epoch else request


class ForgetfulStore:
    """Acknowledges every 20th write of a site without keeping it, as a store that answers before it is durable might
    across a crash."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._writes = 0

    def apply(self, batch: Sequence[port.Request]) -> list[port.Answer]:
        """See `StateStore.apply`."""
        return [self._answer(request) for request in batch]

    def close(self) -> None:
        self._store.close()

    def _answer(self, request: port.Request) -> port.Answer:
        if isinstance(request, port.WriteState) and request.kind in ("site", "page-shelf"):
            self._writes += 1
            if self._writes % 20 == 0:
                return port.Written(request.revision + 1)
        return self._store.apply([request])[0]


PLANTS: dict[str, Callable[[MemoryStore], port.StateStore]] = {
    "old-epoch": FencelessStore,
    "lost-write": ForgetfulStore,
}
