"""From nodes' reports to what an operator reads: pure functions, one per shape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from node.admin import absences
from node.admin import protocol as p
from node.admin.missing_roles import missing_roles
from node.ads.keys import serve_key
from node.core.clock import rfc3339
from node.core.hashing import MAP_COUNT
from node.engine import topology
from node.engine.messages import NodeReport
from node.gossip.member import COUNTED, Member, Status
from node.gossip.view import ClusterView
from node.store.port import ShardRow, ShardState
from node.wire.roster import Roster

NOT_HERE: Final = "not_on_this_node"  # of one replica's coverage: its owner has filled the slot
Reports = Mapping[str, NodeReport]


def with_keys(rows: Sequence[p.NodeRow], roster: Roster) -> tuple[p.NodeRow, ...]:
    """The rows with their nodes' public keys: those that each is expected to show."""
    keys = {entry.name: entry.public_key for entry in roster.nodes}
    return tuple(msgspec.structs.replace(row, public_key=keys.get(row.name, "")) for row in rows)


def node_rows(view: ClusterView, reports: Reports, homes: Sequence[ShardRow]) -> tuple[p.NodeRow, ...]:
    """All members, those that did not answer too, by name. What a silent one has is what the placement table, `homes`,
    says: that it runs nothing is known of nobody who does not say so."""
    placed = Counter(row.node for row in homes)
    active = coordinating(reports)
    return tuple(
        _node_row(view, member, reports.get(name), placed[name], name in active.cordons if active else None)
        for name, member in sorted(view.members.items())
    )


def coordinating(reports: Reports) -> NodeReport | None:
    """What the node says that coordinates the shards."""
    return next((report for report in reports.values() if report.coordinator_active), None)


def _node_row(
    view: ClusterView, member: Member, report: NodeReport | None, placed: int, cordoned: bool | None
) -> p.NodeRow:
    if report is not None and report.incarnation != member.incarnation:
        report = None
    seen = view.unreachable.get(member.node)
    return p.NodeRow(
        name=member.node,
        incarnation=member.incarnation,
        status=member.status.word,
        reachable=view.reachable(member.node),
        roles=member.roles,
        address=member.control,
        http=f"http://{member.http}" if member.http and member.status is Status.UP else None,
        admin=member.admin,
        version=member.app_version,
        pid=report.pid if report else None,
        uptime_s=report.uptime_ms / 1_000 if report else None,
        shards=len(report.running) if report else placed,
        entities=sum(report.entities_by_kind.values()) if report else None,
        ready=report.ready if report else False,
        why_not_ready=report.why_not_ready if report else ("no answer",),
        max_lag_ms=max(report.lag_ms.values(), default=0) if report else None,
        rss_bytes=report.rss_bytes if report else None,
        cpu_ratio=_busy(report) if report else None,
        observers=tuple(observer.name for observer in seen.observers) if seen else (),
        cordoned=cordoned,
    )


def _busy(report: NodeReport) -> float:
    return report.cpu_ms / report.uptime_ms if report.uptime_ms else 0.0


def node_peers(report: NodeReport) -> tuple[p.NodePeer, ...]:
    """A node's ways to its peers as it told of them."""
    return tuple(
        p.NodePeer(
            node=peer.node,
            link=peer.link,
            incarnation=peer.incarnation,
            why=peer.why,
            waiting_control=peer.waiting_control,
            waiting_data=peer.waiting_data,
            skew=(
                *(f"{name}: only {report.node}" for name in peer.unknown_there),
                *(f"{name}: only {peer.node}" for name in peer.unknown_here),
            ),
            counts=tuple(p.Counter(name=name, count=count) for name, count in sorted(peer.counts.items())),
        )
        for peer in report.peers
    )


def shard_items(
    view: ClusterView, rows: Sequence[ShardRow], reports: Reports, pinned: Collection[int] = ()
) -> tuple[p.ShardItem, ...]:
    """Every shard with its owner, or why it has none."""
    entities = {(report.node, shard): count for report in reports.values() for shard, _epoch, count in report.running}
    found: list[p.ShardItem] = []
    for row in rows:
        why = _why_unallocated(view, row)
        state = "unallocated" if why else row.state.value
        found.append(
            p.ShardItem(
                shard=row.shard,
                node=row.node or None,
                epoch=row.epoch,
                state=state,
                entities=entities.get((row.node, row.shard), 0),
                pinned=row.shard in pinned,
                why=why,
            )
        )
    return tuple(found)


def _why_unallocated(view: ClusterView, row: ShardRow) -> str:
    if row.state is ShardState.UNALLOCATED or not row.node:
        return "never placed: no coordinator has seen an entity node yet"
    owner = view.member(row.node)
    if owner is None or owner.incarnation != row.incarnation:
        return f"its owner {row.node}@{row.incarnation} is gone; the coordinator has not placed it again yet"
    return ""


def shard_totals(items: Sequence[p.ShardItem]) -> p.ShardTotals:
    states = [item.state for item in items]
    return p.ShardTotals(
        total=len(items),
        allocated=states.count("running"),
        moving=states.count("moving"),
        unallocated=states.count("unallocated"),
    )


def maps(reports: Reports) -> tuple[p.MapItem, ...]:
    """The 32 maps with every replica's digest; they agree when all digests are equal."""
    found: list[p.MapItem] = []
    for number in range(MAP_COUNT):
        replicas = tuple(
            p.MapReplica(
                node=name,
                digest=report.maps[number].digest,
                keys=report.maps[number].keys,
                lag_ms=max(report.lag_ms.values(), default=0),
            )
            for name, report in sorted(reports.items())
        )
        largest = max((report.maps[number] for report in reports.values()), key=lambda m: m.keys, default=None)
        found.append(
            p.MapItem(
                map=f"serve-{number:02d}",
                keys=largest.keys if largest else 0,
                bytes=largest.bytes if largest else 0,
                tombstones=largest.tombstones if largest else 0,
                agree=len({replica.digest for replica in replicas}) <= 1,
                replicas=replicas,
            )
        )
    return tuple(found)


def replicas_agree(reports: Reports) -> bool:
    """Whether all replicas that reported have equal digests of every map."""
    return len({tuple(m.digest for m in report.maps) for report in reports.values()}) <= 1


def agreement(reports: Reports, members: Iterable[str]) -> bool | None:
    """Whether all members' replicas are equal; None when those that reported are, and some did not: the silent ones are
    not known to differ, and not to agree."""
    if not replicas_agree(reports):
        return False
    return True if set(members) <= reports.keys() else None


def coverage(reports: Reports, known: Collection[str] | None, sites: Sequence[str] = ()) -> p.Coverage:
    """Of the slots that should have a pool, those that have one; `sites` empty means all. `known`: the sites that the
    store holds, None when it does not say; one that nobody reports is unknown, which is neither covered nor empty."""
    rows = {
        site.site: p.SiteCoverage(
            site=site.site,
            expected=site.expected,
            present=site.present,
            ratio=ratio(site.present, site.expected),
            missing=tuple(p.EmptySlot(slot=slot, reason=reason) for slot, reason in site.missing),
        )
        for report in reports.values()
        for site in report.sites
        if not sites or site.site in sites
    }
    for site in sites or known or ():
        if site not in rows:
            rows[site] = p.SiteCoverage(site=site, expected=None, present=None, ratio=None, missing=())
    unknown = sum(row.expected is None for row in rows.values())
    expected = sum(row.expected or 0 for row in rows.values())
    present = sum(row.present or 0 for row in rows.values())
    told = len(rows) - unknown
    totals = covered(expected, present if told else None, whole=known is not None and not unknown)
    return p.Coverage(
        expected=totals.expected,
        present=totals.present,
        ratio=totals.ratio,
        sites=tuple(rows[s] for s in sorted(rows)),
        unknown_sites=unknown,
    )


def covered(expected: int, present: int | None, *, whole: bool) -> p.CoverageTotals:
    """The figures as operators are given them. Of a part of the sites, or nodes, neither the expected slots nor the
    ratio are known, and what is present is that much at least; None: nobody told of any."""
    if not whole:
        return p.CoverageTotals(expected=None, present=present, ratio=None)
    return p.CoverageTotals(expected=expected, present=present or 0, ratio=ratio(present or 0, expected))


def coverage_at(found: p.Coverage, slots: Mapping[str, frozenset[str]], held: Collection[str]) -> p.Coverage:
    """The same sites by the keys that one replica holds, of `slots` that should have a pool."""
    rows: list[p.SiteCoverage] = []
    for row in found.sites:
        if row.expected is None:
            rows.append(row)
            continue
        reasons = {slot.slot: slot.reason for slot in row.missing}
        lacking = {slot: NOT_HERE for slot in slots[row.site] if serve_key(row.site, slot) not in held}
        filled = slots[row.site] - lacking.keys()
        empty = lacking | {slot: reason for slot, reason in reasons.items() if slot not in filled}
        missing = tuple(p.EmptySlot(slot=slot, reason=reason) for slot, reason in sorted(empty.items()))
        share = ratio(len(filled), row.expected)
        rows.append(msgspec.structs.replace(row, present=len(filled), ratio=share, missing=missing))
    total = None if found.present is None else sum(row.present or 0 for row in rows)
    totals = covered(found.expected or 0, total, whole=found.expected is not None)
    return msgspec.structs.replace(found, present=totals.present, ratio=totals.ratio, sites=tuple(rows))


def ratio(present: int, expected: int) -> float:
    return present / expected if expected else 1.0


def cluster_status(
    view: ClusterView, rows: Sequence[ShardRow], reports: Reports, known_sites: Collection[str] | None, rate: float
) -> p.ClusterStatus:
    """The cluster on one page. `known_sites`: those that the store holds, None when it does not say; until all of them
    answer, coverage is unknown."""
    nodes = node_rows(view, reports, rows)
    items = shard_items(view, rows, reports)
    index = maps(reports)
    found = coverage(reports, known_sites)
    active = coordinating(reports)
    digests = {report.view_digest for report in reports.values()}
    required, available = topology.entity_majority(view)
    return p.ClusterStatus(
        converged=view.converged and len(digests) == 1 and all(n.reachable for n in nodes if n.status == "up"),
        leader=view.leader or None,
        coordinator=active.node if active else None,
        term=active.coordinator_term if active else 0,
        nodes=nodes,
        shards=shard_totals(items),
        serveindex=p.ServeIndexTotals(
            maps=len(index),
            keys=sum(item.keys for item in index),
            agree=agreement(reports, view.members),
            max_lag_ms=max((n.max_lag_ms or 0 for n in nodes), default=0),
            tombstones=sum(item.tombstones for item in index),
            pending_removals=sum(report.pending_removals for report in reports.values()),
        ),
        coverage=p.CoverageTotals(
            expected=found.expected,
            present=found.present,
            ratio=found.ratio,
            unknown_sites=None if known_sites is None else found.unknown_sites,
        ),
        faults=faults(reports),
        requests_per_s=rate,
        served_count=sum(report.served_count for report in reports.values()),
        members_up=sum(member.status in COUNTED for member in view.members.values()),
        required=required,
        available=available,
    )


def faults(reports: Reports) -> tuple[p.FaultRow, ...]:
    """Each fault once, since its first sight."""
    first: dict[tuple[str, str], p.FaultRow] = {}
    for report in reports.values():
        for fault in report.faults:
            row = p.FaultRow(code=fault.code, object=fault.object, message=fault.message, since=rfc3339(fault.since_ms))
            known = first.get((fault.code, fault.object))
            if known is None or row.since < known.since:
                first[(fault.code, fault.object)] = row
    return tuple(first[key] for key in sorted(first))


def health(status: p.ClusterStatus) -> p.Health:
    """Unhealthy: something is not served. Degraded: something is not as it should be. Reasons for both.

    A node of the roster that is no member is missed, unless it was told to go and went in good order."""
    bad: list[p.HealthReason] = []
    worse: list[p.HealthReason] = []
    for node in status.nodes:
        if not node.reachable:
            worse.append(_reason("E-NODE-UNREACHABLE", f"node/{node.name}", "nobody here hears it"))
        elif not node.ready:
            bad.append(_reason("E-NODE-NOT-READY", f"node/{node.name}", "; ".join(node.why_not_ready)))
    bad.extend(
        _reason("E-NODE-ABSENT", f"node/{absent.name}", absences.words(absent))
        for absent in status.absent
        if absent.went != absences.DRAINED
    )
    if status.shards.unallocated:
        owners = any("entity" in node.roles and node.status == "up" for node in status.nodes)
        why = "" if owners else ": no entity node is up"
        text = f"{status.shards.unallocated} have no live owner{why}"
        worse.append(_reason("E-SHARDS-UNALLOCATED", "shards", text))
    worse.extend(missing_roles(status))
    if status.coordinator is None:
        worse.append(_reason("E-NO-COORDINATOR", "cluster", "no node coordinates the shards"))
    if status.available < status.required:
        text = f"{status.available} of {status.required} required entity nodes can be reached"
        worse.append(_reason("E-NO-MAJORITY", "cluster", text))
    if not status.converged:
        bad.append(_reason("E-NOT-CONVERGED", "cluster", "the members do not hold the same view yet"))
    if status.serveindex.agree is False:
        bad.append(_reason("E-REPLICAS-DIFFER", "serveindex", "replicas differ"))
    bad.extend(_reason(fault.code, fault.object, fault.message) for fault in status.faults)
    state = "unhealthy" if worse else "degraded" if bad else "healthy"
    return p.Health(state=state, reasons=(*worse, *bad))


def _reason(code: str, about: str, text: str) -> p.HealthReason:
    return p.HealthReason(code=code, object=about, text=text)
