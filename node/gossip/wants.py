"""What a replica knows to lack and fetches: a queue for each peer, one request at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from node.core import limits
from node.gossip.replica_messages import Want
from node.gossip.version import Version

_TRIES_MAX: Final = 3
StillMissing = Callable[[str, Version], bool]


@dataclass(slots=True)
class _Queue:
    """Keys to fetch with the version that was seen; `asked` are those of the open request."""

    waiting: dict[str, Version] = field(default_factory=dict)
    asked: dict[str, Version] = field(default_factory=dict)
    number: int = 0
    deadline_ns: int = 0
    tries: int = 0


class Wants:
    """Queues by peer. A request that is not answered is repeated; after three times its peer's queue is given up,
    since the next comparison finds again what is missing."""

    def __init__(self, timeout_ns: int) -> None:
        self._timeout_ns = timeout_ns
        self._queues: dict[str, _Queue] = {}
        self._number = 0

    def keep(self, peers: frozenset[str]) -> None:
        """Forgets the queues of all others."""
        self._queues = {peer: queue for peer, queue in self._queues.items() if peer in peers}

    def add(self, peer: str, key: str, version: Version) -> bool:
        """Queues a key; False when there is no room for it."""
        queue = self._queues.setdefault(peer, _Queue())
        if key in queue.asked:
            return True
        if len(queue.waiting) >= limits.replica_wants_max:
            return False
        queue.waiting[key] = version
        return True

    def open(self, peer: str) -> bool:
        """Whether something of a peer is still to come."""
        queue = self._queues.get(peer)
        return queue is not None and bool(queue.waiting or queue.asked)

    def count(self, peer: str) -> int:
        """How many keys of a peer are still to come."""
        queue = self._queues.get(peer)
        return len(queue.waiting) + len(queue.asked) if queue is not None else 0

    def waiting(self, peer: str) -> bool:
        """Whether something of a peer is to be asked for and no request is open."""
        queue = self._queues.get(peer)
        return queue is not None and bool(queue.waiting) and not queue.asked

    def next(self, peer: str, now_ns: int, still_missing: StillMissing) -> Want | None:
        """The next request, unless one is open. What has come meanwhile on another way is left out."""
        queue = self._queues.get(peer)
        if queue is None or queue.asked:
            return None
        size = 0
        for key in list(queue.waiting):
            version = queue.waiting.pop(key)
            if still_missing(key, version):
                queue.asked[key] = version
                size += len(key)
            if len(queue.asked) >= limits.replica_records_max or size >= limits.reconcile_batch_bytes:
                break
        if not queue.asked:
            del self._queues[peer]
            return None
        return self._ask(queue, now_ns, tries=1)

    def answered(self, peer: str, number: int, keys: set[str]) -> None:
        """An answer settled these keys; what else was asked for waits again, in front. An answer to an earlier
        request settles nothing."""
        queue = self._queues.get(peer)
        if queue is None or number != queue.number:
            return
        left = {key: version for key, version in queue.asked.items() if key not in keys}
        if len(left) == len(queue.asked):
            # An answer without anything that was asked for is no progress: let it time out.
            return
        queue.waiting = {**left, **queue.waiting}
        queue.asked = {}

    def retry(self, now_ns: int, still_missing: StillMissing) -> tuple[list[tuple[str, Want]], set[str]]:
        """Requests to repeat now, and the peers whose queues were given up."""
        again: list[tuple[str, Want]] = []
        given_up: set[str] = set()
        for peer, queue in list(self._queues.items()):
            if not queue.asked or now_ns < queue.deadline_ns:
                continue
            queue.asked = {key: version for key, version in queue.asked.items() if still_missing(key, version)}
            if queue.asked and queue.tries >= _TRIES_MAX:
                del self._queues[peer]
                given_up.add(peer)
            elif queue.asked:
                again.append((peer, self._ask(queue, now_ns, tries=queue.tries + 1)))
            elif (want := self.next(peer, now_ns, still_missing)) is not None:
                again.append((peer, want))
        return again, given_up

    def due_ns(self) -> int | None:
        return min((queue.deadline_ns for queue in self._queues.values() if queue.asked), default=None)

    def _ask(self, queue: _Queue, now_ns: int, *, tries: int) -> Want:
        self._number += 1
        queue.number, queue.tries = self._number, tries
        queue.deadline_ns = now_ns + self._timeout_ns
        return Want(self._number, tuple(queue.asked))
