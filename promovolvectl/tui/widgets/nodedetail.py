"""One node in depth: what its row says, and what it answered when it was asked."""

from __future__ import annotations

from collections.abc import Sequence

from node.admin.protocol import Counter, NodeRow, NodeShow
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.state import Detail, State, age_s
from promovolvectl.tui.text import Line, count, lag, natural, padded, size, span, width_of, wrapped
from promovolvectl.tui.widgets.figures import state_words


def detail_lines(state: State, cursor: str, now_ns: int, width: int) -> list[Line]:
    """Everything about the node under the cursor; counters only once they were asked for."""
    row = next((row for row in state.status.nodes if row.name == cursor), None) if state.status else None
    if row is None:
        return [[("no node is selected", theme.FAINT)]]
    lines = [*_about(row, width), *_reasons(row, width)]
    detail = state.detail
    if detail is None or detail.node != cursor:
        return [*lines, [("enter", theme.STRONG), (" asks the node for phases, counters and settings", theme.FAINT)]]
    return [*lines, *_asked(detail, now_ns, width)]


def _about(row: NodeRow, width: int) -> list[Line]:
    mark, style = theme.node_sign(row.status, reachable=row.reachable, ready=row.ready)
    facts = (
        ("roles", ",".join(row.roles)),
        ("incarnation", str(row.incarnation)),
        ("up", span(row.uptime_s)),
        ("pid", str(row.pid or "?")),
        ("version", row.version or "?"),
        ("address", row.address),
        ("admin", row.admin or "-"),
        ("http", row.http or "-"),
        ("shards", str(row.shards)),
        ("entities", count(row.entities)),
        ("lag", lag(row.max_lag_ms)),
        ("memory", size(row.rss_bytes)),
        ("cpu", f"{row.cpu_ratio:.1%} since it started"),
    )
    named: Line = [(f"{visible(row.name)} ", theme.STRONG), (f"{mark} {state_words(row)}", style)]
    return _flow([named, *(_fact(name, value) for name, value in facts)], width)


def _reasons(row: NodeRow, width: int) -> list[Line]:
    if row.ready:
        return []
    reasons = "; ".join(row.why_not_ready) or "it does not say why"
    found = wrapped(f"not ready: {visible(reasons)}", width, 4)
    return [[(text, theme.ODD)] for text in found]


def _asked(detail: Detail, now_ns: int, width: int) -> list[Line]:
    if detail.problem:
        told = wrapped(f"the node was asked and did not tell: {visible(detail.problem)}", width, 4)
        return [[(text, theme.BAD)] for text in told]
    if detail.show is None:
        return [[("asking …", theme.FAINT)]]
    show = detail.show
    age = span(age_s(detail.at_ns, now_ns))
    lines: list[Line] = [[("asked ", theme.FAINT), (age, ""), (" ago, enter asks again", theme.FAINT)]]
    lines += _views(show, width)
    lines += _counters("entities", show.entities_by_kind, width)
    lines += _counters("counters", show.counters, width)
    if show.settings:
        lines.append([("settings", theme.HEADING)])
        lines += _flow([_fact(name, value) for name, value in show.settings], width)
    return lines


def _views(show: NodeShow, width: int) -> list[Line]:
    lines: list[Line] = []
    if show.phases:
        lines += _flow([[("phases ", theme.HEADING)], *([(visible(name), "")] for name in show.phases)], width)
    told = (("held unreachable by", show.observers_against), ("not joined", show.why_not_joined))
    for words, names in told:
        if names:
            text = wrapped(f"{words}: {visible(', '.join(names))}", width, 3)
            lines += [[(line, theme.ODD)] for line in text]
    return lines


def _counters(title: str, counters: Sequence[Counter], width: int) -> list[Line]:
    """In columns, zeros left out: what never happened is no news."""
    counted = sorted((row for row in counters if row.count), key=lambda row: natural(row.name))
    if not counted:
        return [[(title, theme.HEADING), (" all zero", theme.FAINT)]]
    names = min(34, max(width_of([(visible(row.name), "")]) for row in counted))
    figures = max(len(count(row.count)) for row in counted)
    beside = max(1, (width + 2) // (names + figures + 3))
    deep = -(-len(counted) // beside)
    lines: list[Line] = [[(title, theme.HEADING)]]
    for number in range(deep):
        line: Line = []
        for row in counted[number::deep]:
            line += [("  ", "")] if line else []
            line.append((f"{padded(visible(row.name), names)} ", theme.FAINT))
            line.append((padded(count(row.count), figures, right=True), theme.STRONG))
        lines.append(line)
    return lines


def _fact(name: str, value: str) -> Line:
    return [(f"{visible(name)} ", theme.FAINT), (visible(value), "")]


def _flow(parts: Sequence[Line], width: int) -> list[Line]:
    """Parts one after the other, two columns apart, a new line where the next has no room."""
    lines: list[Line] = []
    for part in parts:
        if lines and width_of(lines[-1]) + 2 + width_of(part) <= width:
            lines[-1] = [*lines[-1], ("  ", ""), *part]
        else:
            lines.append(list(part))
    return lines
