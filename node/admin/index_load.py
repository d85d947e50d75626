"""Reading a dump in again: sent row by row, planned against what the owners hold now, written by the owners.

A load writes nothing around the version rule. Each view is a new write of its key's owner, under the owner's epoch, and
only where the dump has something later than the cluster: what was written or removed after the dump stays as it is.

A load is worked through a few rows at a time, so that the node goes on answering its peers: they would remove it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from node.admin import protocol as p
from node.admin.held_plans import HeldPlans, Result
from node.admin.index_requests import IndexRequests
from node.admin.index_views import map_name
from node.admin.outcomes import CONFLICT, REFUSED, USAGE
from node.admin.targets import time_of
from node.ads.keys import split_serve_key
from node.ads.view import ServeView
from node.core import limits
from node.core.clock import MS
from node.core.errors import BadInput, RemoteProtocolError
from node.core.hashing import map_of, shard_of
from node.engine.index_messages import IndexLoaded, IndexRow, Load, LoadIndex
from node.gossip.inspector import content_of
from node.gossip.version import Version
from node.store.replica_keys import site_of
from node.store.replica_port import ReplicaEntry
from node.wire.codec import CODEC

if TYPE_CHECKING:
    from node.admin.server import AdminServer

T = TypeVar("T")
PUT, REPLACE = "put", "replace"
SKIPPED = {
    "same": "the cluster holds the same",
    "newer": "the cluster holds something later than the dump",
    "removed": "the key was removed after the dump",
    "expired": "their time is over",
    "removal": "they are removals, which a load does not make",
}


@dataclass(slots=True)
class _Incoming:
    """A load on its way in."""

    touched_ns: int
    rows: list[p.DumpRow] = field(default_factory=list)
    size: int = 0
    planned: bool = False


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A row that would be written, and what its owner held when that was planned."""

    row: p.DumpRow
    held: IndexRow | None


def outcome(row: p.DumpRow, expires_at_ms: int | None, held: IndexRow | None, now_ms: int) -> str:
    """What a load does with a row, whose view's time is over then (None: it has no view): put, replace, or why not (see
    `SKIPPED`)."""
    if row.removed or expires_at_ms is None:
        return "removal"
    if expires_at_ms <= now_ms:
        return "expired"
    if held is None:
        return PUT
    version = Version(row.version.epoch, row.version.hlc, row.version.origin)
    entry = ReplicaEntry(row.key, *version, expires_at_ms, False, row.value)
    if held.content == content_of(entry):
        return "same"
    if Version(held.epoch, held.hlc, held.origin) > version:
        # A pool whose time is over reads as absent: what the dump has is later than nothing.
        expired = 0 < held.expires_at_ms <= now_ms
        return "removed" if held.tombstone else REPLACE if expired else "newer"
    return REPLACE


class IndexLoad:
    """Takes rows, stages their load, and has the owners write them once it is committed."""

    def __init__(self, server: AdminServer, index: IndexRequests, held: HeldPlans) -> None:
        self._engine = server.engine
        self._index = index
        self._held = held
        self._incoming: OrderedDict[str, _Incoming] = OrderedDict()
        server.handlers |= {p.SendLoad: self.take, p.StageLoad: self.stage}

    # ---- on their way in

    async def take(self, request: p.SendLoad, call: p.Meta) -> tuple[p.LoadTaken, p.Meta]:
        now_ns = self._engine.world.clock.mono_ns()
        idle_ns = now_ns - limits.chunks_idle_ms_max * MS
        for name in [name for name, one in self._incoming.items() if one.touched_ns < idle_ns]:
            del self._incoming[name]
        found = self._incoming.get(request.load)
        if found is None:
            planned = next((name for name, one in self._incoming.items() if one.planned), None)
            if len(self._incoming) >= limits.index_loads_open_max and planned is not None:
                del self._incoming[planned]
            if len(self._incoming) >= limits.index_loads_open_max:
                text = f"{len(self._incoming)} loads are on their way in already"
                raise p.AdminRefusal(REFUSED, "E-BUSY", text, hint="try again in a minute", about=request.load)
            found = self._incoming[request.load] = _Incoming(now_ns)
        found.touched_ns = now_ns
        if request.offset != len(found.rows):
            text = f"row {request.offset} was sent, row {len(found.rows)} is wanted"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, hint="send it again", about=request.load)
        found.rows += request.rows
        found.size += sum(len(row.key) + len(row.value) for row in request.rows)
        if len(found.rows) > limits.index_load_entries_max or found.size > limits.index_load_bytes_max:
            del self._incoming[request.load]
            text = f"a load has at most {limits.index_load_entries_max} rows of {limits.index_load_bytes_max} bytes"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, hint="load one map after the other", about=request.load)
        return p.LoadTaken(rows_count=len(found.rows)), call

    # ---- planning

    async def stage(self, request: p.StageLoad, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        found = self._incoming.get(request.load)
        if found is None or len(found.rows) != request.rows_count:
            text = "the rows that were to be sent before are not here, or not all of them"
            raise p.AdminRefusal(USAGE, "E-BAD-INPUT", text, hint="send it again", about=request.load)
        # The rows stay while there is room: when the plan proves stale it is made again from them.
        found.planned = True
        found.touched_ns = self._engine.world.clock.mono_ns()
        newest: dict[str, tuple[p.DumpRow, int | None]] = {}
        async for number, row in _in_turns(enumerate(found.rows, 1)):
            expires_at_ms = _expires_at_ms(number, row)
            known = newest.get(row.key)
            if known is None or _order(row) > _order(known[0]):
                newest[row.key] = (row, expires_at_ms)
        owners, violations = await self._owners(newest)
        held = await self._held_by(owners)
        now_ms = self._engine.world.clock.wall_ms()
        told: Counter[str] = Counter()
        wanted: dict[str, list[_Wanted]] = {node: [] for node in owners}
        moves: Counter[tuple[int, str, str]] = Counter()
        node_of = {key: node for node, keys in owners.items() for key in keys}
        async for key, (row, expires_at_ms) in _in_turns(newest.items()):
            what, node = outcome(row, expires_at_ms, held.get(key), now_ms), node_of.get(key)
            told[what] += 1
            if node is not None and what in (PUT, REPLACE):
                wanted[node].append(_Wanted(row, held.get(key)))
                moves[shard_of(site_of(key)), node, what] += 1
        return self._plan(len(found.rows), told, wanted, moves, violations), call

    def _plan(
        self,
        rows: int,
        told: Counter[str],
        wanted: Mapping[str, Sequence[_Wanted]],
        moves: Counter[tuple[int, str, str]],
        violations: Sequence[str],
    ) -> p.Plan:
        again = rows - told.total()
        doubled = [f"{again} rows name a key again: the latest counts"] if again else []
        return self._held.hold(
            "load",
            "serveindex",
            lambda _reason: self._carry_out(wanted),
            moves=tuple(
                p.PlanMove(shard=shard, to=node, entities=count, why=what)
                for (shard, node, what), count in sorted(moves.items())
            ),
            violations=tuple(violations),
            changed=bool(told[PUT] or told[REPLACE]),
            notes=(
                *(f"{told[what]} rows are {word}" for what, word in ((PUT, "new"), (REPLACE, "other")) if told[what]),
                *(f"{told[what]} rows are skipped: {why}" for what, why in SKIPPED.items() if told[what]),
                *doubled,
            ),
            before=(p.Counter(name="rows", count=rows),),
            after=tuple(p.Counter(name=name, count=told[name]) for name in sorted(told)),
        )

    async def _owners(self, keys: Iterable[str]) -> tuple[dict[str, list[str]], list[str]]:
        """Keys by the node that writes them; shards that nobody can write now."""
        homes = self._engine.sharding.region.homes()
        view = self._engine.view
        by_node: defaultdict[str, list[str]] = defaultdict(list)
        homeless: set[int] = set()
        async for key in _in_turns(sorted(keys)):
            home = homes[shard_of(site_of(key))]
            if home.node in view.members and view.reachable(home.node):
                by_node[home.node].append(key)
            else:
                homeless.add(home.shard)
        return dict(by_node), [f"shard {shard} has no owner in reach" for shard in sorted(homeless)]

    async def _held_by(self, owners: Mapping[str, Sequence[str]]) -> dict[str, IndexRow]:
        """What the owners hold of their keys; raises AdminRefusal when one does not answer."""
        found = await asyncio.gather(*(self._index.held_by(node, keys) for node, keys in sorted(owners.items())))
        return {key: row for rows in found for key, row in rows.items()}

    # ---- writing

    async def _carry_out(self, wanted: Mapping[str, Sequence[_Wanted]]) -> Result:
        """All or nothing until the first write: when something has changed since the plan, the plan is stale."""
        owners, _ = await self._owners(one.row.key for planned in wanted.values() for one in planned)
        held = await self._held_by(owners)
        planned = {one.row.key: one for some in wanted.values() for one in some}
        moved = [key for key, one in planned.items() if _version(held.get(key)) != _version(one.held)]
        if moved or owners.keys() != {node for node, some in wanted.items() if some}:
            others = f" and {len(moved) - 1} others" if len(moved) > 1 else ""
            what = f"{moved[0]!r}{others} changed" if moved else "shards moved"
            raise p.AdminRefusal(CONFLICT, "E-STALE-PLAN", f"{what} since the plan was made", hint="make it again")
        written = stale = refused = 0
        token = ""
        for node, keys in sorted(owners.items()):
            for batch in _batches([planned[key] for key in keys]):
                done = await self._index.until_answered(node, LoadIndex(batch), IndexLoaded)
                written, stale, refused = written + done.written, stale + done.stale, refused + done.refused
                token = done.token or token
        counts = {"written_count": written, "stale_count": stale, "refused_count": refused}
        return {**counts, "missed_count": refused, "token": token}


async def _in_turns(items: Iterable[T]) -> AsyncIterator[T]:
    """All of them, the node's loop having its turn now and then."""
    for number, item in enumerate(items, 1):
        yield item
        if number % limits.index_load_turn_rows == 0:
            await asyncio.sleep(0)


def _expires_at_ms(number: int, row: p.DumpRow) -> int | None:
    """When the time of the row's view is over, None of a removal; raises AdminRefusal naming the row. What says one
    thing twice must say the same: a row that does not was not written by a dump."""
    try:
        split_serve_key(row.key)
        _check(row)
        if row.removed:
            return None
        view = CODEC.decode(row.value)
    except (BadInput, RemoteProtocolError) as error:
        raise _bad_row(number, row, str(error)) from error
    if not isinstance(view, ServeView):
        raise _bad_row(number, row, f"its value is a {type(view).__name__}, not a view")
    return view.expires_at_ms


def _check(row: p.DumpRow) -> None:
    """What a dump says beside a row's value; raises BadInput."""
    for name, value in (("epoch", row.version.epoch), ("hlc", row.version.hlc)):
        if not 0 <= value < 1 << 64:
            raise BadInput(name, f"{value} is not from 0 to 2^64 - 1")
    right = map_name(map_of(row.key))
    if row.map != right:
        raise BadInput("map", f"{row.map[:40]!r}, and the key is of {right}")
    if row.expires_at is not None and not time_of(row.expires_at, "expires_at"):
        raise BadInput("expires_at", "it is empty")


def _bad_row(number: int, row: p.DumpRow, why: str) -> p.AdminRefusal:
    return p.AdminRefusal(USAGE, "E-BAD-INPUT", f"row {number}, key {row.key[:80]!r}: {why[:200]}", about=row.key[:80])


def _order(row: p.DumpRow) -> tuple[int, int, str]:
    return (row.version.epoch, row.version.hlc, row.version.origin)


def _version(row: IndexRow | None) -> tuple[int, int, str] | None:
    return None if row is None else (row.epoch, row.hlc, row.origin)


def _batches(wanted: Sequence[_Wanted]) -> Iterator[tuple[Load, ...]]:
    """As many as one message takes, and as the owner writes without keeping its loop from all else."""
    batch: list[Load] = []
    size = 0
    for one in wanted:
        if batch and (size + len(one.row.value) > limits.index_page_bytes or len(batch) >= limits.index_load_turn_rows):
            yield tuple(batch)
            batch, size = [], 0
        held = _version(one.held) or (0, 0, "")
        batch.append(Load(one.row.key, one.row.value, *held))
        size += len(one.row.value)
    if batch:
        yield tuple(batch)
