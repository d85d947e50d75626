"""The ServeIndex: maps against replicas, the keys of a map, one key on every replica; lag, removals, tombstones."""

from __future__ import annotations

from typing import Final

from node.admin.protocol import (
    DumpPage,
    EntryReplica,
    EntryVersion,
    GetDiff,
    GetDump,
    GetEntry,
    GetIndexStatus,
    GetKeyHistory,
    GetLag,
    GetMaps,
    GetPendingRemovals,
    GetRoster,
    GetTombstones,
    MapItem,
    MapReplica,
    ServeIndexDiff,
    ServeIndexEntry,
    ServeIndexHistory,
    ServeIndexLag,
    ServeIndexMaps,
    ServeIndexPending,
    ServeIndexRoster,
    ServeIndexStatus,
    ServeIndexTombstones,
)
from promovolvectl.client.visible import visible
from promovolvectl.tui import theme
from promovolvectl.tui.draw import amount, fact, figure, flow, grid, moment, paragraph
from promovolvectl.tui.queries import Query
from promovolvectl.tui.rows import Cell, Column, Row
from promovolvectl.tui.state import State
from promovolvectl.tui.tables.figures import chart_of
from promovolvectl.tui.text import Line, count, lag, number_of, size, span
from promovolvectl.tui.views import Glance, Level, Tab, View, Where, fixed

MAPS = Query(GetMaps(), every_s=3)
LAG = Query(GetLag(), every_s=2)
STATUS = Query(GetIndexStatus(), every_s=5)
PENDING = Query(GetPendingRemovals(), every_s=3)
TOMBSTONES = Query(GetTombstones(), every_s=10)
ROSTER = Query(GetRoster(), every_s=5)
_DIGEST_SHOWN = 4
_OPENED = {"set_aside": "file set aside", "older_copy": "older copy"}


def version_of(version: EntryVersion | None) -> str:
    """A version in the order in which versions are compared."""
    return f"{version.epoch}/{version.hlc}/{version.origin}" if version else "-"


# ---- maps against replicas


def _replicas(state: State) -> tuple[str, ...]:
    """Every node, those that told nothing too: a gap is to be seen."""
    told = state.told(MAPS.params, ServeIndexMaps)
    names = {replica.node for item in told.items for replica in item.replicas} if told else set()
    members = {row.name for row in state.status.nodes} if state.status else set()
    return tuple(sorted(names | members))


def _map_columns(state: State) -> tuple[Column, ...]:
    return (
        Column("MAP", 12),
        Column("KEYS", 8, right=True),
        *(Column(name, 16) for name in _replicas(state)),
        Column("TOMBST", 6, right=True),
        Column("SIZE", 8, right=True),
    )


def _maps(state: State, _where: Where) -> list[Row]:
    told = state.told(MAPS.params, ServeIndexMaps)
    names = _replicas(state)
    return [_map(item, names) for item in told.items] if told else []


def _map(item: MapItem, names: tuple[str, ...]) -> Row:
    by_node = {replica.node: replica for replica in item.replicas}
    digests = [replica.digest for replica in item.replicas]
    common = max(sorted(set(digests)), key=digests.count, default="")
    cells = (
        Cell(item.map, "" if item.agree else theme.BAD),
        figure(item.keys),
        *(_digest(by_node.get(name), common, item) for name in names),
        figure(item.tombstones),
        amount(item.bytes),
    )
    return Row(item.map, cells, "equal" if item.agree else "differs")


def _digest(replica: MapReplica | None, common: str, item: MapItem) -> Cell:
    if replica is None:
        return Cell("?", theme.ODD)
    if item.agree:
        return Cell("=", theme.FAINT)
    if replica.digest == common:
        return Cell(f"= {replica.digest[:_DIGEST_SHOWN]}", "")
    missing = item.keys - replica.keys
    return Cell(f"≠ {replica.digest[:_DIGEST_SHOWN]}{f' -{missing}' if missing > 0 else ''}", theme.BAD)


def _maps_more(state: State, _where: Where) -> str:
    told = state.told(MAPS.params, ServeIndexMaps)
    if told is None:
        return ""
    equal = sum(item.agree for item in told.items)
    return f"on {len(_replicas(state))} replicas · equal {equal}/{len(told.items)}"


def _status(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(STATUS.params, ServeIndexStatus)
    if told is None:
        return []
    row = next((item for item in told.items if item.map == where[0]), None)
    facts = [
        fact(
            "equal",
            f"{told.maps_equal}/{len(told.items)}",
            theme.GOOD if told.maps_equal == len(told.items) else theme.BAD,
        ),
        fact("keys", count(told.keys)),
        fact("tombstones", count(told.tombstones)),
        fact("oldest", span(told.oldest_tombstone_ms / 1000)),
        fact("pending removals", count(told.pending_removals)),
        fact("worst lag", lag(told.max_lag_ms)),
        fact("coverage", "?" if told.coverage_ratio is None else f"{told.coverage_ratio:.3f}"),
        fact("stable up to", moment(told.stable_at, glance.state.told_at, ages=glance.state.ages)),
    ]
    lines = flow(facts, glance.width)
    if row is not None and not row.agree:
        lines.append([(f"{visible(row.map)}: {row.leaves_different} of 256 leaves differ", theme.BAD)])
    for held in told.held_back_by:
        lines += paragraph(
            f"held back: {held.node} lacks {held.entries} of {held.writer}: {held.why}", glance.width, theme.ODD, 2
        )
    rows = [
        [
            item.node,
            Cell("ready" if item.ready else f"{item.synchronised_ratio:.0%}", theme.GOOD if item.ready else theme.ODD),
            count(item.keys),
            size(item.bytes),
            count(item.uncommitted),
            Cell(count(item.damaged), theme.BAD if item.damaged else theme.FAINT),
            lag(item.max_lag_ms),
            Cell("degraded" if item.degraded else _OPENED.get(item.opened, ""), theme.BAD),
        ]
        for item in told.replicas
    ]
    return lines + grid(("REPLICA", "STATE", "KEYS", "SIZE", "NOT ON DISK", "DAMAGED", "LAG", ""), rows, glance.width)


def _lags(glance: Glance, _where: Where) -> list[Line]:
    """Who is behind whom: a row for each writer, a column for each reader."""
    told = glance.state.told(LAG.params, ServeIndexLag)
    if told is None:
        return []
    names = sorted({item.from_node for item in told.items} | {item.to for item in told.items})
    by_pair = {(item.from_node, item.to): item for item in told.items}
    rows: list[list[Cell | str]] = []
    for writer in names:
        line: list[Cell | str] = [writer]
        for reader in names:
            item = by_pair.get((writer, reader))
            if item is None:
                line.append(Cell("-", theme.FAINT))
            elif item.reachable is False:
                line.append(Cell("offl", theme.BAD))
            elif item.lag_ms is None:
                line.append(Cell("?", theme.FAINT))
            else:
                style = theme.BAD if item.lag_ms > 5_000 else theme.ODD if item.entries else theme.FAINT
                line.append(Cell(f"{lag(item.lag_ms)}{f' ({item.entries})' if item.entries else ''}", style))
        rows.append(line)
    lines = grid(("WROTE ↓  HAS →", *names), rows, glance.width)
    return [*lines, *chart_of(glance.state, "lag", glance.width)]


def _diff_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetDiff(maps=(where[0],)), every_s=15, wait_ms=20_000),)


def _diff(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetDiff(maps=(where[0],)), ServeIndexDiff)
    if told is None:
        return []
    if told.equal:
        return [[("✓ all replicas hold the same", theme.GOOD), ("  r compares again", theme.FAINT)]]
    rows = [
        [item.key, item.kind, ", ".join(f"{view.node} {view.state}{'*' if view.wins else ''}" for view in item.views)]
        for item in told.items
    ]
    differ = "differs" if told.total == 1 else "differ"
    head: Line = [
        (f"✗ {number_of(told.total, 'key')} {differ}", theme.BAD),
        ("  * wins; r compares again", theme.FAINT),
    ]
    return [head, *grid(("KEY", "HOW", "REPLICAS"), rows, glance.width)]


# ---- keys of a map


def _keys_of(state: State, where: Where) -> tuple[Query, ...]:
    """A page of a dump goes on behind a key of a place, at the node that began it."""
    node, place, after = (*state.window.after.split("\0"), "", "", "")[:3]
    return (Query(GetDump(map=where[0], node=node, place=int(place or 0), after=after), every_s=10),)


def _keys_told(state: State, where: Where) -> DumpPage | None:
    return state.told(_keys_of(state, where)[0].params, DumpPage)


def _keys_onward(state: State, where: Where) -> str:
    told = _keys_told(state, where)
    return "\0".join((told.node, str(told.place), told.after)) if told and told.more else ""


def _keys(state: State, where: Where) -> list[Row]:
    told = _keys_told(state, where)
    return [
        Row(
            item.key,
            (
                Cell(item.key),
                Cell("removed" if item.removed else "live", theme.FAINT if item.removed else ""),
                Cell(version_of(item.version)),
                Cell(moment(item.expires_at, state.told_at, ages=False), theme.FAINT),
                amount(len(item.value)),
            ),
        )
        for item in (told.items if told else ())
    ]


def _keys_more(state: State, where: Where) -> str:
    told = _keys_told(state, where)
    return f"as {visible(told.node)} has them {state.window.words(told.more)}".rstrip() if told else ""


def _entry_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetEntry(key=where[-1]), every_s=3),)


def _entry(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetEntry(key=where[-1]), ServeIndexEntry)
    if told is None:
        return []
    now = glance.state.told_at
    facts = [
        fact("key", told.key, theme.STRONG),
        fact("map", told.map),
        fact("shard", str(told.shard)),
        fact("owner", told.owner or "none"),
        fact("replicas", "agree" if told.agree else "DIFFER", theme.GOOD if told.agree else theme.BAD),
    ]
    rows = [
        [
            each.node,
            Cell(each.state or ("live" if each.present else "absent"), "" if each.wins else theme.BAD),
            Cell(version_of(each.version), "" if each.wins else theme.BAD),
            span(each.age_ms / 1000) if each.age_ms is not None else "-",
            moment(each.expires_at, now, ages=False),
            _held(each),
            each.digest[:_DIGEST_SHOWN],
        ]
        for each in told.replicas
    ]
    lines = flow(facts, glance.width)
    held = "CAND" if all(each.number is None for each in told.replicas) else "NUMBER"  # a registry's name has that
    lines += grid(("NODE", "STATE", "VERSION", "AGE", "EXPIRES", held, "DIGEST"), rows, glance.width)
    winner = next((each for each in told.replicas if each.wins and each.candidates), None)
    if winner is not None:
        candidates = [
            [each.creative, each.campaign, each.advertiser, each.category, each.cpm] for each in winner.candidates
        ]
        lines += grid(("CREATIVE", "CAMPAIGN", "ADVERTISER", "CATEGORY", "CPM"), candidates, glance.width)
    return lines


def _held(replica: EntryReplica) -> str:
    return str(len(replica.candidates)) if replica.number is None else str(replica.number)


def _history_of(_state: State, where: Where) -> tuple[Query, ...]:
    return (Query(GetKeyHistory(key=where[-1]), every_s=5),)


def _history(glance: Glance, where: Where) -> list[Line]:
    told = glance.state.told(GetKeyHistory(key=where[-1]), ServeIndexHistory)
    if told is None:
        return []
    rows = [
        [
            moment(each.at, glance.state.told_at, ages=glance.state.ages) if each.at else "earlier",
            each.node,
            each.what,
            version_of(each.version),
            f"{each.bytes} B",
            f"from {each.source}" if each.source else "by a repair" if each.what == "mended" else "from the file",
        ]
        for each in reversed(told.items)
    ]
    lines = grid(("SINCE", "NODE", "WHAT", "VERSION", "SIZE", ""), rows, glance.width)
    if told.removal is not None:
        certificate = told.removal
        forgotten = "whom its owner does not remember: the audit log does"
        by = {"": "its own ad server", "?": forgotten}.get(certificate.asked_by, certificate.asked_by)
        text = f"removal asked for by {by}: on {certificate.available} of {certificate.required} disks needed"
        lines += paragraph(text, glance.width, theme.ODD, 2)
    return lines


# ---- removals


def _pending(state: State, _where: Where) -> list[Row]:
    told = state.told(PENDING.params, ServeIndexPending)
    return [
        Row(
            item.id,
            (
                Cell(item.key),
                Cell(item.node),
                Cell(f"{item.available}/{item.required}", theme.ODD, item.available),
                Cell(", ".join(item.awaited), theme.ODD),
                figure(item.attempts),
                Cell(moment(item.asked_at, state.told_at, ages=state.ages), theme.FAINT),
                Cell(item.asked_by),
                Cell("; ".join(f"{each.node}: {each.reason}" for each in item.refused)),
            ),
        )
        for item in (told.items if told else ())
    ]


def _tombstones(state: State, _where: Where) -> list[Row]:
    told = state.told(TOMBSTONES.params, ServeIndexTombstones)
    return [
        Row(
            item.key,
            (
                Cell(item.key),
                Cell(item.map),
                Cell(span(item.age_ms / 1000), rank=item.age_ms),
                Cell(item.caretaker),
                Cell(", ".join(item.awaited) or "all have it", theme.ODD if item.awaited else theme.FAINT),
                Cell(version_of(item.version)),
            ),
        )
        for item in (told.items if told else ())
    ]


def _tombstones_more(state: State, _where: Where) -> str:
    told = state.told(TOMBSTONES.params, ServeIndexTombstones)
    if told is None:
        return ""
    stuck = "; ".join(f"{each.node} settles none: {each.reason}" for each in told.not_settling)
    return (
        f"of {count(told.total)}, kept {span(told.min_age_ms / 1000)} at least{f' · {visible(stuck)}' if stuck else ''}"
    )


def _roster(state: State, _where: Where) -> list[Row]:
    told = state.told(ROSTER.params, ServeIndexRoster)
    return [
        Row(
            item.node,
            (
                Cell(item.node),
                Cell("yes" if item.counts else "no", "" if item.counts else theme.FAINT),
                Cell(item.phase or "no answer", theme.GOOD if item.phase == "complete" else theme.ODD),
                Cell(f"{item.progress_ratio:.0%}", rank=item.progress_ratio),
                Cell(item.member),
                figure(item.tenure),
                Cell(moment(item.since, state.told_at, ages=state.ages), theme.FAINT),
                Cell(item.cause),
            ),
        )
        for item in (told.items if told else ())
    ]


def _roster_more(state: State, _where: Where) -> str:
    told = state.told(ROSTER.params, ServeIndexRoster)
    return f"· {told.available} of {told.required} needed" if told else ""


_KEY_TABS = (Tab("a", "replicas", _entry, _entry_of), Tab("h", "history", _history, _history_of))
_MAPS = Level(
    "maps",
    _map_columns,
    _maps,
    lambda _state, _where: (MAPS,),
    (
        Tab("a", "replicas", _status, lambda _state, _where: (STATUS,)),
        Tab("l", "lag", _lags, lambda _state, _where: (LAG,)),
        Tab("d", "diff", _diff, _diff_of),
    ),
    empty="no replica has told of its maps",
    more=_maps_more,
)
_KEYS = Level(
    "keys of the map",
    fixed(
        Column("KEY", 48),
        Column("STATE", 8),
        Column("VERSION", 40),
        Column("EXPIRES", 15),
        Column("SIZE", 8, right=True),
    ),
    _keys,
    _keys_of,
    _KEY_TABS,
    empty="the map holds no key",
    more=_keys_more,
    onward=_keys_onward,
)
_PENDING = Level(
    "pending removals",
    fixed(
        Column("KEY", 44),
        Column("OWNER", 20),
        Column("ON DISK", 7),
        Column("AWAITED", 40),
        Column("TRIES", 5, right=True),
        Column("ASKED", 14),
        Column("BY", 16),
        Column("REFUSED", 60),
    ),
    _pending,
    lambda _state, _where: (PENDING,),
    (),
    empty="every removal is on a majority's disks",
)
_TOMBSTONES = Level(
    "tombstones",
    fixed(
        Column("KEY", 44),
        Column("MAP", 9),
        Column("AGE", 7, right=True),
        Column("CARETAKER", 20),
        Column("AWAITED", 40),
        Column("VERSION", 36),
    ),
    _tombstones,
    lambda _state, _where: (TOMBSTONES,),
    _KEY_TABS,
    empty="no removal is remembered",
    more=_tombstones_more,
)
_ROSTER = Level(
    "roster",
    fixed(
        Column("REPLICA", 28),
        Column("COUNTS", 6),
        Column("PHASE", 12),
        Column("DONE", 5, right=True),
        Column("MEMBER", 12),
        Column("TENURE", 6, right=True),
        Column("SINCE", 14),
        Column("CAUSE", 40),
    ),
    _roster,
    lambda _state, _where: (ROSTER,),
    (),
    empty="nobody is on the roster",
    more=_roster_more,
)
VIEWS: Final[tuple[View, ...]] = (
    View("maps", (_MAPS, _KEYS)),
    View("pending removals", (_PENDING,)),
    View("tombstones", (_TOMBSTONES,)),
    View("roster", (_ROSTER,)),
)
