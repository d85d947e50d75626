"""The small panels of the Overview: members, serving, ServeIndex, faults, events."""

from __future__ import annotations

from node.admin.protocol import AdminEvent, ListOperations, NodeRow, OperationList
from node.admin.protocol.cluster import AbsentNode
from node.core.clock import SECOND
from promovolvectl.client.visible import visible
from promovolvectl.tui import absent, theme
from promovolvectl.tui.series import EVERY_NS
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line, clock_time, count, known, lag, natural, padded, short, size, span
from promovolvectl.tui.widgets.sparkline import sparkline

_NAME_MAX = 20
_OPERATIONS_MAX = 3
_DRAINING = "draining"  # as a node says why it is not ready


def members(state: State, _now_ns: int, width: int, height: int) -> list[Line]:
    """A line for each node: state, readiness, shards, entities, lag, memory; columns go as the room does."""
    if state.status is None:
        return []
    found: tuple[NodeRow | AbsentNode, ...] = (*state.status.nodes, *state.status.absent)
    rows = sorted(found, key=lambda row: natural(row.name))
    if not rows:
        return [[("empty: the cluster has no members", theme.FAINT)]]
    hidden = len(rows) - max(1, height - 2) if len(rows) > height - 1 else 0
    if hidden:  # trouble is never among those without room
        rows = sorted(rows, key=_well)[:-hidden]
    names = min(_NAME_MAX, max(4, *(len(padded(visible(row.name), _NAME_MAX).rstrip()) for row in rows)))
    wanted = [("SHARDS", 6), ("ENTITIES", 8), ("LAG", 7), ("RSS", 8)]
    room = width - 2 - names - 1 - 12 - 1
    columns: list[tuple[str, int]] = []
    for column in wanted:
        if room >= column[1] + 1:
            columns.append(column)
            room -= column[1] + 1
    head = f"  {padded('NODE', names)} {padded('STATE', 12)} " + " ".join(
        padded(title, width_, right=True) for title, width_ in columns
    )
    more: list[Line] = [[(f"… {hidden} more", theme.FAINT)]] if hidden else []
    lines = [
        _missed(state, row, names) if isinstance(row, AbsentNode) else _member(state, row, names, columns)
        for row in rows
    ]
    return [[(head, theme.FAINT)], *lines, *more]


def _well(row: NodeRow | AbsentNode) -> bool:
    if isinstance(row, AbsentNode):
        return absent.told_to_go(row)
    return row.reachable and row.ready and row.status == "up"


def _missed(state: State, row: AbsentNode, names: int) -> Line:
    mark, style = absent.sign(row)
    return [(f"{mark} ", style), (f"{padded(visible(row.name), names)} ", ""), (absent.words(state, row), style)]


def _member(state: State, row: NodeRow, names: int, columns: list[tuple[str, int]]) -> Line:
    mark, style = theme.node_sign(row.status, reachable=row.reachable, ready=row.ready)
    words = state_words(row)
    held = words == "up" and row.cordoned
    values = {
        "SHARDS": str(row.shards) if row.shards else "-",
        "ENTITIES": known(row.entities, count),
        "LAG": known(row.max_lag_ms, lag),
        "RSS": known(row.rss_bytes, size),
    }
    cells = " ".join(padded(values[title], width, right=True) for title, width in columns)
    return [
        (f"{mark} ", style),
        (f"{padded(visible(row.name), names)} ", ""),
        (f"{padded('cordoned' if held else words, 12)} ", theme.ODD if held else style if mark != "●" else ""),
        (cells, ""),
    ]


def state_words(row: NodeRow) -> str:
    """A node's state in one or two words."""
    if not row.reachable:
        return "unreachable"
    if row.status != "up":
        return visible(row.status)
    return "up" if row.ready else "draining" if drains(row) else "not ready"


def drains(row: NodeRow) -> bool:
    """Whether it is being drained, and is there yet."""
    return row.status == "up" and _DRAINING in row.why_not_ready


def serving(state: State, _now_ns: int, width: int, _height: int) -> list[Line]:
    """The request rate with its recent past, and how many ads were served."""
    if state.status is None:
        return []
    points = state.series.of("requests")
    rate = f"{state.status.requests_per_s:,.1f}".replace(",", " ")
    top = f"max {max((point for point in points if point is not None), default=0.0):,.1f}".replace(",", " ")
    chart = max(4, min(60, width - len(rate) - len(top) - 10))
    seconds = min(chart, len(points)) * EVERY_NS / SECOND
    return [
        [
            ("req/s ", theme.FAINT),
            (f"{rate} ", theme.STRONG),
            (sparkline(points, chart), theme.CHART),
            (f" {top}", theme.FAINT),
        ],
        [
            ("served ", theme.FAINT),
            (count(state.status.served_count), theme.STRONG),
            (f"  chart {seconds:.0f}s, scale from 0", theme.FAINT),
        ],
    ]


def serveindex(state: State, _now_ns: int, _width: int, _height: int) -> list[Line]:
    """Whether replicas agree, what they hold, how far the last one is behind; and coverage."""
    if state.status is None:
        return []
    index, covered = state.status.serveindex, state.status.coverage
    agree = ("≠ replicas differ", theme.BAD)
    if index.agree is not False:
        agree = ("● replicas agree", theme.GOOD) if index.agree else ("? not all replicas answer", theme.ODD)
    told = "?" if covered.expected is None else count(covered.expected)
    filled = "?" if covered.present is None else count(covered.present)
    return [
        [agree, (f"  {index.maps} maps", ""), (f"  lag {lag(index.max_lag_ms)}", "")],
        [
            ("keys ", theme.FAINT),
            (count(index.keys), theme.STRONG),
            (f"  tombstones {count(index.tombstones)}  pending {index.pending_removals}", theme.FAINT),
        ],
        [
            (f"{filled} of {told} slots filled", ""),
            ("  cov ", theme.FAINT),
            ("?", theme.ODD)
            if covered.ratio is None
            else (f"{covered.ratio:.3f}", theme.GOOD if covered.ratio >= 1.0 else theme.ODD),
            (": more to come" if covered.ratio is None else "", theme.ODD),
        ],
    ]


def control(state: State, _now_ns: int, _width: int, _height: int) -> list[Line]:
    """Who decides, and whether all see the same."""
    status = state.status
    if status is None:
        return []
    same = ("● converged", theme.GOOD) if status.converged else ("◐ not converged", theme.ODD)
    enough = "" if status.available >= status.required else theme.BAD
    coordinator = visible(status.coordinator) if status.coordinator else "none"
    return [
        [
            same,
            (f"  {absent.up_of_all(status)}", ""),
            (f"  entity {status.available}/{status.required} needed", enough),
        ],
        [
            ("coordinator ", theme.FAINT),
            (coordinator, "" if status.coordinator else theme.BAD),
            (f" term {status.term}", theme.FAINT),
            (f"  leader {visible(status.leader or '-')}", theme.FAINT),
        ],
    ]


def running(state: State, _now_ns: int, width: int, _height: int) -> list[Line]:
    """Operations that are under way, each with its phase and what holds it up."""
    told = state.told(ListOperations(), OperationList)
    found = [item for item in told.items if item.state == "running"] if told else []
    if not found:
        return [[("empty: nothing is under way", theme.FAINT)]]
    lines: list[Line] = []
    for item in found[:_OPERATIONS_MAX]:
        phases = item.phases
        place = next((n for n, phase in enumerate(phases, 1) if phase.state == "running"), len(phases))
        phase = phases[place - 1] if phases else None
        lines.append(
            [
                ("◐ ", theme.ODD),
                (f"{visible(item.verb)} {visible(item.target)}", theme.STRONG),
                (f"  {place}/{len(phases)} {visible(phase.name) if phase else ''}", ""),
                (f"  {visible(phase.detail) if phase else ''}", theme.FAINT),
                (f"  {span(item.elapsed_s)}", theme.FAINT),
            ]
        )
        if phase is not None and phase.blockers:
            lines.append([("  ! waits for ", theme.ODD), (short(visible(phase.blockers[0]), max(8, width - 14)), "")])
    if len(found) > _OPERATIONS_MAX:
        lines.append([(f"… {len(found) - _OPERATIONS_MAX} more", theme.FAINT)])
    return lines


def events(state: State, _now_ns: int, width: int, height: int) -> list[Line]:
    """The newest events, newest first, and how many were lost."""
    lines: list[Line] = []
    if state.events_lost:
        lines.append([(f"! {count(state.events_lost)} events were lost", theme.ODD)])
    if not state.events:
        return [*lines, [("empty: nothing has happened since the dashboard was opened", theme.FAINT)]]
    return [*lines, *(_event(event, width) for event in reversed(state.events[-max(1, height - len(lines)) :]))]


def _event(event: AdminEvent, width: int) -> Line:
    topic = 20 if width >= 54 else 12
    style = theme.ODD if event.gap or event.topic.endswith(("lost", "down", "unreachable", "forced")) else ""
    return [
        (f"{clock_time(event.at) if event.at else '-':8} ", theme.FAINT),
        (f"{padded(visible(event.topic), topic)} ", style),
        (f"{short(visible(event.object), 24)} ", theme.STRONG),
        (visible(event.text), ""),
    ]
