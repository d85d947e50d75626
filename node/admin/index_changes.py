"""What an operator changes in the ServeIndex: replicas mended from each other. Staged and committed like every change.

A mend puts what one replica holds where another holds exactly what the plan saw there: a write that came meanwhile
stays, and the next comparison finds whatever is left.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from node.admin import protocol as p
from node.admin.held_plans import HeldPlans, Result
from node.admin.index_diff import Compared, Difference, IndexDiff
from node.admin.index_requests import IndexRequests
from node.core import limits
from node.core.hashing import shard_of
from node.engine.index_messages import (
    CondemnIndex,
    IndexMended,
    IndexRow,
    IndexVerified,
    Mend,
    MendIndex,
    VerifyIndex,
)
from node.engine.messages import NodeDone
from node.gossip.inspector import place_of
from node.store.replica_keys import site_of

if TYPE_CHECKING:
    from node.admin.server import AdminServer

WHY = {
    "missing": "it lacks the key",
    "older": "it holds an older version",
    "content": "it holds other contents under the same version",
    "damaged": "its entry is damaged",
}


class IndexRepair:
    """Stages mends of what differs now, and carries them out once they are committed."""

    def __init__(self, server: AdminServer, index: IndexRequests, compared: IndexDiff, held: HeldPlans) -> None:
        self._server = server
        self._index = index
        self._diff = compared
        self._held = held
        server.handlers[p.StageIndexRepair] = self.stage

    async def stage(self, request: p.StageIndexRepair, call: p.Meta) -> tuple[p.Plan, p.Meta]:
        broken = await self._broken(self._index.nodes(request.nodes))
        targets = [node for node in self._index.nodes(request.nodes) if node not in broken]
        # Whoever reads a file behind its end is killed: a broken one is not compared.
        compared = [node for node in self._index.nodes(()) if node not in broken]
        found = await self._diff.compare(compared, request.maps)
        homes = self._server.engine.sharding.region.homes()
        mends: defaultdict[tuple[int, str, str, str], list[str]] = defaultdict(list)
        for one in found.differences:
            shard = shard_of(site_of(one.key))
            for node in _to_mend(one, targets):
                mends[(shard, one.holder(homes[shard].node), node, WHY[one.kind])].append(one.key)
        rebuilds = {node: len(places) for node, places in found.contradicted.items() if places and node in targets}
        lost = [one.key for one in found.differences if one.winner is None and one.damaged & set(targets)]
        plan = self._held.hold(
            "repair",
            "serveindex",
            lambda _reason: self._carry_out(found, targets, compared, request.maps, broken),
            moves=tuple(
                p.PlanMove(
                    shard=shard,
                    from_node=source,
                    to=node,
                    entities=len(keys),
                    why=f"{why}: put as {source} holds it",
                    keys=tuple(keys[: limits.index_plan_keys_max]),
                )
                for (shard, source, node, why), keys in sorted(mends.items())
            ),
            changed=bool(mends or rebuilds or lost or broken),
            notes=tuple(_notes(found, rebuilds, lost, broken)),
            before=tuple(p.Counter(name=f"{node} entries", count=n) for node, n in sorted(found.entries.items())),
        )
        return plan, self._server.with_missing(call, found.missing)

    async def _broken(self, nodes: Sequence[str]) -> dict[str, str]:
        """The nodes whose file can't be read to its end, by the last check of it, and why."""
        checks, _ = await self._server.gatherer.each(nodes, VerifyIndex(False), IndexVerified)
        return {
            check.node: problem.text
            for check in checks
            if check.state == "done"
            for problem in check.problems
            if problem.kind == "structure"
        }

    async def _carry_out(
        self,
        found: Compared,
        targets: Sequence[str],
        compared: Sequence[str],
        maps: tuple[str, ...],
        broken: Mapping[str, str],
    ) -> Result:
        for node, why in sorted(broken.items()):
            await self._index.of_node(node, CondemnIndex(why), NodeDone)
        mended = rebuilt = 0
        while True:
            outcomes = await asyncio.gather(*(self._mend(node, found) for node in targets))
            taken = sum(count for count, _ in outcomes)
            mended, rebuilt = mended + taken, rebuilt + sum(count for _, count in outcomes)
            more = found.unnamed and taken  # a page that mended nothing would not be the last
            found = await self._diff.compare(compared, maps)
            if not more:
                break
        left = sum(bool(_to_mend(one, targets)) for one in found.differences) + found.unnamed
        wrong = sum(len(found.contradicted.get(node, ())) for node in targets)
        return {
            "mended_count": mended,
            "digests_rebuilt_count": rebuilt,
            "left_count": left,
            "missed_count": left + wrong,
            "restart": ", ".join(sorted(broken)),
        }

    async def _mend(self, node: str, found: Compared) -> tuple[int, int]:
        """Mends one replica; how many entries and digests. A source that has moved on is left for later."""
        by_source: defaultdict[str, list[Difference]] = defaultdict(list)
        drop = [one.key for one in found.differences if one.winner is None and node in one.damaged]
        rebuild = set(found.contradicted.get(node, ()))
        for one in found.differences:
            if _to_mend(one, (node,)):
                by_source[one.holder()].append(one)
                rebuild.add(place_of(one.key))
        mended = rebuilt = 0
        for source, wanted in sorted(by_source.items()):
            rows, _ = await self._index.rows_of(source, [one.key for one in wanted], values=True)
            for mends in _batches(_mends(node, wanted, rows)):
                mended += (await self._order(node, MendIndex(mends))).mended
        places = sorted(rebuild)
        for first in range(0, max(len(places), 1), limits.index_looked_entries):
            batch = tuple(places[first : first + limits.index_looked_entries])
            if batch or drop:
                rebuilt += (await self._order(node, MendIndex(rebuild=batch, drop=tuple(drop)))).rebuilt
                drop = []
        return mended, rebuilt

    async def _order(self, node: str, order: MendIndex) -> IndexMended:
        return await self._index.until_answered(node, order, IndexMended)


def _to_mend(one: Difference, targets: Iterable[str]) -> list[str]:
    """Of these nodes, those that the winning row is to be put at."""
    wrong = {*one.wrong(), *one.damaged} if one.winner is not None else set()
    return sorted(wrong & set(targets))


def _mends(node: str, wanted: Sequence[Difference], rows: dict[str, IndexRow]) -> Iterator[Mend]:
    for one in wanted:
        row, winner = rows.get(one.key), one.winner
        if row is None or winner is None or (row.hlc, row.content) != (winner.hlc, winner.content):
            continue
        held = None if node in one.damaged else one.rows.get(node)
        if held is None:
            yield Mend(row)
        else:
            yield Mend(row, held.epoch, held.hlc, held.origin, held.content)


def _batches(mends: Iterable[Mend]) -> Iterator[tuple[Mend, ...]]:
    """As many as one message takes."""
    batch: list[Mend] = []
    size = 0
    for mend in mends:
        if batch and (size + mend.row.size > limits.index_page_bytes or len(batch) >= limits.index_page_rows):
            yield tuple(batch)
            batch, size = [], 0
        batch.append(mend)
        size += mend.row.size
    if batch:
        yield tuple(batch)


def _notes(
    found: Compared, rebuilds: Mapping[str, int], lost: Sequence[str], broken: Mapping[str, str]
) -> Iterator[str]:
    for node, why in sorted(broken.items()):
        yield f"{node}: {why}: the file is set aside at the node's next start, and its replica streamed anew"
    if found.unnamed:
        yield f"{found.total} keys differ; the first {len(found.differences)} are counted here, all of them are mended"
    for node, count in sorted(rebuilds.items()):
        yield f"{node}: {count} digests are built anew from its entries"
    for key in lost[: limits.index_problems_max]:
        yield f"{key}: no replica holds a sound copy; it is dropped, and the next auction brings it back"
    if len(lost) > limits.index_problems_max:
        yield f"and {len(lost) - limits.index_problems_max} more keys that no replica holds soundly"
