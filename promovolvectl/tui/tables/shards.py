"""Shards as a table, all of them or one node's; and one shard in depth."""

from __future__ import annotations

from node.admin.protocol import (
    ExplainPlacement,
    GetShard,
    GetShardCheck,
    GetShards,
    PlacementExplanation,
    ShardCheck,
    ShardItem,
    ShardList,
    ShardShow,
)
from promovolvectl.tui import theme
from promovolvectl.tui.draw import counters, dash_if_none, fact, figure, flow, grid, moment, paragraph
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.text import Line
from promovolvectl.tui.views import Glance, Level, Tab, Where, fixed

_TOPICS = ("shard.", "coordinator.", "node.")
MAP = Query(GetShards(), every_s=10, topics=_TOPICS)
CHECK = Query(GetShardCheck(), every_s=60, topics=_TOPICS, wait_ms=10_000, rest_s=5)
_COLUMNS = (
    Column("SHARD", 6, right=True),
    Column("NODE", 28),
    Column("STATE", 14),
    Column("EPOCH", 7, right=True),
    Column("ENTITIES", 8, right=True),
    Column("PIN", 4),
    Column("WHY", 90),
)


def shard_of(state: State, number: str) -> ShardItem | None:
    """One shard of the map."""
    told = state.told(MAP.params, ShardList)
    return next((item for item in told.items if str(item.shard) == number), None) if told else None


def _rows(items: tuple[ShardItem, ...]) -> list[Row]:
    return [
        Row(
            str(item.shard),
            (
                figure(item.shard),
                Cell(item.node or "none", "" if item.node else theme.BAD),
                state_cell(item.state),
                figure(item.epoch),
                dash_if_none(item.entities),
                Cell("pin" if item.pinned else ""),
                Cell(item.why, theme.ODD),
            ),
            "pinned" if item.pinned else "",
        )
        for item in items
    ]


def state_cell(state: str) -> Cell:
    """A shard's state with its sign."""
    sign, style = {"running": ("●", ""), "moving": ("▲", theme.ODD)}.get(state, ("!", theme.BAD))
    return Cell(f"{sign} {state}", style)


def _all(state: State, _where: Where) -> list[Row]:
    told = state.told(MAP.params, ShardList)
    return _rows(told.items) if told else []


def _of_node(state: State, where: Where) -> list[Row]:
    told = state.told(GetShards(node=where[0]), ShardList)
    return _rows(told.items) if told else []


def _one(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetShard(shard=int(where[-1])), every_s=3, topics=("shard.",)),)


def _about(glance: Glance, where: Where) -> list[Line]:
    show = glance.state.told(GetShard(shard=int(where[-1])), ShardShow)
    if show is None:
        return []
    now = glance.state.told_at
    facts = [
        fact("shard", f"{show.shard} (0x{show.shard:02X})", theme.STRONG),
        fact("owner", show.node or "none", "" if show.node else theme.BAD),
        fact("epoch", str(show.epoch)),
        fact("state", show.state, "" if show.state == "running" else theme.ODD),
        fact("entities", str(show.entities)),
        fact("pin", show.pin or "-"),
        fact("buffered", f"{show.buffered} messages" + (f", {show.oldest_ms} ms" if show.buffered else "")),
    ]
    lines = flow(facts, glance.width)
    for text, style in ((show.why, theme.ODD), (show.move and f"hand-off: {show.move}", theme.ODD)):
        if text:
            lines += paragraph(text, glance.width, style, 3)
    if show.kinds:
        lines += counters("by type", show.kinds, glance.width)
    owners = [
        [
            moment(each.at, now, ages=glance.state.ages),
            each.node,
            str(each.incarnation),
            str(each.epoch),
            each.cause,
            f"{each.receipt.forwarded} forwarded, {each.receipt.refused} refused" if each.receipt else "no receipt",
        ]
        for each in reversed(show.history)
    ]
    if owners:
        lines += grid(("SINCE", "OWNER", "INC", "EPOCH", "CAUSE", "MESSAGES"), owners, glance.width)
    return lines


def _check_of(_state: State, _where: Where) -> tuple[Query, ...]:
    return (CHECK,)


def _check(glance: Glance, _where: Where) -> list[Line]:
    """All four views compared; trouble of every shard, since one fault is rarely alone."""
    told = glance.state.told(CHECK.params, ShardCheck)
    if told is None:
        return []
    lines: list[Line] = []
    for text in told.unchecked:
        lines += paragraph(f"not checked: {text}", glance.width, theme.ODD, 2)
    well = ("what was checked agrees", theme.ODD) if told.unchecked else ("✓ all views agree", theme.GOOD)
    lines.append(
        [
            well if told.ok else (f"✗ {len(told.faults)} faults", theme.BAD),
            ("  r checks again", theme.FAINT),
        ]
    )
    for fault in told.faults:
        where = f"shard {fault.shard} " if fault.shard >= 0 else ""
        lines += paragraph(f"{fault.kind}  {where}{fault.detail}; {fault.repair}", glance.width, theme.BAD, 3)
    return lines


def _why_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(ExplainPlacement(shard=int(where[-1])), every_s=10, topics=("shard.",)),)


def _why(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(ExplainPlacement(shard=int(where[-1])), PlacementExplanation)
    if told is None:
        return []
    lines: list[Line] = []
    for text in told.why:
        lines += paragraph(text, glance.width, "", 3)
    nodes = [
        [
            each.node,
            f"{each.capacity:g}",
            str(each.share),
            str(each.shards),
            Cell(each.why_not or "takes shards", "" if each.takes else theme.ODD),
        ]
        for each in told.nodes
    ]
    return lines + grid(("NODE", "CAPACITY", "SHARE", "HAS", ""), nodes, glance.width)


TABS = (
    Tab("a", "about", _about, _one),
    Tab("e", "explain", _why, _why_of),
    Tab("c", "check", _check, _check_of),
)
ALL = Level("shards", fixed(*_COLUMNS), _all, lambda _state, _where: (MAP,), TABS, empty="no shards")
OF_NODE = Level(
    "shards of the node",
    fixed(*_COLUMNS),
    _of_node,
    lambda _state, where: (Query(GetShards(node=where[0]), every_s=5, topics=_TOPICS),),
    TABS,
    empty="it owns no shard",
)
