"""What needs somebody's eyes, the worst first: faults, reasons against health, who did not answer, work that is held
up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from node.admin.protocol import ListOperations, OperationList
from promovolvectl.tui import absent, theme
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.text import span

_ABSENT: Final = "E-NODE-ABSENT"  # told of with how it went and what brings it back
COLUMNS = (Column("", 1), Column("OBJECT", 26), Column("WHAT", 100), Column("FOR", 8, right=True))


def rows(state: State) -> list[Row]:
    """Each about one object; `key` starts with `noun/name`, so that it can be opened."""
    found: dict[str, Row] = {}
    for grade, about, text, since in _all(state):
        mark, style = theme.grade_sign(grade)
        key = f"{about} {text}"
        lasts = _lasts(state, since)
        cells = (Cell(mark, style), Cell(about, theme.STRONG), Cell(text), Cell(lasts, theme.FAINT))
        found.setdefault(key, Row(key, cells, grade))
    return list(found.values())


def _all(state: State) -> Iterator[tuple[str, str, str, str]]:
    status = state.status
    if status is None:
        return
    for fault in status.faults:
        yield "fail", fault.object, fault.message, fault.since
    told = {(fault.object, fault.message) for fault in status.faults}
    missed = {f"node/{each.name}" for each in status.absent}
    for reason in state.health.reasons if state.health else ():
        if (reason.object, reason.text) not in told and not (reason.code == _ABSENT and reason.object in missed):
            yield "warn", reason.object, reason.text, ""
    for each in sorted(status.absent, key=absent.told_to_go):
        grade = "note" if absent.told_to_go(each) else "warn"
        yield grade, f"node/{each.name}", f"{absent.words(state, each)}: {each.back}", each.since
    for row in state.meta.missing if state.meta else ():
        yield "unknown", f"node/{row.node}", f"did not answer: {row.reason}", row.since
    operations = state.told(ListOperations(), OperationList)
    for item in operations.items if operations else ():
        for phase in item.phases:
            if item.state == "running" and phase.state == "running" and phase.blockers:
                text = f"{item.verb} {item.target} waits for {phase.blockers[0]}"
                yield "warn", f"op/{item.id}", text, ""


def _lasts(state: State, since: str) -> str:
    """How long something holds, by the cluster's own clock."""
    if not since or not state.told_at:
        return ""
    try:
        seconds = (datetime.fromisoformat(state.told_at) - datetime.fromisoformat(since)).total_seconds()
        return span(seconds)
    except (ValueError, TypeError):
        return since
