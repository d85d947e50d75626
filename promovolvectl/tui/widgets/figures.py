"""The small panels of the Overview: members, serving, ServeIndex, faults, events."""

from __future__ import annotations

from datetime import datetime

from node.admin.protocol import AdminEvent, NodeRow
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.state import RATE_EVERY_NS, State, age_s
from promovolvectl.tui.text import Line, clock_time, count, lag, natural, padded, short, size, span
from promovolvectl.tui.widgets.sparkline import sparkline

_NAME_MAX = 20


def members(state: State, _now_ns: int, width: int, height: int) -> list[Line]:
    """A line for each node: state, readiness, shards, entities, lag, memory; columns go as the room does."""
    if state.status is None:
        return []
    rows = sorted(state.status.nodes, key=lambda row: natural(row.name))
    if not rows:
        return [[("empty: the cluster has no members", theme.FAINT)]]
    hidden = len(rows) - max(1, height - 2) if len(rows) > height - 1 else 0
    if hidden:  # trouble is never among those without room
        rows = sorted(rows, key=lambda row: row.reachable and row.ready and row.status == "up")[:-hidden]
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
    return [[(head, theme.FAINT)], *(_member(row, names, columns) for row in rows), *more]


def _member(row: NodeRow, names: int, columns: list[tuple[str, int]]) -> Line:
    mark, style = theme.node_sign(row.status, reachable=row.reachable, ready=row.ready)
    values = {
        "SHARDS": str(row.shards) if row.shards else "-",
        "ENTITIES": count(row.entities),
        "LAG": lag(row.max_lag_ms),
        "RSS": size(row.rss_bytes) if row.rss_bytes else "-",
    }
    cells = " ".join(padded(values[title], width, right=True) for title, width in columns)
    return [
        (f"{mark} ", style),
        (f"{padded(visible(row.name), names)} ", ""),
        (f"{padded(state_words(row), 12)} ", style if mark != "●" else ""),
        (cells, ""),
    ]


def state_words(row: NodeRow) -> str:
    """A node's state in one or two words."""
    if not row.reachable:
        return "unreachable"
    if row.status != "up":
        return visible(row.status)
    return "up" if row.ready else "not ready"


def serving(state: State, _now_ns: int, width: int, _height: int) -> list[Line]:
    """The request rate with its recent past, and how many ads were served."""
    if state.status is None:
        return []
    rate = f"{state.status.requests_per_s:,.1f}".replace(",", " ")
    top = f"max {max(state.rates, default=0.0):,.1f}".replace(",", " ")
    chart = max(4, min(60, width - len(rate) - len(top) - 10))
    seconds = min(chart, len(state.rates)) * RATE_EVERY_NS / 1e9
    return [
        [
            ("req/s ", theme.FAINT),
            (f"{rate} ", theme.STRONG),
            (sparkline(state.rates, chart), "$primary"),
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
    agree = ("● replicas agree", theme.GOOD) if index.agree else ("≠ replicas differ", theme.BAD)
    whole = covered.ratio >= 1.0
    return [
        [agree, (f"  {index.maps} maps", ""), (f"  lag {lag(index.max_lag_ms)}", "")],
        [
            ("keys ", theme.FAINT),
            (count(index.keys), theme.STRONG),
            (f"  tombstones {count(index.tombstones)}  pending {index.pending_removals}", theme.FAINT),
        ],
        [
            ("coverage ", theme.FAINT),
            (f"{covered.ratio:.3f}", theme.GOOD if whole else theme.ODD),
            (f"  {count(covered.present)} of {count(covered.expected)} slots", theme.FAINT),
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
            (f"  {status.members_up} members", ""),
            (f"  entity {status.available}/{status.required} needed", enough),
        ],
        [
            ("coordinator ", theme.FAINT),
            (coordinator, "" if status.coordinator else theme.BAD),
            (f" term {status.term}", theme.FAINT),
            (f"  leader {visible(status.leader or '-')}", theme.FAINT),
        ],
    ]


def faults(state: State, now_ns: int, width: int, height: int) -> list[Line]:
    """What is wrong, each with what it is about and since when."""
    if state.status is None:
        return []
    found = state.status.faults
    missing = state.meta.missing if state.meta else ()
    lines = [[(visible(line), theme.BAD)] for line in state.problem.splitlines()]
    lines += [
        [
            ("✗ ", theme.BAD),
            (f"{visible(fault.object)} ", theme.STRONG),
            (visible(fault.message), ""),
            (f"  {_since(state, fault.since, now_ns)}", theme.FAINT),
        ]
        for fault in found
    ]
    lines += [
        [("? ", theme.ODD), (f"{visible(row.node)} ", theme.STRONG), (f"did not answer: {visible(row.reason)}", "")]
        for row in missing
    ]
    if not lines:
        return [[("none", theme.GOOD)]]
    if len(lines) > height > 0:
        hidden = len(lines) - height + 1
        return [*lines[: height - 1], [(f"… {hidden} more", theme.FAINT)]]
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


def _since(state: State, since: str, now_ns: int) -> str:
    """How long something holds, by the cluster's own clock plus the age of what it told."""
    try:
        then = datetime.fromisoformat(since)
        told = datetime.fromisoformat(state.meta.observed_at) if state.meta else then
        return span((told - then).total_seconds() + age_s(state.status_at_ns, now_ns))
    except (ValueError, TypeError):
        return f"since {visible(since)}"
