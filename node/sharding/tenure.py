"""What the coordinator knows and decides while it holds the lease under one term: it begins empty and ends all at once.

`decider` turns the table, the book and the nodes into what should be written next; `written` takes it once it is
durable, and only then does anybody hear of it. A tenure that begins reads everything from the store: rows that say
*moving* are moves that a former coordinator began, and a running plan goes on where its rows say it is.
"""

from __future__ import annotations

from collections import deque

from node.core import limits
from node.core.clock import MS
from node.core.ids import NodeId
from node.sharding.allocation import rebalance
from node.sharding.book import Book, History
from node.sharding.deciding import Decider
from node.sharding.desk import rule
from node.sharding.effects import Answered, Broadcast, Effect, Note, Reached, Refused, Reply
from node.sharding.handoff import MoveEvent
from node.sharding.messages import HandOffDone, HandOffSettled, Homes, ShardMoved, ShardsAllocated
from node.sharding.moves import Moves
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings, with_cordons
from node.sharding.placement import PlacementTable, owner
from node.sharding.requests import Declined, GetHistory, GetPlacing, Placing, Request
from node.sharding.staging import Situation
from node.store.port import BookEntry, Placement, ShardRow, ShardState


class Tenure:
    """The acting coordinator of `term`. `draining` belongs to the caller and may change between calls."""

    def __init__(
        self, term: int, settings: ShardingSettings, nodes: EntityNodes, draining: set[NodeId], now_ns: int
    ) -> None:
        self.term = term
        self.table = PlacementTable(settings.shard_count)
        self.book = Book()
        self.moves = Moves(self.table, settings)
        self.draining = draining
        self.wanted: deque[tuple[int, Request]] = deque()
        self.unsettled: list[HandOffSettled] = []
        self.receipts_dropped = 0
        self.decider = Decider(self, settings, now_ns)
        self._settings = settings
        self._wall_offset_ms = 0
        self._set_nodes(nodes)

    def _set_nodes(self, nodes: EntityNodes) -> None:
        self._members = nodes
        self.live = nodes.live()
        self.decider.members_changed()
        self._choose_targets()

    def _choose_targets(self) -> None:
        self.decider.wake()
        self.nodes = with_cordons(self._members, self.book.cordons)
        self.targets: tuple[EntityNode, ...] = tuple(
            n for n in self.nodes.nodes if n.takes_shards and n.node not in self.draining
        )
        self._target_ids = frozenset(t.node for t in self.targets)
        self.pins = {shard: pin.node for shard, pin in self.book.pins.items()}

    def situation(self, now_ns: int) -> Situation:
        """What plans are made of."""
        return Situation(
            self.table.rows,
            self.table.version,
            self.nodes,
            frozenset(self.draining),
            self.book,
            self._settings,
            self.moves.by_shard,
            self.moves.typical_ms,
            self.wall_ms(now_ns),
        )

    def wall_ms(self, now_ns: int) -> int:
        return self._wall_offset_ms + now_ns // MS

    # ---- what happens to it

    def nodes_changed(self, nodes: EntityNodes, now_ns: int) -> list[Effect]:
        """Membership changed: moves lose owners or targets."""
        self._set_nodes(nodes)
        return self.targets_changed(now_ns)

    def targets_changed(self, now_ns: int) -> list[Effect]:
        """Who may take shards changed: by membership, a cordon, or a drain that began or ended."""
        self._choose_targets()
        out: list[Effect] = []
        for move in self.moves:
            if move.source not in self.live:
                self.moves.fire(move, MoveEvent.OWNER_GONE, now_ns, out)
            if move.target is not None and move.target not in self._target_ids:
                self.moves.fire(move, MoveEvent.TARGET_GONE, now_ns, out)
        return out

    def undrained(self, node: NodeId, now_ns: int) -> list[Effect]:
        """What has moved stays, and what has not begun to doesn't."""
        out: list[Effect] = []
        for move in self.moves:
            if move.source == node and move.cause == "drain":
                self.moves.fire(move, MoveEvent.CANCELLED, now_ns, out)
        return out

    def read(self, placement: Placement, now_ns: int) -> list[Effect]:
        """Table and book as the store has them, at the beginning or after a conflict."""
        self.table.replace(placement)
        self.book = Book(placement.book)
        self._choose_targets()
        return [Broadcast(self.homes()), *self.moves.reconcile(self.live, self._resumed_target, now_ns)]

    def _resumed_target(self, shard: int) -> tuple[NodeId | None, str]:
        """Where a shard goes that a former coordinator marked: the running plan says, or else whoever is best."""
        for plan in self.book.running():
            for move in plan.moves:
                if move.shard == shard and move.epoch == self.table.rows[shard].epoch and not move.at_once:
                    target = next((t.node for t in self.targets if t.node.name == move.to), None)
                    return target, plan.verb
        return None, "resumed"

    def move(self, shard: int, to: str, tag: int, now_ns: int) -> list[Effect]:
        """One move without a plan; refused with the reason, or answered when it is done."""
        if not 0 <= shard < len(self.table.rows):
            return [Reply(tag, Refused("no_such_shard", str(shard)))]
        target = next((t.node for t in self.targets if t.node.name == to), None)
        row = self.table.rows[shard]
        if target is None:
            return [Reply(tag, Refused("not_a_target", to))]
        if owner(row) not in self.live:
            return [Reply(tag, Refused("no_owner", str(owner(row))))]
        if shard in self.moves:
            return [Reply(tag, Refused("already_moving", self.moves.by_shard[shard].state.value))]
        if owner(row) == target:
            return [Reply(tag, Refused("already_there", str(target)))]
        if self.pins.get(shard, to) != to:
            return [Reply(tag, Refused("pinned", self.pins[shard]))]
        self.moves.begin(shard, target, "operator", now_ns, tag)
        return []

    def handoff_done(self, sender: NodeId, message: HandOffDone, now_ns: int) -> list[Effect]:
        return self.moves.receipt(sender, message, now_ns)

    def settled(self, message: HandOffSettled) -> None:
        """The last line of a move's receipt, to be written with whatever is written next."""
        if len(self.unsettled) < limits.receipts_unwritten_max:
            self.unsettled.append(message)
            self.decider.wake()
        else:
            self.receipts_dropped += 1

    def tick(self, wall_ms: int, now_ns: int) -> list[Effect]:
        """Time passes; `wall_ms` is what is written down as the time of changes."""
        self._wall_offset_ms = wall_ms - now_ns // MS
        return self.moves.tick(now_ns)

    # ---- requests

    def request(self, request: Request, tag: int, me: NodeId, now_ns: int) -> list[Effect]:
        """An operator's request: what only reads is answered now, the rest when it is durable."""
        if isinstance(request, GetPlacing):
            return [Answered(tag, self.placing(me, now_ns))]
        if isinstance(request, GetHistory):
            known = 0 <= request.shard < len(self.table.rows)
            history = self.book.histories.get(request.shard, History(request.shard))
            return [Answered(tag, history if known else Declined("no_such_shard", str(request.shard)))]
        ruling = rule(request, self.situation(now_ns), self.moves.by_shard)
        if not ruling.entries:
            return [Answered(tag, ruling.answer)]
        self.wanted.append((tag, request))
        return []

    def placing(self, me: NodeId, now_ns: int) -> Placing:
        """The coordinator's view, for people and checks."""
        at = self.situation(now_ns)
        rows = self.table.rows
        pending = tuple(s for s, name in sorted(self.pins.items()) if rows[s].node != name and at.why_no_target(name))
        return Placing(
            str(me),
            self.term,
            self.table.version,
            tuple(str(owner(row)) if row.node else "" for row in self.table.rows),
            tuple(row.epoch for row in self.table.rows),
            len(rebalance(self.table.rows, self.targets, len(self.table.rows), self.pins)),
            self.moves.views(now_ns),
            tuple(self.book.pins[s] for s in sorted(self.book.pins)),
            pending,
            tuple(self.book.cordons[n] for n in sorted(self.book.cordons)),
            tuple(sorted(str(n) for n in self.draining)),
            self.decider.waits(),
            self.decider.why_not_rebalancing(),
            self.moves.receipts_late,
            tuple(self.book.unreadable),
            self.decider.balancing(now_ns),
        )

    def abandon(self, reason: str) -> list[Effect]:
        """The tenure ends: whoever waits is told so."""
        out: list[Effect] = [
            Reply(move.reply_tag, Refused("coordinator_lost", reason))
            for move in self.moves
            if move.reply_tag is not None
        ]
        out += [Answered(tag, Declined("coordinator_lost", reason)) for tag, _ in self.wanted]
        self.wanted.clear()
        return out

    # ---- what is durable

    def written(
        self, rows: tuple[ShardRow, ...], book: tuple[BookEntry, ...], version: int, now_ns: int
    ) -> list[Effect]:
        """Rows and records are durable as `version`: tell the regions, then take the next step of each move."""
        base = self.table.version
        former = {row.shard: self.table.rows[row.shard] for row in rows}
        self.table.apply(rows, version)
        self.book.apply(book)
        out: list[Effect] = [Note(news) for news in self.book.news(book)]
        if any(entry.key.startswith("cordon/") for entry in book):
            out += self.targets_changed(now_ns)
        self._choose_targets()
        if not rows:
            return out
        moved_any = any(row.state is ShardState.RUNNING and row.shard in self.moves for row in rows)
        out += [Reached("handoff.marked")] if any(row.state is ShardState.MOVING for row in rows) else []
        out += [Reached("handoff.epoch_issued")] if moved_any else []
        out.append(Broadcast(Homes(version, base, self.term, rows)))
        out += [Reached("handoff.started")] if moved_any else []
        allocated: dict[str, int] = {}
        for row in rows:
            if row.state is ShardState.MOVING:
                continue
            move = self.moves.by_shard.get(row.shard)
            cause = self.book.histories[row.shard].entries[-1].cause
            if move is not None and move.epoch < row.epoch:
                self.moves.fire(move, MoveEvent.PLACED, now_ns, out)
            elif former[row.shard].node and owner(former[row.shard]) in self.live:
                self.moves.causes[row.shard] = cause
                out.append(
                    Note(ShardMoved(row.shard, str(owner(former[row.shard])), str(owner(row)), row.epoch, cause))
                )
            else:
                self.moves.causes[row.shard] = cause
                allocated[cause] = allocated.get(cause, 0) + 1
        out.extend(Note(ShardsAllocated(count, version, cause)) for cause, count in sorted(allocated.items()))
        out.extend(self.moves.reconcile(self.live, self._resumed_target, now_ns))
        return out

    def homes(self) -> Homes:
        """The whole table, for who asks."""
        return Homes(self.table.version, 0, self.term, tuple(self.table.rows))
