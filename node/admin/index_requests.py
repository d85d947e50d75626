"""Requests that read the ServeIndex: its maps, its keys, one key on every node, lag, size."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from node.admin import index_views, views
from node.admin import protocol as p
from node.admin.asking import still_waits
from node.admin.gather import NODE_DEADLINE_MS
from node.admin.outcomes import MISMATCH, NO_ANSWER, NOT_FOUND, SILENT, USAGE, ask, no_member, not_found, read
from node.ads.keys import site_id
from node.core import limits
from node.core.hashing import LEAF_COUNT, MAP_COUNT, leaf_of, map_of, shard_of
from node.core.ids import ServiceRef
from node.engine.index_messages import (
    GetIndexLeaves,
    GetIndexRows,
    GetIndexStatus,
    IndexLeaves,
    IndexRow,
    IndexRows,
    IndexStatus,
)
from node.engine.registries import is_registry_key, sharded_by
from node.gossip.inspector import PLACE_COUNT

if TYPE_CHECKING:
    from node.admin.server import AdminServer

S = TypeVar("S", bound=msgspec.Struct)


class IndexRequests:
    """Handlers by request type, and the pages that other modules read through it."""

    def __init__(self, server: AdminServer) -> None:
        self._server = server
        self._engine = server.engine
        server.handlers |= {
            p.GetMaps: self.maps,
            p.GetEntry: self.entry,
            p.GetKeys: self.keys,
            p.GetKeyPlace: self.place,
            p.GetLargest: self.largest,
            p.GetLag: self.lag,
            p.GetIndexStatus: self.status,
            p.GetDump: self.dump,
        }

    # ---- one key

    async def entry(self, request: p.GetEntry, call: p.Meta) -> tuple[p.ServeIndexEntry, p.Meta]:
        place, _ = await self.place(p.GetKeyPlace(key=request.key), call)
        entries, missing = await self._server.gatherer.entries(request.key, local=request.local)
        if not (request.local or any(entry.hlc or entry.damaged for entry in entries.values())):
            text = f"no replica holds the key {request.key!r}"
            raise p.AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, about=request.key)
        reply = index_views.entry(request.key, place, entries, self._engine.world.clock.wall_ms())
        return reply, self._server.with_missing(call, missing)

    async def place(self, request: p.GetKeyPlace, call: p.Meta) -> tuple[p.ServeIndexPlace, p.Meta]:
        home = self._engine.sharding.region.homes()[shard_of(sharded_by(request.key))]
        reply = p.ServeIndexPlace(
            key=request.key,
            map=index_views.map_name(map_of(request.key)),
            leaf=leaf_of(request.key),
            shard=home.shard,
            owner=home.node or None,
            epoch=home.epoch,
        )
        return reply, call

    # ---- many keys

    async def keys(self, request: p.GetKeys, call: p.Meta) -> tuple[p.ServeIndexKeys, p.Meta]:
        site = site_id(request.site)
        node = self._node(request.node)
        page = await self.of_node(
            node, GetIndexRows(site=site, after=request.after, limit=max(request.limit, 0)), IndexRows
        )
        if not page.total and await self._server.states.record("site", site) is None:
            raise not_found("site", site, await self._server.states.ids("site"))
        if not page.complete:
            text = f"{node} has just started and still learns which keys there are: some may be missing here"
            call = self._server.warned(call, "E-INDEX-INCOMPLETE", text)
        now_ms = self._engine.world.clock.wall_ms()
        reply = p.ServeIndexKeys(
            items=tuple(index_views.key_item(row, now_ms) for row in page.rows if not row.tombstone),
            node=node,
            total=page.total,
            next=page.after if page.more else "",
        )
        return reply, call

    async def largest(self, request: p.GetLargest, call: p.Meta) -> tuple[p.ServeIndexLargest, p.Meta]:
        if not 0 < request.limit <= limits.index_largest_max:
            text = f"{request.limit} keys can't be named: 1 to {limits.index_largest_max}"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, about="limit")
        node = self._node(request.node)
        found: list[IndexRow] = []
        total = 0
        async for rows in self.rows(node, 0, PLACE_COUNT):
            total += len(rows)
            found = heapq.nlargest(request.limit, (*found, *rows), key=lambda row: (row.size, row.key))
        now_ms = self._engine.world.clock.wall_ms()
        items = tuple(index_views.key_item(row, now_ms) for row in found if not row.tombstone)
        return p.ServeIndexLargest(items=items, node=node, total=total), call

    async def dump(self, request: p.GetDump, call: p.Meta) -> tuple[p.DumpPage, p.Meta]:
        node, number = self._node(request.node), self.map_number(request.map)
        first, end = number * LEAF_COUNT, (number + 1) * LEAF_COUNT
        wanted = GetIndexRows(max(request.place, first), end, request.after, values=True)
        page = await self.of_node(node, wanted, IndexRows)
        reply = p.DumpPage(
            node=node,
            items=tuple(index_views.dump_row(row) for row in page.rows if not is_registry_key(row.key)),
            more=page.more,
            place=page.place,
            after=page.after,
        )
        if page.damaged:
            text = f"{len(page.damaged)} entries of {request.map} at {node} are damaged and not in this"
            call = self._server.warned(call, "E-ENTRY-DAMAGED", text)
        return reply, call

    # ---- the whole

    async def maps(self, _request: p.GetMaps, call: p.Meta) -> tuple[p.ServeIndexMaps, p.Meta]:
        reports, missing = await self._server.gatherer.reports(coverage=False)
        return p.ServeIndexMaps(items=views.maps(reports)), self._server.with_missing(call, missing)

    async def lag(self, _request: p.GetLag, call: p.Meta) -> tuple[p.ServeIndexLag, p.Meta]:
        found, missing = await self._statuses()
        silent = [each.node for each in missing]
        return index_views.lag(found, silent), self._server.with_missing(call, missing)

    async def status(self, _request: p.GetIndexStatus, call: p.Meta) -> tuple[p.ServeIndexStatus, p.Meta]:
        (found, missing), (reports, _), known_sites = await asyncio.gather(
            self._statuses(), self._server.gatherer.reports(), self._server.known_sites()
        )
        differ = [n for n in range(MAP_COUNT) if len({status.digests[n] for status in found}) > 1]
        if differ:  # a write between two answers looks like a difference; one that stays is one
            await asyncio.sleep(limits.index_look_again_ms / 1_000)
            found, missing = await self._statuses()
            differ = [n for n in differ if len({status.digests[n] for status in found}) > 1]
        leaves = {n: await self._leaves_different(n, [status.node for status in found]) for n in differ}
        ratio = views.coverage(reports, known_sites).ratio
        reply = index_views.status(found, leaves, ratio, whole=not missing)
        return reply, self._server.with_missing(call, missing)

    async def _statuses(self) -> tuple[list[IndexStatus], tuple[p.Missing, ...]]:
        found, missing = await self._server.gatherer.each(self._engine.view.members, GetIndexStatus(), IndexStatus)
        return [status for status in found if len(status.digests) == len(status.counts) == MAP_COUNT], tuple(missing)

    async def _leaves_different(self, number: int, nodes: list[str]) -> int:
        """Of a map's leaves, those that these nodes do not hold alike."""

        async def looks(node: str) -> dict[int, bytes]:
            found: dict[int, bytes] = {}
            async for page in self.leaves(node, number * LEAF_COUNT, (number + 1) * LEAF_COUNT):
                found |= {leaf.place: leaf.content for leaf in page.leaves}
            return found

        by_node = await asyncio.gather(*map(looks, nodes))
        places = {place for found in by_node for place in found}
        return sum(len({found.get(place) for found in by_node}) > 1 for place in places)

    # ---- pages of a node's replica

    async def leaves(self, node: str, place: int, end: int) -> AsyncIterator[IndexLeaves]:
        """A node's leaves, page by page; raises AdminRefusal when it does not answer."""
        while place < end:
            page = await self.of_node(node, GetIndexLeaves(place, end), IndexLeaves)
            yield page
            place = max(page.next, place + 1)

    async def rows(self, node: str, place: int, end: int) -> AsyncIterator[tuple[IndexRow, ...]]:
        """A node's entries without their values, page by page; raises AdminRefusal."""
        after = ""
        while True:
            page = await self.of_node(node, GetIndexRows(place, end, after), IndexRows)
            yield page.rows
            if not page.more:
                return
            place, after = page.place, page.after

    async def rows_of(
        self, node: str, keys: Sequence[str], *, values: bool = False
    ) -> tuple[dict[str, IndexRow], set[str]]:
        """What a node holds of these keys, and which of them are damaged there; raises AdminRefusal."""
        rows: dict[str, IndexRow] = {}
        damaged: set[str] = set()
        async for page in self._pages_of(node, keys, self.of_node, values=values):
            rows |= {row.key: row for row in page.rows}
            damaged |= set(page.damaged)
        return rows, damaged

    async def held_by(self, node: str, keys: Sequence[str]) -> dict[str, IndexRow]:
        """What a node holds of so many keys that it may be busy for once; raises AdminRefusal."""
        pages = self._pages_of(node, keys, self.until_answered, values=False)
        return {row.key: row async for page in pages for row in page.rows}

    async def _pages_of(
        self, node: str, keys: Sequence[str], ask: Callable[..., Awaitable[IndexRows]], *, values: bool
    ) -> AsyncIterator[IndexRows]:
        done = 0
        while done < len(keys):
            wanted = tuple(keys[done : done + limits.index_page_rows])
            page = await ask(node, GetIndexRows(keys=wanted, values=values), IndexRows)
            yield page
            done += max(page.total, 1)

    async def of_node(self, node: str, message: msgspec.Struct, answer: type[S]) -> S:
        """One node's answer; raises AdminRefusal when there is none in its time. `Get…` changes nothing."""
        how = read if type(message).__name__.startswith("Get") else ask
        reply = await how(self._engine, ServiceRef(node, "/node"), message, NODE_DEADLINE_MS)
        if not isinstance(reply, answer):
            raise p.AdminRefusal(MISMATCH, "E-PROTOCOL", f"{node} answered with {type(reply).__name__}", about=node)
        return reply

    async def until_answered(self, node: str, message: msgspec.Struct, answer: type[S]) -> S:
        """As `of_node`, and told again while whoever asked waits: for what changes nothing when it is told twice. Work
        that takes a thousand of them must not end since the node was busy for once."""
        while True:
            try:
                return await self.of_node(node, message, answer)
            except p.AdminRefusal as refused:
                if refused.code not in (NO_ANSWER, SILENT) or not still_waits(self._engine.world.clock):
                    raise

    def _node(self, name: str) -> str:
        """The node that is meant: this one if none is named."""
        members = self._engine.view.members
        if name and name not in members:
            raise no_member(self._engine, name)
        return name or self._engine.me.name

    def nodes(self, names: tuple[str, ...]) -> list[str]:
        """The nodes that are meant: all members if none is named."""
        return sorted(map(self._node, names)) if names else sorted(self._engine.view.members)

    def map_number(self, name: str) -> int:
        """0…31 of `serve-00` … `serve-31`; raises AdminRefusal."""
        known = [index_views.map_name(number) for number in range(MAP_COUNT)]
        if name not in known:
            text = f"there is no map {name!r}: they are {known[0]} to {known[-1]}"
            raise p.AdminRefusal(NOT_FOUND, "E-NOT-FOUND", text, about=name)
        return known.index(name)
