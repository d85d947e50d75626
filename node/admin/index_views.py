"""From nodes' answers about their replicas to what an operator reads: pure functions, one per shape."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from node.admin import protocol as p
from node.admin.protocol.serveindex import KeptReplicaFile
from node.admin.protocol.winning import Claim, winning
from node.ads.money import format_money
from node.ads.view import ServeView
from node.core.clock import rfc3339
from node.core.errors import RemoteProtocolError
from node.core.hashing import MAP_COUNT, map_of
from node.core.hlc import hlc_wall_ms
from node.engine.index_messages import IndexRow, IndexStatus, IndexVerified
from node.engine.messages import ReplicaEntryReport
from node.engine.registries import is_registry_key
from node.gossip.inspector import content_of
from node.gossip.version import Version
from node.store.replica_port import ReplicaEntry
from node.wire.codec import CODEC

_DIGEST_CHARS = 8
_NUMBER_BYTES = 8


def map_name(number: int) -> str:
    return f"serve-{number:02d}"


def state_of(expires_at_ms: int, *, tombstone: bool, now_ms: int) -> str:
    """What an entry that is there counts as."""
    if tombstone:
        return "removed"
    return "expired" if 0 < expires_at_ms <= now_ms else "live"


# ---- one key


def entry(
    key: str, place: p.ServeIndexPlace, entries: Mapping[str, ReplicaEntryReport], now_ms: int
) -> p.ServeIndexEntry:
    """A key as each node has it; which of them wins is `protocol.winning`'s to say."""
    claims = {name: _claim(found) for name, found in entries.items() if found.hlc}
    winner = winning(claims)
    of_registry = is_registry_key(key)
    replicas = tuple(
        _replica(entries[name], now_ms, of_registry=of_registry, wins=name in claims and claims[name] == winner)
        for name in sorted(entries)
    )
    return p.ServeIndexEntry(
        key=key,
        map=place.map,
        shard=place.shard,
        owner=place.owner,
        replicas=replicas,
        agree=agree(replicas),
        winner=None if winner is None else _version(Version(*winner[:3])),
    )


def agree(replicas: Sequence[p.EntryReplica]) -> bool:
    """Whether all hold the same version with the same contents, or none holds any."""
    return len({(r.version, r.digest, r.state == "damaged") for r in replicas}) <= 1


def _held(found: ReplicaEntryReport) -> ReplicaEntry:
    version = Version(found.epoch, found.hlc, found.origin)
    return ReplicaEntry("", *version, found.expires_at_ms, found.tombstone, found.value)


def _claim(found: ReplicaEntryReport) -> Claim:
    return Claim(found.epoch, found.hlc, found.origin, content_of(_held(found)).hex())


def _replica(found: ReplicaEntryReport, now_ms: int, *, of_registry: bool, wins: bool) -> p.EntryReplica:
    version = Version(found.epoch, found.hlc, found.origin) if found.hlc else None
    owner = found.owner or None
    if version is None:
        state = "damaged" if found.damaged else "absent"
        return p.EntryReplica(
            node=found.node,
            present=False,
            version=None,
            expires_at=None,
            candidates=(),
            state=state,
            owner=owner,
            epoch_now=found.epoch_now,
        )
    wrote_ms = hlc_wall_ms(found.hlc)
    return p.EntryReplica(
        node=found.node,
        present=found.present,
        version=_version(version),
        expires_at=_at(found.expires_at_ms),
        candidates=() if of_registry or not found.value else _candidates(found.value),
        number=_number(found.value) if of_registry else None,
        state=state_of(found.expires_at_ms, tombstone=found.tombstone, now_ms=now_ms),
        wins=wins,
        wrote_at=rfc3339(wrote_ms),
        age_ms=max(0, now_ms - wrote_ms),
        bytes=len(found.value),
        digest=short(content_of(_held(found))),
        owner=owner,
        epoch_now=found.epoch_now,
    )


def _number(value: bytes) -> int | None:
    """What a registry holds; a write of nothing has taken it back."""
    return int.from_bytes(value, "big") if len(value) == _NUMBER_BYTES else None


def _candidates(value: bytes) -> tuple[p.EntryCandidate, ...]:
    try:
        view = CODEC.decode(value)
    except RemoteProtocolError:
        return ()
    if not isinstance(view, ServeView):
        return ()
    return tuple(
        p.EntryCandidate(
            creative=c.creative_id,
            campaign=c.campaign_id,
            advertiser=c.advertiser_id,
            category=c.category,
            cpm=format_money(c.cpm_micros),
        )
        for c in view.candidates
    )


# ---- many keys


def key_item(row: IndexRow, now_ms: int) -> p.KeyItem:
    return p.KeyItem(
        key=row.key,
        map=map_name(map_of(row.key)),
        bytes=row.size,
        version=version_of(row),
        expires_at=_at(row.expires_at_ms),
        expired=0 < row.expires_at_ms <= now_ms,
    )


def dump_row(row: IndexRow) -> p.DumpRow:
    return p.DumpRow(
        key=row.key,
        map=map_name(map_of(row.key)),
        version=version_of(row),
        expires_at=_at(row.expires_at_ms),
        removed=row.tombstone,
        value=row.value,
    )


def version_of(row: IndexRow) -> p.EntryVersion:
    return p.EntryVersion(epoch=row.epoch, hlc=row.hlc, origin=row.origin)


def short(content: bytes) -> str:
    """A content's digest as people compare it."""
    return content.hex()[:_DIGEST_CHARS]


# ---- the whole


def lag(found: Sequence[IndexStatus], silent: Collection[str] = ()) -> p.ServeIndexLag:
    """A row for each way between two replicas, those of `silent` nodes too. How far one of these is behind is not
    known: that nothing waits for it now says that nothing was written, not that it takes what is."""
    items = [
        p.LagItem(from_node=status.node, to=row.peer, entries=row.entries, lag_ms=None, reachable=None)
        if row.peer in silent
        else p.LagItem(from_node=status.node, to=row.peer, entries=row.entries, lag_ms=row.ms, reachable=row.reachable)
        for status in found
        for row in status.lag
    ]
    names = sorted({*silent, *(status.node for status in found)})
    items += [
        p.LagItem(from_node=node, to=to, entries=None, lag_ms=None, reachable=None)
        for node in silent
        for to in names
        if to != node
    ]
    items.sort(key=lambda item: (item.from_node, item.to))
    known = [item.lag_ms for item in items if item.lag_ms is not None]
    return p.ServeIndexLag(items=tuple(items), max_lag_ms=max(known, default=0))


def status(
    found: Sequence[IndexStatus], leaves_different: Mapping[int, int], coverage_ratio: float | None, *, whole: bool
) -> p.ServeIndexStatus:
    """A row for each map; a map's counts are those of the replica that holds most of it. `whole`: no node was silent;
    else nobody knows what all of them have by now."""
    replicas = tuple(_replica_item(one) for one in sorted(found, key=lambda one: one.node))
    items: list[p.MapStatusItem] = []
    for number in range(MAP_COUNT):
        keys, size, tombstones = max((one.counts[number] for one in found), default=(0, 0, 0))
        items.append(
            p.MapStatusItem(
                map=map_name(number),
                keys=keys,
                agree=len({one.digests[number] for one in found}) <= 1,
                leaves_different=leaves_different.get(number, 0),
                tombstones=tombstones,
                bytes=size,
            )
        )
    return p.ServeIndexStatus(
        items=tuple(items),
        replicas=replicas,
        maps_equal=sum(item.agree for item in items),
        keys=sum(item.keys for item in items),
        tombstones=sum(item.tombstones for item in items),
        oldest_tombstone_ms=max((one.oldest_tombstone_ms for one in found), default=0),
        pending_removals=sum(one.pending_removals for one in found),
        max_lag_ms=max((replica.max_lag_ms for replica in replicas), default=0),
        coverage_ratio=coverage_ratio,
        stable_at=_at(min((one.stable_ms for one in found), default=0)) if whole else None,
        held_back_by=tuple(
            p.Holdback(node=row.node, writer=one.node, entries=row.entries, since=_at(row.since_ms), why=row.why)
            for one in found
            for row in one.held_back_by
        ),
        kept=tuple(
            KeptReplicaFile(node=one.node, path=row.path, bytes=row.bytes, at=_at(row.at_ms), remove=row.remove)
            for one in sorted(found, key=lambda one: one.node)
            for row in one.kept
        ),
    )


def _replica_item(found: IndexStatus) -> p.ReplicaItem:
    opening = found.opening
    return p.ReplicaItem(
        node=found.node,
        ready=found.ready,
        synchronised_ratio=found.synchronised_ratio,
        keys=sum(keys for keys, _, _ in found.counts),
        bytes=sum(size for _, size, _ in found.counts),
        tombstones=sum(tombstones for _, _, tombstones in found.counts),
        uncommitted=found.uncommitted,
        damaged=found.damaged,
        max_lag_ms=max((row.ms for row in found.lag if row.reachable), default=0),
        commits_count=found.counters.get("commits", 0),
        degraded=found.degraded,
        opened=opening.how if opening else "",
        opened_why=opening.reason if opening else "",
        opened_at=_at(opening.at_ms) if opening else None,
        opened_kept=opening.path if opening else "",
        kept_files=found.kept_total,
    )


def verified(found: Iterable[IndexVerified]) -> p.ServeIndexVerify:
    items = tuple(_verify_item(one) for one in sorted(found, key=lambda one: one.node))
    return p.ServeIndexVerify(sound=bool(items) and all(item.sound for item in items), items=items)


def _verify_item(found: IndexVerified) -> p.VerifyItem:
    return p.VerifyItem(
        node=found.node,
        state=found.state,
        sound=found.state == "done" and found.complete and not found.problems_found,
        checked=found.checked,
        total=found.total,
        entries_per_s=round(found.checked * 1_000 / found.elapsed_ms, 1) if found.elapsed_ms else 0.0,
        problems_found=found.problems_found,
        problems=tuple(
            p.FileProblem(kind=one.kind, text=one.text, map=map_name(one.map) if one.map >= 0 else "", key=one.key)
            for one in found.problems
        ),
        complete=found.complete,
        file_bytes=found.file_bytes,
        live_bytes=found.live_bytes,
        elapsed_s=found.elapsed_ms / 1_000,
    )


def _version(version: Version) -> p.EntryVersion:
    return p.EntryVersion(epoch=version.epoch, hlc=version.hlc, origin=version.origin)


def _at(wall_ms: int) -> str | None:
    return rfc3339(wall_ms) if wall_ms else None
