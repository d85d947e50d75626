"""What one node answers to other nodes about itself, and what it does when an operator asks it to, under `/node`."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from node.actors.cell import Phase
from node.ads.entities.adserver import AdServer
from node.ads.entities.site import Site
from node.core.clock import MS
from node.core.ids import SINGLETON_SHARD
from node.core.limits import coverage_keys_max, decisions_reported_max
from node.engine import topology
from node.engine.actorservice import ActorService
from node.engine.diagnosis import Diagnosis
from node.engine.indexservice import IndexService
from node.engine.messages import (
    DecisionsReport,
    EchoControl,
    EchoData,
    FindKeys,
    GetDecisions,
    GetLedger,
    GetNodeReport,
    KeysFound,
    LedgerReport,
    MapReport,
    NodeDone,
    NodeReport,
    RemoveMember,
    SiteReport,
    StopNode,
)
from node.engine.readiness import Check, Latches
from node.engine.removalservice import RemovalService
from node.engine.standing import Standing
from node.sharding.requests import REQUESTS
from node.wire.envelope import Envelope
from node.wire.ledger import STRANGER

if TYPE_CHECKING:
    from node.engine.engine import Engine

_OF_VIEWS: Final = ("adserver",)
_OF_SITES: Final = (*_OF_VIEWS, "site")


class NodeService:
    """Registers itself with the engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.actors = ActorService(engine)
        self.index = IndexService(engine)
        self.diagnosis = Diagnosis(engine)
        RemovalService(engine)
        Standing(engine, self)
        self._ready = Latches()
        self._started = Latches()
        # What the edges count: the HTTP server's limit and whom it shed, the replica's file.
        self.edges: list[Callable[[], dict[str, int]]] = []
        engine.services |= {
            GetNodeReport: self._report_wanted,
            GetLedger: self._ledger_wanted,
            FindKeys: self._keys_wanted,
            GetDecisions: self._decisions_wanted,
            StopNode: self._stop_wanted,
            RemoveMember: self._remove_wanted,
            EchoControl: self._echo_wanted,
            EchoData: self._echo_wanted,
        }
        for request in REQUESTS:
            engine.services[request] = self._sharding_wanted

    # ---- readiness

    def checks(self) -> tuple[Check, ...]:
        """What must hold for this node to take work."""
        drains = "" if self._engine.drain.accepts_work else "draining"
        return (*self._ready.look(self._needed()), Check("draining", drains))

    def start_phases(self) -> tuple[Check, ...]:
        """How far the start has come, in order; what was reached once stays reached."""
        return self._started.look(tuple(Check(c.name, c.reason, latches=True) for c in self._needed()))

    def _needed(self) -> tuple[Check, ...]:
        engine = self._engine
        joined = "" if engine.view.joined else engine.membership.why_not_joined or "waits for the leader"
        synchronised = f"replica synchronising: {engine.replication.machine.synchronising:.0%}"
        known = engine.sharding.region.complete()
        return (
            Check("joined", f"not joined: {joined}" if joined else ""),
            Check("replica", "" if engine.replication.ready else synchronised, latches=True),
            Check("placement", "" if known else "placement not known", latches=True),
        )

    def why_not_ready(self) -> tuple[str, ...]:
        """What keeps this node from taking work, in words; empty when it is ready."""
        return tuple(check.reason for check in self.checks() if not check.ok)

    def phases(self) -> tuple[str, ...]:
        """How far a start, or a drain, has come."""
        if self._engine.drain.active:
            return self._engine.drain.phases()
        return tuple(f"{p.name}: {'done' if p.ok else 'waiting'}" for p in self.start_phases())

    # ---- report

    def report(self, *, coverage: bool) -> NodeReport:
        engine = self._engine
        now_ns = engine.world.clock.mono_ns()
        wall_ms = engine.world.clock.wall_ms()
        running = engine.sharding.region.running()
        entities = engine.system.cells_by_shard()
        sites: list[SiteReport] = []
        served = requests = 0
        # Who watches asks each second: of ten thousand campaigns none is looked at.
        for cell in engine.system.cells(*(_OF_SITES if coverage else _OF_VIEWS)):
            if cell.phase is not Phase.RUNNING:
                continue
            if isinstance(cell.actor, AdServer):
                served += cell.actor.served_count
                requests += cell.actor.requests_count
            elif isinstance(cell.actor, Site):
                found = cell.actor.coverage(wall_ms)
                if found is not None:
                    sites.append(SiteReport(found.site, found.expected, found.present, found.missing, found.slots))
        coordinator = engine.sharding.coordinator.status()
        usage = resource.getrusage(resource.RUSAGE_SELF)
        mine = engine.view.unreachable.get(engine.me.name)
        return NodeReport(
            node=engine.me.name,
            incarnation=engine.me.incarnation,
            pid=os.getpid(),
            version=engine.config.member.app_version,
            uptime_ms=(now_ns - engine.started_ns) // MS,
            ready=not self.why_not_ready(),
            why_not_ready=self.why_not_ready(),
            phases=self.phases(),
            running=tuple((shard, epoch, entities.get(shard, 0)) for shard, epoch in sorted(running.items())),
            entities_by_kind=engine.system.cells_by_kind(),
            maps=tuple(
                MapReport(m.keys, m.bytes, m.tombstones, m.digest) for m in engine.replication.machine.map_status()
            ),
            replica_synchronised=engine.replication.ready,
            lag_ms=engine.replication.lag_ms(now_ns),
            sites=tuple(sites),
            faults=(*engine.faults.all(), *self.actors.faults()),
            counters=self.counters(),
            settings=engine.config.shown,
            coordinator_term=coordinator.term,
            coordinator_active=coordinator.active,
            served_count=served,
            requests_count=requests,
            rss_bytes=_rss_bytes(),
            cpu_ms=int((usage.ru_utime + usage.ru_stime) * 1_000),
            view_digest=engine.view.digest,
            view_converged=engine.view.converged,
            observers_against=tuple(str(o) for o in mine.observers) if mine else (),
            peers=engine.world.transport.peers(),
            why_not_joined=engine.membership.why_not_joined,
            living=tuple((s, epoch) for s, epoch in sorted(engine.system.owned().items()) if s != SINGLETON_SHARD),
            buffered=engine.sharding.region.buffers(now_ns),
            behind=engine.replication.behind(now_ns),
            pending_removals=engine.replication.machine.questions.pending_removal_count(),
            followers=engine.following.reports(),
            cordons=coordinator.cordons,
        )

    def counters(self) -> dict[str, int]:
        """Whatever was not handled, by reason, and totals (I9)."""
        engine = self._engine
        region = engine.sharding.region.counters
        found = {f"engine.{name}": count for name, count in engine.counters.items()}
        found |= {f"membership.{name}": count for name, count in engine.membership.counters.items()}
        found |= {f"actors.{name}": count for name, count in engine.system.stats().items()}
        found |= {
            f"deadletter.{reason}.{kind}": count
            for (reason, kind), count in engine.system.dead_letters.counters.items()
        }
        found |= {f"replica.{name}": count for name, count in engine.replication.machine.counters().items()}
        found |= {f"region.refused_{reason.value}": count for reason, count in region.refused.items()}
        found |= {
            "region.delivered": region.delivered,
            "region.forwarded": region.forwarded,
            "region.fenced": region.fenced,
            "serveindex.puts_refused": engine.index.puts_refused,
            "serveindex.undecodable": engine.index.undecodable,
            "serveindex.views_cut": engine.index.views_cut,
        }
        for cell in engine.system.cells(*_OF_VIEWS):
            if isinstance(cell.actor, AdServer):
                for name, count in cell.actor.beacons.items():
                    found[f"beacons.{name}"] = found.get(f"beacons.{name}", 0) + count
        strangers = engine.world.transport.ledger.totals().get(STRANGER.name, {})
        found |= {f"wire.stranger_{reason}": count for reason, count in strangers.items()}
        for edge in self.edges:
            found |= edge()
        return found

    # ---- services

    def _report_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetNodeReport):
            self._engine.reply(envelope, self.report(coverage=envelope.message.coverage))

    def ledger(self, peer: str = "") -> LedgerReport:
        """The conservation of messages between this node and a peer, or all of them."""
        engine = self._engine
        return LedgerReport(engine.me, engine.world.clock.wall_ms(), engine.world.transport.ledger.rows(peer))

    def _ledger_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetLedger):
            self._engine.reply(envelope, self.ledger(envelope.message.peer))

    def _decisions_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, GetDecisions):
            self._engine.reply(envelope, self.decisions(envelope.message.limit))

    def decisions(self, limit: int) -> DecisionsReport:
        """The newest split-brain decisions of this node; no more than fit a frame."""
        log = self._engine.members.decisions
        found = log.newest(min(limit, decisions_reported_max))
        return DecisionsReport(self._engine.me.name, found, log.unreadable)

    def _keys_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, FindKeys):
            replica, wall_ms = self._engine.replication.machine, self._engine.world.clock.wall_ms()
            found = tuple(k for k in message.keys[:coverage_keys_max] if replica.get(k, wall_ms) is not None)
            self._engine.reply(envelope, KeysFound(self._engine.me.name, found))

    def _sharding_wanted(self, envelope: Envelope) -> None:
        """Of this node's coordinator, on behalf of an operator."""
        message = envelope.message
        if isinstance(message, REQUESTS):
            engine = self._engine
            engine.sharding.request(message, lambda answer: engine.reply(envelope, answer))

    def _remove_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, RemoveMember):
            self._engine.reply(envelope, NodeDone(self._engine.members.remove(message.member, message.by)))

    def _echo_wanted(self, envelope: Envelope) -> None:
        if isinstance(envelope.message, (EchoControl, EchoData)):
            self._engine.reply(envelope, envelope.message)

    def _stop_wanted(self, envelope: Envelope) -> None:
        message = envelope.message
        if isinstance(message, StopNode):
            engine = self._engine
            changed = not engine.drain.active
            engine.reply(envelope, NodeDone(changed))
            self.stop(drain=message.drain, reason="an operator stops it")

    def stop(self, *, drain: bool, reason: str = "", final: bool = False) -> None:
        """Stop this node: drained first, unless the whole cluster stops or nobody could take over. `final`: whoever
        says so ends the process anyway."""
        engine = self._engine
        others = topology.peers(engine.view)
        moves = drain and not engine.freezing.on and bool(others)
        engine.drain.begin(moves=moves, reason=reason, final=final)


def _rss_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - a kernel file, read in one call
            return int(statm.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
