"""What the checkers are told of the state store: what it accepted, in commit order, and whom it refused."""

from __future__ import annotations

from collections.abc import Callable

from node.ads.entities.advertiser import AdvertiserState
from node.ads.entities.campaign_state import CampaignState
from node.ads.facts import Click, Impression
from node.core.clock import MS
from node.core.ids import NodeId
from node.sharding.coordinator import LEASE
from node.sim import history as h
from node.sim.trace import Trace
from node.store.port import (
    AcquireLease,
    Answer,
    DeleteState,
    Incarnation,
    LeaseGranted,
    NextIncarnation,
    PlacementWritten,
    Request,
    StateChange,
    WritePlacement,
    WriteState,
    Written,
)
from node.wire.codec import CODEC

_ACCOUNTS = ("campaign", "advertiser")


class Recorder:
    """Of one store. `refused`: see `refused_to`."""

    def __init__(self, trace: Trace, record: Callable[[h.Event], None]) -> None:
        self._trace = trace
        self._record = record
        self.refused: list[h.Refused] = []

    def submitted(self, now_ns: int, node: NodeId, request: Request) -> None:
        """A node has decided to ask for something; it may stand still before that leaves."""
        if isinstance(request, WritePlacement):
            self._record(h.Decided(now_ns, node, request.term))

    def applied(self, now_ns: int, node: NodeId, request: Request, answer: Answer) -> None:
        """The store has decided; its answer may never arrive."""
        match request, answer:
            case WriteState() | DeleteState(), _:
                words = f"{request.kind}:{request.id} shard {request.shard} epoch {request.epoch}"
                verb = "writes" if isinstance(request, WriteState) else "deletes"
                self._trace.add(f"{node} {verb} {words}: {type(answer).__name__}")
                if isinstance(answer, Written):
                    shard, epoch = request.shard, request.epoch
                    self._record(h.Wrote(now_ns, node, request.kind, request.id, shard, epoch, answer.revision))
                    self._money(now_ns, request)
            case WritePlacement(), _:
                words = f"{len(request.rows)} shards, term {request.term}"
                self._trace.add(f"{node} places {words}: {type(answer).__name__}")
                if isinstance(answer, PlacementWritten):
                    for row in request.rows:
                        self._record(h.Placed(now_ns, row.shard, NodeId(row.node, row.incarnation), row.epoch))
            case AcquireLease(), LeaseGranted() if request.name == LEASE:
                ttl_ns = answer.ttl_ms * MS
                self._record(h.Leased(now_ns, node, answer.term, now_ns + ttl_ns, ttl_ns))
            case NextIncarnation(), Incarnation():
                self._record(h.Started(now_ns, NodeId(request.node, answer.number)))
            case _:
                pass

    def refused_to(self, node: NodeId, request: StateChange) -> None:
        """A process has taken in that its write was fenced."""
        self.refused.append(h.Refused(node, request.shard, request.epoch))

    def _money(self, now_ns: int, request: StateChange) -> None:
        for stored in request.facts:
            if stored.type in ("fact.impression", "fact.click"):
                fact = CODEC.decode(stored.body)
                if isinstance(fact, Impression):
                    self._record(h.Counted(now_ns, "imp", fact.campaign, fact.request_id, fact.price_micros))
                elif isinstance(fact, Click):
                    self._record(h.Counted(now_ns, "click", fact.campaign, fact.request_id, 0))
        if request.kind not in _ACCOUNTS or not isinstance(request, WriteState):
            return
        state = CODEC.decode(request.body)
        if isinstance(state, CampaignState | AdvertiserState):
            b = state.budget
            self._record(
                h.Budget(
                    now_ns, request.kind, request.id, b.daily_budget_micros, b.spent_micros, b.escrow_micros, b.day
                )
            )
