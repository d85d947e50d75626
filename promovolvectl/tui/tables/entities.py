"""Entities in memory, those in quarantine, and dead letters; one of each in depth."""

from __future__ import annotations

from collections import Counter as Tally
from datetime import datetime
from typing import Final

from node.admin.protocol import (
    DeadLetterList,
    DeadLetterShow,
    EntityItem,
    EntityList,
    EntityShow,
    GetDeadLetter,
    GetDeadLetters,
    GetEntities,
    GetEntity,
    GetQuarantine,
    GetShards,
    QuarantineList,
    ShardList,
)
from node.admin.protocol.diagnosis import EntityHistory, GetEntityHistory
from promovolvectl.tui import theme
from promovolvectl.tui.draw import amount, fact, figure, flow, grid, moment, paragraph, title
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line, count, number_of
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, fixed
from promovolvectl.tui.windows import PAGE

_COLUMNS = (
    Column("ENTITY", 44),
    Column("SHARD", 5, right=True),
    Column("NODE", 24),
    Column("STATE", 14),
    Column("MAILBOX", 7, right=True),
    Column("USED", 14, right=True),
    Column("FAILS", 5, right=True),
    Column("EPOCH", 6, right=True),
)
QUARANTINE = Query(GetQuarantine(), every_s=5)
_OF_SHARD_MAX = 500
_ODD_STATES = {"quarantined": theme.BAD, "backoff": theme.ODD, "loading": theme.ODD, "stopping": theme.ODD}


def name_of(kind: str, identity: str) -> str:
    """`type/id`, as commands take it."""
    return f"{kind}/{identity}"


def parted(key: str) -> tuple[str, str]:
    """Type and id of a name."""
    kind, _, identity = key.partition("/")
    return kind, identity


def _row(state: State, item: EntityItem) -> Row:
    cells = (
        Cell(name_of(item.kind, item.id)),
        figure(item.shard),
        Cell(item.node),
        Cell(item.state, _ODD_STATES.get(item.state, "")),
        figure(item.mailbox),
        _used(state, item.last_used),
        Cell(str(item.failures), theme.ODD if item.failures else theme.FAINT, item.failures),
        figure(item.epoch),
    )
    return Row(name_of(item.kind, item.id), cells)


def _used(state: State, at: str) -> Cell:
    try:
        rank = datetime.fromisoformat(at).timestamp()
    except ValueError:
        rank = 0.0
    return Cell(moment(at, state.told_at, ages=state.ages), theme.FAINT, rank)


def _page(state: State, _where: Where) -> tuple[Query, ...]:
    window = state.window
    kind, node, standing = window.term("type"), window.term("node"), window.term("state")
    return (Query(GetEntities(node=node, kind=kind, state=standing, limit=PAGE, after=window.after), every_s=3),)


def _told(state: State, where: Where) -> EntityList | None:
    return state.told(_page(state, where)[0].params, EntityList)


def _all(state: State, where: Where) -> list[Row]:
    told = _told(state, where)
    return [_row(state, item) for item in told.items] if told else []


def _more(state: State, where: Where) -> str:
    told = _told(state, where)
    if told is None or not (told.next or state.window.pages or told.total > len(told.items)):
        return ""
    return f"of {count(told.total)} in memory {state.window.words(bool(told.next))}".rstrip()


def _onward(state: State, where: Where) -> str:
    told = _told(state, where)
    return told.next if told else ""


def _of_shard_query(state: State, where: Where) -> tuple[Query, ...]:
    """A node tells of its entities; those of one shard are picked out of them."""
    of = GetEntities(node=_owner(state, where), limit=_OF_SHARD_MAX, after=state.window.after)
    return (Query(of, every_s=3),)


def _owner(state: State, where: Where) -> str:
    if len(where) > 1:
        return where[0]
    told = state.told(GetShards(), ShardList)
    shards = told.items if told else ()
    return next((item.node or "" for item in shards if str(item.shard) == where[-1]), "")


def _of_shard(state: State, where: Where) -> list[Row]:
    told = state.told(_of_shard_query(state, where)[0].params, EntityList)
    return [_row(state, item) for item in told.items if str(item.shard) == where[-1]] if told else []


def _of_shard_onward(state: State, where: Where) -> str:
    told = state.told(_of_shard_query(state, where)[0].params, EntityList)
    return told.next if told else ""


def _of_shard_more(state: State, where: Where) -> str:
    words = state.window.words(bool(_of_shard_onward(state, where)))
    return f"among {_OF_SHARD_MAX} of the node, {words}" if words else ""


# ---- one entity


def _one(_state: State, where: Where) -> tuple[Query, ...]:
    kind, identity = parted(where[-1])
    return (Query(GetEntity(kind=kind, id=identity), every_s=3),)


def _about(glance: Glance, where: Where) -> list[Line]:
    kind, identity = parted(where[-1])
    show = glance.state.told(GetEntity(kind=kind, id=identity), EntityShow)
    if show is None:
        return []
    now, ages = glance.state.told_at, glance.state.ages
    facts = [
        fact(show.kind, show.id, theme.STRONG),
        fact("shard", str(show.shard)),
        fact("node", show.node or "none"),
        fact("epoch", str(show.epoch)),
        fact("state", show.state, _ODD_STATES.get(show.state, "")),
        fact("mailbox", str(show.mailbox)),
        fact("asks open", str(show.asks_open)),
        fact("revision", f"{show.revision} in memory, {show.durable_revision} durable (epoch {show.durable_epoch})"),
        fact("used", moment(show.last_used, now, ages=ages)),
        fact("failures", str(show.failures), theme.ODD if show.failures else ""),
    ]
    lines = flow(facts, glance.width)
    if show.last_error:
        at = moment(show.failed_at, now, ages=ages)
        over = f" over {show.message_type}, {show.message_bytes} bytes" if show.message_type else ""
        lines += paragraph(f"failed {at}{over}: {show.last_error}", glance.width, theme.BAD, 6)
    return lines


def _history_of(_state: State, where: Where) -> tuple[Query, ...]:
    kind, identity = parted(where[-1])
    return (Query(GetEntityHistory(kind=kind, id=identity), every_s=10),)


def _history(glance: Glance, where: Where) -> list[Line]:
    kind, identity = parted(where[-1])
    told = glance.state.told(GetEntityHistory(kind=kind, id=identity), EntityHistory)
    if told is None:
        return []
    now = glance.state.told_at
    rows = [
        [
            moment(each.at, now, ages=glance.state.ages),
            f"{each.node}@{each.incarnation}",
            str(each.epoch),
            each.cause,
            Cell("wrote last" if each.last_writer else "", theme.GOOD),
        ]
        for each in reversed(told.items)
    ]
    head = title("owners", f"{told.fenced_count} writes under an old epoch were refused")
    return [head, *grid(("SINCE", "OWNER", "EPOCH", "CAUSE", ""), rows, glance.width)]


TABS = (Tab("a", "about", _about, _one), Tab("h", "history", _history, _history_of))
OF_SHARD = Level(
    "entities of the shard",
    fixed(*_COLUMNS),
    _of_shard,
    _of_shard_query,
    TABS,
    empty=f"none of these {_OF_SHARD_MAX} entities of the node is in this shard",
    more=_of_shard_more,
    onward=_of_shard_onward,
)


# ---- quarantine


def _quarantined(state: State, _where: Where) -> list[Row]:
    told = state.told(QUARANTINE.params, QuarantineList)
    return [
        Row(
            name_of(item.kind, item.id),
            (
                Cell(name_of(item.kind, item.id), theme.BAD),
                figure(item.shard),
                Cell(item.node),
                Cell(moment(item.since, state.told_at, ages=state.ages), theme.FAINT),
                figure(item.failures),
                Cell(item.message_type),
                Cell(item.error),
            ),
        )
        for item in (told.items if told else ())
    ]


_QUARANTINE = Level(
    "quarantine",
    fixed(
        Column("ENTITY", 44),
        Column("SHARD", 5, right=True),
        Column("NODE", 24),
        Column("SINCE", 14),
        Column("FAILS", 5, right=True),
        Column("MESSAGE", 24),
        Column("ERROR", 90),
    ),
    _quarantined,
    lambda _state, _where: (QUARANTINE,),
    TABS,
    empty="no entity has failed too often",
)


# ---- dead letters


def _newest_letters(state: State, _where: Where) -> tuple[Query, ...]:
    window = state.window
    node, reason, kind = window.term("node"), window.term("reason"), window.term("type")
    return (Query(GetDeadLetters(node=node, reason=reason, message_type=kind, limit=PAGE), every_s=5),)


def _letters(state: State, where: Where) -> list[Row]:
    told = state.told(_newest_letters(state, where)[0].params, DeadLetterList)
    return [_letter(state, item) for item in told.items] if told else []


def _letter(state: State, item: DeadLetterShow) -> Row:
    cells = (
        Cell(item.id),
        Cell(moment(item.at, state.told_at, ages=state.ages), theme.FAINT),
        Cell(item.reason, theme.ODD),
        Cell(item.message_type),
        Cell(item.to),
        Cell(item.node),
        amount(item.message_bytes),
        figure(item.deliveries),
        Cell("yes" if item.replayable else "no", "" if item.replayable else theme.FAINT),
    )
    return Row(item.id, cells, item.error)


def _letters_more(state: State, where: Where) -> str:
    told = state.told(_newest_letters(state, where)[0].params, DeadLetterList)
    if told is None or not told.items:
        return ""
    by_reason = Tally(item.reason for item in told.items).most_common(3)
    kept = f"of {count(told.total)} kept: " if told.total > len(told.items) else "· "
    return kept + ", ".join(f"{reason} {number}" for reason, number in by_reason)


def _letter_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetDeadLetter(id=where[-1]), every_s=5),)


def _letter_about(glance: Glance, where: Where) -> list[Line]:
    item = glance.state.told(GetDeadLetter(id=where[-1]), DeadLetterShow)
    if item is None:
        return []
    facts = [
        fact("letter", item.id, theme.STRONG),
        fact("at", item.at),
        fact("reason", item.reason, theme.ODD),
        fact("type", item.message_type),
        fact("to", item.to),
        fact("from", item.sender),
        fact("node", item.node),
        fact("bytes", count(item.message_bytes)),
        fact("delivered", number_of(item.deliveries, "time")),
        fact("trace", item.trace or "-"),
        fact("can be sent again", "yes" if item.replayable else "no: it was the entity's own"),
    ]
    lines = flow(facts, glance.width)
    return lines + (paragraph(item.error, glance.width, theme.BAD, 8) if item.error else [])


_LETTERS = Level(
    "dead letters",
    fixed(
        Column("LETTER", 24),
        Column("AT", 14),
        Column("REASON", 16),
        Column("TYPE", 28),
        Column("TO", 36),
        Column("NODE", 20),
        Column("SIZE", 8, right=True),
        Column("TRIES", 5, right=True),
        Column("AGAIN", 5),
    ),
    _letters,
    _newest_letters,
    (Tab("a", "about", _letter_about, _letter_of),),
    empty="every message was handled",
    more=_letters_more,
    asked=("node", "reason", "type"),
)
_ALL = Level(
    "entities",
    fixed(*_COLUMNS),
    _all,
    _page,
    TABS,
    empty="none in memory",
    more=_more,
    onward=_onward,
    asked=("node", "state", "type"),
)

VIEWS: Final[tuple[View, ...]] = (
    View("entities", (_ALL,)),
    View("quarantine", (_QUARANTINE,)),
    View("dead letters", (_LETTERS,)),
)
