"""The ad core's port to the ServeIndex: local reads, and puts by the key's single writer."""

from __future__ import annotations

from typing import Protocol

import msgspec

from node.ads.registries import Registry
from node.ads.view import ServeView


class PoolVersion(msgspec.Struct, frozen=True):
    """Which write a view is: see `replication.md` section 2."""

    epoch: int
    hlc: int
    origin: str


class SiteKeys(msgspec.Struct, frozen=True):
    """Keys of a site that carry a value, in order. `complete` false: the replica has not all yet that its peers
    hold, there may be more."""

    keys: tuple[str, ...]
    complete: bool


class ServeIndex(Protocol):
    """This node's replica. `read` never leaves the process and answers None for what is absent or expired.

    `exhausted`: what is left, in micros, of budgets that pay for no impression at the campaign's own price any more;
    `spent`: what share of its day's budget a campaign has spent or promised, in permille. Each campaign says so of
    itself, on the same replica."""

    @property
    def exhausted(self) -> Registry: ...

    @property
    def spent(self) -> Registry: ...

    def read(self, key: str) -> ServeView | None: ...

    def version(self, key: str) -> PoolVersion | None: ...

    def keys_of(self, site: str) -> SiteKeys: ...

    def former(self, site: str) -> tuple[str, ...]:
        """The site's keys that a former owner wrote: under an older epoch than that of the site's shard here."""
        ...

    def put(self, site: str, key: str, view: ServeView) -> None:
        """Write under the fencing epoch of the site's shard. A node that lost the shard writes nothing."""
        ...

    def remove(self, site: str, key: str) -> None: ...
