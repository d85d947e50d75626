"""The shard coordinator: on the oldest `singleton` member that reaches the store, under the lease `shard-coordinator`.

What its driver owes it: one `StoreAnswered` for each `StoreCall`, whenever it comes; a `Tick` at least every 100 ms;
`NodesChanged` when the entity members or who coordinates change: while `storeless`, another should. Effects are
carried out in order. Messages may be lost, repeated or late.

What it promises: no region hears of a row that isn't durable; every row was written under a term of the lease, which
the store checks (I1); when the lease's safe end has passed, it decides nothing, whatever answers are still to come.
At most one change of the table is in flight.
"""

from __future__ import annotations

from node.core.check import invariant
from node.core.clock import MS
from node.core.ids import NodeId
from node.core.rng import Rng
from node.gossip.replica_roster import ReplicaRoster
from node.sharding.book import REPLICAS_KEY
from node.sharding.effects import (
    Answered,
    Broadcast,
    CoordinatorEvent,
    Effect,
    MoveRequested,
    NodesChanged,
    Note,
    Received,
    Refused,
    Reply,
    Requested,
    Send,
    Stepdown,
    StepUp,
    StoreAnswered,
    StoreCall,
    Tick,
)
from node.sharding.lease import Lease
from node.sharding.messages import (
    CoordinatorElected,
    CoordinatorLost,
    DrainWanted,
    HandOffDone,
    HandOffSettled,
    HomesWanted,
    PlacementVersion,
)
from node.sharding.nodes import EntityNodes, ShardingSettings
from node.sharding.reach import Reach
from node.sharding.requests import Answer as OperatorAnswer
from node.sharding.requests import Declined
from node.sharding.tenure import Tenure
from node.sharding.views import CoordinatorStatus, MoveView
from node.store.port import (
    AcquireLease,
    Answer,
    Conflict,
    Fenced,
    LeaseGranted,
    LeaseHeld,
    Placement,
    PlacementWritten,
    ReadPlacement,
    ReleaseLease,
    Request,
    StoreFailed,
    WritePlacement,
)

LEASE = "shard-coordinator"


class Coordinator:
    """See the module. One per node with the role `singleton`; it idles while another node is the oldest."""

    def __init__(self, me: NodeId, settings: ShardingSettings, rng: Rng) -> None:
        self._me = me
        self._settings = settings
        self._rng = rng
        self._lease = Lease(LEASE, str(me), settings.lease_ms)
        self._reach = Reach(settings.lease_ms * MS)
        self._probe_ns = 0
        self._nodes = EntityNodes()
        self._draining: set[NodeId] = set()
        self._stepped_down = False
        self._tenure: Tenure | None = None
        self._active = False
        self._tag = 0
        self._calls: dict[int, Request] = {}
        self._table_call = 0  # the tag of the table's read or write in flight, 0 for none
        self._table_call_after_ns = 0
        self._replies: tuple[tuple[int, OperatorAnswer], ...] = ()  # due when the table's write in flight is durable
        self._wall_ms = 0
        self._stale = True
        self._digest_ns = 0

    def step(self, event: CoordinatorEvent, now_ns: int) -> list[Effect]:
        """Take one event; the effects, in order."""
        out: list[Effect] = []
        self._reach.pass_time(now_ns)
        if self._lease.expired(now_ns):
            self._lose("expired", out)
        match event:
            case Tick(wall_ms=wall_ms):
                self._tick(wall_ms, now_ns, out)
            case NodesChanged():
                self._nodes_changed(event.nodes, now_ns, out)
            case Received():
                self._received(event, now_ns, out)
            case StoreAnswered():
                self._answered(event.tag, event.answer, now_ns, out)
            case MoveRequested():
                acting = self._acting()
                tag = event.tag
                out.extend(acting.move(event.shard, event.to, tag, now_ns) if acting else [_not_coordinator(tag)])
            case Requested(request=request, tag=tag):
                acting = self._acting()
                declined = Answered(tag, Declined("not_coordinator"))
                out.extend(acting.request(request, tag, self._me, now_ns) if acting else [declined])
            case Stepdown():
                self._stepped_down = True
            case StepUp():
                self._stepped_down = False
        self._drive(now_ns, out)
        if any(isinstance(effect, StoreCall) for effect in out):
            self._reach.asked(now_ns)
        return out

    def status(self) -> CoordinatorStatus:
        tenure = self._tenure
        counts = tenure.table.counts() if tenure else {}
        moves = tenure.moves if tenure else ()
        return CoordinatorStatus(
            term=self._lease.term,
            active=self._active,
            held_by=self._lease.held_by,
            version=tenure.table.version if tenure else 0,
            moves=tuple(MoveView(m.shard, str(m.source), str(m.target or ""), m.state.value, m.cause) for m in moves),
            draining=tuple(sorted((str(n), counts.get(n, 0)) for n in self._draining)),
            causes=tuple(sorted(tenure.moves.causes.items())) if tenure else (),
            receipts_late=tenure.moves.receipts_late if tenure else 0,
            waits=tenure.decider.waits() if tenure and self._active else "",
            cordons=tuple(sorted(tenure.book.cordons)) if tenure else (),
        )

    @property
    def leads(self) -> bool:
        """Whether this node decides now: it holds the lease and has read the table."""
        return self._active

    @property
    def storeless(self) -> bool:
        """Whether the store has not answered this node for a lease's time: another should coordinate."""
        return self._reach.lost

    @property
    def replicas(self) -> ReplicaRoster | None:
        """The roster of replicas, which holds while this node decides; None when it doesn't, or can't read it."""
        if not self._active or self._tenure is None or REPLICAS_KEY in self._tenure.book.unreadable:
            return None
        return self._tenure.book.replicas

    @property
    def at_rest(self) -> bool:
        """Whether no call, move or read of the table is under way: time changes nothing but renewals and balance."""
        if self._calls or self._table_call:
            return False
        if self._nodes.coordinator != self._me:
            return True
        return self._active and not self._stale and self._tenure is not None and not self._tenure.moves

    def validate(self) -> None:
        """The relations between parts that always hold."""
        invariant((self._tenure is not None) == self._lease.held, "coordinator-tenure", term=self._lease.term)
        invariant(not self._active or self._tenure is not None, "coordinator-active")
        if self._tenure:
            for move in self._tenure.moves:
                invariant(move.epoch == self._tenure.table.rows[move.shard].epoch, "coordinator-move", move=move)

    # ---- events

    def _acting(self) -> Tenure | None:
        return self._tenure if self._active else None

    def _tick(self, wall_ms: int, now_ns: int, out: list[Effect]) -> None:
        self._wall_ms = wall_ms
        acting = self._acting()
        if acting is None:
            return
        out.extend(acting.tick(wall_ms, now_ns))
        if now_ns >= self._digest_ns:
            self._digest_ns = now_ns + self._settings.digest_ms * MS
            out.append(Broadcast(PlacementVersion(acting.table.version, acting.term)))

    def _nodes_changed(self, nodes: EntityNodes, now_ns: int, out: list[Effect]) -> None:
        self._nodes = nodes
        self._draining &= nodes.live()
        if nodes.coordinator != self._me:
            self._stepped_down = False
        if self._tenure:
            out.extend(self._tenure.nodes_changed(nodes, now_ns))

    def _received(self, event: Received, now_ns: int, out: list[Effect]) -> None:
        acting = self._acting()
        match event.message:
            case HandOffDone() as done if acting:
                out.extend(acting.handoff_done(event.sender, done, now_ns))
            case HandOffSettled() as settled if acting:
                acting.settled(settled)
            case HomesWanted(version=version) if acting:
                if version < acting.table.version:
                    out.append(Send(event.sender.name, acting.homes()))
            case DrainWanted(on=True):
                if event.sender in self._nodes.live() and event.sender not in self._draining:
                    self._drain(event.sender, now_ns, out)
            case DrainWanted(on=False):
                self._undrain(event.sender, now_ns, out)
            case _:
                pass  # for who coordinates; the sender asks again

    def _drain(self, node: NodeId, now_ns: int, out: list[Effect]) -> None:
        self._draining.add(node)
        if self._tenure:
            out.extend(self._tenure.targets_changed(now_ns))

    def _undrain(self, node: NodeId, now_ns: int, out: list[Effect]) -> None:
        if node not in self._draining:
            return
        self._draining.discard(node)
        if self._tenure:
            out.extend(self._tenure.undrained(node, now_ns))
            out.extend(self._tenure.targets_changed(now_ns))

    # ---- the store's answers

    def _answered(self, tag: int, answer: Answer, now_ns: int, out: list[Effect]) -> None:
        request = self._calls.pop(tag, None)
        self._reach.answered(not isinstance(answer, StoreFailed), now_ns)
        if isinstance(request, AcquireLease):
            self._lease_answered(answer, now_ns, out)
        elif tag == self._table_call:
            self._table_call = 0
            if isinstance(request, WritePlacement):
                self._write_answered(request, answer, now_ns, out)
            else:
                self._read_answered(answer, now_ns, out)

    def _lease_answered(self, answer: Answer, now_ns: int, out: list[Effect]) -> None:
        match answer:
            case LeaseGranted(term=term, ttl_ms=ttl_ms):
                self._reach.found()
                if self._lease.granted(term, ttl_ms):
                    self._begin(now_ns, out)
                if self._lease.expired(now_ns):
                    self._lose("expired", out)
            case LeaseHeld(holder=holder, left_ms=left_ms):
                self._lose("held_by_other", out)
                # never longer than a renewal's distance, since a holder may give it up early
                retry_ms = min(left_ms, self._settings.lease_ms // 3) + self._rng.randrange(50) + 1
                self._lease.refused(holder, retry_ms, now_ns)
            case _:
                self._lease.failed(now_ns)

    def _begin(self, now_ns: int, out: list[Effect]) -> None:
        if self._tenure:
            out.append(Note(CoordinatorLost(str(self._me), self._tenure.term, "new_term")))
        self._tenure = Tenure(self._lease.term, self._settings, self._nodes, self._draining, now_ns)
        self._tenure.tick(self._wall_ms, now_ns)
        self._active = False
        self._stale = True
        self._table_call = 0
        self._table_call_after_ns = 0
        out.append(Note(CoordinatorElected(str(self._me), self._lease.term)))

    def _lose(self, reason: str, out: list[Effect]) -> None:
        """Stop at once; answers still to come find nobody."""
        if self._tenure is None:
            return
        term = self._tenure.term
        out.extend(self._tenure.abandon(reason))
        out.extend(Answered(tag, Declined("coordinator_lost", reason)) for tag, _ in self._replies)
        self._replies = ()
        self._tenure = None
        self._active = False
        self._table_call = 0
        request = self._lease.drop()
        if reason == "stepped_down":
            self._call(request, out)
        out.append(Note(CoordinatorLost(str(self._me), term, reason)))

    def _read_answered(self, answer: Answer, now_ns: int, out: list[Effect]) -> None:
        if self._tenure and isinstance(answer, Placement):
            self._stale = False
            self._active = True
            out.extend(self._tenure.read(answer, now_ns))
        else:
            self._table_call_after_ns = now_ns + self._settings.digest_ms * MS // 5

    def _write_answered(self, request: WritePlacement, answer: Answer, now_ns: int, out: list[Effect]) -> None:
        match answer:
            case PlacementWritten(version=version) if self._tenure:
                out.extend(self._tenure.written(request.rows, request.book, version, now_ns))
                out.extend(Answered(tag, answer) for tag, answer in self._replies)
                self._replies = ()
            case Fenced():
                self._lose("fenced", out)
            case Conflict():
                self._stale = True
            case StoreFailed(definite=definite):
                self._stale = not definite  # what may have been written must be read before the next decision
                self._table_call_after_ns = now_ns + self._settings.digest_ms * MS // 5
            case _:
                self._stale = True
        out.extend(Answered(tag, Declined("store_failed", "it may have been done: look")) for tag, _ in self._replies)
        self._replies = ()

    # ---- what is to be done next

    def _drive(self, now_ns: int, out: list[Effect]) -> None:
        if self._nodes.coordinator != self._me or self._stepped_down:
            self._lose("stepped_down", out)
            if self._reach.lost and now_ns >= self._probe_ns:  # nobody else would find out that it is over
                self._probe_ns = now_ns + self._settings.lease_ms * MS // 3
                self._call(ReadPlacement(), out)
            return
        if self._lease.due(now_ns):
            self._call(self._lease.ask(now_ns), out)
        tenure = self._tenure
        if tenure is None or self._table_call or now_ns < self._table_call_after_ns:
            return
        if self._stale:
            self._table_call = self._call(ReadPlacement(), out)
            return
        while True:
            change = tenure.decider.decide(now_ns)
            if change or not change.replies:
                break
            out.extend(Answered(tag, answer) for tag, answer in change.replies)  # meanwhile it has become nothing
        if change:
            version = tenure.table.version
            request = WritePlacement(LEASE, str(self._me), tenure.term, version, change.rows, change.book)
            self._replies = change.replies
            self._table_call = self._call(request, out)

    def _call(self, request: Request, out: list[Effect]) -> int:
        self._tag += 1
        if not isinstance(request, ReleaseLease):
            self._calls[self._tag] = request
        out.append(StoreCall(self._tag, request))
        return self._tag


def _not_coordinator(tag: int) -> Reply:
    return Reply(tag, Refused("not_coordinator"))
