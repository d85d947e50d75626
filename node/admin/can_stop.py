"""Whether a node can stop now without anybody noticing: a pure function of what is known of all nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from node.admin import protocol as p
from node.admin.views import Reports
from node.core.ids import ROLES, NodeId
from node.core.limits import can_stop_lag_ms_max
from node.engine.messages import NodeReport
from node.gossip.departure import departure
from node.gossip.member import Status
from node.gossip.settings import MembershipSettings
from node.gossip.view import ClusterView
from node.wire.roster import NodeEntry

LAST_ENTITY_NODE, LAST_OF_ROLE, MAJORITY = "last-entity-node", "last-of-role", "majority"
LOST = {
    "entity": "nobody could take its shards",
    "singleton": "nobody could coordinate shards",
    "api": "nobody would answer HTTP requests",
    "crawler": "nobody would classify pages",
}


def can_stop(
    view: ClusterView,
    settings: MembershipSettings,
    name: str,
    going: Collection[NodeId],
    moving: int,
    reports: Reports,
    takers: Mapping[str, str] = MappingProxyType({}),
) -> p.CanStop:
    """`going`: nodes that drain; `moving`: shards that are on their way; the node is a member. `takers`: by role, who
    could be started to take over."""
    left = departure(view, settings, name).after
    report = reports.get(name)
    reasons = (
        *_itself(view, name, report),
        *_others(view, name, going, moving),
        *_last_of_role(view, name, going, takers),
        *_owed(report),
    )
    if not left.goes_on:
        text = f"without it {left.words()}: those left would not go on if nobody else came back"
        if helper := next(filter(None, takers.values()), ""):
            text = f"{text}; 'node start {helper}' lets one more count"
        reasons += (p.StopReason(code=MAJORITY, about="cluster", text=text),)
    return p.CanStop(
        node=name,
        can_stop=not reasons,
        reasons=reasons,
        shards=len(report.running) if report else 0,
        entities=sum(report.entities_by_kind.values()) if report else 0,
        counted=left.counted,
        required=left.required,
        available=left.available,
    )


def _itself(view: ClusterView, name: str, report: NodeReport | None) -> Iterator[p.StopReason]:
    member = view.members[name]
    if member.status not in (Status.UP, Status.LEAVING):
        yield p.StopReason(code="not-up", about=f"node/{name}", text=f"{name} is {member.status.word}, not up")
    if report is None and view.reachable(name):
        yield p.StopReason(code="no-answer", about=f"node/{name}", text=f"{name} does not say what it has to hand over")


def _others(view: ClusterView, name: str, going: Collection[NodeId], moving: int) -> Iterator[p.StopReason]:
    for other in sorted(view.unreachable):
        seen_by = ", ".join(o.name for o in view.unreachable[other].observers)
        text = f"{other} can't be reached" + (f", as {seen_by} found" if seen_by else "")
        yield p.StopReason(code="unreachable", about=f"node/{other}", text=text)
    for node in sorted(going):
        if node.name != name:
            yield p.StopReason(code="other-stops", about=f"node/{node.name}", text=f"{node.name} is stopping already")
    if moving:
        yield p.StopReason(code="shards-moving", about="cluster", text=f"{moving} shards are on their way")


def lasting_roles(view: ClusterView, name: str, going: Collection[NodeId]) -> Iterator[str]:
    """The roles that the member alone has, of those in reach that stay."""
    for role in ROLES:
        others = [m for m in view.up(role) if m.node != name and view.reachable(m.node) and m.id not in going]
        if role in view.members[name].roles and not others:
            yield role


def takers_of(roster: Iterable[NodeEntry], view: ClusterView) -> dict[str, str]:
    """By role, a node that is on the roster with it and no member."""
    away = [entry for entry in roster if entry.name not in view.members]
    return {role: next((entry.name for entry in away if role in entry.roles), "") for role in ROLES}


def _last_of_role(
    view: ClusterView, name: str, going: Collection[NodeId], takers: Mapping[str, str]
) -> Iterator[p.StopReason]:
    for role in lasting_roles(view, name, going):
        code = LAST_ENTITY_NODE if role == "entity" else LAST_OF_ROLE
        text = f"{name} is the last {role} node in reach: {LOST[role]}"
        if helper := takers.get(role):
            text = f"{text}; 'node start {helper}' lets another do it"
        yield p.StopReason(code=code, about=f"node/{name}", text=text)


def _owed(report: NodeReport | None) -> Iterator[p.StopReason]:
    """Peers that have not acknowledged entries for longer than one that is well takes."""
    for peer, entries in sorted(report.behind.items()) if report else ():
        lag_ms = report.lag_ms.get(peer, 0) if report else 0
        if entries and lag_ms >= can_stop_lag_ms_max:
            text = f"{peer} has not acknowledged {entries} entries, the oldest for {lag_ms} ms"
            yield p.StopReason(code="replica-behind", about=f"node/{peer}", text=text)
