"""What the dashboard knows: one value, changed by one pure function of what came in. Screens are functions of it.

Times are monotonic nanoseconds of this process; what the cluster says about times stays as the cluster wrote it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import Final

from node.admin.protocol import AdminEvent, ClusterStatus, Health, Meta, NodeShow, ShardItem, StatusPush
from node.core.clock import SECOND

EVENTS_MAX: Final = 500
RATES_MAX: Final = 240  # points of the request rate, one a second: more than the widest chart draws
RATE_EVERY_NS: Final = SECOND
# A node pushes at least every 5 s, and gathers for up to 2 s before it when another node does not answer.
STALE_AFTER_NS: Final = 8 * SECOND


class Phase(enum.Enum):
    """How far the picture can be trusted."""

    CONNECTING = "connecting"
    LIVE = "live"
    STALE = "stale"
    OFFLINE = "offline"
    DENIED = "denied"


# ---- what comes in


@dataclass(frozen=True, slots=True)
class Opened:
    """A node took the subscription."""

    at_ns: int
    where: str


@dataclass(frozen=True, slots=True)
class Pushed:
    at_ns: int
    push: StatusPush


@dataclass(frozen=True, slots=True)
class Happened:
    event: AdminEvent


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection broke, or could not be made. `denied`: the cluster answered, and does not let us in."""

    at_ns: int
    at: str
    reason: str
    retry_at_ns: int
    denied: bool = False


@dataclass(frozen=True, slots=True)
class ShardsTold:
    at_ns: int
    items: tuple[ShardItem, ...]


@dataclass(frozen=True, slots=True)
class ShardsUntold:
    reason: str


@dataclass(frozen=True, slots=True)
class NodeAsked:
    node: str


@dataclass(frozen=True, slots=True)
class NodeTold:
    at_ns: int
    show: NodeShow


@dataclass(frozen=True, slots=True)
class NodeUntold:
    node: str
    reason: str


Incoming = Opened | Pushed | Happened | Lost | ShardsTold | ShardsUntold | NodeAsked | NodeTold | NodeUntold


# ---- what is known


@dataclass(frozen=True, slots=True)
class Detail:
    """One node in depth, as asked for. `show` None: not answered yet, or `problem` says why it won't be."""

    node: str
    show: NodeShow | None = None
    at_ns: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """`connected` to `where`, or not, because of `problem` after `tries` attempts. Everything else is the newest that
    was told, with the moment at which it came; 0 stands for never."""

    profile: str
    connected: bool = False
    where: str = ""
    problem: str = ""
    denied: bool = False
    tries: int = 0
    retry_at_ns: int = 0
    status: ClusterStatus | None = None
    meta: Meta | None = None
    health: Health | None = None
    status_at_ns: int = 0
    rates: tuple[float, ...] = ()
    rate_at_ns: int = 0
    events: tuple[AdminEvent, ...] = ()
    events_lost: int = 0
    shards: tuple[ShardItem, ...] = ()
    shards_at_ns: int = 0
    shards_problem: str = ""
    detail: Detail | None = None


def reduce(state: State, incoming: Incoming) -> State:
    """The state after one message; never fails and never looks at a clock."""
    match incoming:
        case Opened(where=where):
            return replace(state, connected=True, where=where, problem="", denied=False, tries=0, retry_at_ns=0)
        case Pushed(at_ns, push):
            return _pushed(state, at_ns, push)
        case Happened(event):
            return _happened(state, event)
        case Lost():
            return _lost(state, incoming)
        case ShardsTold(at_ns, items):
            return replace(state, shards=items, shards_at_ns=at_ns, shards_problem="")
        case ShardsUntold(reason):
            return replace(state, shards_problem=reason)
        case NodeAsked(node):
            known = state.detail is not None and state.detail.node == node
            return state if known else replace(state, detail=Detail(node))
        case NodeTold(at_ns, show):
            detail = Detail(show.node.name, show, at_ns)
            wanted = state.detail is not None and state.detail.node == detail.node
            return replace(state, detail=detail) if wanted else state
        case NodeUntold(node, reason):
            if state.detail is None or state.detail.node != node:
                return state
            return replace(state, detail=replace(state.detail, problem=reason))


def phase(state: State, now_ns: int) -> Phase:
    """Live is only what came lately over an open connection."""
    if state.connected:
        if state.status is None:
            return Phase.CONNECTING
        return Phase.LIVE if now_ns - state.status_at_ns <= STALE_AFTER_NS else Phase.STALE
    if state.denied:
        return Phase.DENIED
    if state.tries:
        return Phase.OFFLINE
    return Phase.STALE if state.status is not None else Phase.CONNECTING


def age_s(at_ns: int, now_ns: int) -> float:
    """Seconds since something came."""
    return max(0, now_ns - at_ns) / SECOND


def _pushed(state: State, at_ns: int, push: StatusPush) -> State:
    rates, rate_at_ns = state.rates, state.rate_at_ns
    if not rates or at_ns - rate_at_ns >= RATE_EVERY_NS * 9 // 10:  # pushes jitter around their interval
        rates = (*rates, push.status.requests_per_s)[-RATES_MAX:]
        rate_at_ns = at_ns
    return replace(
        state,
        status=push.status,
        meta=push.meta,
        health=push.health,
        status_at_ns=at_ns,
        rates=rates,
        rate_at_ns=rate_at_ns,
    )


def _happened(state: State, event: AdminEvent) -> State:
    return replace(
        state,
        events=(*state.events, event)[-EVENTS_MAX:],
        events_lost=state.events_lost + max(0, event.gap),
    )


def _lost(state: State, lost: Lost) -> State:
    """The first loss leaves `tries` at 0: another node is asked at once, and only when that fails we are offline.

    What happened meanwhile is unknown, so the break stands among the events.
    """
    after = replace(
        state,
        connected=False,
        problem=lost.reason,
        denied=lost.denied,
        tries=0 if state.connected else state.tries + 1,
        retry_at_ns=lost.retry_at_ns,
    )
    if not state.connected:
        return after
    first = lost.reason.partition("\n")[0]
    broke = AdminEvent(at=lost.at, topic="dashboard.lost", object=f"node/{state.where}", text=first)
    return _happened(after, broke)
