"""What happened, as it was pushed since the dashboard was opened and as the nodes keep it; and what they log."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final

import msgspec

from node.admin.protocol import AdminEvent
from node.admin.protocol.diagnosis import EventList, GetEventList, GetLogs, LogList
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import moment
from promovolvectl.tui.queries import ANY, Query
from promovolvectl.tui.rows import ROWS_MAX, Cell, Column, Row
from promovolvectl.tui.state import EVENTS_MAX, State
from promovolvectl.tui.tables.nodes import level_style
from promovolvectl.tui.text import Line, count, wrapped
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, fixed
from promovolvectl.tui.windows import PAGE

# What only another node saw is pushed to nobody here, so it is asked for in any case.
KEPT = Query(GetEventList(), every_s=5, topics=ANY, rest_s=2)
_ALARMING = ("lost", "down", "unreachable", "forced", "fenced", "storeless")


def topic_style(topic: str, gap: int) -> str:
    """How an event's topic looks."""
    return theme.ODD if gap or topic.endswith(_ALARMING) else ""


def _live(state: State, _where: Where) -> list[Row]:
    """Oldest first; an event's number among all that came is what tells it apart."""
    first = state.events_seen - len(state.events)
    # A time of day is the same all day long; only an age goes on with every push.
    now = state.told_at if state.ages or not state.told_at else f"{state.told_at[:10]}T00:00:00Z"
    return [_event(first + place, event, now, state.ages) for place, event in enumerate(state.events)]


@lru_cache(maxsize=2 * EVENTS_MAX)
def _event(number: int, event: AdminEvent, now: str, ages: bool) -> Row:
    """Kept, since thousands of them come in the time in which a screen is painted a few times."""
    return Row(
        str(number),
        (
            Cell(moment(event.at, now, ages=ages), theme.FAINT),
            Cell(event.node or "-"),
            Cell(event.topic, topic_style(event.topic, event.gap)),
            Cell(event.object, theme.STRONG),
            Cell(event.text),
        ),
    )


def _live_more(state: State, _where: Where) -> str:
    return f"· {count(state.events_lost)} lost" if state.events_lost else "since it was opened"


def _event_about(glance: Glance, where: Where) -> list[Line]:
    state = glance.state
    place = int(where[-1]) - (state.events_seen - len(state.events))
    return _document(state.events[place], glance.width) if 0 <= place < len(state.events) else []


def _kept(state: State, _where: Where) -> list[Row]:
    told = state.told(KEPT.params, EventList)
    items = told.items[-ROWS_MAX:] if told else ()
    return [
        Row(
            f"{item.node} {item.at} {item.topic} {item.object} {item.text}",
            (
                Cell(moment(item.at, state.told_at, ages=state.ages), theme.FAINT),
                Cell(item.node),
                Cell(item.topic, topic_style(item.topic, item.gap)),
                Cell(item.object, theme.STRONG),
                Cell(f"{item.gap} before this are kept no more" if item.gap > 0 else item.text),
            ),
        )
        for item in {(each.node, each.at, each.topic, each.object, each.text): each for each in items}.values()
    ]


def _kept_about(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(KEPT.params, EventList)
    for item in told.items if told else ():
        if f"{item.node} {item.at} {item.topic} {item.object} {item.text}" == where[-1]:
            return _document(item, glance.width)
    return []


def _logs_of(state: State, _where: Where) -> tuple[Query, ...]:
    window = state.window
    return (Query(GetLogs(node=window.term("node"), level=window.term("level"), limit=PAGE), every_s=2),)


def _logs(state: State, where: Where) -> list[Row]:
    told = state.told(_logs_of(state, where)[0].params, LogList)
    found: dict[str, Row] = {}
    for item in told.items[-ROWS_MAX:] if told else ():
        key = f"{item.node} {item.at} {item.logger} {item.text}"
        text = f"{item.gap} lines before this are kept no more" if item.gap else item.text
        found[key] = Row(
            key,
            (
                Cell(moment(item.at, state.told_at, ages=state.ages), theme.FAINT),
                Cell(item.node),
                Cell(item.level, level_style(item.level)),
                Cell(item.logger, theme.FAINT),
                Cell(text),
            ),
        )
    return list(found.values())


def _log_about(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(_logs_of(glance.state, where)[0].params, LogList)
    for item in told.items if told else ():
        if f"{item.node} {item.at} {item.logger} {item.text}" == where[-1]:
            return _document(item, glance.width)
    return []


def _document(item: msgspec.Struct, width: int) -> list[Line]:
    """The whole of it as JSON, wrapped and not cut."""
    text = json.dumps(msgspec.to_builtins(item), ensure_ascii=False)
    return [[(line, "")] for line in wrapped(visible(text), width, 40)]


_COLUMNS = (Column("AT", 14), Column("NODE", 20), Column("TOPIC", 22), Column("OBJECT", 28), Column("WHAT", 200))
LIVE = View(
    "events",
    (
        Level(
            "events",
            fixed(*_COLUMNS),
            _live,
            tabs=(Tab("a", "event as JSON", _event_about),),
            empty="nothing has happened since the dashboard was opened; v shows what the nodes keep",
            more=_live_more,
            pushed=True,
            newest="last",
        ),
    ),
)
VIEWS: Final[tuple[View, ...]] = (
    LIVE,
    View(
        "kept by the nodes",
        (
            Level(
                "kept events",
                fixed(*_COLUMNS),
                _kept,
                lambda _state, _where: (KEPT,),
                (Tab("a", "event as JSON", _kept_about),),
                empty="the nodes remember nothing",
                newest="last",
            ),
        ),
    ),
    View(
        "logs",
        (
            Level(
                "log lines",
                fixed(
                    Column("AT", 14),
                    Column("NODE", 20),
                    Column("LEVEL", 8),
                    Column("LOGGER", 28),
                    Column("WHAT", 300),
                ),
                _logs,
                _logs_of,
                (Tab("a", "line as JSON", _log_about),),
                empty="nothing was logged",
                asked=("node", "level"),
                newest="last",
            ),
        ),
    ),
)
