"""What stands above and below every screen: whose data this is and how fresh, the health, the nodes in a strip."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from textual import events

from node.admin.protocol import ClusterStatus, NodeRow
from node.admin.protocol.cluster import AbsentNode
from node.core.clock import SECOND
from promovolvectl.client.visible import visible
from promovolvectl.tui import absent, keys, theme
from promovolvectl.tui.state import Phase, State, age_s, phase, silent
from promovolvectl.tui.text import Line, clock_time, fitted, span, width_of
from promovolvectl.tui.widgets.lines import Lines


class _Stripped(NamedTuple):
    """A node in the strip; those that are not well come first."""

    well: bool
    name: str
    up: bool
    mark: tuple[str, str]

    @classmethod
    def of(cls, row: NodeRow | AbsentNode) -> _Stripped:
        if isinstance(row, AbsentNode):
            return cls(False, row.name, False, absent.sign(row))
        up = row.reachable and row.status == "up"
        return cls(
            up and row.ready, row.name, up, theme.node_sign(row.status, reachable=row.reachable, ready=row.ready)
        )


class Bar(Lines):
    """One line; `kind` is the name of one of the lines below."""

    def __init__(self, kind: str, screen: str = "") -> None:
        super().__init__(kind)
        self._draw = _LINES.get(kind) or partial(_screens, screen)
        self._seen: tuple[State, int] | None = None

    def show(self, state: State, now_ns: int) -> None:
        self._seen = (state, now_ns)
        self.again()

    def drawn(self) -> list[Line]:
        return [self._draw(*self._seen, self.size.width)] if self._seen else []

    def on_click(self, event: events.Click) -> None:
        """On the line of screens: opens the one that was hit."""
        if self.id != "screens":
            return
        place = 0
        for text, _ in self._lines[0] if self._lines else ():
            if place <= event.x - 1 < place + len(text):
                key = text.strip().partition(" ")[0]
                found = next((name for digit, name, _ in keys.SCREENS if digit == key), None)
                if found is not None:
                    self.run_worker(self.app.run_action(f"board('{found}')"))
                return
            place += len(text)


def title_line(state: State, now_ns: int, width: int) -> Line:
    """Cluster and profile at the left; at the right the connection's state, its node and the data's age."""
    words, style = theme.sign_of(phase(state, now_ns))
    right: Line = [piece for badge in state.badges for piece in ((visible(badge), theme.ODD), (" · ", theme.FAINT))]
    right.append((words, style))
    if state.connected and state.where:
        right.append((f" · {visible(state.where)}", ""))
    if state.status_at_ns:
        right.append((f" · {span(age_s(state.status_at_ns, now_ns))}", ""))
    left: Line = [("promovolvectl", theme.STRONG)]
    if state.meta is not None:
        left += [(" ─ ", theme.FAINT), (visible(state.meta.cluster_name), theme.STRONG)]
        left.append((f" ({visible(state.meta.cluster_id)})", theme.FAINT))
    elif state.profile:
        left += [(" ─ profile ", theme.FAINT), (visible(state.profile), theme.STRONG)]
    room = width - width_of(right) - 1
    if room < 4:
        return fitted(right, width)
    left = fitted(left, room)
    return [*left, (" " * (width - width_of(left) - width_of(right)), ""), *right]


def health_line(state: State, now_ns: int, width: int) -> Line:
    """The cluster's health as the node judged it; while away, why, and when the next try is."""
    current = phase(state, now_ns)
    if current in (Phase.OFFLINE, Phase.DENIED):
        return fitted(_away(state, now_ns), width)
    if state.status is None:
        return fitted([("waiting for the first answer", theme.FAINT)], width)
    line = _health(state, state.status)
    if current is Phase.FROZEN:
        line = [(f"FROZEN since {clock_time(state.frozen_since)}, f goes on · was ", theme.ODD), *line]
    if current is Phase.STALE:
        line = [(f"STALE {_why_stale(state, now_ns)} · was ", theme.ODD), *line]
    return fitted(line, width)


def screens_line(current: str, width: int) -> Line:
    """All screens with their keys, by shorter names where there is no room; only the keys where there is still less."""
    line: Line = []
    whole = {name: title for _, name, title in keys.SCREENS}
    for names in (whole, whole | keys.SHORT, {current: whole.get(current, "")}):
        line = []
        for key, name, _ in keys.SCREENS:
            here = name == current
            text = f"{key} {names[name]}" if name in names else key
            line += [(" ", "")] if line else []
            line.append((text, "bold reverse" if here else theme.FAINT))
        if width_of(line) <= width:
            return line
    return fitted(line, width)


def strip_line(state: State, now_ns: int, width: int) -> Line:
    """Every node by mark and name, trouble first; those without room are counted."""
    if state.status is None:
        return []
    live = phase(state, now_ns) is Phase.LIVE
    found: tuple[NodeRow | AbsentNode, ...] = (*state.status.absent, *state.status.nodes)
    rows = sorted(map(_Stripped.of, found))
    line: Line = []
    for number, row in enumerate(rows):
        mark, style = row.mark
        piece: Line = [(f"{mark} ", style if live else theme.FAINT), (f"{visible(row.name)}  ", "" if live else "dim")]
        rest = f"+{len(rows) - number} {'up' if all(each.up for each in rows[number:]) else 'more'}"
        if width_of([*line, *piece]) > width - (len(rest) if number + 1 < len(rows) else 0):
            return fitted([*line, (rest, theme.FAINT)], width)
        line += piece
    return fitted(line, width)


def counts(status: ClusterStatus) -> str:
    """The cluster in a few words, for screens too small for more."""
    shards = status.shards
    cov = "?" if status.coverage.ratio is None else f"{status.coverage.ratio:.2f}"
    return f"{absent.up_of_all(status)}  {shards.allocated}/{shards.total} shards  cov {cov}"


def tiny_line(state: State, now_ns: int, width: int) -> Line:
    """One line for a terminal too small for a screen."""
    current = phase(state, now_ns)
    words, style = theme.sign_of(current)
    if state.status is None:
        return fitted([(words, style)], width)
    health = state.health.state.upper() if state.health else "?"
    known: Line = [(f"{visible(health)} {counts(state.status)}", "" if current is Phase.LIVE else theme.FAINT)]
    if current is Phase.LIVE:
        return fitted(known, width)
    return fitted([(f"{words} {span(age_s(state.status_at_ns, now_ns))} ", style), *known], width)


def _why_stale(state: State, now_ns: int) -> str:
    if state.connected:
        return "the node went quiet" if silent(state, now_ns) else "the node answers, and pushes nothing"
    # Without a problem nothing was lost: the cluster was not asked yet, and this is what is remembered of it.
    return f"lost: {_first(state.problem)}" if state.problem else f"as it was at {clock_time(state.told_at)}"


def _health(state: State, status: ClusterStatus) -> Line:
    if state.health is None:
        return [("? health unknown: the node's release does not tell it", theme.ODD), (f"  {counts(status)}", "")]
    mark, style = theme.health_sign(state.health.state)
    line: Line = [(f"{mark} {visible(state.health.state.upper())}", style)]
    if not state.health.reasons:
        return [*line, (f"  {counts(status)}", theme.FAINT)]
    line.append((f"  {absent.up_of_all(status)}", theme.FAINT))
    for number, reason in enumerate(state.health.reasons):
        line.append(("  " if not number else " · ", theme.FAINT))
        name = reason.object.removeprefix("node/")
        missed = absent.absent_node(state, name) if reason.code == absent.CODE else None
        line.append((f"{visible(name)} {absent.words(state, missed) if missed else visible(reason.text)}", ""))
    return line


def _away(state: State, now_ns: int) -> Line:
    left_s = max(0, state.retry_at_ns - now_ns) / SECOND
    when = f"next try in {span(left_s)}" if left_s else "trying"
    return [(when, theme.ODD), ("  r now", ""), (f"  {_first(state.problem)}", "")]


def _first(problem: str) -> str:
    return visible(" ".join(line.strip() for line in problem.splitlines()))


def _screens(current: str, _state: State, _now_ns: int, width: int) -> Line:
    return screens_line(current, width)


_LINES: Final[dict[str, Callable[[State, int, int], Line]]] = {
    "title": title_line,
    "health": health_line,
    "strip": strip_line,
}
