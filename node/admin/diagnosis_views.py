"""From what nodes tell of themselves to what an operator reads when something is wrong. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from node.admin import protocol as p
from node.admin.protocol import diagnosis as d
from node.core.clock import rfc3339
from node.engine.diagnosis_messages import MemberSeen, ViewReport
from node.engine.messages import NodeReport
from node.sharding.book import Ownership

Aspect = tuple[str, str]  # an object, and what of it
_ABSENT = "not a member"


def member_list(report: ViewReport) -> d.MemberList:
    """The membership as one node has it."""
    return d.MemberList(
        seen_by=report.node.name,
        leader=report.leader or None,
        converged=report.converged,
        digest=report.digest,
        blocked_by=report.blocked_by,
        indirect=report.indirect,
        items=tuple(
            d.MemberItem(
                name=seen.node.name,
                incarnation=seen.node.incarnation,
                status=seen.status,
                reachable=seen.reachable,
                roles=seen.roles,
                address=seen.address,
                version=seen.version,
                up_number=seen.up_number,
                observers=seen.observers,
                unreachable_ms=seen.unreachable_ms,
            )
            for seen in report.members
        ),
    )


def cluster_views(reports: Sequence[ViewReport]) -> d.ClusterViews:
    """All views beside each other. What fewer hold than hold something else is a difference; of two halves the one
    that sorts later is."""
    held: dict[Aspect, dict[str, str]] = defaultdict(dict)
    names = {seen.node.name for report in reports for seen in report.members}
    for report in reports:
        for aspect, value in _held(report, names).items():
            held[aspect][report.node.name] = value
    differences = [found for aspect, values in sorted(held.items()) for found in _differences(aspect, values)]
    odd = {observer for found in differences for observer in found.observers}
    items = tuple(
        d.ViewItem(
            observer=report.node.name,
            incarnation=report.node.incarnation,
            differs=report.node.name in odd,
            leader=report.leader or None,
            converged=report.converged,
            digest=report.digest,
            placement_version=report.placement_version,
            coordinating=report.coordinating,
            sees=tuple(f"{seen.node.name} {_standing(seen)}" for seen in report.members),
        )
        for report in sorted(reports, key=lambda report: report.node)
    )
    return d.ClusterViews(agree=not differences, items=items, differences=tuple(differences))


def _held(report: ViewReport, names: set[str]) -> dict[Aspect, str]:
    seen = {member.node.name: member for member in report.members}
    found = {
        ("cluster", "leader"): report.leader or "nobody",
        ("cluster", "placement"): f"version {report.placement_version}",
    }
    for name in names:
        member = seen.get(name)
        found["node/" + name, "status"] = _ABSENT if member is None else _standing(member)
        if member is not None:
            found["node/" + name, "incarnation"] = str(member.node.incarnation)
    return found


def _standing(seen: MemberSeen) -> str:
    return seen.status if seen.reachable or seen.status == "down" else f"{seen.status}, unreachable"


def _differences(aspect: Aspect, values: Mapping[str, str]) -> list[d.ViewDifference]:
    counts = Counter(values.values())
    most = min(counts, key=lambda value: (-counts[value], value))
    return [
        d.ViewDifference(
            object=aspect[0],
            aspect=aspect[1],
            value=value,
            observers=tuple(sorted(name for name, held in values.items() if held == value)),
            others=most,
        )
        for value in sorted(counts)
        if value != most
    ]


def node_status(row: p.NodeRow, report: NodeReport | None) -> d.NodeStatus:
    """How one node stands; `report` is None when it did not answer."""
    return d.NodeStatus(
        node=row.name,
        incarnation=row.incarnation,
        status=row.status,
        reachable=row.reachable,
        answers=report is not None,
        ready=row.ready,
        why_not_ready=row.why_not_ready,
        phases=report.phases if report else (),
        observers=row.observers,
        shards=row.shards,
        entities=row.entities,
        max_lag_ms=row.max_lag_ms,
        uptime_s=row.uptime_s,
        version=row.version,
        pid=row.pid,
        faults=tuple(
            p.FaultRow(code=fault.code, object=fault.object, message=fault.message, since=rfc3339(fault.since_ms))
            for fault in (report.faults if report else ())
        ),
    )


def rates(before: NodeReport, after: NodeReport, took_ms: int) -> d.RateItem:
    """What one node did between two of its reports."""

    def per_s(first: int, second: int) -> float:
        # A node that started anew in between counts from 0 again.
        return round(max(0, second - first) * 1_000 / took_ms, 1) if after.incarnation == before.incarnation else 0.0

    def counted(report: NodeReport, *names: str) -> int:
        return sum(report.counters.get(name, 0) for name in names)

    writes = ("replica.puts", "replica.removals")
    return d.RateItem(
        node=after.node,
        interval_ms=took_ms,
        requests_per_s=per_s(before.requests_count, after.requests_count),
        messages_per_s=per_s(counted(before, "actors.handled"), counted(after, "actors.handled")),
        writes_per_s=per_s(counted(before, *writes), counted(after, *writes)),
        unhandled_per_s=per_s(_unhandled(before), _unhandled(after)),
        cpu_ratio=round(max(0, after.cpu_ms - before.cpu_ms) / took_ms, 3),
        rss_bytes=after.rss_bytes,
        run_queue=counted(after, "actors.run_queue"),
        entities=sum(after.entities_by_kind.values()),
        shards=len(after.running),
        max_lag_ms=max(after.lag_ms.values(), default=0),
    )


def _unhandled(report: NodeReport) -> int:
    lost = ("deadletter.", "engine.dropped_", "region.refused_")
    return sum(count for name, count in report.counters.items() if name.startswith(lost))


def owners(entries: Sequence[Ownership], durable_epoch: int | None) -> tuple[d.EntityOwner, ...]:
    """Who owned a shard from when to when; the epoch of what is durable says who wrote it last."""
    ends = [rfc3339(entry.at_ms) for entry in entries[1:]]
    return tuple(
        d.EntityOwner(
            node=entry.node,
            incarnation=entry.incarnation,
            epoch=entry.epoch,
            cause=entry.cause,
            at=rfc3339(entry.at_ms),
            until=until,
            last_writer=entry.epoch == durable_epoch,
        )
        for entry, until in zip(entries, [*ends, None], strict=True)
    )
