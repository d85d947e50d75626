"""What the coordinator knows and decides while it holds the lease under one term: it begins empty and ends all at once.

`decide` turns the table and the nodes into the rows that should be written next; `written` takes them once they are
durable, and only then does anybody hear of them. A tenure that begins reads everything from the table: rows that say
*moving* are moves that a former coordinator began.
"""

from __future__ import annotations

from collections.abc import Iterable

from node.core.clock import MS
from node.core.ids import NodeId
from node.sharding.allocation import place, rebalance, successor
from node.sharding.effects import Broadcast, Effect, MoveDone, Note, Reached, Refused, Reply, Send
from node.sharding.handoff import Move, MoveAction, MoveEvent, MoveState
from node.sharding.messages import BeginHandOff, HandOffDone, HandOffForced, Homes, ShardMoved, ShardsAllocated
from node.sharding.nodes import EntityNode, EntityNodes, ShardingSettings
from node.sharding.placement import PlacementTable, marked, owner, placed
from node.store.port import Placement, ShardRow, ShardState


class Tenure:
    """The acting coordinator of `term`. `draining` belongs to the caller and may change between calls."""

    def __init__(
        self, term: int, settings: ShardingSettings, nodes: EntityNodes, draining: set[NodeId], now_ns: int
    ) -> None:
        self.term = term
        self.table = PlacementTable(settings.shard_count)
        self.moves: dict[int, Move] = {}
        self.causes: dict[int, str] = {}
        self.receipts_late = 0
        self._settings = settings
        self._draining = draining
        self._began_ns = now_ns
        self._settled = False
        self._imbalanced_ns: int | None = None
        self._idle_until_ns = 0
        self._set_nodes(nodes)

    def _set_nodes(self, nodes: EntityNodes) -> None:
        self._nodes = nodes
        self._live = nodes.live()
        self._imbalanced_ns = None
        self._choose_targets()

    def _choose_targets(self) -> None:
        self._idle_until_ns = 0
        self.targets: tuple[EntityNode, ...] = tuple(
            n for n in self._nodes.nodes if n.takes_shards and n.node not in self._draining
        )
        self._target_ids = frozenset(t.node for t in self.targets)

    # ---- what happens to it

    def nodes_changed(self, nodes: EntityNodes, now_ns: int) -> list[Effect]:
        """Membership changed: moves lose owners or targets."""
        self._set_nodes(nodes)
        return self.targets_changed(now_ns)

    def targets_changed(self, now_ns: int) -> list[Effect]:
        """Who may take shards changed: by membership, or by a drain that began or ended."""
        self._choose_targets()
        out: list[Effect] = []
        for move in list(self.moves.values()):
            if move.source not in self._live:
                self._fire(move, MoveEvent.OWNER_GONE, now_ns, out)
            if move.target is not None and move.target not in self._target_ids:
                self._fire(move, MoveEvent.TARGET_GONE, now_ns, out)
        return out

    def undrained(self, node: NodeId, now_ns: int) -> list[Effect]:
        """What has moved stays, and what has not begun to doesn't."""
        out: list[Effect] = []
        for move in list(self.moves.values()):
            if move.source == node and move.cause == "drain":
                self._fire(move, MoveEvent.CANCELLED, now_ns, out)
        return out

    def read(self, placement: Placement, now_ns: int) -> list[Effect]:
        """The table as the store has it, at the beginning or after a conflict."""
        self.table.replace(placement)
        self._idle_until_ns = 0
        out: list[Effect] = [Broadcast(self.homes())]
        self._reconcile(now_ns, out)
        return out

    def move(self, shard: int, to: str, tag: int) -> list[Effect]:
        """An operator's move; refused with the reason, or answered when it is done."""
        if not 0 <= shard < len(self.table.rows):
            return [Reply(tag, Refused("no_such_shard", str(shard)))]
        target = next((t.node for t in self.targets if t.node.name == to), None)
        row = self.table.rows[shard]
        if target is None:
            return [Reply(tag, Refused("not_a_target", to))]
        if owner(row) not in self._live:
            return [Reply(tag, Refused("no_owner", str(owner(row))))]
        if shard in self.moves:
            return [Reply(tag, Refused("already_moving", self.moves[shard].state.value))]
        if owner(row) == target:
            return [Reply(tag, Refused("already_there", str(target)))]
        if row.pinned:
            return [Reply(tag, Refused("pinned", row.node))]
        self.moves[shard] = Move(shard, row.epoch, owner(row), target, "operator", tag)
        return []

    def handoff_done(self, sender: NodeId, message: HandOffDone, now_ns: int) -> list[Effect]:
        out: list[Effect] = []
        move = self.moves.get(message.shard)
        if move is None or move.source != sender or move.epoch != message.epoch:
            self.receipts_late += 1
            return out
        if move.awaits_receipt:
            move.receipt = message.receipt
            out.append(Reached("handoff.acknowledged"))
        self._fire(move, MoveEvent.RECEIPT, now_ns, out)
        return out

    def tick(self, now_ns: int) -> list[Effect]:
        """Time limits and repeats of hand-offs."""
        out: list[Effect] = []
        for move in list(self.moves.values()):
            if not move.awaits_receipt:
                continue
            if now_ns >= move.deadline_ns:
                self._fire(move, MoveEvent.DEADLINE, now_ns, out)
            elif now_ns >= move.resend_ns:
                self._ask(move, now_ns, out)
        return out

    # ---- what it decides

    def decide(self, now_ns: int) -> tuple[ShardRow, ...]:
        """The rows to write now, as one change: owners for orphans, new owners for what has stopped, and marks for
        what is to move next."""
        # Asked at every event; while table and nodes stay as they were, only an imbalance that lasts is news.
        if not self.moves and now_ns < self._idle_until_ns:
            return ()
        if not self._may_place(now_ns):
            return ()
        counts = {t.node: 0 for t in self.targets}
        orphans: list[ShardRow] = []
        for row in self.table.rows:
            holder = owner(row)
            if holder in self._live:
                counts[holder] = counts.get(holder, 0) + 1
            elif row.shard not in self.moves:
                orphans.append(row)
        rows: list[ShardRow] = []
        for shard, node in place(orphans, counts, self.targets, len(self.table.rows)).items():
            rows.append(placed(self.table.rows[shard], node))
            counts[node] = counts.get(node, 0) + 1
        rows.extend(self._finish_moves(counts))
        self._plan_moves(bool(orphans), now_ns)
        rows.extend(self._mark_moves())
        if not rows and not self.moves:
            lasting_ns = self._settings.rebalance_after_ms * MS
            self._idle_until_ns = (now_ns if self._imbalanced_ns is None else self._imbalanced_ns) + lasting_ns
        return tuple(rows)

    def _may_place(self, now_ns: int) -> bool:
        """Nothing is placed without targets; the first time, or after a stop of the whole cluster, not before enough
        nodes are there or the wait is over."""
        if not self.targets:
            return False
        if not self._settled:
            self._settled = (
                any(owner(row) in self._live for row in self.table.rows)
                or len(self.targets) >= self._settings.min_entity_nodes
                or now_ns >= self._began_ns + self._settings.first_wait_ms * MS
            )
        return self._settled

    def _finish_moves(self, counts: dict[NodeId, int]) -> Iterable[ShardRow]:
        for move in self.moves.values():
            if move.state is not MoveState.READY:
                continue
            if move.target is None:
                others = [t for t in self.targets if t.node != move.source]
                move.target = successor(counts, others or self.targets)
            if move.target is None:
                continue
            counts[move.target] = counts.get(move.target, 0) + 1
            yield placed(self.table.rows[move.shard], move.target)

    def _plan_moves(self, orphaned: bool, now_ns: int) -> None:
        leaving = [n.node for n in self._nodes.nodes if n.leaving or n.node in self._draining]
        room = self._settings.moves_max - len(self.moves)
        for row in self.table.rows:
            if room <= 0:
                break
            if owner(row) in leaving and row.shard not in self.moves and row.state is ShardState.RUNNING:
                self.moves[row.shard] = Move(row.shard, row.epoch, owner(row), None, "drain")
                room -= 1
        quiet = not (orphaned or leaving or self.moves) and all(n.reachable for n in self._nodes.nodes)
        if not quiet:
            if leaving or orphaned:
                self._imbalanced_ns = None
            return
        planned = rebalance(self.table.rows, self.targets, self._settings.moves_max)
        if not planned:
            self._imbalanced_ns = None
        elif self._imbalanced_ns is None:
            self._imbalanced_ns = now_ns
        elif now_ns >= self._imbalanced_ns + self._settings.rebalance_after_ms * MS:
            for shard, target in planned:
                row = self.table.rows[shard]
                self.moves[shard] = Move(shard, row.epoch, owner(row), target, "rebalance")

    def _mark_moves(self) -> Iterable[ShardRow]:
        under_way = sum(1 for m in self.moves.values() if m.state is not MoveState.PLANNED)
        waiting = [m for m in self.moves.values() if m.state is MoveState.PLANNED]
        for move in waiting[: max(0, self._settings.moves_max - under_way)]:
            yield marked(self.table.rows[move.shard])

    def waits(self) -> str:
        """Why nothing is placed, in words; empty when nothing stands in the way."""
        if not self.targets:
            return "no entity node can take shards"
        if not self._settled:
            return f"{len(self.targets)} of {self._settings.min_entity_nodes} entity nodes are there"
        return ""

    def written(self, rows: tuple[ShardRow, ...], version: int, now_ns: int) -> list[Effect]:
        """`rows` are durable as `version`: tell the regions, then take the next step of each move."""
        base = self.table.version
        former = {row.shard: self.table.rows[row.shard] for row in rows}
        self.table.apply(rows, version)
        self._idle_until_ns = 0
        marked_any = any(row.state is ShardState.MOVING for row in rows)
        moved_any = any(row.state is ShardState.RUNNING and row.shard in self.moves for row in rows)
        out: list[Effect] = []
        out += [Reached("handoff.marked")] if marked_any else []
        out += [Reached("handoff.epoch_issued")] if moved_any else []
        out.append(Broadcast(Homes(version, base, self.term, rows)))
        out += [Reached("handoff.started")] if moved_any else []
        allocated: dict[str, int] = {}
        for row in rows:
            if row.state is ShardState.MOVING:
                continue
            move = self.moves.get(row.shard)
            if move is not None and move.epoch < row.epoch:
                self._fire(move, MoveEvent.PLACED, now_ns, out)
            else:
                cause = _allocation_cause(former[row.shard], row)
                self.causes[row.shard] = cause
                allocated[cause] = allocated.get(cause, 0) + 1
        out.extend(Note(ShardsAllocated(count, version, cause)) for cause, count in sorted(allocated.items()))
        self._reconcile(now_ns, out)
        return out

    def homes(self) -> Homes:
        """The whole table, for who asks."""
        return Homes(self.table.version, 0, self.term, tuple(self.table.rows))

    # ---- moves

    def _reconcile(self, now_ns: int, out: list[Effect]) -> None:
        """Bring the moves into line with the table: what it says is what happened."""
        for shard, move in list(self.moves.items()):
            if move.epoch != self.table.rows[shard].epoch:
                del self.moves[shard]
                if move.reply_tag is not None:
                    out.append(Reply(move.reply_tag, Refused("superseded", str(owner(self.table.rows[shard])))))
        for row in self.table.rows:
            if row.state is not ShardState.MOVING:
                continue
            resumed = self.moves.get(row.shard)
            if resumed is None:
                resumed = Move(row.shard, row.epoch, owner(row), None, "resumed")
                self.moves[row.shard] = resumed
            self._fire(resumed, MoveEvent.MARKED, now_ns, out)
            if resumed.source not in self._live:
                self._fire(resumed, MoveEvent.OWNER_GONE, now_ns, out)

    def _fire(self, move: Move, event: MoveEvent, now_ns: int, out: list[Effect]) -> None:
        action = move.fire(event)
        if action is MoveAction.ASK:
            move.deadline_ns = now_ns + self._settings.handoff_ms * MS
            self._ask(move, now_ns, out)
        elif action is MoveAction.FORCE:
            out.append(Note(HandOffForced(move.shard, str(move.source), move.epoch)))
        elif action is MoveAction.COUNT_LATE:
            self.receipts_late += 1
        elif action is MoveAction.FINISH:
            self._finish(move, out)
        elif action is MoveAction.DROP:
            del self.moves[move.shard]
            if move.reply_tag is not None:
                out.append(Reply(move.reply_tag, Refused("target_gone", str(move.target))))

    def _ask(self, move: Move, now_ns: int, out: list[Effect]) -> None:
        move.resend_ns = now_ns + self._settings.handoff_resend_ms * MS
        out.append(Send(move.source.name, BeginHandOff(move.shard, move.epoch)))
        out.append(Reached("handoff.stop_sent"))

    def _finish(self, move: Move, out: list[Effect]) -> None:
        del self.moves[move.shard]
        row = self.table.rows[move.shard]
        cause = "forced" if move.forced else move.cause
        self.causes[move.shard] = cause
        out.append(Note(ShardMoved(move.shard, str(move.source), str(owner(row)), row.epoch, cause)))
        if move.reply_tag is not None:
            out.append(Reply(move.reply_tag, MoveDone(move.shard, owner(row), row.epoch, move.receipt)))


def _allocation_cause(former: ShardRow, row: ShardRow) -> str:
    if not former.node:
        return "first_placement"
    return "owner_returned" if former.node == row.node else "owner_lost"
