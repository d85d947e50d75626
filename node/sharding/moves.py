"""The moves under way: each a state table of its own (`handoff`), here with their time limits, repeats and answers.

Belongs to one tenure. What a move asks for is done here, except that its rows are written: that is the tenure's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from statistics import median

from node.core import limits
from node.core.clock import MS
from node.core.ids import NodeId
from node.sharding.effects import Effect, MoveDone, Note, Reached, Refused, Reply, Send
from node.sharding.handoff import Move, MoveAction, MoveEvent, MoveState
from node.sharding.messages import BeginHandOff, HandOffDone, HandOffForced, ShardMoved
from node.sharding.nodes import ShardingSettings
from node.sharding.placement import PlacementTable, owner
from node.sharding.requests import UnderWay
from node.store.port import ShardState


class Moves:
    """By shard. `causes` says why each shard is where it is, as far as this tenure knows; `revision` counts what has
    changed: moves that began, ended, or went on to another state."""

    def __init__(self, table: PlacementTable, settings: ShardingSettings) -> None:
        self.by_shard: dict[int, Move] = {}
        self.causes: dict[int, str] = {}
        self.receipts_late = 0
        self.revision = 0
        self._table = table
        self._settings = settings
        self._took_ms: deque[int] = deque(maxlen=limits.handoffs_timed)

    def __len__(self) -> int:
        return len(self.by_shard)

    def __iter__(self) -> Iterator[Move]:
        return iter(list(self.by_shard.values()))

    def __contains__(self, shard: int) -> bool:
        return shard in self.by_shard

    @property
    def typical_ms(self) -> int:
        """How long a hand-off takes here: the median of the newest ones."""
        return int(median(self._took_ms)) if self._took_ms else limits.handoff_typical_ms

    def begin(self, shard: int, target: NodeId | None, cause: str, now_ns: int, reply_tag: int | None = None) -> None:
        """Plan a move of a shard away from its present owner."""
        row = self._table.rows[shard]
        self.revision += 1
        self.by_shard[shard] = Move(shard, row.epoch, owner(row), target, cause, reply_tag, entered_ns=now_ns)

    def under_way(self) -> int:
        """Those whose owner may have been told already."""
        return sum(1 for move in self.by_shard.values() if move.state is not MoveState.PLANNED)

    def fire(self, move: Move, event: MoveEvent, now_ns: int, out: list[Effect]) -> None:
        """Let `event` happen to a move, and do what that asks for."""
        before = move.state
        action = move.fire(event)
        if move.state is not before:
            self.revision += 1
            move.entered_ns = now_ns
        if action is MoveAction.ASK:
            move.began_ns = move.began_ns or now_ns
            move.deadline_ns = now_ns + self._settings.handoff_ms * MS
            self._ask(move, now_ns, out)
        elif action is MoveAction.FORCE:
            out.append(Note(HandOffForced(move.shard, str(move.source), move.epoch)))
        elif action is MoveAction.COUNT_LATE:
            self.receipts_late += 1
        elif action is MoveAction.FINISH:
            self._finish(move, now_ns, out)
        elif action is MoveAction.DROP:
            self._forget(move)
            if move.reply_tag is not None:
                out.append(Reply(move.reply_tag, Refused("target_gone", str(move.target))))

    def receipt(self, sender: NodeId, message: HandOffDone, now_ns: int) -> list[Effect]:
        """An owner says that a shard stopped. One that nobody waits for any more is counted."""
        out: list[Effect] = []
        move = self.by_shard.get(message.shard)
        if move is None or move.source != sender or move.epoch != message.epoch:
            self.receipts_late += 1
            return out
        if move.awaits_receipt:
            move.receipt = message.receipt
            out.append(Reached("handoff.acknowledged"))
        self.fire(move, MoveEvent.RECEIPT, now_ns, out)
        return out

    def tick(self, now_ns: int) -> list[Effect]:
        """Time limits and repeats of hand-offs."""
        out: list[Effect] = []
        for move in self:
            if not move.awaits_receipt:
                continue
            if now_ns >= move.deadline_ns:
                self.fire(move, MoveEvent.DEADLINE, now_ns, out)
            elif now_ns >= move.resend_ns:
                self._ask(move, now_ns, out)
        return out

    def reconcile(
        self, live: frozenset[NodeId], wanted: Callable[[int], tuple[NodeId | None, str]], now_ns: int
    ) -> list[Effect]:
        """Bring the moves into line with the table: what it says is what happened. Rows that are *moving* without a
        move were marked by a former coordinator; `wanted` tells where they should go and why."""
        out: list[Effect] = []
        for move in self:
            row = self._table.rows[move.shard]
            if move.epoch != row.epoch:
                self._forget(move)
                if move.reply_tag is not None:
                    out.append(Reply(move.reply_tag, Refused("superseded", str(owner(row)))))
        for row in self._table.rows:
            if row.state is not ShardState.MOVING:
                continue
            if row.shard not in self.by_shard:
                self.begin(row.shard, *wanted(row.shard), now_ns)
            move = self.by_shard[row.shard]
            self.fire(move, MoveEvent.MARKED, now_ns, out)
            if move.source not in live:
                self.fire(move, MoveEvent.OWNER_GONE, now_ns, out)
        return out

    def views(self, now_ns: int) -> tuple[UnderWay, ...]:
        """All of them, with how long they have been under way and how long one ask may take."""
        limit_ms = self._settings.handoff_ms
        return tuple(
            UnderWay(
                move.shard,
                str(move.source),
                str(move.target or ""),
                move.state.value,
                move.cause,
                (now_ns - (move.began_ns or move.entered_ns)) // MS,
                limit_ms if move.state is not MoveState.PLANNED else 0,
            )
            for move in self
        )

    def _ask(self, move: Move, now_ns: int, out: list[Effect]) -> None:
        move.resend_ns = now_ns + self._settings.handoff_resend_ms * MS
        out.append(Send(move.source.name, BeginHandOff(move.shard, move.epoch)))
        out.append(Reached("handoff.stop_sent"))

    def _forget(self, move: Move) -> None:
        self.revision += 1
        del self.by_shard[move.shard]

    def _finish(self, move: Move, now_ns: int, out: list[Effect]) -> None:
        self._forget(move)
        row = self._table.rows[move.shard]
        self.causes[move.shard] = move.final_cause
        if move.began_ns:
            self._took_ms.append((now_ns - move.began_ns) // MS)
        out.append(Note(ShardMoved(move.shard, str(move.source), str(owner(row)), row.epoch, move.final_cause)))
        if move.reply_tag is not None:
            out.append(Reply(move.reply_tag, MoveDone(move.shard, owner(row), row.epoch, move.receipt)))
