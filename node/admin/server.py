"""The admin protocol's server side: one request in, one answer out, and live pushes to those who subscribe."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec

from node.admin import absences, views
from node.admin import protocol as p
from node.admin.actor_changes import ActorChanges
from node.admin.actor_requests import ActorRequests
from node.admin.asking import TIMEOUT_MS_MAX, ends_ns
from node.admin.audit_requests import AuditRequests
from node.admin.business_requests import BusinessRequests
from node.admin.campaign_explaining import CampaignExplaining
from node.admin.check_requests import CheckRequests
from node.admin.cluster_repair import ClusterRepair
from node.admin.cluster_requests import ClusterRequests
from node.admin.coverage_requests import CoverageRequests
from node.admin.decision_requests import DecisionRequests
from node.admin.diagnosis_requests import DiagnosisRequests
from node.admin.domain_requests import DomainRequests
from node.admin.drills import Drills
from node.admin.fact_requests import FactRequests
from node.admin.fact_status import FactStatusRequests
from node.admin.forecasts import DomainForecasts
from node.admin.gather import Gatherer
from node.admin.guard import Guard
from node.admin.held_elsewhere import HeldElsewhere
from node.admin.held_plans import HeldPlans
from node.admin.index_changes import IndexRepair
from node.admin.index_diff import IndexDiff
from node.admin.index_load import IndexLoad
from node.admin.index_requests import IndexRequests
from node.admin.index_verify import Check, IndexVerify
from node.admin.journal_requests import JournalRequests
from node.admin.ledger_requests import LedgerRequests
from node.admin.live import Live
from node.admin.member_requests import MemberRequests
from node.admin.operation_requests import OperationRequests
from node.admin.order_plans import OrderPlans
from node.admin.outcomes import bad_input
from node.admin.plan_requests import PlanRequests
from node.admin.probe_requests import ProbeRequests
from node.admin.protocol.cluster import AbsentNode
from node.admin.removal_requests import RemovalRequests
from node.admin.replay_requests import ReplayRequests
from node.admin.serve_probes import ServeProbes
from node.admin.shard_requests import ShardRequests
from node.admin.site_explaining import SiteExplaining
from node.admin.states import States
from node.admin.uploads import Uploads
from node.admin.work_forecasts import WorkForecasts
from node.ads.classifier import Classifier
from node.core.clock import MS, rfc3339
from node.core.errors import BadInput, LocalProtocolError, OperatingError, RemoteProtocolError
from node.core.limits import admin_request_bytes_max
from node.engine.engine import Engine
from node.engine.nodeservice import NodeService
from node.flows.state import OperationState
from node.wire.codec import CODEC, dumps, loads
from node.wire.port import SendOutcome
from node.wire.roster import OperatorRole

_log = logging.getLogger(__name__)
SECOND_LOOK_S = 0.15
STORE_LOOK_S = 1.0

# (request, meta) -> (reply, meta): the meta that a handler gives back may name who did not answer.
Handler = Callable[[Any, p.Meta], Awaitable[tuple[msgspec.Struct, p.Meta]]]
# Sends an answer; what became of it.
Reply = Callable[[bytes], SendOutcome]


class AdminServer:
    """Dispatches requests by their type. `handlers` is filled by the request modules; `roster` names the nodes that
    may join, so that one that is missing can be missed; `check` checks this node's replica file, if it has one."""

    def __init__(
        self,
        engine: Engine,
        service: NodeService,
        classifier: Classifier,
        roster: tuple[str, ...] = (),
        check: Check | None = None,
    ) -> None:
        self.engine = engine
        self.roster = roster
        self.service = service
        self.classifier = classifier
        self.gatherer = Gatherer(engine, service)
        self.states = States(engine)
        self.handlers: dict[type[msgspec.Struct], Handler] = {}
        self.guard = Guard(engine)
        self._tasks: set[asyncio.Task[None]] = set()
        self._requests_before = (0, 0)
        AuditRequests(self)
        FactRequests(self)
        self._ledger = LedgerRequests(self)
        ClusterRequests(self)
        DecisionRequests(self)
        PlanRequests(self)
        self._shards = ShardRequests(self)
        self.fact_status = FactStatusRequests(self)
        CheckRequests(self)
        ProbeRequests(self)
        DomainRequests(self)
        BusinessRequests(self)
        CoverageRequests(self)
        ServeProbes(self)
        SiteExplaining(self)
        CampaignExplaining(self)
        self.operations = OperationRequests(self)
        ReplayRequests(self)
        held = self.held = HeldPlans(self)
        self.guard.staged = held.staged
        HeldElsewhere(self, held)
        self.orders = OrderPlans(self, held)
        DomainForecasts(self, self.orders)
        WorkForecasts(self, self.orders)
        ActorChanges(self, ActorRequests(self), held)
        MemberRequests(self, held)
        index = IndexRequests(self)
        IndexRepair(self, index, IndexDiff(self, index), held)
        IndexLoad(self, index, held)
        RemovalRequests(self, index, held)
        DiagnosisRequests(self)
        JournalRequests(self, held)
        ClusterRepair(self, held)
        Drills(self, held)
        self._verify = IndexVerify(self, index, check) if check is not None else None
        self.uploads = Uploads(self)
        self.live = Live(self)

    def on_request(self, who: str, client: Any, data: bytes, reply: Reply) -> None:
        """One document `[id, timeout_ms, name, version, body]` of an operator; `client` identifies the connection."""
        try:
            number, timeout_ms, request = _parse(data)
        except RemoteProtocolError as error:
            self.engine.counters[f"admin_{error.reason}"] += 1
            refused_id = _number(data)
            if refused_id is not None:
                text = "this node does not know that request; it is another release"
                if error.reason != "unregistered":
                    text = f"the request can't be read: {error.detail[:200] or error.reason}"
                refused = p.AdminError(code="E-PROTOCOL", exit=14, message=text)
                reply(self._document(refused_id, self.meta(), refused))
            return
        if isinstance(request, p.Subscribe) and self.guard.role(who) is not None:
            self.live.subscribe(client, number, request, reply)
            reply(self._document(number, self.meta(), p.Subscribed()))
            return
        task = asyncio.create_task(self._answer(who, number, timeout_ms, request, reply))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, who: str, number: int, timeout_ms: int, request: msgspec.Struct, reply: Reply) -> None:
        meta = self.meta()
        answer: msgspec.Struct
        try:
            handler = self.handlers.get(type(request))
            if handler is None:  # nothing that anybody could be allowed
                raise p.AdminRefusal(14, "E-PROTOCOL", f"{type(request).__name__} is not a request")
            self.guard.seen(who)
            answer, meta = await self.guard.passed(
                who,
                self.guard.role(who),
                request,
                meta,
                lambda: self.carried_out(handler, who, timeout_ms, request, meta),
            )
        except OperatingError as error:
            answer = _as_error(error)
        reply(self._document(number, meta, answer))

    async def asked(self, who: str, role: OperatorRole, request: msgspec.Struct, timeout_ms: int) -> msgspec.Struct:
        """What another edge asks in the name of somebody who is no operator: it passes the same guard, in that role.
        Raises AdminRefusal."""
        handler, meta = self.handlers[type(request)], self.meta()
        answer, _ = await self.guard.passed(
            who, role, request, meta, lambda: self.carried_out(handler, who, timeout_ms, request, meta)
        )
        if isinstance(answer, p.AdminError):
            raise p.AdminRefusal(answer.exit, answer.code, answer.message, hint=answer.hint, about=answer.object)
        return answer

    async def carried_out(
        self, handler: Handler, who: str, timeout_ms: int, request: msgspec.Struct, meta: p.Meta
    ) -> tuple[msgspec.Struct, p.Meta]:
        """The handler's answer; what it raises becomes an answer, too."""
        bounded_ms = min(max(timeout_ms, 100), TIMEOUT_MS_MAX)
        ends_ns.set(self.engine.world.clock.mono_ns() + bounded_ms * MS)
        try:
            async with asyncio.timeout(bounded_ms / 1_000):
                return await handler(request, meta)
        except TimeoutError:
            return p.AdminError(code="E-TIMEOUT", exit=9, message="the cluster did not answer in time"), meta
        except OperatingError as error:
            return _as_error(error), meta
        except Exception:
            _log.exception("an admin request failed: %s by %s", type(request).__name__, who)
            return p.AdminError(code="E-BUG", exit=1, message=f"a fault in {self.engine.me.name}; see its log"), meta

    def meta(self) -> p.Meta:
        return p.Meta(
            cluster_name=self.engine.config.cluster.name,
            cluster_id=self.engine.config.cluster.id,
            observed_at=rfc3339(self.engine.world.clock.wall_ms()),
            observed_by=self.engine.me.name,
        )

    async def shard_check(self, call: p.Meta) -> tuple[p.ShardCheck, p.Meta]:
        """The four views compared now: what repairs are made of."""
        return await self._shards.check(p.GetShardCheck(), call)

    def warned(self, meta: p.Meta, code: str, text: str) -> p.Meta:
        return msgspec.structs.replace(meta, warnings=(*meta.warnings, p.Warned(code=code, text=text)))

    def with_missing(self, meta: p.Meta, missing: tuple[p.Missing, ...]) -> p.Meta:
        return msgspec.structs.replace(meta, missing=missing)

    async def status(self, meta: p.Meta, but: tuple[p.Missing, ...] = ()) -> tuple[p.ClusterStatus, p.Meta]:
        """The cluster's status, gathered now; of all but those that are not asked, who stay missing."""
        reports, missing = await self.gatherer.reports(but=but)
        if not missing and not views.replicas_agree(reports):
            # A write between two nodes' reports looks like a difference; one that stays is one.
            await asyncio.sleep(SECOND_LOOK_S)
            reports, missing = await self.gatherer.reports()
        known_sites = await self.known_sites()
        total = sum(report.requests_count for report in reports.values())
        now_ns = self.engine.world.clock.mono_ns()
        before, at_ns = self._requests_before
        rate = (total - before) * 1e9 / (now_ns - at_ns) if at_ns and total >= before and now_ns > at_ns else 0.0
        self._requests_before = (total, now_ns)
        rows = self.engine.sharding.region.homes()
        status = views.cluster_status(self.engine.view, rows, reports, known_sites, round(rate, 1))
        status = msgspec.structs.replace(
            status,
            nodes=views.with_keys(status.nodes, self.guard.roster()),
            absent=await self.absent(),
        )
        if known_sites is None:
            meta = self.warned(
                meta, "E-STORE", "the state store does not say which sites there are: coverage is unknown"
            )
        return status, self.with_missing(meta, missing)

    async def absent(self) -> tuple[AbsentNode, ...]:
        """Who is missed. Whether one that went as it was told to was to come back stands with the operations, which
        are looked through only then; while the store does not answer it is taken for one that was to go."""
        engine = self.engine
        missed = partial(
            absences.absences,
            self.roster,
            engine.view.members,
            engine.membership.state.members,
            engine.members.went_ms,
        )
        found = missed()
        if all(each.went != absences.DRAINED for each in found):
            return found
        try:
            async with asyncio.timeout(STORE_LOOK_S):
                return missed(absences.awaited(await self.states.all("operation", OperationState)))
        except (p.AdminRefusal, TimeoutError):
            return found

    async def known_sites(self) -> frozenset[str] | None:
        """The sites that the store holds; None when it does not answer, for which nothing else may wait."""
        try:
            async with asyncio.timeout(STORE_LOOK_S):
                return frozenset(await self.states.ids("site"))
        except (p.AdminRefusal, TimeoutError):
            return None

    def push(self, number: int, meta: p.Meta, message: msgspec.Struct, reply: Reply) -> SendOutcome:
        """A document under a subscription's id."""
        return reply(self._document(number, meta, message))

    async def close(self) -> None:
        """Stop pushing; let running answers end."""
        self.live.close()
        if self._verify is not None:
            await self._verify.close()
        await self._ledger.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=2)

    def _document(self, number: int, meta: p.Meta, answer: msgspec.Struct) -> bytes:
        _, _, meta_body = CODEC.body_of(meta)
        try:
            document = dumps([number, meta_body, *CODEC.body_of(answer)])
        except LocalProtocolError:
            document = b""  # more items than a message may hold
        if 0 < len(document) <= admin_request_bytes_max:
            return document
        refused = p.AdminError(code="E-TOO-LARGE", exit=15, message="the answer is larger than one message may be")
        return dumps([number, meta_body, *CODEC.body_of(refused)])


def _parse(data: bytes) -> tuple[int, int, msgspec.Struct]:
    document = loads(data)
    if not isinstance(document, list) or len(document) != 5:
        raise RemoteProtocolError("malformed", "not [id, timeout_ms, name, version, body]")
    number, timeout_ms, name, version, body = document
    if not isinstance(number, int) or not isinstance(timeout_ms, int):
        raise RemoteProtocolError("malformed", "id or timeout is not a number")
    return number, timeout_ms, CODEC.message_of(name, version, body)


def _number(data: bytes) -> int | None:
    """Under which id to refuse a document that can't be read; None when not even that can."""
    try:
        document = loads(data)
    except RemoteProtocolError:
        return None
    return document[0] if isinstance(document, list) and document and isinstance(document[0], int) else None


def _as_error(error: OperatingError) -> p.AdminError:
    refusal = error if isinstance(error, p.AdminRefusal) else None
    if refusal is None and isinstance(error, BadInput):
        refusal = bad_input(error)
    if refusal is None:
        return p.AdminError(code=error.code, exit=15, message=error.message, hint=error.hint)
    return p.AdminError(
        code=refusal.code,
        exit=refusal.exit_status,
        message=refusal.message,
        hint=refusal.hint,
        object=refusal.about,
        operation=refusal.operation,
    )
