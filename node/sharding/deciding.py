"""What the acting coordinator does next: pure but for its own patience, from the table, the book and the nodes.

One change at a time is asked for, and asked again at every event until it is durable or has become nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from node.core.clock import MS, SECOND
from node.core.ids import NodeId
from node.sharding.allocation import hindrances, passing, place, rebalance, successor
from node.sharding.book import Ownership, entry_of
from node.sharding.desk import rule, steps
from node.sharding.effects import Effect
from node.sharding.handoff import MoveEvent, MoveState
from node.sharding.messages import Receipt
from node.sharding.nodes import ShardingSettings
from node.sharding.placement import PlacementTable, marked, placed
from node.sharding.requests import Answer
from node.store.port import BookEntry, ShardRow, ShardState

if TYPE_CHECKING:
    from node.sharding.tenure import Tenure


@dataclass(frozen=True, slots=True)
class Change:
    """What to write as one change, and whom to answer when it is durable."""

    rows: tuple[ShardRow, ...] = ()
    book: tuple[BookEntry, ...] = ()
    replies: tuple[tuple[int, Answer], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows or self.book)


class Decider:
    """Of one tenure."""

    def __init__(self, tenure: Tenure, settings: ShardingSettings, now_ns: int) -> None:
        self._tenure = tenure
        self._settings = settings
        self._began_ns = now_ns
        self._settled = False
        self._imbalanced_ns: int | None = None
        self._idle_until_ns = 0
        self._idle_moves = 0  # the moves' revision while there was nothing to do

    def wake(self) -> None:
        """Table, book or targets changed: there may be something to do."""
        self._idle_until_ns = 0

    def members_changed(self) -> None:
        """An imbalance counts from now on: shards of who went and came may go back."""
        self._imbalanced_ns = None

    def decide(self, now_ns: int) -> Change:
        """What to write now, as one change: an operator's request; or owners for orphans, new owners for what has
        stopped, and marks for what is to move next."""
        if self._tenure.wanted:
            tag, request = self._tenure.wanted.popleft()
            ruling = rule(request, self._tenure.situation(now_ns), self._tenure.moves.by_shard)
            return Change(book=ruling.entries, replies=((tag, ruling.answer),))
        # Asked at every event; while table, nodes and moves stay as they were, only an imbalance that lasts is news.
        moves = self._tenure.moves
        if now_ns < self._idle_until_ns and moves.revision == self._idle_moves:
            return Change()
        before = moves.revision
        if not self._may_place(now_ns):
            return Change()
        counts = {t.node: 0 for t in self._tenure.targets}
        orphans: list[ShardRow] = []
        table, live = self._tenure.table, self._tenure.live
        for row, holder in zip(table.rows, table.owners, strict=True):
            if holder in live:
                counts[holder] = counts.get(holder, 0) + 1
            elif row.shard not in moves.by_shard:
                orphans.append(row)
        fresh = Fresh(self._tenure.table)
        for shard, node in place(
            orphans, counts, self._tenure.targets, len(self._tenure.table.rows), self._tenure.pins
        ).items():
            fresh.give(shard, node, _allocation_cause(self._tenure.table.rows[shard], node))
            counts[node] = counts.get(node, 0) + 1
        book = tuple(self._carry_plans_out(fresh, now_ns))
        self._finish_moves(fresh, counts)
        self._plan_moves(bool(orphans), now_ns)
        self._mark_moves(fresh)
        if not fresh.rows and not book and moves.revision == before:
            lasting_ns = self._settings.rebalance_after_ms * MS
            self._idle_until_ns = (now_ns if self._imbalanced_ns is None else self._imbalanced_ns) + lasting_ns
            self._idle_moves = before
        return Change(tuple(fresh.rows.values()), (*book, *self._histories(fresh, now_ns), *self._settlements(fresh)))

    def _may_place(self, now_ns: int) -> bool:
        """Nothing is placed without targets; the first time, or after a stop of the whole cluster, not before enough
        nodes are there or the wait is over."""
        if not self._tenure.targets:
            return False
        if not self._settled:
            self._settled = (
                not self._tenure.live.isdisjoint(self._tenure.table.owners)
                or len(self._tenure.targets) >= self._settings.min_entity_nodes
                or now_ns >= self._began_ns + self._settings.first_wait_ms * MS
            )
        return self._settled

    def _carry_plans_out(self, fresh: Fresh, now_ns: int) -> Iterable[BookEntry]:
        """The next steps of running plans: moves begin while there is room, epochs are issued at once."""
        by_name = {t.node.name: t.node for t in self._tenure.targets}
        moves = self._tenure.moves
        out: list[Effect] = []
        for plan in self._tenure.book.running():
            next_ = steps(plan, self._tenure.situation(now_ns), moves.by_shard)
            for shard in next_.withdraw:
                moves.fire(moves.by_shard[shard], MoveEvent.CANCELLED, now_ns, out)
            for step in next_.begin:
                if step.at_once:
                    fresh.give(step.shard, by_name[step.to], plan.verb)
                elif len(moves) < self._settings.moves_max:
                    moves.begin(step.shard, by_name[step.to], plan.verb, now_ns)
            if next_.changed:
                yield entry_of(next_.changed)

    def _finish_moves(self, fresh: Fresh, counts: dict[NodeId, int]) -> None:
        for move in self._tenure.moves:
            if move.state is not MoveState.READY:
                continue
            if move.target is None:
                others = [t for t in self._tenure.targets if t.node != move.source]
                move.target = successor(counts, others or self._tenure.targets, self._tenure.pins.get(move.shard, ""))
            if move.target is None:
                continue
            counts[move.target] = counts.get(move.target, 0) + 1
            fresh.give(move.shard, move.target, move.final_cause, move.receipt)

    def _plan_moves(self, orphaned: bool, now_ns: int) -> None:
        """Moves that nobody asked for: away from who leaves, home to where a pin says, and to even the load out."""
        tenure, moves = self._tenure, self._tenure.moves
        leaving = frozenset(n.node for n in tenure.nodes.nodes if n.leaving or n.node in tenure.draining)
        by_name = {t.node.name: t.node for t in tenure.targets}
        room = self._settings.moves_max - len(moves)
        for row, holder in zip(tenure.table.rows, tenure.table.owners, strict=True) if leaving or tenure.pins else ():
            if room <= 0:
                break
            if row.state is not ShardState.RUNNING or row.shard in moves.by_shard or holder not in tenure.live:
                continue
            home = by_name.get(tenure.pins.get(row.shard, ""))
            if holder in leaving:
                moves.begin(row.shard, None, "drain", now_ns)
            elif home is not None and home != holder:
                moves.begin(row.shard, home, "pin", now_ns)
            else:
                continue
            room -= 1
        if orphaned or leaving or self._hindered():
            self._imbalanced_ns = None
        elif not self._tenure.moves:
            self._rebalance(now_ns)

    def _rebalance(self, now_ns: int) -> None:
        planned = rebalance(self._tenure.table.rows, self._tenure.targets, self._settings.moves_max, self._tenure.pins)
        if not planned:
            self._imbalanced_ns = None
        elif self._imbalanced_ns is None:
            self._imbalanced_ns = now_ns
        elif now_ns >= self._imbalanced_ns + self._settings.rebalance_after_ms * MS:
            for shard, target in planned:
                self._tenure.moves.begin(shard, target, "rebalance", now_ns)

    def _mark_moves(self, fresh: Fresh) -> None:
        waiting = [m for m in self._tenure.moves if m.state is MoveState.PLANNED]
        for move in waiting[: max(0, self._settings.moves_max - self._tenure.moves.under_way())]:
            fresh.mark(move.shard)

    def _histories(self, fresh: Fresh, now_ns: int) -> Iterable[BookEntry]:
        at_ms = self._tenure.wall_ms(now_ns)
        for shard, (cause, receipt) in fresh.causes.items():
            row = fresh.rows[shard]
            yield self._tenure.book.owned(shard, Ownership(row.node, row.incarnation, row.epoch, cause, at_ms, receipt))

    def _settlements(self, fresh: Fresh) -> Iterable[BookEntry]:
        """Receipts that are complete now; those of a shard that just moved again are not kept up with."""
        messages, self._tenure.unsettled[:] = list(self._tenure.unsettled), []
        found: dict[str, BookEntry] = {}
        for message in messages:
            entry = self._tenure.book.settled(message.shard, message.epoch, message.forwarded, message.refused)
            if entry is not None and message.shard not in fresh.causes:
                found[entry.key] = entry
        return found.values()

    # ---- why not

    def waits(self) -> str:
        """Why nothing is placed, in words; empty when nothing stands in the way."""
        if not self._tenure.targets:
            return "no entity node can take shards"
        if not self._settled:
            return f"{len(self._tenure.targets)} of {self._settings.min_entity_nodes} entity nodes are there"
        return ""

    def _hindered(self) -> bool:
        return (
            not self._settings.rebalances or bool(self._tenure.book.running()) or bool(hindrances(self._tenure.nodes))
        )

    def why_not_rebalancing(self) -> tuple[str, ...]:
        """What keeps the coordinator from evening the load out by itself."""
        found = [] if self._settings.rebalances else ["the limit of shards moved at once is 0"]
        return (*found, *self._under_way(), *hindrances(self._tenure.nodes))

    def balancing(self, now_ns: int) -> str:
        """Why an imbalance is no fault: it is being evened out, or will be by itself, or something is under way that
        may even it out. Empty when nothing of that is so."""
        waits = (*self._under_way(), *passing(self._tenure.nodes))
        if waits or self._hindered():
            return "; ".join(waits)
        lasting_ns = self._settings.rebalance_after_ms * MS
        since_ns = now_ns if self._imbalanced_ns is None else self._imbalanced_ns
        left_s = max(0, since_ns + lasting_ns - now_ns) / SECOND
        return f"the coordinator evens it out in {left_s:.0f} s" if now_ns < since_ns + 2 * lasting_ns else ""

    def _under_way(self) -> tuple[str, ...]:
        tenure = self._tenure
        found = [f"plan {plan.id} is being carried out" for plan in tenure.book.running()]
        found += [f"{len(tenure.moves)} shards are on their way"] if tenure.moves else []
        return (*found, *(f"{n} drains" for n in sorted(tenure.draining)))


class Fresh:
    """Rows to write in one change, each shard once, and why owners change."""

    def __init__(self, table: PlacementTable) -> None:
        self._table = table
        self.rows: dict[int, ShardRow] = {}
        self.causes: dict[int, tuple[str, Receipt | None]] = {}

    def give(self, shard: int, node: NodeId, cause: str, receipt: Receipt | None = None) -> None:
        if shard not in self.rows:
            self.rows[shard] = placed(self._table.rows[shard], node)
            self.causes[shard] = (cause, receipt)

    def mark(self, shard: int) -> None:
        if shard not in self.rows:
            self.rows[shard] = marked(self._table.rows[shard])


def _allocation_cause(former: ShardRow, node: NodeId) -> str:
    if not former.node:
        return "first_placement"
    return "owner_returned" if former.node == node.name else "owner_lost"
