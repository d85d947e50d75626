"""Replicas compared by what they really hold: first leaves by all contents, then the keys of those that differ.

Digests that the replicas keep are not trusted here: an entry that was changed behind a replica's back leaves them as
they were. A write reaches nodes at different moments, so that a difference counts when it is there twice, some time
apart; damage counts at once, since a replica that has noticed it mends itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from node.admin import index_views
from node.admin import protocol as p
from node.admin.index_requests import IndexRequests
from node.admin.protocol.winning import Claim, winning
from node.core import limits
from node.core.hashing import LEAF_COUNT, MAP_COUNT, map_of
from node.engine.index_messages import IndexRow, LeafRow
from node.gossip.inspector import place_of

if TYPE_CHECKING:
    from node.admin.server import AdminServer

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Difference:
    """A key that not all replicas hold alike: what each holds (None: nothing), where it is damaged, and the row that
    all of them ought to hold; None when no replica has a sound one."""

    key: str
    rows: Mapping[str, IndexRow | None]
    damaged: frozenset[str]
    winner: IndexRow | None

    @property
    def kind(self) -> str:
        held = [row for row in self.rows.values() if row is not None]
        if self.damaged:
            return "damaged"
        if len({(row.epoch, row.hlc, row.origin) for row in held}) > 1:
            return "older"
        return "content" if len({row.content for row in held}) > 1 else "missing"

    def holder(self, preferred: str = "") -> str:
        """A node that holds the winning row: the preferred one, its writer, or the first by name."""
        holders = [node for node, row in sorted(self.rows.items()) if row == self.winner]
        writer = self.winner.origin if self.winner is not None else ""
        return next((name for name in (preferred, writer) if name in holders), holders[0] if holders else "")

    def wrong(self) -> list[str]:
        """The nodes that hold something else than the winning row, or nothing."""
        return [node for node, row in sorted(self.rows.items()) if row is None or row != self.winner]


@dataclass(slots=True)
class Compared:
    """`total` keys differ, of which the first are in `differences`; `contradicted`: leaves of a node whose digest is
    wrong."""

    entries: dict[str, int] = field(default_factory=dict)
    damaged: dict[str, int] = field(default_factory=dict)
    contradicted: dict[str, list[int]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    total: int = 0
    missing: tuple[p.Missing, ...] = ()

    @property
    def unnamed(self) -> int:
        """How many keys differ besides."""
        return self.total - len(self.differences)


@dataclass(slots=True)
class _Look:
    """One node's leaves at one time."""

    leaves: dict[int, LeafRow] = field(default_factory=dict)
    damaged: set[str] = field(default_factory=set)


def winner(rows: Mapping[str, IndexRow | None]) -> IndexRow | None:
    """What all replicas ought to hold, by `protocol.winning`."""
    claims = {node: _claim(row) for node, row in rows.items() if row is not None}
    best = winning(claims)
    return next((rows[node] for node, claim in claims.items() if claim == best), None)


def _claim(row: IndexRow) -> Claim:
    return Claim(row.epoch, row.hlc, row.origin, row.content.hex())


def differing(held: Mapping[str, Mapping[str, IndexRow]], damaged: Mapping[str, set[str]]) -> list[Difference]:
    """The keys that these nodes do not hold alike, in order."""
    keys = {key for rows in held.values() for key in rows} | {key for found in damaged.values() for key in found}
    differences: list[Difference] = []
    for key in sorted(keys):
        rows = {node: rows.get(key) for node, rows in held.items()}
        hurt = frozenset(node for node in held if key in damaged.get(node, ()))
        if hurt or len(set(rows.values())) > 1:
            differences.append(Difference(key, rows, hurt, winner(rows)))
    return differences


def lasting(before: Iterable[Difference], after: Iterable[Difference]) -> list[Difference]:
    """Those that are no mere delay: damaged at either look, or some node that is wrong holds what it held before."""
    earlier = {one.key: one for one in before}
    later = {one.key: one for one in after}
    found: list[Difference] = []
    for key in sorted(earlier):
        then, now = earlier[key], later.get(key)
        if then.damaged:
            found.append(now if now is not None and now.damaged else then)
        elif now is not None and (now.damaged or any(now.rows[n] == then.rows.get(n) for n in now.wrong())):
            found.append(now)
    return found


class IndexDiff:
    """Compares replicas over pages that nodes answer with."""

    def __init__(self, server: AdminServer, index: IndexRequests) -> None:
        self._server = server
        self._index = index
        server.handlers[p.GetDiff] = self.diff

    async def diff(self, request: p.GetDiff, call: p.Meta) -> tuple[p.ServeIndexDiff, p.Meta]:
        nodes = self._index.nodes(request.nodes)
        found = await self.compare(nodes, request.maps, request.after)
        return _reply(found), self._server.with_missing(call, found.missing)

    async def compare(self, nodes: Sequence[str], maps: Sequence[str], after: str = "") -> Compared:
        """Everything that differs between these nodes over these maps, all of them if none is named; only behind a key,
        in the order of maps and then of keys, if one is."""
        first = map_of(after) if after else 0
        numbers = [n for n in sorted({*map(self._index.map_number, maps)} or range(MAP_COUNT)) if n >= first]
        ranges = _runs(numbers, LEAF_COUNT)
        by_node = await _answered({node: self._look(node, ranges) for node in nodes})
        found = Compared(
            entries={node: sum(leaf.entries for leaf in look.leaves.values()) for node, look in by_node.items()},
            damaged={node: len(look.damaged) for node, look in by_node.items()},
            contradicted={
                node: [place for place, leaf in look.leaves.items() if leaf.contradicted]
                for node, look in by_node.items()
            },
        )
        hurt = {place_of(key) for look in by_node.values() for key in look.damaged}
        contents = {place: {look.leaves[place].content for look in by_node.values()} for place in _common(by_node)}
        places = sorted({place for place, seen in contents.items() if len(seen) > 1} | hurt)
        for number in sorted({place // LEAF_COUNT for place in places}):
            part = [place for place in places if place // LEAF_COUNT == number]
            by_node = await self._keys(by_node, part, found, after if number == first else "")
        found.missing = tuple(self._server.gatherer.silent(node) for node in nodes if node not in by_node)
        return found

    async def _look(self, node: str, ranges: Iterable[tuple[int, int]]) -> _Look:
        look = _Look()
        for first, end in ranges:
            async for page in self._index.leaves(node, first, end):
                look.leaves |= {leaf.place: leaf for leaf in page.leaves}
                look.damaged |= set(page.damaged)
        return look

    async def _keys(
        self, by_node: dict[str, _Look], places: list[int], found: Compared, after: str
    ) -> dict[str, _Look]:
        """The keys of some leaves of one map that differ, twice some time apart; the nodes that still answered."""
        held = await _answered({node: self._rows(node, places) for node in by_node})
        in_part = set(places)
        damaged = {node: {key for key in by_node[node].damaged if place_of(key) in in_part} for node in held}
        before = [one for one in differing(held, damaged) if one.key > after]
        if before:
            await asyncio.sleep(limits.index_look_again_ms / 1_000)
            again = await _answered({node: self._index.rows_of(node, [one.key for one in before]) for node in held})
            rows = {node: rows for node, (rows, _) in again.items()}
            stayed = lasting(before, differing(rows, {node: hurt for node, (_, hurt) in again.items()}))
            found.differences += stayed[: limits.index_diff_rows_max - len(found.differences)]
            found.total += len(stayed)
            held = {node: rows for node, rows in held.items() if node in again}
        return {node: look for node, look in by_node.items() if node in held}

    async def _rows(self, node: str, places: Sequence[int]) -> dict[str, IndexRow]:
        found: dict[str, IndexRow] = {}
        for first, end in _runs(places):
            async for rows in self._index.rows(node, first, end):
                found |= {row.key: row for row in rows}
        return found


async def _answered(asked: Mapping[str, Awaitable[T]]) -> dict[str, T]:
    """What each node answered, asked at once; those that did not are not in it."""
    outcomes = await asyncio.gather(*asked.values(), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, p.AdminRefusal):
            raise outcome
    return {n: outcome for n, outcome in zip(asked, outcomes, strict=True) if not isinstance(outcome, BaseException)}


def _common(by_node: Mapping[str, _Look]) -> set[int]:
    """The leaves that all nodes were asked about."""
    looked = [set(look.leaves) for look in by_node.values()]
    return set.intersection(*looked) if looked else set()


def _runs(numbers: Sequence[int], size: int = 1) -> list[tuple[int, int]]:
    """Neighbouring places, or maps of `size` places, as ranges, so that they take one question."""
    runs: list[tuple[int, int]] = []
    for place in (number * size for number in numbers):
        if runs and runs[-1][1] == place:
            runs[-1] = (runs[-1][0], place + size)
        else:
            runs.append((place, place + size))
    return runs


def _reply(found: Compared) -> p.ServeIndexDiff:
    wrong = sum(map(len, found.contradicted.values()))
    return p.ServeIndexDiff(
        equal=not found.total and not wrong,
        items=tuple(_item(one) for one in found.differences),
        total=found.total,
        replicas=tuple(
            p.DiffReplica(
                node=node,
                entries=found.entries[node],
                damaged=found.damaged[node],
                digests_wrong=len(found.contradicted[node]),
            )
            for node in sorted(found.entries)
        ),
        next=found.differences[-1].key if found.unnamed else "",
    )


def _item(one: Difference) -> p.DiffItem:
    views = tuple(_view(one, node, row) for node, row in sorted(one.rows.items()))
    return p.DiffItem(key=one.key, map=index_views.map_name(map_of(one.key)), kind=one.kind, views=views)


def _view(one: Difference, node: str, row: IndexRow | None) -> p.DiffView:
    if row is None or node in one.damaged:
        state = "damaged" if node in one.damaged else "absent"
        return p.DiffView(node=node, state=state, version=None, bytes=0, digest="", wins=False)
    return p.DiffView(
        node=node,
        state="removed" if row.tombstone else "held",
        version=index_views.version_of(row),
        bytes=row.size,
        digest=index_views.short(row.content),
        wins=row == one.winner,
    )
