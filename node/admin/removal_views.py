"""From nodes' answers about removals to what an operator reads: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from node.admin import protocol as p
from node.admin.index_views import map_name
from node.core.clock import rfc3339
from node.core.hashing import map_of
from node.core.hlc import hlc_wall_ms
from node.engine import removal_messages as n
from node.gossip.replica_roster import ReplicaRoster
from node.gossip.replica_views import WriteToken
from node.gossip.version import Version
from node.gossip.view import ClusterView


def history(key: str, found: Sequence[n.KeyHistory]) -> p.ServeIndexHistory:
    items = [
        p.HistoryItem(
            node=one.node,
            version=_version(seen.version),
            what=_what(seen),
            bytes=seen.bytes,
            expires_at=_at(seen.expires_at_ms),
            at=_at(seen.at_ms),
            source=seen.source,
        )
        for one in found
        for seen in one.seen
    ]
    items.sort(key=lambda item: (item.version.epoch, item.version.hlc, item.version.origin, item.node))
    certificates = [(one.certificate, one.node) for one in found if one.certificate is not None]
    newest = max(certificates, key=lambda item: _order(item[0].version), default=None)
    return p.ServeIndexHistory(key=key, items=tuple(items), removal=_certificate(*newest) if newest else None)


def _what(seen: n.SeenRow) -> str:
    if seen.discarded:
        return "discarded"
    if seen.mended:
        return "mended"
    if seen.tombstone:
        return "removed"
    return "put" if seen.at_ms else "held"


def _certificate(found: n.CertificateRow, node: str) -> p.RemovalCertificate:
    return p.RemovalCertificate(
        key=found.key,
        version=_version(found.version),
        node=node,
        asked_at=rfc3339(found.asked_ms),
        asked_by=found.asked_by,
        roster_version=found.roster_version,
        required=found.needed,
        available=len(found.held),
        held=tuple(
            p.RemovalHeld(node=held.node, tenure=held.tenure, durable_at=_at(held.durable_ms)) for held in found.held
        ),
        majority_at=_at(found.majority_ms),
        last_serve_at=_at(found.last_serve_ms),
    )


def pending(found: Sequence[n.Removals]) -> p.ServeIndexPending:
    rows = [(row, one.node) for one in found for row in one.pending]
    rows.sort(key=lambda item: (item[0].asked_ms, item[0].key))
    items = tuple(
        p.PendingRemoval(
            id=str(WriteToken(row.key, Version(*_order(row.version)))),
            key=row.key,
            node=node,
            version=_version(row.version),
            asked_at=rfc3339(row.asked_ms),
            asked_by=row.asked_by,
            attempts=row.attempts,
            required=row.needed,
            available=len(row.held_by),
            held_by=row.held_by,
            awaited=row.awaited,
            refused=tuple(p.RemovalRefused(node=name, reason=why) for name, why in row.refused),
            next_ms=row.next_ms,
        )
        for row, node in rows
    )
    return p.ServeIndexPending(items=items, total=sum(one.pending_total for one in found))


def tombstones(found: Sequence[n.Removals], limit: int) -> p.ServeIndexTombstones:
    """Each once, as its caretaker knows it where that answered."""
    best: dict[str, tuple[n.TombstoneRow, str]] = {}
    for one in found:
        for row in one.tombstones:
            known = best.get(row.key)
            newer = known is None or _order(row.version) > _order(known[0].version)
            told_by_caretaker = known is not None and row.version == known[0].version and one.node == row.caretaker
            if newer or told_by_caretaker:
                best[row.key] = (row, one.node)
    rows = sorted((row for row, _ in best.values()), key=lambda row: (row.version.hlc, row.key))[:limit]
    return p.ServeIndexTombstones(
        items=tuple(
            p.TombstoneItem(
                key=row.key,
                map=map_name(map_of(row.key)),
                version=_version(row.version),
                removed_at=rfc3339(hlc_wall_ms(row.version.hlc)),
                age_ms=row.age_ms,
                caretaker=row.caretaker,
                awaited=row.awaited,
            )
            for row in rows
        ),
        total=max((one.tombstones_total for one in found), default=0),
        min_age_ms=max((one.min_age_ms for one in found), default=0),
        not_settling=tuple(
            p.NotSettling(node=one.node, reason=one.why_not_settling) for one in found if one.why_not_settling
        ),
    )


def roster(found: ReplicaRoster, view: ClusterView, phases: Mapping[str, n.ReplicaPhase]) -> p.ServeIndexRoster:
    """Who counts, by name, then who did."""
    stays = [(replica, True) for replica in found.replicas]
    stays += [(replica, False) for replica in found.gone if replica.node not in found.names()]
    items = []
    for replica, counts in stays:
        member, phase = view.member(replica.node), phases.get(replica.node)
        items.append(
            p.RosterItem(
                node=replica.node,
                counts=counts,
                tenure=replica.tenure,
                since=_at(replica.since_ms),
                cause=replica.cause,
                member=member.status.word if member else "no member",
                reachable=member is not None and view.reachable(replica.node),
                phase=phase.phase if phase else "",
                progress_ratio=phase.ratio if phase else 0.0,
            )
        )
    available = sum(item.counts and item.reachable for item in items)
    return p.ServeIndexRoster(version=found.version, required=found.needed, available=available, items=tuple(items))


def _order(version: n.VersionRow) -> tuple[int, int, str]:
    return (version.epoch, version.hlc, version.origin)


def _version(version: n.VersionRow) -> p.EntryVersion:
    return p.EntryVersion(epoch=version.epoch, hlc=version.hlc, origin=version.origin)


def _at(wall_ms: int) -> str | None:
    return rfc3339(wall_ms) if wall_ms else None
