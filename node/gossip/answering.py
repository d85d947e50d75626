"""The answering side of a comparison (`node.gossip.antientropy`). It keeps no state for a round: a lost message costs
its asker a timeout, and the next round repeats the rest."""

from __future__ import annotations

from collections import Counter

from node.core import limits
from node.core.hashing import LEAF_COUNT, MAP_COUNT
from node.gossip.contents import Contents
from node.gossip.digest import pack, unpack
from node.gossip.fetching import Fetching
from node.gossip.lww import size_of
from node.gossip.replica_io import Send
from node.gossip.replica_messages import (
    Digests,
    Entries,
    KeyVersion,
    Leaves,
    MapLeaves,
    Offer,
    Versions,
    Want,
    fitting,
    key_version,
    to_wire,
)
from node.gossip.stay import Stay
from node.gossip.version import Version, version_of
from node.store.replica_port import ReplicaEntry


class Answering:
    """Every method returns what is to be sent. What the asker turns out to have is queued in `fetching`."""

    def __init__(self, contents: Contents, stay: Stay, fetching: Fetching) -> None:
        self._contents = contents
        self._stay = stay
        self._fetching = fetching
        self.counters: Counter[str] = Counter()

    def on_digests(self, sender: str, message: Digests) -> list[Send]:
        about = (self._stay.vote, self._contents.settled.marks(), self._stay.roster.version)
        if self._stay.suspect:
            return [Send(sender, Leaves(message.round, False, (), *about))]
        theirs = unpack(message.maps, MAP_COUNT)
        if theirs is None:
            self.counters["invalid"] += 1
            return []
        mine = self._contents.digests.maps()
        maps = tuple(
            MapLeaves(map_, pack(self._contents.digests.leaves(map_)))
            for map_ in range(MAP_COUNT)
            if mine[map_] != theirs[map_]
        )
        return [Send(sender, Leaves(message.round, self._fetching.complete, maps, *about))]

    def on_versions(self, sender: str, message: Versions, now_ns: int, wall_ms: int) -> list[Send]:
        if any(not (0 <= leaf.map < MAP_COUNT and 0 <= leaf.leaf < LEAF_COUNT) for leaf in message.leaves):
            self.counters["invalid"] += 1
            return []
        if self._stay.suspect:
            return []
        offered: list[KeyVersion] = []
        done = size = 0
        for leaf in message.leaves:
            mine = self._contents.living_entries((leaf.map, leaf.leaf), wall_ms)
            theirs = {item.key: Version(item.epoch, item.hlc, item.origin) for item in leaf.items}
            newer = [e for e in mine.values() if e.key not in theirs or version_of(e) > theirs[e.key]]
            size += sum(len(entry.key) + 32 for entry in newer)
            too_many = len(offered) + len(newer) > limits.replica_records_max
            if done and (size > limits.reconcile_batch_bytes or too_many):
                break
            offered.extend(key_version(entry) for entry in newer)
            missing = [i for i in leaf.items if i.key not in mine or theirs[i.key] > version_of(mine[i.key])]
            if self._fetching.complete or self._stay.counts:  # who streams does so from one source, in its own rounds
                self._fetching.want(sender, missing, wall_ms)
            done += 1
        sends = [Send(sender, Offer(message.round, done, tuple(offered)))] if done else []
        return sends + self._fetching.next(sender, now_ns)

    def on_want(self, sender: str, message: Want, wall_ms: int) -> list[Send]:
        held: list[ReplicaEntry] = []
        gone: list[str] = []
        for key in message.keys[: limits.replica_records_max]:
            entry = self._contents.entry(key)
            if entry is None or self._stay.suspect or self._contents.lapsed(entry, wall_ms):
                gone.append(key)
            else:
                held.append(entry)
        fits = fitting(held, limits.reconcile_batch_bytes, limits.replica_records_max)
        self.counters["entries_sent"] += len(fits)
        self.counters["bytes_sent"] += sum(map(size_of, fits))
        return [Send(sender, Entries(message.number, tuple(map(to_wire, fits)), tuple(gone)))]
