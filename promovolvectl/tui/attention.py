"""What needs somebody's eyes, the worst first: faults, reasons against health, who did not answer, work that is held
up."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final, NamedTuple

from node.admin.protocol import ListOperations, OperationList
from node.admin.protocol.cluster import AbsentNode
from promovolvectl.tui import absent, theme
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.text import number_of, span

_BETWEEN: Final = "\x1f"  # in a key, behind the object's name, which may hold any other character
COLUMNS = (
    Column("", 1),
    Column("OBJECT", 26, stays=True),
    Column("FOR", 8, right=True),
    Column("WHAT", 100),  # a text is cut where there is no room, the column of a figure would go
)


class _Note(NamedTuple):
    """`kind` tells apart what is said of one object; what is said may change while a person looks at it."""

    grade: str
    about: str
    kind: str
    text: str
    since: str = ""


def rows(state: State) -> list[Row]:
    """Each about one object, the worst first."""
    found: dict[str, Row] = {}
    for note in _all(state) if state.status else ():
        mark, style = theme.grade_sign(note.grade)
        key = f"{note.about}{_BETWEEN}{note.kind}"
        lasts = _lasts(state, note.since)
        cells = (Cell(mark, style), Cell(note.about, theme.STRONG), Cell(lasts, theme.FAINT), Cell(note.text))
        found.setdefault(key, Row(key, cells, note.grade, note.about))
    return list(found.values())


def object_of(key: str) -> str:
    """What a row is about, as events and faults name it."""
    return key.partition(_BETWEEN)[0]


def _all(state: State) -> Iterator[_Note]:
    yield from _faults(state)
    yield from _work(state)
    yield from _wanted(state)


def _faults(state: State) -> Iterator[_Note]:
    status = state.status
    if status is None:
        return
    for fault in status.faults:
        yield _Note("fail", fault.object, fault.code, fault.message, fault.since)
    missed = {f"node/{each.name}" for each in status.absent}
    for reason in state.health.reasons if state.health else ():
        if not (reason.code == absent.CODE and reason.object in missed):
            yield _Note("warn", reason.object, reason.code, reason.text)
    for each in status.absent:
        if not absent.told_to_go(each):
            yield _absent("warn", state, each)
    for row in state.meta.missing if state.meta else ():
        yield _Note("unknown", f"node/{row.node}", "silent", f"did not answer: {row.reason}", row.since)


def _work(state: State) -> Iterator[_Note]:
    operations = state.told(ListOperations(), OperationList)
    for item in operations.items if operations else ():
        for phase in item.phases:
            if item.state == "running" and phase.state == "running" and phase.blockers:
                text = f"{item.verb} {item.target} waits for {phase.blockers[0]}"
                yield _Note("warn", f"op/{item.id}", phase.name, text)


def _wanted(state: State) -> Iterator[_Note]:
    """What is so because somebody wants it so, and what is empty because nobody does."""
    status = state.status
    if status is None:
        return
    covered = status.coverage
    if covered.ratio is None or covered.expected is None or covered.present is None:
        yield _Note(
            "unknown", "slots", "coverage", "not all sites have told of their slots yet: 6 shows those that have"
        )
    elif covered.present < covered.expected:
        empty, slots = covered.expected - covered.present, number_of(covered.expected, "slot")
        text = f"{empty} of {slots} {'is' if empty == 1 else 'are'} empty: 6 Serving says why"
        yield _Note("note", "slots", "coverage", text)
    for row in status.nodes:
        if row.cordoned:
            text = f"cordoned, gets no more shards: promovolvectl node uncordon {row.name}"
            yield _Note("note", f"node/{row.name}", "cordon", text)
    for each in status.absent:
        if absent.told_to_go(each):
            yield _absent("note", state, each)


def _absent(grade: str, state: State, each: AbsentNode) -> _Note:
    return _Note(grade, f"node/{each.name}", absent.CODE, f"{absent.words(state, each)}: {each.back}", each.since)


def _lasts(state: State, since: str) -> str:
    """How long something holds, by the cluster's own clock."""
    if not since or not state.told_at:
        return ""
    try:
        seconds = (datetime.fromisoformat(state.told_at) - datetime.fromisoformat(since)).total_seconds()
        return span(seconds)
    except (ValueError, TypeError):
        return since
