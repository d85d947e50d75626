"""Registries carried by the replicator: last-writer-wins maps of numbers, each name written by the owner of its shard.

A name is an entry like any other, so that versions, deltas, comparison and expiry are those of the ServeIndex. Its key
begins with a character that no site's name begins with. What takes a number back is a write of nothing that lives as
long as the number would have: an older one that comes late loses to it, and no tombstone is left behind.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from node.ads.keys import SEPARATOR, split_serve_key
from node.core.clock import Clock
from node.core.errors import BadInput, OperatingError
from node.core.hashing import shard_of
from node.core.limits import registry_names_read_max
from node.gossip.replica_io import Effect
from node.gossip.replicator import Replicator

EXHAUSTED_CAMPAIGNS: Final = "exhausted-campaigns"
SPENT_SHARES: Final = "spent-permille"
REGISTRIES: Final = (EXHAUSTED_CAMPAIGNS, SPENT_SHARES)
_NUMBER_BYTES: Final = 8
_PREFIX: Final = "~"


def registry_key(registry: str, name: str) -> str:
    """Where a registry's name stands among the replicated keys."""
    return f"{_PREFIX}{registry}{SEPARATOR}{name}"


def is_registry_key(key: str) -> bool:
    """Whether a replicated key is a registry's name: it holds no view, and ends by itself."""
    return key.startswith(_PREFIX)


def sharded_by(key: str) -> str:
    """The name whose shard's owner writes a replicated key: a view's site, or a registry's own name; raises BadInput
    for what is neither."""
    if is_registry_key(key):
        registry, _, name = key.removeprefix(_PREFIX).partition(SEPARATOR)
        if registry not in REGISTRIES or not name:
            known = ", ".join(f"'{registry_key(each, 'NAME')}'" for each in REGISTRIES)
            raise BadInput("key", f"{key[:80]!r} is no registry's name: {known}")
        return name
    return split_serve_key(key)[0]


class ReplicaRegistry:
    """`Registry` over this node's replica; the arguments are those of `ReplicaServeIndex`. What was read of a name, or
    that there is nothing, is kept until its key changes: every page view asks."""

    def __init__(
        self,
        registry: str,
        replicator: Replicator,
        clock: Clock,
        epoch_of: Callable[[int], int],
        carry_out: Callable[[Iterable[Effect]], None],
        ahead_ms: Callable[[int, int], int],
    ) -> None:
        self._keys = registry_key(registry, "")
        self._replicator = replicator
        self._clock = clock
        self._epoch_of = epoch_of
        self._carry_out = carry_out
        self._ahead_ms = ahead_ms
        self._read: OrderedDict[str, tuple[int, int] | None] = OrderedDict()  # by name; of those that are over, too
        self.refused = 0

    def get(self, name: str) -> int | None:
        found = self.find(name)
        return found[0] if found else None

    def set(self, name: str, number: int, until_ms: int) -> None:
        if self.find(name) != (number, until_ms):
            self._write(name, number.to_bytes(_NUMBER_BYTES, "big"), until_ms)

    def clear(self, name: str) -> None:
        found = self.find(name)
        if found:
            self._write(name, b"", found[1])

    def find(self, name: str) -> tuple[int, int] | None:
        now_ms = self._clock.wall_ms()
        if name not in self._read:
            entry = self._replicator.get(self._keys + name, now_ms)
            held = entry is not None and len(entry.value) == _NUMBER_BYTES
            found = (int.from_bytes(entry.value, "big"), entry.expires_at_ms) if entry is not None and held else None
            if not self._replicator.ready:
                return found  # its peers may hold another, or know of its end
            if len(self._read) >= registry_names_read_max:
                self._read.popitem(last=False)
            self._read[name] = found
        found = self._read[name]
        return found if found is not None and found[1] > now_ms else None

    def forget(self, key: str) -> None:
        """The key, of whichever registry, has changed."""
        if key.startswith(self._keys):
            self._read.pop(key.removeprefix(self._keys), None)

    def _write(self, name: str, value: bytes, until_ms: int) -> None:
        epoch = self._epoch_of(shard_of(name))
        now_ns, wall_ms = self._clock.mono_ns(), self._clock.wall_ms()
        if epoch == 0 or self._ahead_ms(now_ns, wall_ms):
            self.refused += 1
            return
        key = self._keys + name
        try:
            _, effects = self._replicator.put(key, value, epoch, until_ms, now_ns, wall_ms)
        except OperatingError:
            # Another owner wrote under a later epoch: it knows better.
            self.refused += 1
            return
        self.forget(key)
        self._carry_out(effects)
