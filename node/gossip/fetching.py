"""What this replica lacks and its peers have: found by comparing, fetched one bounded request at a time from each, at a
bounded rate while the replica is not complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from node.gossip.contents import Contents
from node.gossip.fill import Fill
from node.gossip.lww import ENTRY_OVERHEAD_BYTES
from node.gossip.pace import Pace
from node.gossip.replica_io import ReplicationSettings, Send
from node.gossip.replica_messages import Entries, KeyVersion
from node.gossip.version import Version, version_of
from node.gossip.wants import Wants


class Fetching:
    """`acceptable(version, wall_ms)` says whether a version may be fetched at all (a clock too far ahead may not).
    `complete`, which its owner sets, ends the bounded rate and the progress in `fill`."""

    def __init__(
        self, contents: Contents, settings: ReplicationSettings, acceptable: Callable[[KeyVersion, int], bool]
    ) -> None:
        self._contents = contents
        self._acceptable = acceptable
        self._pace = Pace(settings.stream_bytes_per_s)
        self.wants = Wants(settings.dialogue_timeout_ns)
        self.complete = False
        self.fill = Fill()

    def lacks(self, key: str, version: Version) -> bool:
        """Whether nothing as new is here."""
        entry = self._contents.entry(key)
        return entry is None or version_of(entry) < version

    def want(self, peer: str, missing: Iterable[KeyVersion], wall_ms: int) -> bool:
        """Queues what may be fetched of what is missing; False when not all of it found room."""
        room = True
        for item in missing:
            if self._acceptable(item, wall_ms):
                room &= self.wants.add(peer, item.key, Version(item.epoch, item.hlc, item.origin))
        return room

    def next(self, peer: str, now_ns: int) -> list[Send]:
        """The next request to a peer, if it is time for one and none is open."""
        if not self.complete and not self._pace.free(now_ns):
            return []
        want = self.wants.next(peer, now_ns, self.lacks)
        return [Send(peer, want)] if want is not None else []

    def retry(self, now_ns: int) -> tuple[list[tuple[str, Send]], set[str]]:
        """Requests to repeat now by their peer, and the peers whose queues were given up."""
        again, given_up = self.wants.retry(now_ns, self.lacks)
        return [(peer, Send(peer, want)) for peer, want in again], given_up

    def arrived(self, sender: str, message: Entries, now_ns: int) -> None:
        """An answer has come, and was merged."""
        if not self.complete:
            size = sum(len(entry.key) + len(entry.value) + ENTRY_OVERHEAD_BYTES for entry in message.entries)
            self.fill.took(len(message.entries), size)
            self._pace.took(size, now_ns)
        self.wants.answered(sender, message.number, {entry.key for entry in message.entries}.union(message.gone))

    def free_ns(self, now_ns: int) -> int:
        """When the rate lets something more be asked for."""
        return now_ns if self.complete else max(now_ns, self._pace.free_ns)

    def paced_ns(self, peer: str) -> int | None:
        """When the rate lets something more of a peer be asked for; None when nothing waits for it."""
        return self._pace.free_ns if self.wants.waiting(peer) else None
