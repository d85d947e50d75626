"""What the dashboard knows: one value, changed by one pure function of what came in. Screens are functions of it.

Times are monotonic nanoseconds of this process; what the cluster says about times stays as the cluster wrote it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

import msgspec

from node.admin.protocol import AdminEvent, ClusterStatus, GetShards, Health, Meta, ShardList, StatusPush
from node.admin.protocol.diagnosis import EventList
from node.core.clock import SECOND
from promovolvectl.tui.incoming import Asked, Happened, Heard, Incoming, Lost, Opened, Pushed, Told, Untold
from promovolvectl.tui.letters import lettered
from promovolvectl.tui.missed import Missed, lacking, missed_since
from promovolvectl.tui.series import Series, after_push, after_report
from promovolvectl.tui.windows import Window

EVENTS_MAX: Final = 1_000
REPORTS_MAX: Final = 64  # answers that are kept; a screen and its panes ask for a handful
# A node pushes at least every 5 s, and gathers for up to 2 s before it when another node does not answer.
STALE_AFTER_NS: Final = 8 * SECOND
# It is heard of each second; more than two missed in a row are silence. Ages are painted each second: within 5 s.
SILENT_AFTER_NS: Final = 7 * SECOND // 2
Reply = TypeVar("Reply", bound=msgspec.Struct)


class Phase(enum.Enum):
    """How far the picture can be trusted."""

    CONNECTING = "connecting"
    LIVE = "live"
    STALE = "stale"
    OFFLINE = "offline"
    DENIED = "denied"
    FROZEN = "frozen"


@dataclass(frozen=True, slots=True)
class Report:
    """The newest answer to one question. `value` None: never answered. `problem`: why the last attempt brought none,
    empty when it did; `asking`: one is under way; `denied`: the cluster does not let us ask this."""

    value: msgspec.Struct | None = None
    meta: Meta | None = None
    at_ns: int = 0
    tried_ns: int = 0
    problem: str = ""
    denied: bool = False
    asking: bool = False


NOTHING: Final = Report()
FIRST: Final = Window()


@dataclass(frozen=True, slots=True)
class State:
    """`connected` to `where`, or not, because of `problem` after `tries` attempts. Everything else is the newest that
    was told, with the moment at which it came; 0 stands for never. `missed`: events that a lost connection has cost,
    until they were asked for. `reports`: answers by what was asked. `letters`: what owners are called on the map.
    `badges`, `ages` and `window` are the person's: what the title reminds of, whether times are told as ages, and
    which part of a long list is looked at."""

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
    heard_at_ns: int = 0
    series: Series = field(default_factory=Series)
    events: tuple[AdminEvent, ...] = ()
    events_lost: int = 0
    events_seen: int = 0
    missed: Missed | None = None
    reports: Mapping[msgspec.Struct, Report] = field(default_factory=dict)
    letters: Mapping[str, str] = field(default_factory=dict)
    badges: tuple[str, ...] = ()
    ages: bool = False
    window: Window = FIRST
    frozen_since: str = ""  # when the person stopped the picture, RFC 3339; empty while it goes on

    @property
    def told_at(self) -> str:
        """The cluster's own time as of the newest push; empty when there was none."""
        return self.meta.observed_at if self.meta else ""

    def report(self, params: msgspec.Struct) -> Report:
        """What is known about a question."""
        return self.reports.get(params, NOTHING)

    def told(self, params: msgspec.Struct, reply: type[Reply]) -> Reply | None:
        """The newest answer to a question, if there is one."""
        value = self.report(params).value
        return value if isinstance(value, reply) else None


def reduce(state: State, incoming: Incoming) -> State:
    """The state after one message; never fails and never looks at a clock."""
    match incoming:
        case Opened(where=where):
            return replace(state, connected=True, where=where, problem="", denied=False, tries=0, retry_at_ns=0)
        case Pushed(at_ns, push):
            return _pushed(state, at_ns, push)
        case Heard(at_ns):
            return replace(state, heard_at_ns=max(state.heard_at_ns, at_ns))
        case Happened(event):
            return _happened(state, event)
        case Lost():
            return _lost(state, incoming)
        case Asked(params):
            return _reported(state, params, replace(state.report(params), asking=True))
        case Told(at_ns, params, value, meta):
            series = after_report(state.series, at_ns, value)
            found = Report(value=value, meta=meta, at_ns=at_ns, tried_ns=at_ns)
            after = replace(_reported(state, params, found), series=series, letters=_letters(state, params, value))
            return _made_up_for(after, value) if state.missed and params == state.missed.question else after
        case Untold(at_ns, params, reason, denied):
            before = state.report(params)
            found = replace(before, problem=reason, denied=denied, asking=False, tried_ns=at_ns)
            return _reported(state, params, found)


def phase(state: State, now_ns: int) -> Phase:
    """Live is only what came lately over an open connection, and is not held."""
    if state.frozen_since:
        return Phase.FROZEN
    if state.connected:
        if state.status is None:
            return Phase.CONNECTING
        late = now_ns - state.status_at_ns > STALE_AFTER_NS
        return Phase.STALE if late or silent(state, now_ns) else Phase.LIVE
    if state.denied:
        return Phase.DENIED
    if state.tries:
        return Phase.OFFLINE
    return Phase.STALE if state.status is not None else Phase.CONNECTING


def silent(state: State, now_ns: int) -> bool:
    """Whether the node that is followed has said nothing for longer than it ever does."""
    return now_ns - max(state.status_at_ns, state.heard_at_ns) > SILENT_AFTER_NS


def age_s(at_ns: int, now_ns: int) -> float:
    """Seconds since something came."""
    return max(0, now_ns - at_ns) / SECOND


def _reported(state: State, params: msgspec.Struct, found: Report) -> State:
    """The question that was asked last stands last; the oldest are forgotten."""
    reports = {asked: report for asked, report in state.reports.items() if asked != params}
    reports[params] = found
    for asked in list(reports)[: max(0, len(reports) - REPORTS_MAX)]:
        del reports[asked]
    return replace(state, reports=reports)


def _letters(state: State, params: msgspec.Struct, value: msgspec.Struct) -> Mapping[str, str]:
    """A part of the map tells of some owners only, and would bring them before the others."""
    if params != GetShards() or not isinstance(value, ShardList):
        return state.letters
    return lettered(state.letters, {item.node for item in value.items if item.node})


def _pushed(state: State, at_ns: int, push: StatusPush) -> State:
    missed = state.missed
    if missed is not None and not missed.node:
        missed = replace(missed, node=push.meta.observed_by)
    return replace(
        state,
        missed=missed,
        status=push.status,
        meta=push.meta,
        health=push.health,
        status_at_ns=at_ns,
        heard_at_ns=max(state.heard_at_ns, at_ns),
        series=after_push(state.series, at_ns, push.status),
    )


def _happened(state: State, event: AdminEvent) -> State:
    return replace(
        state,
        events=(*state.events, event)[-EVENTS_MAX:],
        events_lost=state.events_lost + max(0, event.gap),
        events_seen=state.events_seen + 1,
    )


def _made_up_for(state: State, value: msgspec.Struct) -> State:
    """Behind what has come since: who looks at an event must not find another in its place."""
    after = replace(state, missed=None)
    for event in lacking(state.events, value) if isinstance(value, EventList) else ():
        after = _happened(after, event)
    return after


def _lost(state: State, lost: Lost) -> State:
    """The first loss leaves `tries` at 0: another node is asked at once, and only when that fails we are offline.

    What happens meanwhile is asked of the node that is followed next; the break stands among the events.
    """
    since = state.missed or missed_since(state.told_at)
    after = replace(
        state,
        connected=False,
        problem=lost.reason,
        denied=lost.denied,
        tries=0 if state.connected else state.tries + 1,
        retry_at_ns=lost.retry_at_ns,
        missed=replace(since, node="") if since else None,
    )
    if not state.connected:
        return after
    first = lost.reason.partition("\n")[0]
    broke = AdminEvent(at=lost.at, topic="dashboard.lost", object=f"node/{state.where}", text=first)
    return _happened(after, broke)
