"""The nodes as a table, and what is known of one: who sees it how, its peers, mailboxes, log and settings."""

from __future__ import annotations

from collections.abc import Callable

from node.admin.protocol import (
    CanStop,
    GetCanStop,
    GetMailboxes,
    GetNode,
    NodeMailboxes,
    NodePeer,
    NodeRow,
    NodeShow,
    OperationList,
)
from node.admin.protocol.cluster import AbsentNode
from node.admin.protocol.diagnosis import GetLogs, GetRates, LogList, RateList
from promovolvectl.client.visible import visible
from promovolvectl.tui import absent, theme
from promovolvectl.tui.draw import amount, counters, dash_if_none, fact, figure, flow, grid, lasting, moment, paragraph
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.operations import OPERATIONS
from promovolvectl.tui.text import Line, count, known, lag, natural, number_of, size, span
from promovolvectl.tui.views import Glance, Level, Tab, Where, fixed
from promovolvectl.tui.widgets.figures import state_words
from promovolvectl.tui.widgets.sparkline import sparkline

_SPARK = 6
Draw = Callable[[Glance, Where], list[Line]]
Asks = Callable[[State, Where], tuple[Query, ...]]
_ONLY_ITSELF = "nobody can be asked for {what}: only {{name}} itself knows them, and it is no member"
RATES = Query(GetRates(), every_s=2)
_COLUMNS = (
    Column("NODE", 28),
    Column("STATE", 24),
    Column("SHARDS", 6, right=True),
    Column("ENTITIES", 8, right=True),
    Column("LAG", 7, right=True),
    Column("CPU", 14, right=True),
    Column("RSS", 8, right=True),
    Column("QUEUE", 6, right=True),
    Column("UP", 6, right=True),
    Column("ROLES", 30),
    Column("ADDRESS", 24),
)


def _rows(state: State, _where: Where) -> list[Row]:
    if state.status is None:
        return []
    rates = state.told(RATES.params, RateList)
    queues = {row.node: row.run_queue for row in rates.items} if rates else {}
    found = [_row(state, row, queues.get(row.name)) for row in state.status.nodes]
    found += [_missed(state, each) for each in state.status.absent]
    return sorted(found, key=lambda row: natural(row.key))


def _missed(state: State, node: AbsentNode) -> Row:
    mark, style = absent.sign(node)
    none = (Cell("-", theme.FAINT),) * 9
    return Row(node.name, (Cell(node.name), Cell(f"{mark} {absent.words(state, node)}", style), *none), "absent")


def _row(state: State, row: NodeRow, queue: int | None) -> Row:
    mark, style = theme.node_sign(row.status, reachable=row.reachable, ready=row.ready)
    unknown = Cell("?", theme.FAINT)
    cpu = state.series.of(f"cpu/{row.name}")
    newest = cpu[-1] if cpu and cpu[-1] is not None else row.cpu_ratio
    cells = (
        Cell(row.name),
        Cell(
            f"{mark} {state_words(row)}{' cordoned' if row.cordoned else ''}",
            style if mark != "●" else theme.ODD if row.cordoned else "",
        ),
        dash_if_none(row.shards),
        unknown if row.entities is None else figure(row.entities),
        unknown if row.max_lag_ms is None else _behind(row.max_lag_ms),
        unknown if row.cpu_ratio is None else Cell(f"{sparkline(cpu, _SPARK, 1.0)} {newest:.0%}", rank=newest),
        unknown if row.rss_bytes is None else amount(row.rss_bytes),
        unknown if queue is None else figure(queue),
        unknown if row.uptime_s is None else lasting(row.uptime_s),
        Cell(",".join(row.roles)),
        Cell(row.address),
    )
    return Row(row.name, cells, row.status)


def _behind(lag_ms: int) -> Cell:
    return Cell(lag(lag_ms), theme.ODD if lag_ms > 5_000 else "", lag_ms)


# ---- panes


def node_row(state: State, name: str) -> NodeRow | None:
    """A node's row in what was pushed."""
    return next((row for row in state.status.nodes if row.name == name), None) if state.status else None


def _pane(key: str, name: str, draw: Draw, queries: Asks, without: str = "") -> Tab:
    """Of a node that is absent nobody can be asked: all panes tell how it went and what brings it back, and why they
    tell nothing else: `without`, with the node's name for `{name}`."""

    def told(glance: Glance, where: Where) -> list[Line]:
        missed = absent.absent_node(glance.state, where[-1])
        if missed is None:
            return draw(glance, where)
        lines = absent.whole(glance.state, missed, glance.width)
        why = without.format(name=missed.name)
        return lines + (paragraph(why, glance.width, theme.ODD, 3) if why else [])

    def asked(state: State, where: Where) -> tuple[Query, ...]:
        return () if absent.absent_node(state, where[-1]) else queries(state, where)

    return Tab(key, name, told, asked)


def _show_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetNode(node=where[-1]), every_s=5),)


def _about_of(state: State, where: Where) -> tuple[Query, ...]:
    row = node_row(state, where[-1])
    return (*_show_of(state, where), *((OPERATIONS,) if row is not None and row.cordoned else ()))


def _cordoned(state: State, name: str) -> str:
    """That it is cordoned, since when and why, by the operation that did it where that is on record."""
    told = state.told(OPERATIONS.params, OperationList)
    done = (each for each in told.items if each.verb == "cordon") if told else ()
    found = max((each for each in done if each.target == f"node/{name}"), key=lambda one: one.started_at, default=None)
    if found is None:
        return "cordoned: it keeps its shards and gets no more"
    when = moment(found.started_at, state.told_at, ages=state.ages)
    reason = f": {found.reason}" if found.reason else ", no reason was given"
    return f"cordoned by {found.id}, {when}{reason}; it keeps its shards and gets no more"


def _about(glance: Glance, where: Where) -> list[Line]:
    row = node_row(glance.state, where[-1])
    if row is None:
        return [[("the node is not a member any more", theme.FAINT)]]
    mark, style = theme.node_sign(row.status, reachable=row.reachable, ready=row.ready)
    facts = (
        ("roles", ",".join(row.roles)),
        ("incarnation", str(row.incarnation)),
        ("up", known(row.uptime_s, span)),
        ("pid", known(row.pid, str)),
        ("version", row.version or "?"),
        ("address", row.address),
        ("admin", row.admin or "-"),
        ("http", row.http or "-"),
        ("shards", str(row.shards)),
        ("entities", known(row.entities, count)),
        ("lag", known(row.max_lag_ms, lag)),
        ("memory", known(row.rss_bytes, size)),
        ("cpu", known(row.cpu_ratio, "{:.1%} since it started".format)),
    )
    named: Line = [
        (f"{visible(row.name)} ", theme.STRONG),
        (f"{mark} {state_words(row)}{' cordoned' if row.cordoned else ''}", style),
    ]
    lines = flow([named, *(fact(name, value) for name, value in facts)], glance.width)
    if row.cordoned:
        lines += paragraph(_cordoned(glance.state, row.name), glance.width, theme.ODD, 3)
    if not row.ready:
        reasons = "; ".join(row.why_not_ready) or "it does not say why"
        lines += paragraph(f"not ready: {reasons}", glance.width, theme.ODD, 4)
    show = glance.state.told(GetNode(node=where[-1]), NodeShow)
    if show is None:
        return lines
    if show.phases:
        told: list[Line] = [[(visible(phase), "")] for phase in show.phases]
        lines += flow([[("phases ", theme.HEADING)], *told], glance.width)
    lines += counters("entities", show.entities_by_kind, glance.width)
    return lines + counters("counters", show.counters, glance.width)


def _views(glance: Glance, where: Where) -> list[Line]:
    """Who sees this node how, and what it waits for."""
    row = node_row(glance.state, where[-1])
    show = glance.state.told(GetNode(node=where[-1]), NodeShow)
    lines: list[Line] = []
    told = (
        ("reported unreachable by", (row.observers if row else ()) or (show.observers_against if show else ())),
        ("not joined", show.why_not_joined if show else ()),
        ("not ready", row.why_not_ready if row and not row.ready else ()),
    )
    for words, names in told:
        if names:
            lines += paragraph(f"{words}: {', '.join(names)}", glance.width, theme.ODD, 4)
    return lines or [[("● nobody reports it unreachable; it is joined and ready", theme.GOOD)]]


def _peers(glance: Glance, where: Where) -> list[Line]:
    show = glance.state.told(GetNode(node=where[-1]), NodeShow)
    if show is None or not show.peers:
        return [[("empty: it has told of no peers", theme.FAINT)]]
    lines = grid(("PEER", "LINK", "WAITING control", "data", "WHY"), [_peer(peer) for peer in show.peers], glance.width)
    for peer in show.peers:
        if peer.skew:
            lines += paragraph(f"{peer.node} has another release: {'; '.join(peer.skew)}", glance.width, theme.ODD, 3)
    return lines


def _peer(peer: NodePeer) -> list[Cell]:
    well = peer.link in ("up", "open", "ready", "connected", "joined")
    waiting = theme.ODD if peer.waiting_data or peer.waiting_control else theme.FAINT
    return [
        Cell(peer.node),
        Cell(peer.link, theme.GOOD if well else theme.ODD),
        Cell(count(peer.waiting_control), waiting),
        Cell(count(peer.waiting_data), waiting),
        Cell(peer.why, theme.ODD),
    ]


def _mailboxes_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetMailboxes(node=where[-1], limit=20), every_s=2),)


def _mailboxes(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetMailboxes(node=where[-1], limit=20), NodeMailboxes)
    if told is None:
        return []
    facts = (
        ("waiting", count(told.waiting_count)),
        ("run queue", count(told.run_queue)),
        ("handled", count(told.handled_count)),
        ("overflowed", count(told.overflowed_count)),
    )
    lines = flow([fact(name, value) for name, value in facts], glance.width)
    rows = [[f"{item.kind}/{item.id}", item.state, f"{item.messages}/{item.messages_max}"] for item in told.items]
    lines += (
        grid(("MAILBOX", "STATE", "MESSAGES"), rows, glance.width) if rows else [[("no mailbox waits", theme.GOOD)]]
    )
    slow = [
        [each.kind, each.message_type, str(each.count), f"{each.longest_ms} ms", each.last_id] for each in told.slow
    ]
    return lines + (grid(("SLOW", "MESSAGE", "TIMES", "LONGEST", "LAST"), slow, glance.width) if slow else [])


def _log_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetLogs(node=where[-1], limit=100), every_s=2),)


def _log(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetLogs(node=where[-1], limit=100), LogList)
    if told is None:
        return []
    if not told.items:
        return [[("empty: it has logged nothing", theme.FAINT)]]
    now = glance.state.told_at
    return [
        [
            (f"{moment(item.at, now, ages=False)} ", theme.FAINT),
            (f"{visible(item.level):7} ", level_style(item.level)),
            (f"{visible(item.logger)} ", theme.FAINT),
            (visible(item.text), ""),
        ]
        for item in reversed(told.items)
    ]


def level_style(level: str) -> str:
    """How a log level looks."""
    return {"error": theme.BAD, "critical": theme.BAD, "warning": theme.ODD}.get(level.lower(), theme.FAINT)


def _settings(glance: Glance, where: Where) -> list[Line]:
    show = glance.state.told(GetNode(node=where[-1]), NodeShow)
    return flow([fact(name, value) for name, value in show.settings], glance.width) if show else []


def _can_stop_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetCanStop(node=where[-1]), every_s=5),)


def _can_stop(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetCanStop(node=where[-1]), CanStop)
    if told is None:
        return []
    word = ("● it can stop now", theme.GOOD) if told.can_stop else ("✗ it can NOT stop now", theme.BAD)
    held = f"{number_of(told.shards, 'shard')}, {number_of(told.entities, 'entity', 'entities')}"
    lines: list[Line] = [[word, (f"  {held} would go elsewhere", "")]]
    lines.append([(f"then {told.available} of {told.counted} counted members, {told.required} needed", theme.FAINT)])
    for reason in told.reasons:
        lines += paragraph(f"{reason.code}  {reason.about}: {reason.text}", glance.width, theme.ODD, 3)
    return lines


LEVEL = Level(
    "nodes",
    fixed(*_COLUMNS),
    _rows,
    lambda _state, _where: (RATES,),
    (
        _pane("a", "about", _about, _about_of),
        _pane("o", "observers", _views, _show_of, "no member observes it while it is none itself"),
        _pane("p", "peers", _peers, _show_of, _ONLY_ITSELF.format(what="its peers")),
        _pane("m", "mailboxes", _mailboxes, _mailboxes_of, _ONLY_ITSELF.format(what="its mailboxes")),
        _pane("l", "log", _log, _log_of, "nobody can be asked for its log: it lies in logs/{name}.log of its host"),
        _pane("c", "settings", _settings, _show_of, _ONLY_ITSELF.format(what="its settings")),
        _pane(
            "n", "can stop", _can_stop, _can_stop_of, "it is no member: nothing is held by it that could go elsewhere"
        ),
    ),
    empty="the cluster has no members",
    pushed=True,
    leads=lambda state, name: absent.absent_node(state, name) is None,
)
